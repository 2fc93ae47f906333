"""Shipments become batches: one depot, one delivery window, one vehicle."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from route_planner.consumer import Delivery

BIKE_LIMIT_GRAMS = 90_000
VAN_LIMIT_GRAMS = 700_000


@dataclass(frozen=True)
class Stop:
    """A place to go to; several parcels for one door are one stop."""

    latitude: float
    longitude: float
    numbers: tuple[str, ...]


@dataclass(frozen=True)
class Batch:
    depot: str
    window: str
    vehicle_class: str
    stops: tuple[Stop, ...]
    deliveries: tuple[Delivery, ...]


def batches_of(deliveries: Iterable[Delivery], closed_depots: frozenset[str], max_stops: int) -> Iterator[Batch]:
    """Batches in a stable order. Parcels of a closed depot go to the neighbour named in data/depots.csv."""
    groups: dict[tuple[str, str], list[Delivery]] = defaultdict(list)
    for delivery in deliveries:
        depot = neighbour_of(delivery.depot) if delivery.depot in closed_depots else delivery.depot
        groups[depot, delivery.window].append(delivery)
    for (depot, window), members in sorted(groups.items()):
        for start in range(0, len(members), max_stops):
            part = tuple(members[start : start + max_stops])
            yield Batch(depot, window, vehicle_for(part), stops_of(part), part)


def vehicle_for(deliveries: tuple[Delivery, ...]) -> str:
    """The smallest vehicle that carries all of it."""
    grams = sum(delivery.weight_grams for delivery in deliveries)
    if grams <= BIKE_LIMIT_GRAMS:
        return "CARGO_BIKE"
    return "NIGHT_VAN" if grams <= VAN_LIMIT_GRAMS else "LOCKER_TRUCK"


def stops_of(deliveries: tuple[Delivery, ...]) -> tuple[Stop, ...]:
    doors: dict[tuple[float, float], list[str]] = defaultdict(list)
    for delivery in deliveries:
        # Five decimals are about a metre: close enough to be the same door.
        doors[round(delivery.latitude, 5), round(delivery.longitude, 5)].append(delivery.number)
    return tuple(Stop(lat, lon, tuple(sorted(numbers))) for (lat, lon), numbers in sorted(doors.items()))


def neighbour_of(depot: str) -> str:
    return {"TLW": "NRG", "NRG": "TLW", "KLN": "BRG", "BRG": "KLN", "LDZ": "KLN"}[depot]
