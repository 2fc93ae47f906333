"""Metrics of rankings, and bootstrap intervals of their means.

A grade above 0 is relevant; a document without a grade is not. Ranks count from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import fsum, log2
from types import MappingProxyType

import msgspec
import numpy as np
from numpy.typing import NDArray

Figures = NDArray[np.float64]
Ranking = Sequence[str]  # document ids, best first, each once
DEEPEST = 100  # deepest rank that a metric reads


def ndcg(ranking: Ranking, grades: Mapping[str, float], k: int) -> float:
    """Compute Σ grade/log2(rank + 1) of the first k, divided by the largest possible sum. Linear gain.

    A grade below 0 counts as 0. Järvelin and Kekäläinen, TOIS 2002.
    """
    ideal = sorted((grade for grade in grades.values() if grade > 0), reverse=True)
    attainable = _discounted(ideal[:k])
    return _discounted([max(grades.get(each, 0.0), 0.0) for each in ranking[:k]]) / attainable if attainable else 0.0


def reciprocal_rank(ranking: Ranking, grades: Mapping[str, float], k: int) -> float:
    """Compute 1/rank of the first relevant document among the first k, or 0."""
    return next((1 / rank for rank, hit in _hits(ranking, grades, k) if hit), 0.0)


def average_precision(ranking: Ranking, grades: Mapping[str, float], k: int) -> float:
    """Compute the mean precision at the ranks of all relevant documents; 0 for those below k."""
    relevant = _relevant(grades)
    ranks = [rank for rank, hit in _hits(ranking, grades, k) if hit]
    return fsum(found / rank for found, rank in enumerate(ranks, start=1)) / relevant if relevant else 0.0


def recall(ranking: Ranking, grades: Mapping[str, float], k: int) -> float:
    """Compute the share of the relevant documents that are among the first k."""
    relevant = _relevant(grades)
    return sum(hit for _, hit in _hits(ranking, grades, k)) / relevant if relevant else 0.0


def precision(ranking: Ranking, grades: Mapping[str, float], k: int) -> float:
    """Compute the share of relevant documents in the first k places; an empty place is not relevant."""
    return sum(hit for _, hit in _hits(ranking, grades, k)) / k


Metric = Callable[[Ranking, Mapping[str, float], int], float]

METRICS: Mapping[str, tuple[Metric, int]] = MappingProxyType(
    {
        "ndcg@10": (ndcg, 10),
        "mrr@10": (reciprocal_rank, 10),
        "map": (average_precision, DEEPEST),
        "recall@10": (recall, 10),
        "recall@100": (recall, DEEPEST),
        "p@1": (precision, 1),
    }
)
MAIN = "ndcg@10"  # decides comparisons


def scored(ranking: Ranking, grades: Mapping[str, float]) -> dict[str, float]:
    """Compute all metrics of one query."""
    return {name: metric(ranking, grades, k) for name, (metric, k) in METRICS.items()}


def _discounted(gains: Sequence[float]) -> float:
    return fsum(gain / log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def _hits(ranking: Ranking, grades: Mapping[str, float], k: int) -> list[tuple[int, bool]]:
    return [(rank, grades.get(each, 0.0) > 0) for rank, each in enumerate(ranking[:k], start=1)]


def _relevant(grades: Mapping[str, float]) -> int:
    return sum(grade > 0 for grade in grades.values())


DRAWS = 2000
SEED = 20261115  # chosen; fixed, so that intervals can be compared
LEVEL = 0.95


class Interval(msgspec.Struct, frozen=True):
    """Mean with its confidence interval."""

    mean: float
    low: float
    high: float

    @property
    def significant(self) -> bool:
        """Whether 0 is outside."""
        return self.low > 0 or self.high < 0

    @property
    def nothing(self) -> bool:
        """Whether no query differs."""
        return self.mean == self.low == self.high == 0


def interval(figures: Sequence[Figures], draws: int = DRAWS, seed: int = SEED) -> Interval:
    """Bootstrap the macro mean: one array for each collection, one figure or difference for each query."""
    if not figures or any(not len(each) for each in figures):
        raise ValueError("an interval needs at least one figure for each collection")
    means = np.mean([_drawn_means(each, draws, seed + number) for number, each in enumerate(figures)], axis=0)
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.percentile(means, [tail, 100 - tail])
    return Interval(float(np.mean([each.mean() for each in figures])), float(low), float(high))


def difference(ours: Sequence[Figures], theirs: Sequence[Figures]) -> Interval:
    """Bootstrap ours minus theirs, query by query."""
    return interval([a - b for a, b in zip(ours, theirs, strict=True)])


def _drawn_means(figures: Figures, draws: int, seed: int) -> Figures:
    """Draw means with queries weighted by how often they are drawn: one multinomial row for each draw."""
    count = len(figures)
    times = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=draws)
    means: Figures = times @ figures / count
    return means
