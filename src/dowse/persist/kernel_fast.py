"""The same inner loops as `kernel`, compiled by numba when this module is first used on a machine, kept from then on.

Against numpy, 100,000 chunks of 384 dimensions, CPU ms on one core without AVX-512 (`python -m bench.engine`): sign
codes .22 against 1.07 (before six words were counted at once), int8 of 3,400 survivors .22 against .81, BM25 of 280
chunks .01 against .18.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import local
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from dowse.persist.kernel import FINE_STEPS, Best, ChunkTerms, Codes, Mask, Norm, Packed, Rows, Run, Spans, Wanted

_BLOCK = 4096  # rows at a time, so that their distances stay in the cache
_NONE = np.float32(0)
_SHIFT = np.uint64(1)
_AHEAD = 6  # rows between fetching and using one; chosen, no other number was tried
_LINE_BYTES = 64
_LEAST = 5e-324  # the smallest number above 0
_ROOM = 1024  # for chunks that were among the best when they came, besides the best themselves; chosen
compiled = numba.njit(cache=True, nogil=True, error_model="numpy")
relaxed = numba.njit(cache=True, nogil=True, fastmath=True)  # sums may be taken in any order, as SIMD needs


def _count_ones(typing: Any, word: Any) -> tuple[Any, Callable[..., Any]]:
    """How many bits of a word are set: one instruction, which numpy's name for it does not become here."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


def _fetch_early(typing: Any, array: Any, at: Any) -> tuple[Any, Callable[..., Any]]:
    """Have an element's line of memory on its way. Rows that are picked from all over a mapped file are waited for
    longer than they are worked on: int8 of 3,400 survivors .70 ms without, .22 with it.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        hint = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        )
        place = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        builder.call(hint, [place, number(0), number(0), number(1)])  # to read, once, data
        return context.get_dummy_value()

    return types.void(array, at), generate


_ones: Any = intrinsic(_count_ones)
_prefetch: Any = intrinsic(_fetch_early)


@compiled
def _add_distances(column, word, distances):  # type: ignore[no-untyped-def]
    for row in range(len(distances)):
        distances[row] += np.uint16(_ones(column[row] ^ word))


@compiled
def _add_six(a, b, c, d, e, f, words, distances):  # type: ignore[no-untyped-def]
    """The same for six columns at once: adders turn their bits into ones, twos and fours, so that three words are
    counted instead of six, in .15 ms instead of .25 for 100,000 rows.
    """
    for row in range(len(distances)):
        x, y, z = a[row] ^ words[0], b[row] ^ words[1], c[row] ^ words[2]
        differ = x ^ y
        one, two = differ ^ z, (x & y) | (z & differ)
        x, y, z = d[row] ^ words[3], e[row] ^ words[4], f[row] ^ words[5]
        differ = x ^ y
        other_one, other_two = differ ^ z, (x & y) | (z & differ)
        carried, differ = one & other_one, two ^ other_two
        twos, fours = differ ^ carried, (two & other_two) | (carried & differ)
        ones = _ones(one ^ other_one)
        distances[row] += np.uint16(ones + (_ones(twos) << _SHIFT) + (_ones(fours) << _SHIFT << _SHIFT))


@compiled
def _all_distances(columns, query, distances):  # type: ignore[no-untyped-def]
    """The innermost loops are functions of their own: written out here they are not vectorised, and take three times
    as long.
    """
    for start in range(0, len(distances), _BLOCK):
        end, number = min(start + _BLOCK, len(distances)), 0
        distances[start:end] = 0
        while number + 6 <= len(columns):
            _add_six(
                columns[number][start:end],
                columns[number + 1][start:end],
                columns[number + 2][start:end],
                columns[number + 3][start:end],
                columns[number + 4][start:end],
                columns[number + 5][start:end],
                query[number : number + 6],
                distances[start:end],
            )
            number += 6
        while number < len(columns):
            _add_distances(columns[number][start:end], query[number], distances[start:end])
            number += 1


@compiled
def _some_distances(columns, query, allowed, distances):  # type: ignore[no-untyped-def]
    distances[:] = 0
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
def _coarse_dots(rows, coarse, scales, vector, found):  # type: ignore[no-untyped-def]
    """A matrix is in one row here, for the prefetching."""
    size = len(vector)
    for at in range(len(rows)):
        if at + _AHEAD < len(rows):
            for step in range(0, size, _LINE_BYTES):
                _prefetch(coarse, rows[at + _AHEAD] * size + step)
        first, total = rows[at] * size, _NONE
        for dimension in range(size):
            total += np.float32(coarse[first + dimension]) * vector[dimension]
        found[at] = total * scales[rows[at]]


@relaxed
def _dots(rows, coarse, fine, scales, vector, found):  # type: ignore[no-untyped-def]
    size = len(vector)
    for at in range(len(rows)):
        if at + _AHEAD < len(rows):
            for step in range(0, size, _LINE_BYTES):
                _prefetch(coarse, rows[at + _AHEAD] * size + step)
                _prefetch(fine, rows[at + _AHEAD] * size + step)
        first, total, rest = rows[at] * size, _NONE, _NONE
        for dimension in range(size):
            total += np.float32(coarse[first + dimension]) * vector[dimension]
            rest += np.float32(fine[first + dimension]) * vector[dimension]
        found[at] = (total + rest / FINE_STEPS) * scales[rows[at]]


@relaxed
def _unpack(rows, coarse, fine, scales, found):  # type: ignore[no-untyped-def]
    for at in range(len(rows)):
        row, scale = rows[at], scales[rows[at]]
        for dimension in range(found.shape[1]):
            value = np.float32(coarse[row, dimension]) + np.float32(fine[row, dimension]) / FINE_STEPS
            found[at, dimension] = value * scale


@compiled
def _place(terms, low, high, wanted):  # type: ignore[no-untyped-def]
    """Where a hash stands among ascending ones from `low` to `high`, or would stand."""
    while low < high:
        middle = (low + high) >> 1
        if terms[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _find(terms, ends, hashes, found_starts, found_ends):  # type: ignore[no-untyped-def]
    """Hashes ascend, so each search begins where the last one ended."""
    low = 0
    for number in range(len(hashes)):
        low = _place(terms, low, len(terms), hashes[number])
        if low < len(terms) and terms[low] == hashes[number]:
            found_starts[number] = ends[low - 1] if low > 0 else 0
            found_ends[number] = ends[low]


@compiled
def _bm25(slots, terms, counts, ends, hashes, legs, weights, norms, sums):  # type: ignore[no-untyped-def]
    """Entries of a chunk and wanted hashes both ascend, so each search begins where the last one ended."""
    for at in range(len(slots)):
        if at + 2 * _AHEAD < len(slots):
            _prefetch(ends, slots[at + 2 * _AHEAD])
        if at + _AHEAD < len(slots):
            last = ends[slots[at + _AHEAD]]
            first = ends[slots[at + _AHEAD] - 1] if slots[at + _AHEAD] > 0 else 0
            for step in range(first, last, _LINE_BYTES // 4):
                _prefetch(terms, step)
        slot = slots[at]
        low = ends[slot - 1] if slot > 0 else 0
        end = ends[slot]
        for number in range(len(hashes)):
            low = _place(terms, low, end, hashes[number])
            if low < end and terms[low] == hashes[number]:
                leg = legs[number]
                lengths, base, slope = norms[leg]
                norm = base + slope * lengths[slot]
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
def _drop_below(least, found, scores, size):  # type: ignore[no-untyped-def]
    """Leave those that reach the least; how many there are."""
    kept = 0
    for at in range(size):
        if scores[at] >= least:
            found[kept], scores[kept] = found[at], scores[at]
            kept += 1
    return kept


@compiled
def _best(slots, counts, starts, ends, weights, lengths, base, slope, mask, k, sums):  # type: ignore[no-untyped-def]
    """Sum up the entries; then go over them again, each chunk once, and leave the sums at 0 for the next query.

    The second time rare terms come first: with good scores in the heap early, most others are passed over.
    """
    total = 0
    for number in range(len(starts)):
        weight = weights[number]
        total += ends[number] - starts[number]
        for entry in range(starts[number], ends[number]):
            slot, count = slots[entry], np.float64(counts[entry])
            sums[slot] += weight * count / (count + (base + slope * lengths[slot]))
    heap = np.full(min(k, total), _LEAST)  # of the best scores so far; its least is what a chunk must reach
    found, scores, size = np.empty(_ROOM + k, np.int64), np.empty(_ROOM + k), 0
    for number in np.argsort(-weights):
        for entry in range(starts[number], ends[number]):
            slot = slots[entry]
            score = sums[slot]
            sums[slot] = 0
            if score >= heap[0] and mask[slot]:
                if size == len(found):
                    size = _drop_below(heap[0], found, scores, size)
                    if 2 * size > len(found):  # very many are equal
                        found, scores = np.append(found, found), np.append(scores, scores)
                found[size], scores[size] = slot, score
                size += 1
                _replace_least(heap, score)
    size = _drop_below(heap[0], found, scores, size)
    return found[:size], scores[:size]


class FastKernel:
    """Satisfies `Kernel`. Lets go of the interpreter's lock, so that legs run side by side."""

    def __init__(self) -> None:
        self._own = local()

    def nearest_codes(self, columns: Sequence[Codes], query: Codes, count: int, allowed: Rows | None) -> Rows:
        distances = self._distances(len(columns[0]) if allowed is None else len(allowed))
        if allowed is None:
            _all_distances(tuple(columns), query, distances)
        else:
            _some_distances(tuple(columns), query, allowed, distances)
        chosen: Rows = _closest(distances, count, 64 * len(columns))
        return chosen if allowed is None else allowed[chosen]

    def coarse_dots(self, rows: Rows, kept: Packed, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        found = np.empty(len(rows), np.float32)
        _coarse_dots(rows, kept.coarse.reshape(-1), kept.scales, vector, found)
        return found

    def dots(self, rows: Rows, kept: Packed, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        found = np.empty(len(rows), np.float32)
        _dots(rows, kept.coarse.reshape(-1), kept.fine.reshape(-1), kept.scales, vector, found)
        return found

    def unpacked(self, rows: Rows, kept: Packed) -> NDArray[np.float32]:
        found = np.empty((len(rows), kept.coarse.shape[1]), np.float32)
        _unpack(rows, *kept, found)
        return found

    def bm25(self, slots: Rows, said: ChunkTerms, wanted: Wanted) -> NDArray[np.float64]:
        sums = np.zeros((len(wanted.norms), len(slots)))
        query = (wanted.hashes, wanted.legs, wanted.weights, wanted.norms)
        _bm25(slots, said.terms, said.counts, said.ends, *query, sums)
        return sums

    def find(self, run: Run, hashes: NDArray[np.uint32]) -> tuple[Rows, Rows]:
        starts, ends = np.zeros((2, len(hashes)), np.int64)
        _find(run.terms, run.ends, hashes, starts, ends)
        return starts, ends

    def best(self, run: Run, spans: Spans, norm: Norm, mask: Mask, k: int) -> Best:
        found: Best = _best(run.slots, run.counts, *spans, *norm, mask, k, self._zeros(len(norm.lengths)))
        return found

    def _zeros(self, count: int) -> NDArray[np.float64]:
        """A thread's own, kept: making a large array anew takes longer than a query."""
        kept: NDArray[np.float64] | None = getattr(self._own, "zeros", None)
        if kept is None or len(kept) < count:
            kept = self._own.zeros = np.zeros(count)
        return kept

    def _distances(self, count: int) -> NDArray[np.uint16]:
        """Likewise, with anything in it."""
        kept: NDArray[np.uint16] | None = getattr(self._own, "distances", None)
        if kept is None or len(kept) < count:
            kept = self._own.distances = np.empty(count, np.uint16)
        return kept[:count]
