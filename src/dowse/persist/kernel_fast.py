"""The same inner loops as `kernel`, compiled by numba when this module is first used on a machine, kept from then on.

Against numpy, 100,000 chunks of 384 dimensions, CPU ms on one core without AVX-512 (`python -m bench.engine`): sign
codes .22 against 1.07, int8 of 3,700 survivors .23 against .81, BM25 of 280 chunks .01 against .18.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import local
from typing import Any

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from dowse.persist.kernel import Best, ChunkTerms, Codes, Lengths, Mask, Norm, Rows, Run, Spans, Wanted

_BLOCK = 4096  # rows at a time, so that their distances stay in the cache
_STEP = np.float32(0)
compiled = numba.njit(cache=True, nogil=True, error_model="numpy")
relaxed = numba.njit(cache=True, nogil=True, fastmath=True)  # sums may be taken in any order, as SIMD needs


def _count_ones(typing: Any, word: Any) -> tuple[Any, Callable[..., Any]]:
    """How many bits of a word are set: one instruction, which numpy's name for it does not become here."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


_ones: Any = intrinsic(_count_ones)


@compiled
def _add_distances(column, word, distances):  # type: ignore[no-untyped-def]
    for row in range(len(distances)):
        distances[row] += np.uint16(_ones(column[row] ^ word))


@compiled
def _all_distances(columns, query, distances):  # type: ignore[no-untyped-def]
    """The innermost loop is a function of its own: written out here it is not vectorised, and takes three times as
    long.
    """
    for start in range(0, len(distances), _BLOCK):
        end = min(start + _BLOCK, len(distances))
        for number in range(len(columns)):
            _add_distances(columns[number][start:end], query[number], distances[start:end])


@compiled
def _some_distances(columns, query, allowed, distances):  # type: ignore[no-untyped-def]
    for number in range(len(columns)):
        column, word = columns[number], query[number]
        for at in range(len(allowed)):
            distances[at] += np.uint16(_ones(column[allowed[at]] ^ word))


@compiled
def _closest(distances, count, farthest):  # type: ignore[no-untyped-def]
    """Positions of the `count` least distances and of all that equal the last of them."""
    histogram = np.zeros(farthest + 1, np.int64)
    for at in range(len(distances)):
        histogram[distances[at]] += 1
    limit, found = 0, histogram[0]
    while limit < farthest and found < count:
        limit += 1
        found += histogram[limit]
    chosen = np.empty(found, np.int64)
    to = 0
    for at in range(len(distances)):
        if distances[at] <= limit:
            chosen[to] = at
            to += 1
    return chosen


@relaxed
def _byte_dots(rows, data, scales, vector, found):  # type: ignore[no-untyped-def]
    for at in range(len(rows)):
        row, total = rows[at], _STEP
        for dimension in range(data.shape[1]):
            total += np.float32(data[row, dimension]) * vector[dimension]
        found[at] = total * scales[row]


@relaxed
def _float_dots(rows, data, vector, found):  # type: ignore[no-untyped-def]
    for at in range(len(rows)):
        row, total = rows[at], _STEP
        for dimension in range(data.shape[1]):
            total += data[row, dimension] * vector[dimension]
        found[at] = total


@compiled
def _bm25(slots, terms, counts, ends, hashes, legs, weights, lengths, norms, sums):  # type: ignore[no-untyped-def]
    """Entries of a chunk and wanted hashes both ascend, so each search begins where the last one ended."""
    for at in range(len(slots)):
        slot = slots[at]
        low = ends[slot - 1] if slot > 0 else 0
        end = ends[slot]
        for number in range(len(hashes)):
            high = end
            while low < high:
                middle = (low + high) >> 1
                if terms[middle] < hashes[number]:
                    low = middle + 1
                else:
                    high = middle
            if low < end and terms[low] == hashes[number]:
                leg = legs[number]
                column, base, slope = norms[leg]
                norm = base + slope * lengths[slot, column]
                sums[leg, at] += weights[number] * counts[low] / (counts[low] + norm)


@compiled
def _replace_least(heap, value):  # type: ignore[no-untyped-def]
    """Put a value in the place of the least of a heap."""
    at = 0
    while True:
        below = 2 * at + 1
        if below >= len(heap):
            break
        if below + 1 < len(heap) and heap[below + 1] < heap[below]:
            below += 1
        if heap[below] >= value:
            break
        heap[at] = heap[below]
        at = below
    heap[at] = value


@compiled
def _best(slots, counts, starts, ends, weights, lengths, column, base, slope, mask, k, sums):  # type: ignore[no-untyped-def]
    """Sum up the entries; then go over them again, each chunk once, and leave the sums at 0 for the next query."""
    total = 0
    for number in range(len(starts)):
        weight = weights[number]
        total += ends[number] - starts[number]
        for entry in range(starts[number], ends[number]):
            slot, count = slots[entry], counts[entry]
            sums[slot] += weight * count / (count + (base + slope * lengths[slot, column]))
    heap = np.zeros(min(k, total))  # of the best scores so far; its least is what a chunk must reach
    found, scores, size = np.empty(total, np.int64), np.empty(total), 0
    for number in range(len(starts)):
        for entry in range(starts[number], ends[number]):
            slot = slots[entry]
            score = sums[slot]
            if score > 0:
                sums[slot] = 0
                if score >= heap[0] and mask[slot]:
                    found[size], scores[size] = slot, score
                    size += 1
                    _replace_least(heap, score)
    kept = 0
    for at in range(size):
        if scores[at] >= heap[0]:
            found[kept], scores[kept] = found[at], scores[at]
            kept += 1
    return found[:kept], scores[:kept]


class FastKernel:
    """Satisfies `Kernel`. Lets go of the interpreter's lock, so that legs run side by side."""

    def __init__(self) -> None:
        self._own = local()

    def nearest_codes(self, columns: Sequence[Codes], query: Codes, count: int, allowed: Rows | None) -> Rows:
        distances = np.zeros(len(columns[0]) if allowed is None else len(allowed), np.uint16)
        if allowed is None:
            _all_distances(tuple(columns), query, distances)
        else:
            _some_distances(tuple(columns), query, allowed, distances)
        chosen: Rows = _closest(distances, count, 64 * len(columns))
        return chosen if allowed is None else allowed[chosen]

    def byte_dots(
        self, rows: Rows, data: NDArray[np.int8], scales: NDArray[np.float32], vector: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        found = np.empty(len(rows), np.float32)
        _byte_dots(rows, data, scales, vector, found)
        return found

    def float_dots(
        self, rows: Rows | None, data: NDArray[np.float32], vector: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        wanted = np.arange(len(data)) if rows is None else rows
        found = np.empty(len(wanted), np.float32)
        _float_dots(wanted, data, vector, found)
        return found

    def bm25(self, slots: Rows, said: ChunkTerms, wanted: Wanted) -> NDArray[np.float64]:
        sums = np.zeros((len(wanted.norms), len(slots)))
        query = (wanted.hashes, wanted.legs, wanted.weights, wanted.lengths)
        _bm25(slots, said.terms, said.counts, said.ends, *query, tuple(map(tuple, wanted.norms)), sums)
        return sums

    def best(self, run: Run, spans: Spans, lengths: Lengths, norm: Norm, mask: Mask, k: int) -> Best:
        found: Best = _best(run.slots, run.counts, *spans, lengths, *norm, mask, k, self._zeros(len(lengths)))
        return found

    def _zeros(self, count: int) -> NDArray[np.float64]:
        """A thread's own, kept: making a large array anew takes longer than a query."""
        kept: NDArray[np.float64] | None = getattr(self._own, "zeros", None)
        if kept is None or len(kept) < count:
            kept = self._own.zeros = np.zeros(count)
        return kept
