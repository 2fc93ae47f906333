"""An answer as it grows: a prepared query goes in; the first hits, each later order and the result come out."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Literal

from dowse.query.pipeline import Prepared, walk
from dowse.query.result import result_of
from dowse.query.stages.state import Slate, Traced
from dowse.types import QueryResult

EventKind = Literal["first", "order", "done"]


@dataclass(frozen=True)
class Event:
    """One moment of an answer. The last one is "done", and its result is the one that `query` gives."""

    kind: EventKind
    stage: str  # after which this is how it stands
    result: QueryResult


def stream(ready: Prepared, executor: Executor | None = None) -> Iterator[Event]:
    """The first hits once their text is there, then every change of the shown hits or of their order.

    Work goes on only while events are taken: a reader who stops early stops the stages, too.
    """
    shown: tuple[tuple[str, float], ...] | None = None
    traced = Traced(ready.slate)
    for traced in walk(ready.waves, ready.slate, executor, ready.deadline):
        if traced.slate.hits and (standing := _standing(traced.slate)) != shown:
            kind: EventKind = "first" if shown is None else "order"
            shown = standing
            yield Event(kind, _stage(traced), _result(traced, ready))
    yield Event("done", _stage(traced), _result(traced, ready))


def _standing(slate: Slate) -> tuple[tuple[str, float], ...]:
    return tuple((hit.chunk.id, hit.value) for hit in slate.hits[: slate.query.k])


def _stage(traced: Traced) -> str:
    return traced.trace[-1].stage if traced.trace else ""


def _result(traced: Traced, ready: Prepared) -> QueryResult:
    return result_of(Traced(traced.slate, (*ready.trace, *traced.trace)), ready.asked)
