"""Starts the planner: wires clients together, then alternates between collecting and planning."""

import logging
import signal
import time

from prometheus_client import Gauge, Histogram, start_http_server

from route_planner.batches import Batch, batches_of
from route_planner.cartograph import CartographClient, MatrixTooLarge
from route_planner.consumer import BookedConsumer, Delivery
from route_planner.publisher import RoutePublisher
from route_planner.rates import KilometreRates
from route_planner.repository import RouteRepository
from route_planner.settings import Settings, load_settings
from route_planner.solver import Tour, plan_tour
from route_planner.tracking import TrackingHub

log = logging.getLogger("route_planner")
PLANNING_SECONDS = Histogram("planner_batch_seconds", "Time to plan one batch")
UNPLANNED = Gauge("planner_unplanned_shipments", "Shipments taken from the queue and not yet on a tour")


class Planner:
    """One planning pass after another, until asked to stop."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.consumer = BookedConsumer(settings.parcel_bus_url, settings.prefetch)
        self.publisher = RoutePublisher(settings.parcel_bus_url)
        self.repository = RouteRepository(settings.routes_db_url)
        self.cartograph = CartographClient(settings.cartograph_url, settings.cartograph_token)
        self.tracking = TrackingHub(settings.tracking_hub_url)
        self.rates = KilometreRates(settings.quote_engine_addr)
        self.stopping = False

    def run(self) -> None:
        while not self.stopping:
            deliveries = self.consumer.collect(self.settings.window_seconds)
            UNPLANNED.set(len(deliveries))
            if deliveries:
                self.plan(deliveries)

    def plan(self, deliveries: list[Delivery]) -> None:
        closed = self.tracking.closed_depots()
        for batch in batches_of(deliveries, closed, self.settings.max_stops):
            with PLANNING_SECONDS.time():
                tour = self.plan_batch(batch)
            if tour is not None:
                self.repository.save(tour)
                self.publisher.announce(tour)
            # Acknowledged last: after a crash the same shipments give the same tour id, so nothing is doubled.
            self.consumer.acknowledge(batch.deliveries)

    def plan_batch(self, batch: Batch) -> Tour | None:
        try:
            minutes = self.cartograph.travel_minutes(batch.depot, batch.stops)
        except MatrixTooLarge as err:
            log.error("batch of depot %s skipped: %s", batch.depot, err)
            self.consumer.requeue(batch.deliveries)
            return None
        rate = self.rates.micros_per_kilometre(batch.vehicle_class)
        return plan_tour(batch, minutes, rate, time_limit_s=self.settings.two_opt_seconds)

    def stop(self, *_: object) -> None:
        log.info("stopping after the current batch")
        self.stopping = True


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    planner = Planner(load_settings())
    signal.signal(signal.SIGTERM, planner.stop)
    start_http_server(8000)
    started = time.monotonic()
    planner.run()
    log.info("planner ran for %.0f s", time.monotonic() - started)
