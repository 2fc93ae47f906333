CREATE TABLE tours (
    id              text PRIMARY KEY,
    depot           char(3) NOT NULL,
    delivery_window text NOT NULL,
    vehicle_class   text NOT NULL,
    stop_order      integer[] NOT NULL,
    minutes         double precision NOT NULL,
    price_micros    bigint NOT NULL,
    planned_at      timestamptz NOT NULL
);

CREATE TABLE tour_shipments (
    tour_id  text NOT NULL REFERENCES tours (id) ON DELETE CASCADE,
    position integer NOT NULL,
    number   text NOT NULL,
    PRIMARY KEY (tour_id, position)
);
CREATE INDEX tour_shipments_by_number ON tour_shipments (number);
