/** Shipments in Postgres. The shipment and its `shipment.booked` event are written in one transaction. */
import { randomInt } from "node:crypto";
import pg from "pg";

import type { Located } from "./geocoder.js";
import type { NewShipment, Quote, Shipment } from "./types.js";

// No 0, 1, I or O: couriers read numbers aloud.
const ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ";
const UNIQUE_VIOLATION = "23505";

export function connect(databaseUrl: string): pg.Pool {
  return new pg.Pool({ connectionString: databaseUrl, max: 12, statement_timeout: 2000 });
}

/** WF and eight characters; 32^8 numbers make a collision rare, and create() tries again when one happens. */
export function newShipmentNumber(): string {
  return "WF" + Array.from({ length: 8 }, () => ALPHABET[randomInt(ALPHABET.length)]).join("");
}

/** The depot that serves a postcode; the full table is data/depots.csv, the two halves of the country suffice here. */
export function depotFor(postcode: string): string {
  return postcode < "5" ? "TLW" : "KLN";
}

export class BookingStore {
  constructor(
    private readonly pool: pg.Pool,
    private readonly labelBaseUrl: string,
  ) {}

  async create(wanted: NewShipment, quote: Quote, destination: Located): Promise<Shipment> {
    const client = await this.pool.connect();
    try {
      await client.query("BEGIN");
      const number = await this.insertShipment(client, wanted, quote);
      await client.query("INSERT INTO outbox (routing_key, aggregate, payload) VALUES ($1, $2, $3)", [
        "shipment.booked",
        number,
        JSON.stringify({ number, parcel: wanted.parcel, depot: depotFor(wanted.to.postcode), window: "day", at: destination }),
      ]);
      await client.query("COMMIT");
      return {
        number,
        status: "BOOKED",
        amountCents: quote.amountCents,
        labelUrl: `${this.labelBaseUrl}/${number}.pdf`,
        bookedAt: new Date(),
      };
    } catch (error) {
      await client.query("ROLLBACK");
      throw error;
    } finally {
      client.release();
    }
  }

  private async insertShipment(client: pg.PoolClient, wanted: NewShipment, quote: Quote, attempt = 1): Promise<string> {
    const number = newShipmentNumber();
    const inserted = await client.query(
      `INSERT INTO shipments (number, quote_id, amount_cents, sender, recipient, recipient_phone)
       VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (number) DO NOTHING`,
      [number, quote.quoteId, quote.amountCents, wanted.from, wanted.to, wanted.recipientPhone ?? null],
    );
    if (inserted.rowCount === 1) {
      return number;
    }
    if (attempt === 5) {
      throw new Error(`five shipment numbers in a row were taken (${UNIQUE_VIOLATION})`);
    }
    return this.insertShipment(client, wanted, quote, attempt + 1);
  }

  async find(number: string): Promise<Shipment | undefined> {
    const found = await this.pool.query("SELECT * FROM shipments WHERE number = $1", [number]);
    return found.rows[0];
  }

  async recipient(number: string): Promise<{ phone: string | null; locale: string }> {
    const found = await this.pool.query("SELECT recipient_phone, locale FROM shipments WHERE number = $1", [number]);
    return { phone: found.rows[0]?.recipient_phone ?? null, locale: found.rows[0]?.locale ?? "en" };
  }

  async ping(): Promise<boolean> {
    return this.pool.query("SELECT 1").then(
      () => true,
      () => false,
    );
  }
}
