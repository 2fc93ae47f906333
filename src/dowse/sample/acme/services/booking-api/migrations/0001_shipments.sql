-- Shipments, their outgoing events and the keys that make repeated requests harmless.
CREATE TABLE shipments (
    number          text PRIMARY KEY CHECK (number ~ '^WF[2-9A-HJ-NP-Z]{8}$'),
    quote_id        text NOT NULL,
    amount_cents    bigint NOT NULL CHECK (amount_cents >= 0),
    status          text NOT NULL DEFAULT 'BOOKED',
    sender          jsonb NOT NULL,
    recipient       jsonb NOT NULL,
    recipient_phone text,
    locale          text NOT NULL DEFAULT 'en',
    booked_at       timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX shipments_by_day ON shipments (booked_at);

CREATE TABLE outbox (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    routing_key text NOT NULL,
    aggregate   text NOT NULL,
    payload     jsonb NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE idempotency_keys (
    merchant    text NOT NULL,
    key         text NOT NULL,
    fingerprint text NOT NULL,
    answer      jsonb,
    created_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (merchant, key)
);
