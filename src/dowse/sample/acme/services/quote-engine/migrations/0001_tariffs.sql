-- Prices per merchant, zone and weight band. Merchant '*' is the public price list.
CREATE TABLE tariffs (
    merchant_id text NOT NULL,
    zone        smallint NOT NULL CHECK (zone BETWEEN 1 AND 3),
    up_to_grams integer NOT NULL CHECK (up_to_grams > 0),
    net_cents   bigint NOT NULL CHECK (net_cents > 0),
    valid_from  date NOT NULL,
    valid_to    date,
    PRIMARY KEY (merchant_id, zone, up_to_grams, valid_from)
);

INSERT INTO tariffs (merchant_id, zone, up_to_grams, net_cents, valid_from) VALUES
    ('*', 1,  1000,  390, '2026-01-01'), ('*', 1,  5000,  520, '2026-01-01'), ('*', 1, 31500,  890, '2026-01-01'),
    ('*', 2,  1000,  490, '2026-01-01'), ('*', 2,  5000,  640, '2026-01-01'), ('*', 2, 31500, 1090, '2026-01-01'),
    ('*', 3,  1000,  590, '2026-01-01'), ('*', 3,  5000,  790, '2026-01-01'), ('*', 3, 31500, 1390, '2026-01-01');
