"""The rerank chain: hits go in, a closer judgement is blended in, and the same hits come out in a better order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Protocol, runtime_checkable

import msgspec

from dowse.errors import ModelUnavailableError
from dowse.ports import Candidate, Reranker
from dowse.query.stages.state import Hit, Slate
from dowse.types import Degradation, Score

WEIGHT = 0.7  # of the reranker, against .3 of what came before it; S3-17, C-12


class Judgement(msgspec.Struct, frozen=True):
    """A score in [0,1], and its reason when asked for."""

    score: float
    why: Callable[[], str]


@runtime_checkable
class Reasoned(Protocol):
    """A reranker that can say why."""

    def judge(self, query: str, candidates: Sequence[Candidate]) -> Sequence[Judgement]:
        """The scores of `score`, with their reasons."""
        ...


def blended(score: float, before: float, weight: float = WEIGHT) -> float:
    """weight·score + (1 − weight)·before, both in [0,1] (C-13); weight 1 replaces."""
    return weight * score + (1 - weight) * before


def reranked(
    reranker: Reranker, query: str, candidates: Sequence[Candidate], top_k: int | None = None
) -> list[Candidate]:
    """Sorted and trimmed (S4-11, C-43), with the reranker's scores as values; what it did not judge comes last."""
    scores = checked(reranker, query, candidates, None)
    judged = [(each, score) for each, score in zip(candidates, scores, strict=True) if score is not None]
    floor = min((score for _, score in judged), default=1.0)
    rest = [
        replace(each, value=min(each.value, floor))
        for each, score in zip(candidates, scores, strict=True)
        if score is None
    ]
    judged.sort(key=lambda row: -row[1])
    return [*(replace(each, value=score) for each, score in judged), *rest][:top_k]


def checked(
    reranker: Reranker, query: str, candidates: Sequence[Candidate], timeout_s: float | None
) -> list[float | None]:
    """The reranker's scores, if they are scores: nonsense is as good as none."""
    scores = list(reranker.score(query, candidates, timeout_s=timeout_s)) if candidates else []
    if len(scores) != len(candidates):
        raise ModelUnavailableError(f"{reranker.model} gave {len(scores)} scores for {len(candidates)} candidates")
    for score in scores:
        if score is not None and not (isfinite(score) and 0 <= score <= 1):
            raise ModelUnavailableError(f"{reranker.model} gave the score {score}, which is not in 0 to 1")
    if scores and all(score is None for score in scores):
        raise ModelUnavailableError(f"{reranker.model} judged none of {len(candidates)} candidates in time")
    return scores


@dataclass(frozen=True)
class Rerank:
    """One link of the chain. It judges the first `window` hits; the others stay behind them, in their order."""

    reranker: Reranker
    name: str
    weight: float = WEIGHT
    window: int = 50
    left_s: Callable[[], float | None] = lambda: None  # time there is; None: enough

    def __call__(self, slate: Slate, /) -> Slate:
        if not slate.hits:
            return slate
        head = slate.hits[: self.window]
        scores, reasons = self._judged(slate.query.text, head)
        reached = max(at for at, score in enumerate(scores) if score is not None) + 1
        # Where a judgement is missing among others, the value before it stands: it is on the same scale (C-11).
        values = [
            hit.value if score is None else blended(score, hit.value, self.weight)
            for hit, score in zip(head[:reached], scores, strict=False)
        ]
        places = sorted(range(reached), key=lambda at: -values[at])  # stable: equals keep the order they came in
        judged = tuple(
            head[at].scored(
                Score(self.name, values[at], rank, reasons(at) if rank <= slate.query.k else ""), scores[at]
            )
            for rank, at in enumerate(places, start=1)
        )
        hits = (*judged, *self._behind(slate.hits[reached:], judged))
        missing = sum(score is None for score in scores)
        lost = (Degradation(self.name, f"judged {len(head) - missing} of {len(head)}"),) if missing else ()
        return slate.changed(hits=hits, degraded=(*slate.degraded, *lost))

    def _judged(self, query: str, head: Sequence[Hit]) -> tuple[list[float | None], Callable[[int], str]]:
        """Scores, and what to say of each hit that may be shown."""
        candidates = [Candidate(each.found, min(each.value, 1.0)) for each in head]
        if isinstance(self.reranker, Reasoned):
            judgements = self.reranker.judge(query, candidates)
            return [each.score for each in judgements], lambda at: judgements[at].why()
        scores = checked(self.reranker, query, candidates, self.left_s())
        return scores, lambda at: self._formula(scores[at], head[at].value)

    def _formula(self, score: float | None, before: float) -> str:
        if score is None:
            return "not judged, so what came before stands"
        return f"{self.weight:.2g}·{score:.2f} + {1 - self.weight:.2g}·{before:.2f}"

    def _behind(self, tail: Sequence[Hit], judged: Sequence[Hit]) -> list[Hit]:
        """Not judged at all: after those that were, whatever they had (their scale may be kinder)."""
        floor = judged[-1].value
        why = "not judged: beyond the window"
        return [
            hit.scored(Score(self.name, min(hit.value, floor), rank, why))
            for rank, hit in enumerate(tail, start=len(judged) + 1)
        ]
