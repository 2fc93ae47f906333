"""Compiled kernel: the inner loops of `numpy_kernel` in C (`native.c`), built with the package where a compiler is.

Figures: docs/decisions/0006-compiled-kernels.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dowse.store.kernels._native as _native
from dowse.fusion_kernel import How, Sums
from dowse.ports import Ids, Ranks, Table, Vector
from dowse.store.kernels.numpy_kernel import (
    Best,
    ChunkTerms,
    Codes,
    Mask,
    Norm,
    Packed,
    Rows,
    Run,
    ScoreAccumulator,
    Spans,
    Values,
    WeightedTerms,
    doubt,
    joined,
)

_NO_ROWS = np.empty(0, np.int64)
_CODE_BITS, _SIZE_BITS = 40, 32  # of two numbers that the module returns as one
_side_by_side = np.ascontiguousarray  # what callers cut out of other arrays; the module takes no strides
PROCESSOR: str = _native.processor()


class NativeKernel:
    """Compiled kernel. Satisfies `Kernel`; releases the interpreter's lock, so that legs run side by side."""

    def __init__(self) -> None:
        self._own = local()
        self.fusion = NativeFusion()

    def nearest_codes(self, columns: Sequence[Codes], query: Codes, count: int, allowed: Rows | None) -> Rows:
        everything = allowed is None
        rows = _NO_ROWS if allowed is None else _side_by_side(allowed)
        distances = self._scratch("distances", len(columns[0]) if everything else len(rows), np.uint16)
        found = _native.distances(tuple(columns), query, rows, everything, distances, count)
        chosen = np.empty(found & ((1 << _CODE_BITS) - 1), np.int64)
        _native.pick(distances, found >> _CODE_BITS, chosen)
        return chosen if allowed is None else allowed[chosen]

    def nearest(self, rows: Rows, kept: Packed, vector: Vector, k: int) -> tuple[Rows, Vector]:
        if len(rows) <= 2 * k:
            return np.arange(len(rows)), self.dots(rows, kept, vector)
        places, found = np.empty(len(rows), np.int64), np.empty(len(rows), np.float32)
        size = _native.nearest(_side_by_side(rows), *kept, _side_by_side(vector), places, found, k, doubt(vector))
        return places[:size], found[:size]

    def dots(self, rows: Rows, kept: Packed, vector: Vector) -> Vector:
        found = np.empty(len(rows), np.float32)
        _native.dots(_side_by_side(rows), *kept, _side_by_side(vector), found)
        return found

    def unpacked(self, rows: Rows, kept: Packed) -> NDArray[np.float32]:
        found = np.empty((len(rows), kept.coarse.shape[1]), np.float32)
        _native.unpack(_side_by_side(rows), *kept, found, kept.coarse.shape[1])
        return found

    def bm25(self, slots: Rows, said: ChunkTerms, wanted: Sequence[WeightedTerms]) -> NDArray[np.float64]:
        sums = np.empty((len(wanted), len(slots)))
        legs = ((each.hashes, each.weights, *each.norm) for each in wanted)
        _native.bm25(_side_by_side(slots), said.terms, said.counts, said.ends, sums, *legs)
        return sums

    def slots_of(self, known: Ids, slots: Rows, wanted: Ids) -> tuple[Rows, int]:
        found = np.empty(len(wanted), np.int64)
        return found, _native.slots_of(known, slots, _side_by_side(wanted), found)

    def find(self, run: Run, hashes: NDArray[np.uint32]) -> tuple[Rows, Rows]:
        starts, ends = np.empty(len(hashes), np.int64), np.empty(len(hashes), np.int64)
        _native.find(run.terms, run.ends, hashes, starts, ends)
        return starts, ends

    def sums(self, run: Run, wanted: WeightedTerms) -> NDArray[np.float64]:
        sums, norm = np.zeros(len(wanted.norm.lengths)), wanted.norm
        spans = self.find(run, wanted.hashes)
        _native.add_up(run.slots, run.counts, *spans, wanted.weights, norm.lengths, sums, norm.base, norm.slope)
        return sums

    def best(
        self, runs: Sequence[Spans], weights: Values, norm: Norm, mask: Mask, k: int, tally: ScoreAccumulator
    ) -> Best:
        _native.clear(tally.sums, tally.found, tally.size)
        tally.size = 0
        tally.grow(len(norm.lengths))
        room = len(norm.lengths) + 1
        scores, values = self._scratch("scores", room, np.float64), self._scratch("values", room, np.float64)
        chosen = self._scratch("chosen", room, np.int64)
        sums, tally.sums = tally.sums, np.empty(0)  # what is left of them after an error is of no use
        noted, parts = 0, []
        for run, starts, ends in runs:
            given = (run.slots, run.counts, starts, ends, weights, norm.lengths, mask, sums, tally.found)
            both = _native.best(*given, scores, chosen, values, norm.base, norm.slope, noted, k)
            size = both & ((1 << _SIZE_BITS) - 1)
            noted += both >> _SIZE_BITS
            parts.append((chosen[:size].copy(), values[:size].copy()))
        tally.sums, tally.size = sums, noted
        return parts[0] if len(parts) == 1 else joined(parts)

    def _scratch(self, name: str, count: int, kind: type[np.generic]) -> NDArray[Any]:
        """Return a scratch array of this thread, with any content: a new large array takes longer than a query."""
        kept: NDArray[Any] | None = getattr(self._own, name, None)
        if kept is None or len(kept) < count:
            kept = np.empty(count + count // 8, kind)  # so that an update does not outgrow it
            setattr(self._own, name, kept)
        return kept[:count]


class NativeFusion:
    """Compiled fusion. Satisfies `fusion_kernel.FusionKernel`; equal to `query.stages` to the last digit."""

    def union(self, every: Ids) -> tuple[Ids, Ranks]:
        order = every.argsort()
        ids, places = np.empty_like(every), np.empty_like(order)
        return ids[: _native.joined(every, order, ids, places)], places

    def squares(self, scores: Table, places: Ranks, sizes: Ranks, shares: Values, least: float) -> Sums | None:
        if not scores.size:
            return None
        ranks, parts, raw = np.empty(scores.shape, np.int64), np.empty_like(scores), np.empty(scores.shape[1])
        done = _native.squares(scores, places, sizes, shares, ranks, parts, raw, least)
        return None if done is None else (ranks, parts, raw)

    def smooth(
        self,
        near: Ranks,
        likeness: Table,
        rows: Ranks,
        scores: Values,
        parts: Table,
        dense: int,
        share: float,
        how: How,
    ) -> tuple[Values, Values]:
        sums, added = np.empty(len(scores)), np.empty(len(scores))
        given = (_side_by_side(near), likeness, _side_by_side(rows), _side_by_side(scores), parts)
        _native.smooth(*given, sums, added, dense, share, *how)
        return sums, added
