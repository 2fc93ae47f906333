"""Streamed answers: an event for the first hits, for each later order, and for the final result.

Separate from `pipeline`, so that only a streamed query imports it.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from typing import Literal

import msgspec

from dowse.query.pipeline import PreparedQuery, iter_waves
from dowse.query.result import result_of
from dowse.query.stages.state import Traced
from dowse.types import QueryResult

EventKind = Literal["first", "order", "done"]


class Event(msgspec.Struct, frozen=True):
    """One step of a streamed answer. The last is "done", and its result equals that of `query`."""

    kind: EventKind
    stage: str  # the last one that ran
    result: QueryResult


def stream(ready: PreparedQuery, executor: Executor | None = None) -> Iterator[Event]:
    """Yield the first hits once their text is fetched, then every change of the shown hits or of their order.

    Stages run only while the caller takes events: a reader who stops early stops the query.
    """
    shown: tuple[tuple[str, float], ...] | None = None
    traced = Traced(ready.state)
    for traced in iter_waves(ready.waves, ready.state, executor, ready.deadline):
        state = traced.state
        ranking = tuple((hit.chunk.id, hit.value) for hit in state.hits[: state.query.k])
        if state.hits and ranking != shown:
            kind: EventKind = "first" if shown is None else "order"
            shown = ranking
            yield _event(kind, traced, ready)
    yield _event("done", traced, ready)


def _event(kind: EventKind, traced: Traced, ready: PreparedQuery) -> Event:
    result = result_of(Traced(traced.state, (*ready.trace, *traced.trace)), ready.context)
    return Event(kind, traced.trace[-1].stage if traced.trace else "", result)
