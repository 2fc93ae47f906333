"""A ranking and its grades go in, one number per metric comes out; a document without a grade counts as wrong.

A grade above 0 is relevant. Ranks count from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import fsum, log2
from types import MappingProxyType

Ranking = Sequence[str]
"""Document ids, best first, each once."""

DEEPEST = 100  # how far down any metric looks


def ndcg(ranking: Ranking, grades: Mapping[str, float], k: int) -> float:
    """Σ grade/log2(rank + 1) of the first k, divided by the largest sum there could be. Linear gain.

    A grade below 0 counts as 0. Järvelin and Kekäläinen, TOIS 2002.
    """
    ideal = sorted((grade for grade in grades.values() if grade > 0), reverse=True)
    attainable = _discounted(ideal[:k])
    return _discounted([max(grades.get(each, 0.0), 0.0) for each in ranking[:k]]) / attainable if attainable else 0.0


def reciprocal_rank(ranking: Ranking, grades: Mapping[str, float], k: int) -> float:
    """1/rank of the first relevant document among the first k, or 0."""
    return next((1 / rank for rank, hit in _hits(ranking, grades, k) if hit), 0.0)


def average_precision(ranking: Ranking, grades: Mapping[str, float], k: int) -> float:
    """The mean, over all relevant documents, of the precision at each one's rank; 0 for those below k."""
    relevant = _relevant(grades)
    ranks = [rank for rank, hit in _hits(ranking, grades, k) if hit]
    return fsum(found / rank for found, rank in enumerate(ranks, start=1)) / relevant if relevant else 0.0


def recall(ranking: Ranking, grades: Mapping[str, float], k: int) -> float:
    """The share of the relevant documents that are among the first k."""
    relevant = _relevant(grades)
    return sum(hit for _, hit in _hits(ranking, grades, k)) / relevant if relevant else 0.0


def precision(ranking: Ranking, grades: Mapping[str, float], k: int) -> float:
    """The share of the first k places that hold a relevant document; an empty place is wrong."""
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
MAIN = "ndcg@10"  # what everything is judged by


def scored(ranking: Ranking, grades: Mapping[str, float]) -> dict[str, float]:
    """All metrics of one question."""
    return {name: metric(ranking, grades, k) for name, (metric, k) in METRICS.items()}


def _discounted(gains: Sequence[float]) -> float:
    return fsum(gain / log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def _hits(ranking: Ranking, grades: Mapping[str, float], k: int) -> list[tuple[int, bool]]:
    return [(rank, grades.get(each, 0.0) > 0) for rank, each in enumerate(ranking[:k], start=1)]


def _relevant(grades: Mapping[str, float]) -> int:
    return sum(grade > 0 for grade in grades.values())
