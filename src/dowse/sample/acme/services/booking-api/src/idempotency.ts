/** Remembers the answer to a request, so that sending it again changes nothing (docs/adr/0005-idempotency-keys.md). */
import { createHash } from "node:crypto";
import type pg from "pg";

import { Problem } from "./types.js";

export class IdempotencyStore {
  constructor(
    private readonly pool: pg.Pool,
    private readonly ttlHours: number,
  ) {}

  /** Runs `work` for a fresh key; returns the stored answer for a known one. */
  async once<T>(merchant: string, key: string, body: unknown, work: () => Promise<T>): Promise<T> {
    const fingerprint = fingerprintOf(body);
    const claimed = await this.pool.query(
      `INSERT INTO idempotency_keys (merchant, key, fingerprint) VALUES ($1, $2, $3)
       ON CONFLICT (merchant, key) DO NOTHING`,
      [merchant, key, fingerprint],
    );
    if (claimed.rowCount === 0) {
      return this.replay<T>(merchant, key, fingerprint);
    }
    const answer = await work();
    await this.pool.query("UPDATE idempotency_keys SET answer = $3 WHERE merchant = $1 AND key = $2", [
      merchant,
      key,
      JSON.stringify(answer),
    ]);
    return answer;
  }

  private async replay<T>(merchant: string, key: string, fingerprint: string): Promise<T> {
    const { rows } = await this.pool.query(
      "SELECT fingerprint, answer FROM idempotency_keys WHERE merchant = $1 AND key = $2",
      [merchant, key],
    );
    if (rows[0].fingerprint !== fingerprint) {
      throw new Problem(409, "WF-4092", "IDEMPOTENCY_MISMATCH", `key ${key} was used for another shipment`);
    }
    if (rows[0].answer === null) {
      throw new Problem(409, "WF-4094", "STILL_IN_PROGRESS", "the first request with this key has not finished");
    }
    return rows[0].answer as T;
  }

  /** Called by the nightly job; keys older than `idempotencyTtlHours` may be used for something else. */
  async forgetOld(): Promise<number> {
    const gone = await this.pool.query(
      "DELETE FROM idempotency_keys WHERE created_at < now() - make_interval(hours => $1)",
      [this.ttlHours],
    );
    return gone.rowCount ?? 0;
  }
}

/** Equal bodies have equal fingerprints whatever the order of their fields. */
export function fingerprintOf(body: unknown): string {
  const canonical = JSON.stringify(body, (_key, value) =>
    value && typeof value === "object" && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
  return createHash("sha256").update(canonical).digest("hex");
}
