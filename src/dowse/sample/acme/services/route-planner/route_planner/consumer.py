"""Takes `shipment.booked` events from parcel-bus and holds them until their tour is stored."""

import json
import logging
import time
from dataclasses import dataclass

import pika

log = logging.getLogger(__name__)

EXCHANGE = "parcels.events"
QUEUE = "planner.shipment-booked"
DEAD_LETTERS = "planner.shipment-booked.dead"


@dataclass(frozen=True)
class Delivery:
    """A booked shipment and the tag with which the broker is told that we are done with it."""

    tag: int
    number: str
    depot: str
    window: str
    latitude: float
    longitude: float
    weight_grams: int


class BookedConsumer:
    """At-least-once: a message stays unacknowledged until `acknowledge`.

    `prefetch` limits how many messages the broker hands out before that. It bounds memory: 4.7.0 raised it from 40 to
    500, travel-time matrices grew with its square, and every pod was OOMKilled within ten minutes (INC-219).
    """

    def __init__(self, parcel_bus_url: str, prefetch: int) -> None:
        self._connection = pika.BlockingConnection(pika.URLParameters(parcel_bus_url))
        self._channel = self._connection.channel()
        self._channel.basic_qos(prefetch_count=prefetch)
        self._channel.queue_declare(
            QUEUE,
            durable=True,
            arguments={
                "x-queue-type": "quorum",
                "x-delivery-limit": 5,
                "x-dead-letter-exchange": "",
                "x-dead-letter-routing-key": DEAD_LETTERS,
            },
        )
        self._channel.queue_bind(QUEUE, EXCHANGE, routing_key="shipment.booked")
        self._prefetch = prefetch

    def collect(self, window_seconds: float) -> list[Delivery]:
        """What arrives within the window, or less when the prefetch limit is reached first."""
        deliveries: list[Delivery] = []
        ends_at = time.monotonic() + window_seconds
        for method, _properties, body in self._channel.consume(QUEUE, inactivity_timeout=1.0):
            if method is not None:
                delivery = self._decode(method.delivery_tag, body)
                if delivery is not None:
                    deliveries.append(delivery)
            if time.monotonic() >= ends_at or len(deliveries) >= self._prefetch:
                break
        return deliveries

    def _decode(self, tag: int, body: bytes) -> Delivery | None:
        try:
            event = json.loads(body)
            return Delivery(
                tag=tag,
                number=event["number"],
                depot=event["depot"],
                window=event["window"],
                latitude=event["at"]["latitude"],
                longitude=event["at"]["longitude"],
                weight_grams=event["parcel"]["weightGrams"],
            )
        except (KeyError, TypeError, json.JSONDecodeError) as err:
            # A poison message would come back for ever; without requeue it goes to the dead letters.
            log.error("unreadable event rejected: %r", err)
            self._channel.basic_reject(tag, requeue=False)
            return None

    def acknowledge(self, deliveries: tuple[Delivery, ...]) -> None:
        for delivery in deliveries:
            self._channel.basic_ack(delivery.tag)

    def requeue(self, deliveries: tuple[Delivery, ...]) -> None:
        for delivery in deliveries:
            self._channel.basic_nack(delivery.tag, requeue=True)
