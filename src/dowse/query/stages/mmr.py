"""Hits that differ from each other come first: hits and their vectors go in, the same hits in MMR's order come out.

Maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998) in the form s − d·max cos(selected), which orders as
λ·s − (1 − λ)·max cos does with λ = 1/(1 + d) (C-28).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dowse.errors import BadRequestError
from dowse.identity import id_number
from dowse.ports import Mask, Matrix, StoreReader, Values
from dowse.query.stages.state import Hit, Slate
from dowse.types import Score

DIVERSITY = 0.3  # S1-06
_FEW = 64  # rows: a larger product wakes the threads of BLAS, which takes longer than it does


def apply_mmr(
    scores: Sequence[float],
    vectors: Matrix,
    diversity: float = DIVERSITY,
    top_k: int = 5,
    texts: Sequence[str] | None = None,
) -> list[tuple[int, float]]:
    """Positions of the best `top_k` and their marginal scores, in the order they are picked; scores are in [0,1].

    The first pick is the highest score; equals keep the order given, which need not be sorted (B-26). A row of zeros
    is a missing vector: likeness to it is the overlap of the texts' words, when texts are given, else 0 (C-29).
    """
    if not 0 <= diversity <= 1:  # NaN fails both comparisons
        raise BadRequestError(f"diversity is {diversity}; give a number between 0 (none) and 1")
    if len(scores) != len(vectors) or (texts is not None and len(texts) != len(scores)):
        raise BadRequestError(f"{len(scores)} scores and {len(vectors)} vectors; give one of each to every hit")
    relevance = np.asarray(scores, np.float64)
    if np.isnan(relevance).any():
        raise BadRequestError("a score is NaN, which would make any order legal; leave that hit out")
    relevance = relevance.copy()
    likeness = _Likeness.of(vectors, texts)
    nearest = np.zeros(len(relevance))
    picks: list[tuple[int, float]] = []
    for _ in range(min(top_k, len(relevance))):
        marginal = relevance - diversity * nearest
        at = int(marginal.argmax())  # the first of equals
        picks.append((at, float(marginal[at])))
        relevance[at] = -np.inf  # taken
        np.maximum(nearest, likeness.to(at), out=nearest)
    return picks


@dataclass(frozen=True, eq=False)
class _Likeness:
    """How alike any hit and a chosen one are, in [0,1]; computed a row at a time, for only `top_k` rows are needed."""

    unit: Matrix
    exists: Mask
    words: tuple[frozenset[str], ...]

    @classmethod
    def of(cls, vectors: Matrix, texts: Sequence[str] | None) -> _Likeness:
        lengths = np.linalg.norm(vectors, axis=1) if len(vectors) else np.zeros(0)
        exists: Mask = lengths > 0
        unit: Matrix = (vectors / np.where(exists, lengths, 1.0)[:, None]).astype(np.float32)
        words = () if texts is None or exists.all() else tuple(frozenset(text.lower().split()) for text in texts)
        return cls(unit, exists, words)

    def to(self, at: int) -> Values:
        cosines = self.unit @ self.unit[at] if len(self.unit) <= _FEW else np.vecdot(self.unit, self.unit[at])
        near: Values = cosines.astype(np.float64)
        np.minimum(near, 1.0, out=near)  # what points away, below 0, is not nearer than nothing: `nearest` starts at 0
        if not self.words:
            return near
        unknown = np.flatnonzero(~self.exists) if self.exists[at] else np.arange(len(near))
        near[unknown] = [_overlap(self.words[at], self.words[each]) for each in unknown.tolist()]
        return near


def _overlap(left: frozenset[str], right: frozenset[str]) -> float:
    """Shared words over the larger number of words."""
    return len(left & right) / max(len(left), len(right), 1)


@dataclass(frozen=True)
class Diversify:
    """MMR over the stored vectors. Its word is the marginal score, so hits stay sorted by their value."""

    store: StoreReader
    diversity: float = DIVERSITY
    name: str = "mmr"

    def __call__(self, slate: Slate, /) -> Slate:
        if len(slate.hits) < 2:
            return slate
        ids = np.array([id_number(hit.found.id) for hit in slate.hits], np.uint64)
        vectors, _ = self.store.vectors(ids)
        relevance = [min(hit.value, 1.0) for hit in slate.hits]
        picks = apply_mmr(relevance, vectors, self.diversity, slate.query.k, [hit.found.text for hit in slate.hits])
        chosen = {at for at, _ in picks}
        rest = [at for at in range(len(slate.hits)) if at not in chosen]
        floor = max(picks[-1][1], 0.0)
        hits = [
            *(self._picked(slate.hits[at], rank, marginal) for rank, (at, marginal) in enumerate(picks, start=1)),
            *(slate.hits[at].at_most(floor) for at in rest),
        ]
        return slate.changed(hits=tuple(hits))

    def _picked(self, hit: Hit, rank: int, marginal: float) -> Hit:
        value = max(marginal, 0.0)
        relevance = min(hit.value, 1.0)
        taken = (relevance - marginal) / self.diversity if self.diversity else 0.0
        why = f"{relevance:.2f} − {self.diversity:.2g}·{taken:.2f} for its likeness to a hit before it"
        return hit.scored(Score(self.name, value, rank, why))
