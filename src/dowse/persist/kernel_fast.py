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
_FINE_STEP = np.float32(1) / FINE_STEPS
_SHIFT = np.uint64(1)
_AHEAD = 6  # rows between fetching and using one; chosen, no other number was tried
_LINE_BYTES = 64
_GRADES = 2048  # that scores are counted in, to find the last of the best; chosen
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
def _coarse_dots(rows, coarse, flat, scales, vector, found):  # type: ignore[no-untyped-def]
    """`flat` is the same matrix in one row; summing up over that is not vectorised, and takes three times as long."""
    size = coarse.shape[1]
    for at in range(len(rows)):
        if at + _AHEAD < len(rows):
            for step in range(0, size, _LINE_BYTES):
                _prefetch(flat, rows[at + _AHEAD] * size + step)
        row, total = rows[at], _NONE
        for dimension in range(size):
            total += np.float32(coarse[row, dimension]) * vector[dimension]
        found[at] = total * scales[row]


@relaxed
def _dots(rows, coarse, fine, flat_coarse, flat_fine, scales, vector, found):  # type: ignore[no-untyped-def]
    size = coarse.shape[1]
    for at in range(len(rows)):
        if at + _AHEAD < len(rows):
            for step in range(0, size, _LINE_BYTES):
                _prefetch(flat_coarse, rows[at + _AHEAD] * size + step)
                _prefetch(flat_fine, rows[at + _AHEAD] * size + step)
        row, total = rows[at], _NONE
        for dimension in range(size):
            value = np.float32(coarse[row, dimension]) + np.float32(fine[row, dimension]) * _FINE_STEP
            total += value * vector[dimension]
        found[at] = total * scales[row]


@relaxed
def _unpack(rows, coarse, fine, scales, found):  # type: ignore[no-untyped-def]
    for at in range(len(rows)):
        row, scale = rows[at], scales[rows[at]]
        for dimension in range(found.shape[1]):
            value = np.float32(coarse[row, dimension]) + np.float32(fine[row, dimension]) * _FINE_STEP
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
def _share(wanted, size):  # type: ignore[no-untyped-def]
    """How far among so many evenly spread 32-bit hashes this one would stand."""
    return np.int64((np.uint64(wanted) * np.uint64(size)) >> np.uint64(32))


@compiled
def _find(terms, ends, hashes, found_starts, found_ends):  # type: ignore[no-untyped-def]
    """Hashes are spread evenly: hardly any stands farther than 2·√size, four deviations, from its share of the way.
    Looking there touches a page or three instead of one a step.
    """
    size = len(terms)
    near = np.int64(2 * np.sqrt(size)) + 1
    for number in range(len(hashes)):
        wanted = hashes[number]
        share = _share(wanted, size)
        low, high = max(share - near, 0), min(share + near, size)
        if low > 0 and terms[low] >= wanted:
            low = 0
        if high < size and terms[high] < wanted:
            high = size
        place = _place(terms, low, high, wanted)
        if place < size and terms[place] == wanted:
            found_starts[number] = ends[place - 1] if place > 0 else 0
            found_ends[number] = ends[place]


@compiled
def _bm25(slots, terms, counts, ends, hashes, weights, lengths, base, slope, sums):  # type: ignore[no-untyped-def]
    """A chunk's hashes ascend and are spread evenly, so that each stands near its share of the way: looking from there
    takes three quarters of the time of halving.
    """
    for at in range(len(slots)):
        if at + 2 * _AHEAD < len(slots):
            _prefetch(ends, slots[at + 2 * _AHEAD])
        if at + _AHEAD < len(slots):
            ahead = slots[at + _AHEAD]
            start = ends[ahead - 1] if ahead > 0 else 0
            for number in range(len(hashes)):
                _prefetch(terms, start + _share(hashes[number], ends[ahead] - start))
        slot, total = slots[at], 0.0
        start = ends[slot - 1] if slot > 0 else 0
        end = ends[slot]
        norm = base + slope * lengths[slot]
        for number in range(len(hashes)):
            wanted = hashes[number]
            place = start + _share(wanted, end - start)
            while place > start and terms[place - 1] >= wanted:
                place -= 1
            while place < end and terms[place] < wanted:
                place += 1
            if place < end and terms[place] == wanted:
                total += weights[number] * counts[place] / (counts[place] + norm)
        sums[at] = total


@compiled
def _add_up(slots, counts, starts, ends, weights, lengths, base, slope, sums):  # type: ignore[no-untyped-def]
    for number in range(len(starts)):
        weight = weights[number]
        for entry in range(starts[number], ends[number]):
            slot, count = slots[entry], np.float64(counts[entry])
            sums[slot] += weight * count / (count + (base + slope * lengths[slot]))


@compiled
def _sums(terms, ends, slots, counts, hashes, weights, lengths, base, slope, sums):  # type: ignore[no-untyped-def]
    """`_find` and `_add_up` in one: where few chunks hold few of the terms, the call is what costs."""
    starts, stops = np.zeros(len(hashes), np.int64), np.zeros(len(hashes), np.int64)
    _find(terms, ends, hashes, starts, stops)
    _add_up(slots, counts, starts, stops, weights, lengths, base, slope, sums)


@compiled
def _gather(slots, starts, ends, mask, sums, found, scores):  # type: ignore[no-untyped-def]
    """Each chunk that passes the mask once, with its sum; all sums are 0 again, for the next query. How many it are."""
    size = 0
    for number in range(len(starts)):
        for entry in range(starts[number], ends[number]):
            slot = slots[entry]
            score = sums[slot]
            sums[slot] = 0
            if score > 0 and mask[slot]:
                found[size], scores[size] = slot, score
                size += 1
    return size


@compiled
def _largest(found, scores, k, highest):  # type: ignore[no-untyped-def]
    """The best k and all that equal the last of them. Scores are at most the highest.

    They are counted by grade, to know the grade of the last. A heap of the best takes three times as long as that:
    what it does next can never be foretold.
    """
    histogram, grades = np.zeros(_GRADES + 1, np.int64), _GRADES / highest
    for at in range(len(scores)):
        histogram[np.int64(scores[at] * grades)] += 1
    last, size = _GRADES, histogram[_GRADES]
    while last > 0 and size < k:
        last -= 1
        size += histogram[last]
    slots, best, to = np.empty(size, np.int64), np.empty(size), 0
    for at in range(len(scores)):
        if np.int64(scores[at] * grades) >= last:
            slots[to], best[to] = found[at], scores[at]
            to += 1
    if size <= k:
        return slots, best
    among = best >= np.partition(best, size - k)[size - k]
    return slots[among], best[among]


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
        _coarse_dots(rows, kept.coarse, kept.coarse.reshape(-1), kept.scales, vector, found)
        return found

    def dots(self, rows: Rows, kept: Packed, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        found = np.empty(len(rows), np.float32)
        flat = kept.coarse.reshape(-1), kept.fine.reshape(-1)
        _dots(rows, kept.coarse, kept.fine, *flat, kept.scales, vector, found)
        return found

    def unpacked(self, rows: Rows, kept: Packed) -> NDArray[np.float32]:
        found = np.empty((len(rows), kept.coarse.shape[1]), np.float32)
        _unpack(rows, *kept, found)
        return found

    def bm25(self, slots: Rows, said: ChunkTerms, wanted: Sequence[Wanted]) -> NDArray[np.float64]:
        sums = np.empty((len(wanted), len(slots)))
        for each, found in zip(wanted, sums, strict=True):
            _bm25(slots, said.terms, said.counts, said.ends, each.hashes, each.weights, *each.norm, found)
        return sums

    def find(self, run: Run, hashes: NDArray[np.uint32]) -> tuple[Rows, Rows]:
        starts, ends = np.zeros(len(hashes), np.int64), np.zeros(len(hashes), np.int64)
        _find(run.terms, run.ends, hashes, starts, ends)
        return starts, ends

    def sums(self, run: Run, wanted: Wanted) -> NDArray[np.float64]:
        sums = np.zeros(len(wanted.norm.lengths))
        _sums(run.terms, run.ends, run.slots, run.counts, wanted.hashes, wanted.weights, *wanted.norm, sums)
        return sums

    def best(self, run: Run, spans: Spans, norm: Norm, mask: Mask, k: int) -> Best:
        starts, ends, weights = spans
        sums, found, scores = self._scratch(len(norm.lengths))
        _add_up(run.slots, run.counts, starts, ends, weights, *norm, sums)
        size = _gather(run.slots, starts, ends, mask, sums, found, scores)
        best: Best = _largest(found[:size], scores[:size], k, weights.sum())
        return best

    def _scratch(self, rows: int) -> tuple[NDArray[np.float64], NDArray[np.uint32], NDArray[np.float64]]:
        """A thread's own, kept: making large arrays anew takes longer than a query. The first is 0 between queries."""
        kept = getattr(self._own, "scratch", None)
        if kept is None or len(kept[0]) < rows:
            rows += rows // 8  # an update should not make them anew
            kept = self._own.scratch = (np.zeros(rows), np.empty(rows, np.uint32), np.empty(rows))
        return kept

    def _distances(self, count: int) -> NDArray[np.uint16]:
        """Likewise, with anything in it."""
        kept: NDArray[np.uint16] | None = getattr(self._own, "distances", None)
        if kept is None or len(kept) < count:
            kept = self._own.distances = np.empty(count + count // 8, np.uint16)
        return kept[:count]
