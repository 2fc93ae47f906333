"""Diversity: hits in the order of maximal marginal relevance (MMR).

Maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998) in the form s − d·max cos(selected), which orders as
λ·s − (1 − λ)·max cos does with λ = 1/(1 + d).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from dowse.errors import BadRequestError
from dowse.ports import Mask, Matrix, Values, VectorSearch
from dowse.query.stages.legs import numbers
from dowse.query.stages.state import Hit, QueryState, StageScore

DIVERSITY = 0.3  # chosen: duplicates sink, good neighbours stay
_FEW = 64  # rows: a larger product starts BLAS threads, which takes longer than the product


def apply_mmr(
    scores: Sequence[float],
    vectors: Matrix,
    diversity: float = DIVERSITY,
    top_k: int = 5,
    texts: Sequence[str] | None = None,
) -> list[tuple[int, float]]:
    """Return positions of the best `top_k` and their scores, in the order of selection; scores are in [0,1].

    At most `top_k` rows are returned as they are. The first pick is the highest score; equals keep the order given,
    which need not be sorted. A row of zeros is a missing vector: similarity to it is the overlap of words, if texts are
    given, else 0.
    """
    return [(at, scores[at]) for at, _ in marginal_order(scores, vectors, diversity, top_k, texts)]


def marginal_order(
    scores: Sequence[float], vectors: Matrix, diversity: float, top_k: int, texts: Sequence[str] | None = None
) -> list[tuple[int, float]]:
    """Return the positions of `apply_mmr` with their marginal scores."""
    if not 0 <= diversity <= 1:  # NaN fails both comparisons
        raise BadRequestError(f"diversity is {diversity}; give a number between 0 (none) and 1")
    if len(scores) != len(vectors) or (texts is not None and len(texts) != len(scores)):
        raise BadRequestError(f"{len(scores)} scores and {len(vectors)} vectors; give one of each to every hit")
    relevance = np.asarray(scores, np.float64)
    if np.isnan(relevance).any():
        raise BadRequestError("a score is NaN, which has no order; leave that hit out")
    if len(scores) <= top_k:
        return list(enumerate(relevance.tolist()))
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


class _Likeness(msgspec.Struct, frozen=True, eq=False):
    """Similarities in [0,1], computed row by row, because only `top_k` rows are needed."""

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
        np.minimum(near, 1.0, out=near)  # negative ones stay: `nearest` starts at 0
        if not self.words:
            return near
        unknown = np.flatnonzero(~self.exists) if self.exists[at] else np.arange(len(near))
        own, others = self.words[at], (self.words[each] for each in unknown.tolist())
        near[unknown] = [len(own & each) / max(len(own), len(each), 1) for each in others]  # shared words
        return near


class Diversify(msgspec.Struct, frozen=True):
    """Stage that selects hits by MMR over stored vectors. Their values stay; the marginal score is in the history."""

    store: VectorSearch
    diversity: float = DIVERSITY
    name: str = "mmr"

    def __call__(self, state: QueryState, /) -> QueryState:
        if len(state.hits) <= state.query.k:
            return state
        vectors, _ = self.store.vectors(numbers(hit.found.id for hit in state.hits))
        relevance = [min(hit.value, 1.0) for hit in state.hits]
        texts = [hit.found.text for hit in state.hits]
        picks = marginal_order(relevance, vectors, self.diversity, state.query.k, texts)
        chosen = {at for at, _ in picks}
        rest = [hit for at, hit in enumerate(state.hits) if at not in chosen]
        picked = [self._picked(state.hits[at], rank, marginal) for rank, (at, marginal) in enumerate(picks, start=1)]
        return state.changed(hits=(*picked, *rest))

    def _picked(self, hit: Hit, rank: int, marginal: float) -> Hit:
        relevance = min(hit.value, 1.0)
        taken = (relevance - marginal) / self.diversity if self.diversity else 0.0
        why = f"{relevance:.2f} − {self.diversity:.2g}·{taken:.2f} for similarity to an earlier hit"
        return hit.changed(scores=(*hit.scores, StageScore(self.name, marginal, rank, why)))
