/** HTTP routes of the booking API; everything behind them is handed in, so tests need no network. */
import Fastify, { type FastifyInstance } from "fastify";

import { loadConfig } from "./config.js";
import { BookingStore, connect } from "./bookings.js";
import { FeatureFlags } from "./flags.js";
import { Geocoder } from "./geocoder.js";
import { IdempotencyStore } from "./idempotency.js";
import { OutboxRelay } from "./outbox.js";
import { QuoteClient, QuoteUnavailableError } from "./quotes.js";
import { RetryBudget } from "./retryBudget.js";
import { TrackingClient } from "./tracking.js";
import { Problem, type NewShipment } from "./types.js";

export interface Dependencies {
  readonly bookings: BookingStore;
  readonly quotes: QuoteClient;
  readonly tracking: TrackingClient;
  readonly geocoder: Geocoder;
  readonly idempotency: IdempotencyStore;
  readonly flags: FeatureFlags;
}

export function createServer(deps: Dependencies): FastifyInstance {
  const app = Fastify({ logger: true, requestIdHeader: "x-request-id" });

  app.post<{ Body: NewShipment; Headers: { "idempotency-key"?: string } }>("/v1/shipments", async (request, reply) => {
    const key = request.headers["idempotency-key"];
    if (!key) {
      throw new Problem(400, "WF-4001", "IDEMPOTENCY_KEY_MISSING", "send an Idempotency-Key header");
    }
    const answer = await deps.idempotency.once(merchantOf(request), key, request.body, () =>
      bookShipment(deps, request.body),
    );
    return reply.code(201).send(answer);
  });

  app.get<{ Params: { number: string } }>("/v1/shipments/:number", async (request) => {
    const shipment = await deps.bookings.find(request.params.number);
    if (!shipment) {
      throw new Problem(404, "WF-4041", "SHIPMENT_UNKNOWN", `no shipment ${request.params.number}`);
    }
    return { ...shipment, tracking: await deps.tracking.timeline(shipment.number) };
  });

  // Used by tracking-hub to learn whom to text. Only reachable inside the cluster, see networkpolicy.yaml.
  app.get<{ Params: { number: string } }>("/internal/recipients/:number", async (request) =>
    deps.bookings.recipient(request.params.number),
  );

  app.get("/readyz", async (_request, reply) => ((await deps.bookings.ping()) ? "ok" : reply.code(503).send("no database")));

  app.setErrorHandler((error, request, reply) => {
    if (error instanceof Problem) {
      return reply.code(error.status).type("application/problem+json").send(error.body(request.id));
    }
    request.log.error(error);
    return reply.code(500).send({ code: "WF-5000", title: "INTERNAL", requestId: request.id });
  });
  return app;
}

/** Check the address, confirm the price, then write shipment and event together. */
export async function bookShipment(deps: Dependencies, wanted: NewShipment) {
  const destination = await deps.geocoder.locate(wanted.to);
  if (destination.kind === "unknown") {
    throw new Problem(422, "WF-4221", "ADDRESS_UNKNOWN", `cannot find ${wanted.to.postcode} ${wanted.to.city}`);
  }
  try {
    const quote = await deps.quotes.confirm(wanted.quoteId, wanted.parcel);
    return await deps.bookings.create(wanted, quote, destination);
  } catch (error) {
    if (error instanceof QuoteUnavailableError) {
      throw new Problem(503, "WF-5031", "QUOTE_UNAVAILABLE", "no price right now; try again after Retry-After seconds");
    }
    throw error;
  }
}

function merchantOf(request: { headers: Record<string, unknown> }): string {
  return String(request.headers["x-merchant-id"] ?? "anonymous");
}

async function main(): Promise<void> {
  const config = loadConfig();
  const pool = connect(config.databaseUrl);
  const budget = new RetryBudget(config.retryBudget);
  const relay = new OutboxRelay(pool, config.parcelBusUrl, config.outbox);
  const app = createServer({
    bookings: new BookingStore(pool, config.labelBaseUrl),
    quotes: new QuoteClient(config.quoteEngineAddr, config.quoteDeadlineMs, budget),
    tracking: new TrackingClient(config.trackingHubUrl),
    geocoder: new Geocoder(config.cartographUrl, config.cartographToken, budget),
    idempotency: new IdempotencyStore(pool, config.idempotencyTtlHours),
    flags: FeatureFlags.parse(config.flags),
  });
  await relay.start();
  await app.listen({ host: "0.0.0.0", port: config.port });
  process.once("SIGTERM", async () => {
    await app.close();
    await relay.stop();
    await pool.end();
  });
}

if (process.argv[1]?.endsWith("server.js")) {
  await main();
}
