CREATE TABLE timelines (
    number    text PRIMARY KEY,
    tour_id   text NOT NULL,
    opened_at timestamptz NOT NULL DEFAULT now()
);

-- The key makes a repeated scan harmless: handhelds send again whenever they are unsure.
CREATE TABLE scans (
    handheld   text NOT NULL,
    sequence   bigint NOT NULL,
    number     text NOT NULL REFERENCES timelines (number),
    depot      char(3) NOT NULL,
    event      text NOT NULL,
    scanned_at timestamptz NOT NULL,
    PRIMARY KEY (handheld, sequence, number)
);
CREATE INDEX scans_by_shipment ON scans (number, scanned_at);

CREATE TABLE depot_closures (
    code  char(3) PRIMARY KEY,
    until timestamptz NOT NULL
);
