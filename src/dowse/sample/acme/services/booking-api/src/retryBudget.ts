/**
 * A shared allowance for repeated calls (docs/adr/0006-retry-budget.md).
 *
 * Every success deposits `ratio` of a token, every retry costs one. When a dependency is healthy there are always
 * tokens; when it fails for everybody the balance drains within seconds and calls fail at once, so our retries can
 * add at most `ratio` to the load of something that is already in trouble. `minPerSecond` keeps a quiet service
 * able to retry at all.
 */
export interface RetryBudgetOptions {
  readonly ratio: number;
  readonly minPerSecond: number;
  readonly windowSeconds: number;
}

export class RetryBudget {
  private balance: number;
  private refilledAt: number;

  constructor(
    private readonly options: RetryBudgetOptions,
    private readonly now: () => number = Date.now,
  ) {
    this.balance = this.floor();
    this.refilledAt = now();
  }

  /** A call succeeded. */
  deposit(): void {
    this.balance = Math.min(this.balance + this.options.ratio, this.ceiling());
  }

  /** May one more attempt be made? Takes the token if so. */
  tryWithdraw(): boolean {
    this.refill();
    if (this.balance < 1) {
      return false;
    }
    this.balance -= 1;
    return true;
  }

  private refill(): void {
    const elapsedSeconds = (this.now() - this.refilledAt) / 1000;
    this.refilledAt = this.now();
    this.balance = Math.min(this.balance + elapsedSeconds * this.options.minPerSecond, this.ceiling());
  }

  private floor(): number {
    return this.options.minPerSecond * this.options.windowSeconds;
  }

  private ceiling(): number {
    return this.floor() + 1000 * this.options.ratio;
  }
}
