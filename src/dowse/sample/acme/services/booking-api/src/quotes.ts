/** gRPC client of quote-engine. A late price is no price: the deadline is short and retries are budgeted. */
import { credentials, loadPackageDefinition, status, type ServiceError } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

import type { RetryBudget } from "./retryBudget.js";
import { Problem, type Parcel, type Quote } from "./types.js";

const PROTO = "../../proto/wrenfold/quotes/v1/quotes.proto";
const RETRYABLE = new Set([status.UNAVAILABLE, status.RESOURCE_EXHAUSTED]);

export class QuoteUnavailableError extends Error {}

export class QuoteClient {
  private readonly stub: any;

  constructor(
    address: string,
    private readonly deadlineMs: number,
    private readonly budget: RetryBudget,
  ) {
    const definition = loadPackageDefinition(loadSync(PROTO, { keepCase: false, longs: Number })) as any;
    this.stub = new definition.wrenfold.quotes.v1.QuoteService(address, credentials.createInsecure(), {
      // Without this a pod that restarts keeps receiving calls for as long as DNS is cached.
      "grpc.max_connection_age_ms": 300_000,
      "grpc.service_config": JSON.stringify({ loadBalancingConfig: [{ round_robin: {} }] }),
    });
  }

  /** The quote the merchant was shown, still valid, or an error that says why not. */
  async confirm(quoteId: string, parcel: Parcel): Promise<Quote> {
    const response = await this.call("GetQuote", { quoteId, parcel });
    const validUntil = new Date(Number(response.validUntil.seconds) * 1000);
    if (validUntil.getTime() < Date.now()) {
      throw new Problem(409, "WF-4091", "QUOTE_EXPIRED", `quote ${quoteId} ended at ${validUntil.toISOString()}`);
    }
    return { quoteId, amountCents: response.amountCents, currency: response.currency, validUntil };
  }

  private async call(method: string, message: object, attempt = 1): Promise<any> {
    try {
      const response = await this.once(method, message);
      this.budget.deposit();
      return response;
    } catch (error) {
      const code = (error as ServiceError).code;
      if (attempt < 3 && RETRYABLE.has(code) && this.budget.tryWithdraw()) {
        return this.call(method, message, attempt + 1);
      }
      throw new QuoteUnavailableError(`quote-engine answered ${status[code] ?? code} after ${attempt} attempts`, {
        cause: error,
      });
    }
  }

  private once(method: string, message: object): Promise<any> {
    const deadline = new Date(Date.now() + this.deadlineMs);
    return new Promise((resolve, reject) => {
      this.stub[method](message, { deadline }, (error: ServiceError | null, response: any) =>
        error ? reject(error) : resolve(response),
      );
    });
  }
}
