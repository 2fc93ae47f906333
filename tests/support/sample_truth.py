"""Facts about the sample project, written by hand: calls between services, lines of symbols, secrets."""

from __future__ import annotations

SERVICES = ("booking-api", "quote-engine", "route-planner", "tracking-hub")
"""The four services whose code is in the sample."""

STORES = ("bookings-db", "tariff-db", "routes-db", "tracking-db", "rate-cache", "parcel-bus")
"""Databases, cache and broker of the services."""

EXTERNALS = ("api.cartograph.example", "fuel.indexhub.example", "sms.pigeonhole.example")
"""Systems of other organisations, by host name."""

SERVICE_EDGES: tuple[tuple[str, str, str], ...] = (
    ("booking-api", "api.cartograph.example", "http"),
    ("booking-api", "bookings-db", "db"),
    ("booking-api", "parcel-bus", "queue"),
    ("booking-api", "quote-engine", "grpc"),
    ("booking-api", "tracking-hub", "http"),
    ("quote-engine", "fuel.indexhub.example", "http"),
    ("quote-engine", "rate-cache", "db"),
    ("quote-engine", "tariff-db", "db"),
    ("route-planner", "api.cartograph.example", "http"),
    ("route-planner", "parcel-bus", "queue"),
    ("route-planner", "quote-engine", "grpc"),
    ("route-planner", "routes-db", "db"),
    ("route-planner", "tracking-hub", "http"),
    ("tracking-hub", "booking-api", "http"),
    ("tracking-hub", "parcel-bus", "queue"),
    ("tracking-hub", "sms.pigeonhole.example", "http"),
    ("tracking-hub", "tracking-db", "db"),
)
"""Every call edge (source, target, type), sorted. Consumers and producers both connect to the broker. The ingress,
image registries, dashboards and links in prose are not edges."""

EDGE_SETTINGS: tuple[tuple[str, str, str], ...] = (
    ("booking-api", "CARTOGRAPH_URL", "api.cartograph.example"),
    ("booking-api", "DATABASE_URL", "bookings-db"),
    ("booking-api", "PARCEL_BUS_URL", "parcel-bus"),
    ("booking-api", "QUOTE_ENGINE_ADDR", "quote-engine"),
    ("booking-api", "TRACKING_HUB_URL", "tracking-hub"),
    ("quote-engine", "FUEL_INDEX_URL", "fuel.indexhub.example"),
    ("quote-engine", "RATE_CACHE_ADDR", "rate-cache"),
    ("quote-engine", "TARIFF_DB_URL", "tariff-db"),
    ("route-planner", "CARTOGRAPH_URL", "api.cartograph.example"),
    ("route-planner", "PARCEL_BUS_URL", "parcel-bus"),
    ("route-planner", "QUOTE_ENGINE_ADDR", "quote-engine"),
    ("route-planner", "ROUTES_DB_URL", "routes-db"),
    ("route-planner", "TRACKING_HUB_URL", "tracking-hub"),
    ("tracking-hub", "BOOKING_API_URL", "booking-api"),
    ("tracking-hub", "PARCEL_BUS_URL", "parcel-bus"),
    ("tracking-hub", "PIGEONHOLE_URL", "sms.pigeonhole.example"),
    ("tracking-hub", "TRACKING_DB_URL", "tracking-db"),
)
"""Evidence of the calls: (service, environment variable, target), set in a manifest or the chart, and in Compose."""

QUEUE_FLOWS: tuple[tuple[str, str, str], ...] = (
    ("booking-api", "shipment.booked", "route-planner"),
    ("route-planner", "route.planned", "tracking-hub"),
)
"""Events through the broker: (producer, routing key, consumer)."""

SECRETS: tuple[tuple[str, str], ...] = (
    ("ci/pipeline.yml", "wf_ci_EXAMPLE_0a1b2c3d4e5f60718293EXAMPLE"),
    ("docs/runbooks/rotate-credentials.md", "EXAMPLE-not-a-password"),
    ("docs/runbooks/rotate-credentials.md", "RVhBTVBMRSBPTkxZIG5vdCBhIGtleSBFWEFNUExFIE9OTFkgbm90IGEga2V5IEVY"),
    ("env.example", "ctg_test_EXAMPLE_51f0c9d2a47b4e6c8d13EXAMPLE"),
    ("env.example", "pgn_test_EXAMPLE_b7e2044f9a6d4c10EXAMPLE"),
)
"""Invented secrets as (path, text), which must be masked before anything is stored."""

_TRACKING = "services/tracking-hub/src/main/java/example/wrenfold/tracking/"

SYMBOLS: tuple[tuple[str, str, int], ...] = (
    ("services/booking-api/src/server.ts", "createServer", 24),
    ("services/booking-api/src/server.ts", "bookShipment", 64),
    ("services/booking-api/src/bookings.ts", "newShipmentNumber", 17),
    ("services/booking-api/src/bookings.ts", "BookingStore", 26),
    ("services/booking-api/src/bookings.ts", "BookingStore.create", 32),
    ("services/booking-api/src/outbox.ts", "OutboxRelay", 19),
    ("services/booking-api/src/outbox.ts", "OutboxRelay.publishBatch", 50),
    ("services/booking-api/src/quotes.ts", "QuoteClient.confirm", 30),
    ("services/booking-api/src/retryBudget.ts", "RetryBudget.tryWithdraw", 33),
    ("services/booking-api/src/idempotency.ts", "IdempotencyStore.once", 14),
    ("services/booking-api/src/idempotency.ts", "fingerprintOf", 58),
    ("services/booking-api/src/flags.ts", "FeatureFlags.isEnabled", 18),
    ("services/booking-api/src/flags.ts", "bucketOf", 35),
    ("services/booking-api/src/geocoder.ts", "Geocoder.locate", 20),
    ("services/booking-api/src/types.ts", "Problem", 44),
    ("services/quote-engine/cmd/quote-engine/main.go", "run", 43),
    ("services/quote-engine/internal/pricing/volumetric.go", "VolumetricGrams", 15),
    ("services/quote-engine/internal/pricing/volumetric.go", "BillableGrams", 22),
    ("services/quote-engine/internal/pricing/service.go", "Service.GetQuote", 42),
    ("services/quote-engine/internal/pricing/service.go", "Service.GetKilometreRate", 62),
    ("services/quote-engine/internal/pricing/service.go", "Breakdown.TotalCents", 97),
    ("services/quote-engine/internal/pricing/surcharges.go", "ZoneBetween", 64),
    ("services/quote-engine/internal/fuel/client.go", "Client.BasisPoints", 63),
    ("services/quote-engine/internal/fuel/client.go", "Client.fetchWithBackoff", 89),
    ("services/quote-engine/internal/fuel/client.go", "withJitter", 107),
    ("services/quote-engine/internal/store/tariffs.go", "Tariffs.NetCents", 80),
    ("services/quote-engine/internal/cache/quotes.go", "Quotes.Recall", 38),
    ("services/route-planner/route_planner/app.py", "Planner", 24),
    ("services/route-planner/route_planner/app.py", "Planner.plan_batch", 55),
    ("services/route-planner/route_planner/consumer.py", "BookedConsumer.collect", 54),
    ("services/route-planner/route_planner/batches.py", "batches_of", 31),
    ("services/route-planner/route_planner/solver.py", "plan_tour", 25),
    ("services/route-planner/route_planner/solver.py", "insert_cheapest", 42),
    ("services/route-planner/route_planner/solver.py", "improve_two_opt", 68),
    ("services/route-planner/route_planner/cartograph.py", "CartographClient.travel_minutes", 31),
    ("services/route-planner/route_planner/retry.py", "RetryBudget", 7),
    ("services/route-planner/route_planner/retry.py", "backoff_seconds", 33),
    ("services/route-planner/route_planner/tracking.py", "TrackingHub.closed_depots", 15),
    (_TRACKING + "ScanEvent.java", "ScanEvent", 16),
    (_TRACKING + "ScanEvent.java", "ScanEvent.corrected", 20),
    (_TRACKING + "EtaCalculator.java", "EtaCalculator.estimate", 53),
    (_TRACKING + "EtaCalculator.java", "EtaCalculator.smooth", 69),
    (_TRACKING + "RecipientNotifier.java", "RecipientNotifier.afterScan", 48),
    (_TRACKING + "RecipientNotifier.java", "RecipientNotifier.isQuietHour", 75),
    (_TRACKING + "TimelineRepository.java", "TimelineRepository.append", 32),
    (_TRACKING + "TimelineRepository.java", "TimelineRepository.scansOf", 50),
    ("proto/wrenfold/quotes/v1/quotes.proto", "QuoteService.GetQuote", 16),
)
"""(path, qualified name, line of the definition itself): comments, decorators and annotations above it do not count."""
