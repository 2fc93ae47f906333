"""Kernel compiled by numba: the inner loops of `numpy_kernel`, compiled once a machine and cached on disk.

Against numpy, 100,000 chunks of 384 dimensions, CPU ms on one core without AVX-512 (`python -m bench.engine`): sign
codes 0.22 against 1.07, int8 of 3,400 survivors 0.22 against 0.81, BM25 of 280 chunks 0.01 against 0.18.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import local
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowse.ports import Ids, Vector
from dowse.store.kernels import numba_vectors as compiled_vectors
from dowse.store.kernels import numba_words as compiled_words
from dowse.store.kernels.numba_fusion import NumbaFusion
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


class FastKernel:
    """Compiled kernel. Satisfies `Kernel`; releases the interpreter's lock, so that legs run side by side."""

    def __init__(self) -> None:
        self._own = local()
        self.fusion = NumbaFusion()

    def nearest_codes(self, columns: Sequence[Codes], query: Codes, count: int, allowed: Rows | None) -> Rows:
        distances = self._scratch("distances", len(columns[0]) if allowed is None else len(allowed), np.uint16)
        if allowed is None:
            compiled_vectors.all_distances(tuple(columns), query, distances)
        else:
            compiled_vectors.some_distances(tuple(columns), query, allowed, distances)
        chosen: Rows = compiled_vectors.closest(distances, count, 64 * len(columns))
        return chosen if allowed is None else allowed[chosen]

    def nearest(self, rows: Rows, kept: Packed, vector: Vector, k: int) -> tuple[Rows, Vector]:
        if len(rows) <= 2 * k:
            return np.arange(len(rows)), self.dots(rows, kept, vector)
        flat = kept.coarse.reshape(-1), kept.fine.reshape(-1)
        found: tuple[Rows, Vector] = compiled_vectors.nearest(
            rows, kept.coarse, kept.fine, *flat, kept.scales, vector, k, doubt(vector)
        )
        return found

    def dots(self, rows: Rows, kept: Packed, vector: Vector) -> Vector:
        found = np.empty(len(rows), np.float32)
        flat = kept.coarse.reshape(-1), kept.fine.reshape(-1)
        compiled_vectors.dots(rows, kept.coarse, kept.fine, *flat, kept.scales, vector, found)
        return found

    def unpacked(self, rows: Rows, kept: Packed) -> NDArray[np.float32]:
        found = np.empty((len(rows), kept.coarse.shape[1]), np.float32)
        compiled_vectors.unpack(rows, *kept, found)
        return found

    def bm25(self, slots: Rows, said: ChunkTerms, wanted: Sequence[WeightedTerms]) -> NDArray[np.float64]:
        sums = np.empty((len(wanted), len(slots)))
        hashes, weights, norms = zip(*wanted, strict=True)
        lengths, bases, slopes = zip(*norms, strict=True)
        compiled_words.bm25(slots, said.terms, said.counts, said.ends, hashes, weights, lengths, bases, slopes, sums)
        return sums

    def slots_of(self, known: Ids, slots: Rows, wanted: Ids) -> tuple[Rows, int]:
        found = np.empty(len(wanted), np.int64)
        return found, compiled_words.slots_of(known, slots, wanted, found)

    def find(self, run: Run, hashes: NDArray[np.uint32]) -> tuple[Rows, Rows]:
        starts, ends = np.zeros(len(hashes), np.int64), np.zeros(len(hashes), np.int64)
        compiled_words.find(run.terms, run.ends, hashes, starts, ends)
        return starts, ends

    def sums(self, run: Run, wanted: WeightedTerms) -> NDArray[np.float64]:
        sums = np.zeros(len(wanted.norm.lengths))
        compiled_words.sums(
            run.terms, run.ends, run.slots, run.counts, wanted.hashes, wanted.weights, *wanted.norm, sums
        )
        return sums

    def best(
        self, runs: Sequence[Spans], weights: Values, norm: Norm, mask: Mask, k: int, tally: ScoreAccumulator
    ) -> Best:
        compiled_words.clear(tally.sums, tally.found[: tally.size])
        tally.size = 0
        tally.grow(len(norm.lengths))
        scores = self._scratch("scores", len(norm.lengths), np.float64)
        parts = []
        for run, starts, ends in runs:
            size, *part = compiled_words.best(
                run.slots,
                run.counts,
                starts,
                ends,
                weights,
                *norm,
                mask,
                k,
                tally.sums,
                tally.found[tally.size :],
                scores,
            )
            tally.size += size
            parts.append(part)
        return parts[0] if len(parts) == 1 else joined(parts)

    def _scratch(self, name: str, count: int, kind: type[np.generic]) -> NDArray[Any]:
        """Return a scratch array of this thread, with any content: a new large array takes longer than a query."""
        kept: NDArray[Any] | None = getattr(self._own, name, None)
        if kept is None or len(kept) < count:
            kept = np.empty(count + count // 8, kind)  # so that an update does not outgrow it
            setattr(self._own, name, kept)
        return kept[:count]
