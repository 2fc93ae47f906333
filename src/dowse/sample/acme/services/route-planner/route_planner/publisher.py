"""Announces finished tours as `route.planned` on parcel-bus."""

import json
from dataclasses import asdict

import pika

from route_planner.solver import Tour

EXCHANGE = "parcels.events"


class RoutePublisher:
    """Publisher confirms are on: `announce` returns only when the broker has the message on a majority of nodes."""

    def __init__(self, parcel_bus_url: str) -> None:
        self._connection = pika.BlockingConnection(pika.URLParameters(parcel_bus_url))
        self._channel = self._connection.channel()
        self._channel.confirm_delivery()
        self._channel.exchange_declare(EXCHANGE, "topic", durable=True)

    def announce(self, tour: Tour) -> None:
        self._channel.basic_publish(
            exchange=EXCHANGE,
            routing_key="route.planned",
            body=json.dumps(asdict(tour)).encode(),
            properties=pika.BasicProperties(delivery_mode=2, message_id=tour.id, content_type="application/json"),
            mandatory=True,
        )
