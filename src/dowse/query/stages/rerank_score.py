"""The reranker that believes what is there: candidates go in, their own values come out, weak ones dropped (S4-12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dowse.ports import Candidate
from dowse.query.stages.rerank import reranked


@dataclass(frozen=True)
class ScoreReranker:
    """Satisfies `dowse.ports.Reranker`. `min_score` is in [0,1], as values are; on raw RRF it would drop all (B-30)."""

    min_score: float = 0.0
    model: str = "score"

    def score(self, query: str, candidates: Sequence[Candidate], *, timeout_s: float | None = None) -> list[float]:
        return [each.value for each in candidates]

    def rerank(self, query: str, candidates: Sequence[Candidate], top_k: int | None = None) -> list[Candidate]:
        """Sorted, without those below `min_score`, trimmed."""
        kept = [each for each in candidates if each.value >= self.min_score]
        return reranked(self, query, kept, top_k)
