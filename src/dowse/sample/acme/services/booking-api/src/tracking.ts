/** HTTP client of tracking-hub. Tracking is a courtesy here: a failure gives null and a log line, never an error. */

export interface TimelineEntry {
  readonly at: string;
  readonly depot: string;
  readonly event: string;
}

export interface Timeline {
  readonly entries: readonly TimelineEntry[];
  readonly estimatedArrival: string | null;
}

export class TrackingClient {
  private openUntil = 0;

  constructor(
    private readonly trackingHubUrl: string,
    private readonly timeoutMs = 250,
    private readonly now: () => number = Date.now,
  ) {}

  async timeline(number: string): Promise<Timeline | null> {
    if (this.now() < this.openUntil) {
      return null;
    }
    try {
      const response = await fetch(`${this.trackingHubUrl}/shipments/${number}/timeline`, {
        signal: AbortSignal.timeout(this.timeoutMs),
      });
      return response.ok ? ((await response.json()) as Timeline) : null;
    } catch (error) {
      // One slow answer pauses the feature for five seconds: merchants poll, and 250 ms each adds up.
      this.openUntil = this.now() + 5_000;
      console.warn("tracking-hub did not answer in time, pausing for 5 s", { number, error });
      return null;
    }
  }
}
