"""Reranking: the scores of a reranker, blended with earlier scores, reorder the hits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import msgspec

from dowse.errors import ModelUnavailableError
from dowse.ports import Candidate, Reranker
from dowse.query.rows import candidates_of
from dowse.query.stages.state import Hit, QueryState, StageScore
from dowse.types import Degradation

WEIGHT = 0.7  # of the reranker, against 0.3 of the score before it; chosen


class Judgement(msgspec.Struct, frozen=True):
    """A score in [0,1], and a function that returns its reason."""

    score: float
    why: Callable[[], str]


def blended(score: float, before: float, weight: float = WEIGHT) -> float:
    """Return weight·score + (1 − weight)·before, both in [0,1]; weight 1 replaces."""
    return weight * score + (1 - weight) * before


def reranked(
    candidates: Sequence[Candidate], scores: Sequence[float | None], top_k: int | None = None
) -> list[Candidate]:
    """Return candidates sorted and trimmed, with these scores as values; those without a score come last."""
    judged = [score for score in scores if score is not None]
    floor = min(judged, default=1.0)
    rows = [
        (each, min(each.value, floor) if score is None else score, score is None)
        for each, score in zip(candidates, scores, strict=True)
    ]
    rows.sort(key=lambda row: (row[2], -row[1]))
    return [Candidate(each.chunk, score, each.value, each.source) for each, score, _ in rows][:top_k]


def checked(
    reranker: Reranker, query: str, candidates: Sequence[Candidate], timeout_s: float | None
) -> list[float | None]:
    """Return the scores of a reranker, or raise ModelUnavailableError if they are invalid."""
    scores = list(reranker.score(query, candidates, timeout_s=timeout_s)) if candidates else []
    if getattr(reranker, "drops", False):
        return scores
    if len(scores) != len(candidates):
        raise ModelUnavailableError(f"{reranker.model} returned {len(scores)} scores for {len(candidates)} candidates")
    for score in scores:
        if score is not None and not (isfinite(score) and 0 <= score <= 1):
            raise ModelUnavailableError(f"{reranker.model} returned the score {score}, which is not between 0 and 1")
    if scores and all(score is None for score in scores):
        raise ModelUnavailableError(f"{reranker.model} scored none of {len(candidates)} candidates in time")
    return scores


class Rerank(msgspec.Struct, frozen=True):
    """Stage of one reranker. It scores the first `window` hits; the others stay behind them, in their order."""

    reranker: Reranker
    name: str
    weight: float = WEIGHT
    window: int = 50
    left_s: Callable[[], float | None] = lambda: None  # remaining time; None: no limit

    def __call__(self, state: QueryState, /) -> QueryState:
        if not state.hits:
            return state
        head, tail = state.hits[: self.window], state.hits[self.window :]
        scores, reasons = self._judged(state.query.text, head)
        if getattr(self.reranker, "drops", False):
            kept = [at for at, score in enumerate(scores) if score is not None]
            head, tail, scores = tuple(head[at] for at in kept), (), [scores[at] for at in kept]
            if not kept:
                return state.changed(hits=())
        reached = max(at for at, score in enumerate(scores) if score is not None) + 1
        # A hit without a score among scored ones keeps its value, which is on the same scale.
        values = [
            hit.value if score is None else blended(score, hit.value, self.weight)
            for hit, score in zip(head[:reached], scores, strict=False)
        ]
        places = sorted(range(reached), key=lambda at: -values[at])  # stable
        judged = tuple(
            head[at].scored(
                StageScore(self.name, values[at], rank, reasons(at) if rank <= state.query.k else ""), scores[at]
            )
            for rank, at in enumerate(places, start=1)
        )
        floor, why = judged[-1].value, "not scored: beyond the window"
        behind = (
            hit.scored(StageScore(self.name, min(hit.value, floor), rank, why))
            for rank, hit in enumerate((*head[reached:], *tail), start=reached + 1)
        )
        missing = sum(score is None for score in scores)
        lost = (Degradation(self.name, f"scored {len(head) - missing} of {len(head)}"),) if missing else ()
        return state.changed(hits=(*judged, *behind), degraded=(*state.degraded, *lost))

    def _judged(self, query: str, head: Sequence[Hit]) -> tuple[list[float | None], Callable[[int], str]]:
        candidates = [
            Candidate(each.found, min(each.value, 1.0), source=each.scores[-1].stage if each.scores else "fuse")
            for each in head
        ]
        if (judge := getattr(self.reranker, "judge", None)) is not None:  # as `score`, with reasons
            judgements: Sequence[Judgement] = judge(query, candidates)
            return [each.score for each in judgements], lambda at: judgements[at].why()
        scores = checked(self.reranker, query, candidates, self.left_s())
        drops = getattr(self.reranker, "drops", False)
        shown = [(score, hit.value) for score, hit in zip(scores, head, strict=True) if score is not None or not drops]
        return scores, lambda at: self._formula(*shown[at])

    def _formula(self, score: float | None, before: float) -> str:
        if score is None:
            return "not scored; keeps its earlier score"
        return f"{self.weight:.2g}·{score:.2f} + {1 - self.weight:.2g}·{before:.2f}"


@dataclass(frozen=True)
class ScoreReranker:
    """Reranker that keeps the scores and drops candidates below `min_score`, which is in [0,1], as values are."""

    min_score: float = 0.0
    model: str = "score"
    drops: bool = field(default=True, init=False, repr=False)  # candidates without a score are left out on purpose

    def score(
        self, query: str, candidates: Sequence[Candidate], *, timeout_s: float | None = None
    ) -> list[float | None]:
        return [each.value if each.value >= self.min_score else None for each in candidates]

    def rerank(self, query: str, candidates: Sequence[Any], top_k: int | None = None) -> list[Candidate]:
        """Return candidates sorted and trimmed, without those below `min_score`."""
        kept = [each for each in candidates_of(candidates) if each.value >= self.min_score]
        return reranked(kept, [each.value for each in kept], top_k)
