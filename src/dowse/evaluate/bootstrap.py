"""Two runs' figures by question go in; the mean difference, its interval and whether it can be chance come out.

The paired bootstrap: questions are drawn with replacement, the same ones for both runs, and the 2.5th and 97.5th
percentiles of the mean differences bound the interval (Efron and Tibshirani 1993; for retrieval: Sakai, SIGIR 2006).
Over several collections each is drawn by itself and the mean of their means is taken, so that a large collection does
not drown a small one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Figures = NDArray[np.float64]
else:
    Figures = Any

DRAWS = 2000  # as in lab/quality.md, so that intervals compare
SEED = 20261115  # chosen; any will do, as long as it stays
LEVEL = 0.95


@dataclass(frozen=True)
class Interval:
    """A mean and where it may lie."""

    mean: float
    low: float
    high: float

    @property
    def significant(self) -> bool:
        """0 lies outside."""
        return self.low > 0 or self.high < 0

    @property
    def nothing(self) -> bool:
        """No question differs."""
        return self.mean == self.low == self.high == 0


def interval(figures: Sequence[Figures], draws: int = DRAWS, seed: int = SEED) -> Interval:
    """One array a collection, one figure (or difference of figures) a question; the macro mean."""
    if not figures or any(not len(each) for each in figures):
        raise ValueError("an interval needs at least one figure for each collection")
    means = np.mean([_drawn_means(each, draws, seed + number) for number, each in enumerate(figures)], axis=0)
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.percentile(means, [tail, 100 - tail])
    return Interval(float(np.mean([each.mean() for each in figures])), float(low), float(high))


def difference(ours: Sequence[Figures], theirs: Sequence[Figures]) -> Interval:
    """Ours minus theirs, question by question."""
    return interval([a - b for a, b in zip(ours, theirs, strict=True)])


def _drawn_means(figures: Figures, draws: int, seed: int) -> Figures:
    """How often a question is drawn decides its weight: one multinomial row a draw."""
    count = len(figures)
    times = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=draws)
    means: Figures = times @ figures / count
    return means
