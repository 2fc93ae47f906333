"""Vector loops compiled by numba: codes and packed vectors enter; distances, nearest rows and products leave."""

from __future__ import annotations

import numpy as np

from dowse.store.kernels.numba_core import (
    ABREAST,
    AHEAD,
    LINE_BYTES,
    at_most,
    compiled,
    first_one,
    kth,
    ones,
    prefetch,
    relaxed,
)
from dowse.store.kernels.numpy_kernel import FINE_STEPS

_BLOCK = 4096  # rows at a time, so that their distances stay in the cache
_SAMPLE = 4096  # distances that say about where the last of the nearest is; chosen
_NONE = np.float32(0)
_FINE_STEP = np.float32(1) / FINE_STEPS
_SHIFT = np.uint64(1)
_ONE = np.uint64(1)


@compiled
def _add_distances(column, word, distances):  # type: ignore[no-untyped-def]
    for row in range(len(distances)):
        distances[row] += np.uint16(ones(column[row] ^ word))


@compiled
def _add_six(a, b, c, d, e, f, words, distances):  # type: ignore[no-untyped-def]
    """The same for six columns at once: adders turn their bits into ones, twos and fours, so that three words are
    counted instead of six, in .15 ms instead of .25 for 100,000 rows (with AVX-512's own counting, .08 and .07).
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
        single = ones(one ^ other_one)
        distances[row] += np.uint16(single + (ones(twos) << _SHIFT) + (ones(fours) << _SHIFT << _SHIFT))


@compiled
def all_distances(columns, query, distances):  # type: ignore[no-untyped-def]
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
def some_distances(columns, query, allowed, distances):  # type: ignore[no-untyped-def]
    distances[:] = 0
    for number in range(len(columns)):
        column, word = columns[number], query[number]
        for at in range(len(allowed)):
            distances[at] += np.uint16(ones(column[allowed[at]] ^ word))


@compiled
def _within(distances, limit):  # type: ignore[no-untyped-def]
    """How many are at most the limit."""
    found, whole = np.int64(0), len(distances) - len(distances) % ABREAST
    for at in range(0, whole, ABREAST):
        found += np.int64(ones(at_most(distances, at, np.uint16(limit))))
    for at in range(whole, len(distances)):
        found += distances[at] <= limit
    return found


@compiled
def _last_distance(distances, count, farthest):  # type: ignore[no-untyped-def]
    """The least that `count` are within, and how many are: guessed from a sample, then counted."""
    histogram, step = np.zeros(farthest + 1, np.int64), max(len(distances) // _SAMPLE, 1)
    for at in range(0, len(distances), step):
        histogram[distances[at]] += step
    limit, guessed = 0, histogram[0]
    while limit < farthest and guessed < count:
        limit += 1
        guessed += histogram[limit]
    found = _within(distances, limit)
    while limit < farthest and found < count:
        limit += 1
        found = _within(distances, limit)
    fewer = _within(distances, limit - 1) if limit > 0 else 0
    while limit > 0 and fewer >= count:
        limit, found = limit - 1, fewer
        fewer = _within(distances, limit - 1) if limit > 0 else 0
    return limit, found


@compiled
def closest(distances, count, farthest):  # type: ignore[no-untyped-def]
    """Positions of the `count` least distances and of all that equal the last of them. Of 100,000: .013 ms, where
    counting all of them and looking at each again took .062.
    """
    limit, found = _last_distance(distances, count, farthest)
    chosen, to, whole = np.empty(found, np.int64), 0, len(distances) - len(distances) % ABREAST
    for start in range(0, whole, ABREAST):
        bits = at_most(distances, start, np.uint16(limit))
        while bits:
            chosen[to] = start + first_one(bits)
            to += 1
            bits &= bits - _ONE
    for at in range(whole, len(distances)):
        if distances[at] <= limit:
            chosen[to] = at
            to += 1
    return chosen


@relaxed
def _coarse_dots(rows, coarse, flat, scales, vector, found):  # type: ignore[no-untyped-def]
    """`flat` is the same matrix in one row; summing up over that is not vectorised, and takes three times as long."""
    size = coarse.shape[1]
    for at in range(len(rows)):
        if at + AHEAD < len(rows):
            for step in range(0, size, LINE_BYTES):
                prefetch(flat, rows[at + AHEAD] * size + step)
        row, total = rows[at], _NONE
        for dimension in range(size):
            total += np.float32(coarse[row, dimension]) * vector[dimension]
        found[at] = total * scales[row]


@relaxed
def dots(rows, coarse, fine, flat_coarse, flat_fine, scales, vector, found):  # type: ignore[no-untyped-def]
    size = coarse.shape[1]
    for at in range(len(rows)):
        if at + AHEAD < len(rows):
            for step in range(0, size, LINE_BYTES):
                prefetch(flat_coarse, rows[at + AHEAD] * size + step)
                prefetch(flat_fine, rows[at + AHEAD] * size + step)
        row, total = rows[at], _NONE
        for dimension in range(size):
            value = np.float32(coarse[row, dimension]) + np.float32(fine[row, dimension]) * _FINE_STEP
            total += value * vector[dimension]
        found[at] = total * scales[row]


@compiled
def nearest(rows, coarse, fine, flat_coarse, flat_fine, scales, vector, k, doubt):  # type: ignore[no-untyped-def]
    """Positions among the rows, and their products: see `Kernel.nearest`. There are more than k rows."""
    rough = np.empty(len(rows), np.float32)
    _coarse_dots(rows, coarse, flat_coarse, scales, vector, rough)
    last = kth(rough, k)
    places, size = np.empty(len(rows) + 1, np.int64), 0  # one more: a place that is not counted is written, too
    for at in range(len(rows)):
        places[size] = at
        size += rough[at] >= last
    first = np.empty(size, np.float32)
    dots(rows[places[:size]], coarse, fine, flat_coarse, flat_fine, scales, vector, first)
    least, surely = kth(first, k), size
    for at in range(len(rows)):
        places[size] = at
        size += rough[at] < last and rough[at] + doubt * scales[rows[at]] >= least
    found = np.empty(size, np.float32)
    found[:surely] = first
    others = rows[places[surely:size]]
    dots(others, coarse, fine, flat_coarse, flat_fine, scales, vector, found[surely:])
    among = found >= kth(found, k)
    return places[:size][among], found[among]


@relaxed
def unpack(rows, coarse, fine, scales, found):  # type: ignore[no-untyped-def]
    for at in range(len(rows)):
        row, scale = rows[at], scales[rows[at]]
        for dimension in range(found.shape[1]):
            value = np.float32(coarse[row, dimension]) + np.float32(fine[row, dimension]) * _FINE_STEP
            found[at, dimension] = value * scale
