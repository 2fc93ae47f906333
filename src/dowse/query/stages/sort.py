"""The one sort order: value descending, then id, so that equal scores keep a stable order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import isnan
from typing import TypeVar

import numpy as np

from dowse.ports import Ids, Order, Values
from dowse.query.stages.state import Hit, StageScore

Id = TypeVar("Id", str, int)


def order(values: Values, ids: Ids) -> Order:
    """Return positions, best first. An id sorts the same as a number and as 16 digits."""
    if np.isnan(values).any():
        raise ValueError("a score is NaN, which has no order")
    return np.lexsort((ids, -values))


def order_of_ascending(values: Values) -> Order:
    """Return positions, best first, of rows whose ids ascend: a stable sort takes two thirds of the time."""
    best = (-values).argsort(kind="stable")
    if len(best) and isnan(values[best[-1]]):  # NaN sorts last
        raise ValueError("a score is NaN, which has no order")
    return best


def ranked(rows: Iterable[tuple[Id, float]]) -> list[tuple[Id, float]]:
    """Return pairs of id and value, best first."""
    pairs = list(rows)
    if any(isnan(value) for _, value in pairs):
        raise ValueError("a score is NaN, which has no order")
    return sorted(pairs, key=lambda row: (-row[1], row[0]))


def ranked_hits(stage: str, rows: Iterable[tuple[Hit, float, str]]) -> tuple[Hit, ...]:
    """Return hits with the values of a stage, best first, each with rank and reason in its history.

    Equal values keep their order, so that a stage without effect changes nothing.
    """
    given = list(rows)
    if any(isnan(value) for _, value, _ in given):
        raise ValueError(f"stage {stage!r} gave a score that is NaN, which has no order")
    given.sort(key=lambda row: -row[1])
    return tuple(
        hit.scored(StageScore(stage, value, rank, why)) for rank, (hit, value, why) in enumerate(given, start=1)
    )


def put_first(
    stage: str, first: Sequence[Hit], others: Iterable[Hit], best: float, why: Callable[[Hit], str]
) -> tuple[Hit, ...]:
    """Return hits with those that a stage wants first at the best value, then the others, in their order."""
    lifted = (
        hit.changed(value=best, scores=(*hit.scores, StageScore(stage, best, rank, why(hit))))
        for rank, hit in enumerate(first, start=1)
    )
    taken = {hit.found.id for hit in first}
    return (*lifted, *(hit for hit in others if hit.found.id not in taken))
