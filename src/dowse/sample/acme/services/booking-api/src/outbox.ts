/** Publishes rows of the outbox table to parcel-bus, in order, at least once. */
import amqp, { type Channel, type ChannelModel } from "amqplib";
import type pg from "pg";
import { Gauge } from "prom-client";

const EXCHANGE = "parcels.events";

const oldestSeconds = new Gauge({
  name: "booking_outbox_oldest_seconds",
  help: "Age of the oldest event that has not been published",
});

export interface OutboxOptions {
  readonly batchSize: number;
  readonly pollIntervalMs: number;
  readonly leaseSeconds: number;
}

export class OutboxRelay {
  private connection?: ChannelModel;
  private timer?: NodeJS.Timeout;
  private stopping = false;

  constructor(
    private readonly pool: pg.Pool,
    private readonly parcelBusUrl: string,
    private readonly options: OutboxOptions,
  ) {}

  async start(): Promise<void> {
    this.connection = await amqp.connect(this.parcelBusUrl);
    const channel = await this.connection.createConfirmChannel();
    await channel.assertExchange(EXCHANGE, "topic", { durable: true });
    const tick = async () => {
      const published = await this.publishBatch(channel);
      if (!this.stopping) {
        // A full batch means there is more: do not sleep on a backlog.
        this.timer = setTimeout(tick, published === this.options.batchSize ? 0 : this.options.pollIntervalMs);
      }
    };
    this.timer = setTimeout(tick, 0);
  }

  /**
   * Publish the oldest rows and delete them once the broker has confirmed all of them.
   *
   * SKIP LOCKED lets several pods share the table; the price is that order holds per pod only, which is enough
   * because route-planner orders by the event's own sequence.
   */
  async publishBatch(channel: Channel): Promise<number> {
    const client = await this.pool.connect();
    try {
      await client.query("BEGIN");
      const { rows } = await client.query(
        "SELECT id, routing_key, payload, created_at FROM outbox ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED",
        [this.options.batchSize],
      );
      for (const row of rows) {
        channel.publish(EXCHANGE, row.routing_key, Buffer.from(JSON.stringify(row.payload)), {
          persistent: true,
          messageId: String(row.id),
          timestamp: row.created_at.getTime(),
        });
      }
      await (channel as any).waitForConfirms();
      await client.query("DELETE FROM outbox WHERE id = ANY($1)", [rows.map((row) => row.id)]);
      await client.query("COMMIT");
      oldestSeconds.set(rows.length ? (Date.now() - rows[0].created_at.getTime()) / 1000 : 0);
      return rows.length;
    } catch (error) {
      await client.query("ROLLBACK");
      throw error;
    } finally {
      client.release();
    }
  }

  async stop(): Promise<void> {
    this.stopping = true;
    clearTimeout(this.timer);
    await this.connection?.close();
  }
}
