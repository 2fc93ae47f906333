/** Address look-up at the map provider. When it is away we accept the address and mark it, rather than refuse a sale. */
import type { RetryBudget } from "./retryBudget.js";
import type { Address } from "./types.js";

export type Located =
  | { readonly kind: "found"; readonly latitude: number; readonly longitude: number }
  | { readonly kind: "unknown" }
  | { readonly kind: "unchecked"; readonly reason: string };

const TIMEOUT_MS = 800;

export class Geocoder {
  constructor(
    private readonly cartographUrl: string,
    private readonly token: string,
    private readonly budget: RetryBudget,
    private readonly fetcher: typeof fetch = fetch,
  ) {}

  async locate(address: Address): Promise<Located> {
    const query = new URLSearchParams({
      q: [address.line1, address.postcode, address.city].join(", "),
      country: address.country,
      limit: "1",
    });
    const response = await this.get(`${this.cartographUrl}/search?${query}`);
    if (response === undefined) {
      return { kind: "unchecked", reason: "map provider did not answer" };
    }
    const { features } = (await response.json()) as { features: { lat: number; lon: number }[] };
    if (features.length === 0) {
      return { kind: "unknown" };
    }
    return { kind: "found", latitude: features[0].lat, longitude: features[0].lon };
  }

  private async get(url: string, attempt = 1): Promise<Response | undefined> {
    try {
      const response = await this.fetcher(url, {
        headers: { authorization: `Bearer ${this.token}` },
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      if (response.ok) {
        this.budget.deposit();
        return response;
      }
      if (response.status < 500 && response.status !== 429) {
        return undefined;
      }
    } catch (error) {
      if (!(error instanceof DOMException || error instanceof TypeError)) {
        throw error;
      }
    }
    return attempt < 2 && this.budget.tryWithdraw() ? this.get(url, attempt + 1) : undefined;
  }
}
