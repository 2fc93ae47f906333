"""The one sort: values and ids go in, an order comes out; value down, then id, so equals never flicker."""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dowse.ports import Ids, Values
from dowse.query.stages.state import Hit
from dowse.types import Score

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Order = NDArray[np.intp]
else:
    Order = Any

Id = TypeVar("Id", str, int)


def order(values: Values, ids: Ids) -> Order:
    """Positions, best first. An id as a number sorts as its 16 digits do."""
    if np.isnan(values).any():
        raise ValueError("a score is NaN, which would make any order legal")
    return np.lexsort((ids, -values))


def order_of_ascending(values: Values) -> Order:
    """The same where ids ascend: equals stay as they stand, in two thirds of the time."""
    best = (-values).argsort(kind="stable")
    if len(best) and isnan(values[best[-1]]):  # they are sorted behind all others
        raise ValueError("a score is NaN, which would make any order legal")
    return best


def ranked(rows: Iterable[tuple[Id, float]]) -> list[tuple[Id, float]]:
    """The same order over plain pairs."""
    pairs = list(rows)
    if any(isnan(value) for _, value in pairs):
        raise ValueError("a score is NaN, which would make any order legal")
    return sorted(pairs, key=lambda row: (-row[1], row[0]))


def ranked_hits(stage: str, rows: Iterable[tuple[Hit, float, str]]) -> tuple[Hit, ...]:
    """Hits with a stage's values, best first, each with its place and the stage's reason in its history.

    Equals keep the order they came in, which is an order already: a stage that has nothing to say changes nothing.
    """
    given = list(rows)
    if any(isnan(value) for _, value, _ in given):
        raise ValueError(f"stage {stage!r} gave a score that is NaN, which would make any order legal")
    given.sort(key=lambda row: -row[1])
    return tuple(hit.scored(Score(stage, value, rank, why)) for rank, (hit, value, why) in enumerate(given, start=1))
