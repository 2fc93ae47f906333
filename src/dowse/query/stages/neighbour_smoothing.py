"""Neighbour smoothing: the first 50 scores of a fusion, corrected by the similarity between the chunks.

Two corrections, both from the vectors that are stored anyway. Hubness: a chunk near to many others is near to every
question, so its cosine loses a share of the surplus of its nearest chunks over the mean (CSLS; Conneau and others,
ICLR 2018). Smoothing: chunks that answer a question resemble each other, so a chunk's sum moves towards the mean of its
nearest chunks (score regularisation; Diaz, CIKM 2005). Figures: docs/trials/neighbour-smoothing.md.
"""

from __future__ import annotations

from math import sqrt
from typing import Protocol

import msgspec
import numpy as np
from msgspec.structs import replace

from dowse.fusion_kernel import FusionKernel
from dowse.ports import Ids, Mask, Matrix, Order, Table, Values
from dowse.query.stages.fusion import FLAT, ZScore
from dowse.query.stages.sort import order
from dowse.query.stages.state import Column, Fused, QueryState

# Figures are nDCG@10 in docs/trials/neighbour-smoothing.md.
NEAREST = 5  # neighbours of a chunk; measured: 3 and 10 differ by less than 0.002
FIRST = 50  # chunks of the fused list; measured: 30 loses 0.002, 100 gains nothing
MOST = 0.5  # largest move of a sum, so that a clear winner keeps its lead; measured: costs 0.0015
_BLOCK_ROWS = 13  # of a product; chosen: 13·50·384 is below the size at which OpenBLAS uses threads
_LEAST = 1e-9  # weight of a neighbour that points away, so that weights never add up to 0


class VectorSource(Protocol):
    """The part of a store that smoothing needs."""

    def vectors(self, ids: Ids) -> tuple[Matrix, Mask]: ...


class NeighbourSmoothing(msgspec.Struct, frozen=True):
    """Stage that smooths a fusion by `z` of words and vectors; other lists stay as they are."""

    store: VectorSource
    hubness: float  # share of the neighbours' surplus that a cosine loses
    smoothing: float  # share of the neighbours' mean in a chunk's sum
    kernel: FusionKernel | None = None  # compiled arithmetic; None: numpy
    name: str = "smoothing"

    def __call__(self, state: QueryState, /) -> QueryState:
        if state.fused is None or state.query.mentions:  # a question that names a thing wants it, and not its likes
            return state
        return state.changed(fused=smoothed(state.fused, self.store, self.hubness, self.smoothing, self.kernel))


def smoothed(
    fused: Fused, store: VectorSource, hubness: float, smoothing: float, kernel: FusionKernel | None = None
) -> Fused:
    """Return the list with its first chunks smoothed; unchanged where one channel or too few vectors take part."""
    if not applies(fused):
        return fused
    vectors, there = store.vectors(fused.ids[:FIRST])
    rows = there.nonzero()[0]
    if len(rows) <= NEAREST:  # each would neighbour all others
        return fused
    return moved(fused, rows, vectors if len(rows) == len(vectors) else vectors[rows], hubness, smoothing, kernel)


def applies(fused: Fused) -> bool:
    """Return whether words and vectors both count: a channel that is asked alone answers as it is."""
    counted = {column.leg == "dense" for column in fused.columns if column.weight > 0}
    return isinstance(fused.method, ZScore) and len(counted) == 2


def moved(
    fused: Fused, rows: Order, vectors: Matrix, hubness: float, smoothing: float, kernel: FusionKernel | None = None
) -> Fused:
    """Return the same chunks in a new order; `rows` are more than NEAREST places in `fused` that have vectors."""
    near, likeness = _nearest(vectors)
    parts = np.array([column.parts for column in fused.columns])
    dense = _only_dense(fused) if kernel is not None else None
    if kernel is not None and dense is not None:
        share = fused.columns[dense].weight / sum(column.weight for column in fused.columns)
        how = (hubness, smoothing, FLAT, _LEAST, MOST)
        sums, added = kernel.smooth(near, likeness, rows, fused.columns[dense].scores, parts, dense, share, how)
    else:
        sums, added = _summed(fused, rows, near, likeness, parts, hubness, smoothing)
    raw = sums + added
    best = order(raw, fused.ids)
    raw = raw[best]
    return replace(
        fused,
        ids=fused.ids[best],
        raw=raw,
        values=fused.method.unit(raw, np.array([column.weight for column in fused.columns])),
        columns=tuple(_ordered(column, own, best) for column, own in zip(fused.columns, parts, strict=True)),
        smoothing=added[best],
    )


def _only_dense(fused: Fused) -> int | None:
    """Return the number of the dense column if the compiled kernel applies: it is alone, complete, and z is squared."""
    numbers = [number for number, column in enumerate(fused.columns) if column.leg == "dense"]
    plain = len(numbers) == 1 and isinstance(fused.method, ZScore) and fused.method.exponent == 2
    return numbers[0] if plain and not np.isnan(fused.columns[numbers[0]].scores).any() else None


def _summed(
    fused: Fused, rows: Order, near: Order, likeness: Values, parts: Table, hubness: float, smoothing: float
) -> tuple[Values, Values]:
    """Return sums of the parts, after the dense ones are corrected in place, and the addition of the neighbours."""
    crowded = likeness.sum(axis=1) / NEAREST  # numpy's `mean` and `clip` cost as much as the rest of their lines
    shift = hubness * (crowded - crowded.sum() / len(crowded))
    total = sum(column.weight for column in fused.columns)
    for column, changing in zip(fused.columns, parts, strict=True):
        _reduce_hubs(fused, column, rows, shift, column.weight / total, changing)
    sums = parts.sum(axis=0)
    own = sums[rows]
    weights = np.maximum(likeness, _LEAST)
    added = np.zeros(len(fused.ids))
    neighbours = (weights * own[near]).sum(axis=1) / weights.sum(axis=1)
    added[rows] = np.minimum(np.maximum(smoothing * (neighbours - own), -MOST), MOST)
    return sums, added


def _nearest(vectors: Matrix) -> tuple[Order, Values]:
    """Return by chunk its nearest others, in any order, and their cosines."""
    # Some rows at a time: a larger product wakes the threads of BLAS, which turns 0.05 ms of work into up to 20.
    blocks = range(0, len(vectors), _BLOCK_ROWS)
    cosines = np.concatenate([vectors[start : start + _BLOCK_ROWS] @ vectors.T for start in blocks])
    cosines.reshape(-1)[:: len(vectors) + 1] = -np.inf  # no chunk is its own neighbour
    near = cosines.argpartition(-NEAREST, axis=1)[:, -NEAREST:]
    starts = np.arange(0, cosines.size, len(vectors))[:, None]
    return near, cosines.reshape(-1).take(near + starts).astype(np.float64)


def _reduce_hubs(fused: Fused, column: Column, rows: Order, shift: Values, share: float, parts: Values) -> None:
    """Set the dense parts to those of cosines less the shift; mean and deviation stay those of the union."""
    if column.leg != "dense" or not isinstance(fused.method, ZScore):
        return
    known = column.scores
    if (unknown := np.isnan(known)).any():
        known = known[~unknown]
    mean = known.sum() / len(known)
    apart = known - mean
    deviation = sqrt((apart * apart).sum() / len(known))
    if deviation >= FLAT:
        z = (column.scores[rows] - shift - mean) / deviation
        parts[rows] = share * np.copysign(np.abs(z) ** fused.method.exponent, z)


def _ordered(column: Column, parts: Values, best: Order) -> Column:
    scores, ranks = column.scores.take(best), column.ranks.take(best)
    return Column(column.leg, column.weight, column.found, scores, ranks, parts.take(best), column.variant)
