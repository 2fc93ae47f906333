"""Timing of queries: CPU time of every query by engine, leg and filter.

Engines take turns, a slice of the questions each, so that a busy moment of the machine falls on all of them. No
question is asked twice of the same leg with the same filter: nothing is found in a cache that a user's question would
not find.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

from bench.figures import percentile
from bench.peers import PeerProcess

SLICE = 40
QUESTIONS = 200
FILTERS = ("none", "10 %", "0.5 %")
HYBRID_K, LEG_K = 10, 100


@dataclass(frozen=True)
class TimedLeg:
    """Leg of an engine, and the number of queries that it gets."""

    leg: str  # "hybrid", "words" or "dense": the method of the adapter
    k: int
    questions: int = QUESTIONS
    extra: tuple[tuple[str, str], ...] = ()  # further arguments
    label: str = ""

    @property
    def name(self) -> str:
        return self.label or self.leg


@dataclass(frozen=True)
class Times:
    """CPU and wall time in milliseconds, one value for each query."""

    cpu_ms: tuple[float, ...]
    wall_ms: tuple[float, ...]
    hits: float = 0.0  # mean number for a query

    @property
    def p50(self) -> float:
        return median(self.cpu_ms)

    @property
    def p99(self) -> float:
        return percentile(self.cpu_ms, 0.99)

    def times_of(self, other: Times) -> float:
        """Return the ratio to the time of another, over the queries that both ran."""
        asked = min(len(self.cpu_ms), len(other.cpu_ms))
        return median(self.cpu_ms[:asked]) / median(other.cpu_ms[:asked])

    def summary(self) -> dict[str, float]:
        wall = median(self.wall_ms), percentile(self.wall_ms, 0.99)
        return {"cpu_p50": self.p50, "cpu_p99": self.p99, "wall_p50": wall[0], "wall_p99": wall[1], "hits": self.hits}


Key = tuple[str, str, str]
"""Engine, leg, filter."""


def time_queries(
    processes: Mapping[str, PeerProcess], asks: Mapping[str, Sequence[TimedLeg]], queries: Path, rounds: int
) -> dict[Key, Times]:
    """Run `rounds` slices of every leg of every engine with every filter, engines in turn."""
    for name, process in processes.items():  # warm-up: mapped pages and lazy parts
        for ask in asks[name]:
            for chosen in FILTERS:
                _slice(process, ask, queries, chosen, 0, min(3, ask.questions))
    found: dict[Key, list[dict[str, list[Any]]]] = {}
    for number in range(rounds):
        for chosen in FILTERS:
            for name, process in processes.items():
                for ask in asks[name]:
                    size = min(SLICE, ask.questions)
                    if number * size < ask.questions:
                        reply = _slice(process, ask, queries, chosen, number * size, size)
                        found.setdefault((name, ask.name, chosen), []).append(reply)
    return {key: _joined(slices) for key, slices in found.items()}


def _slice(
    process: PeerProcess, ask: TimedLeg, queries: Path, chosen: str, first: int, count: int
) -> dict[str, list[Any]]:
    where = _where(chosen, own=process.peer.name == "dowse")
    arguments = {"queries": str(queries), "where": where, "k": ask.k, "first": first, "count": count}
    reply: dict[str, list[Any]] = process.ask(ask.leg, **arguments, **dict(ask.extra))["value"]
    return reply


def _where(chosen: str, *, own: bool) -> object:
    field = {"none": None, "10 %": ("tenth", "t3"), "0.5 %": ("part", "p7")}[chosen]
    if field is None:
        return None
    return list(field) if own else f"{field[0]} = '{field[1]}'"


def _joined(slices: Sequence[dict[str, list[Any]]]) -> Times:
    cpu = tuple(value for each in slices for value in each["cpu_ms"])
    hits = [found if isinstance(found, int) else len(found) for each in slices for found in each["found"]]
    return Times(cpu, tuple(value for each in slices for value in each["wall_ms"]), mean(hits))
