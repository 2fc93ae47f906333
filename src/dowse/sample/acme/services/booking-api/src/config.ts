/** Settings: config/default.json, overridden by environment variables. Read once, at start. */
import { readFileSync } from "node:fs";

export interface Config {
  readonly port: number;
  readonly databaseUrl: string;
  readonly parcelBusUrl: string;
  readonly quoteEngineAddr: string;
  readonly trackingHubUrl: string;
  readonly cartographUrl: string;
  readonly cartographToken: string;
  readonly quoteDeadlineMs: number;
  readonly idempotencyTtlHours: number;
  readonly labelBaseUrl: string;
  readonly outbox: { batchSize: number; pollIntervalMs: number; leaseSeconds: number };
  readonly retryBudget: { ratio: number; minPerSecond: number; windowSeconds: number };
  readonly flags: string;
}

/** A setting without a default. Failing at start beats failing at the first request. */
function required(env: NodeJS.ProcessEnv, name: string): string {
  const value = env[name];
  if (!value) {
    throw new Error(`missing environment variable ${name}; see services/booking-api/README.md`);
  }
  return value;
}

export function loadConfig(env: NodeJS.ProcessEnv = process.env, file = "config/default.json"): Config {
  const defaults = JSON.parse(readFileSync(file, "utf8"));
  return {
    ...defaults,
    port: Number(env.PORT ?? defaults.port),
    quoteDeadlineMs: Number(env.QUOTE_DEADLINE_MS ?? defaults.quoteDeadlineMs),
    databaseUrl: required(env, "DATABASE_URL"),
    parcelBusUrl: required(env, "PARCEL_BUS_URL"),
    quoteEngineAddr: required(env, "QUOTE_ENGINE_ADDR"),
    trackingHubUrl: required(env, "TRACKING_HUB_URL"),
    cartographUrl: required(env, "CARTOGRAPH_URL"),
    cartographToken: env.CARTOGRAPH_TOKEN ?? "",
    flags: env.FEATURE_FLAGS ?? "",
  };
}
