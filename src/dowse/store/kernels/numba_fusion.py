"""Fusion arithmetic compiled by numba: tables of scores enter, ranks, parts and sums leave.

Equal to the numpy code in `query.stages` to the last digit. In tables this small the calls cost most.
"""

from __future__ import annotations

import numpy as np

from dowse.fusion_kernel import How, Sums
from dowse.ports import Ids, Ranks, Table, Values
from dowse.store.kernels.numba_core import compiled

_LANES, _LONGEST = 8, 128  # how numpy adds: so many sums beside each other, over at most so many values


@compiled
def summed(values):  # type: ignore[no-untyped-def]
    """In the order in which numpy adds, so that the last digit is the same: halves of halves, eight sums in each."""
    if len(values) > _LONGEST:
        half = len(values) // 2
        half -= half % _LANES
        return summed(values[:half]) + summed(values[half:])
    total, start = 0.0, 0
    if len(values) >= _LANES:
        beside, start = values[:_LANES].copy(), _LANES
        while start + _LANES <= len(values):
            beside += values[start : start + _LANES]
            start += _LANES
        total = ((beside[0] + beside[1]) + (beside[2] + beside[3])) + (
            (beside[4] + beside[5]) + (beside[6] + beside[7])
        )
    for at in range(start, len(values)):
        total += values[at]
    return total


@compiled
def _joined(every, order, ids, places):  # type: ignore[no-untyped-def]
    size = 0
    for at in order:
        if size == 0 or every[at] != ids[size - 1]:
            ids[size] = every[at]
            size += 1
        places[at] = size - 1
    return size


@compiled
def _ranked(scores, places, sizes, ranks):  # type: ignore[no-untyped-def]
    """Whether scores fall in every list, and places ascend where they do not; then ranks are the lists' own order."""
    start = 0
    for number in range(len(sizes)):
        for at in range(start, start + sizes[number]):
            place = places[at]
            given = scores[number, place]
            if at > start:
                before = scores[number, places[at - 1]]
                if not (given < before or (given == before and place > places[at - 1])):
                    return False
            if np.isnan(given):
                return False
            ranks[number, place] = at - start + 1
        start += sizes[number]
    return True


@compiled
def _squares(scores, shares, least, parts, raw):  # type: ignore[no-untyped-def]
    """share·sign(z)·z² by leg, and their sums."""
    apart = np.empty(scores.shape[1])
    for number in range(len(scores)):
        row = scores[number]
        mean = summed(row) / len(row)
        for at in range(len(row)):
            apart[at] = row[at] - mean
        deviation = np.sqrt(summed(apart * apart) / len(row))
        if deviation < least:
            deviation = np.inf
        for at in range(len(row)):
            z = apart[at] / deviation
            parts[number, at] = shares[number] * np.copysign(z * z, z)
            raw[at] = parts[number, at] if number == 0 else raw[at] + parts[number, at]


@compiled
def _shift(scores, rows, likeness, share, hubness, flat, parts):  # type: ignore[no-untyped-def]
    """Set the dense leg's parts to those of cosines corrected for hubness."""
    crowded = np.empty(len(rows))
    for at in range(len(rows)):
        crowded[at] = summed(likeness[at]) / likeness.shape[1]
    usual = summed(crowded) / len(crowded)
    mean = summed(scores) / len(scores)
    apart = scores - mean
    deviation = np.sqrt(summed(apart * apart) / len(scores))
    if deviation >= flat:
        for at in range(len(rows)):
            z = (scores[rows[at]] - hubness * (crowded[at] - usual) - mean) / deviation
            parts[rows[at]] = share * np.copysign(z * z, z)


@compiled
def _smooth(near, likeness, rows, own, smoothing, least, most, added):  # type: ignore[no-untyped-def]
    """What moves sums towards the mean of the nearest ones', weighed by likeness."""
    for at in range(len(rows)):
        mean, weights = 0.0, 0.0
        for number in range(near.shape[1]):
            weight = max(likeness[at, number], least)
            mean += weight * own[rows[near[at, number]]]
            weights += weight
        added[rows[at]] = min(max(smoothing * (mean / weights - own[rows[at]]), -most), most)


@compiled
def _add_smoothing(near, likeness, rows, scores, parts, dense, share, how, sums, added):  # type: ignore[no-untyped-def]
    hubness, smoothing, flat, least, most = how
    _shift(scores, rows, likeness, share, hubness, flat, parts[dense])
    sums[:] = parts[0]
    for number in range(1, len(parts)):
        sums += parts[number]
    added[:] = 0
    _smooth(near, likeness, rows, sums, smoothing, least, most, added)


class NumbaFusion:
    """Compiled fusion. Satisfies `fusion_kernel.FusionKernel`."""

    def union(self, every: Ids) -> tuple[Ids, Ranks]:
        order = every.argsort()
        ids, places = np.empty_like(every), np.empty_like(order)
        return ids[: _joined(every, order, ids, places)], places

    def squares(self, scores: Table, places: Ranks, sizes: Ranks, shares: Values, least: float) -> Sums | None:
        ranks, parts, raw = np.zeros(scores.shape, np.int64), np.empty_like(scores), np.empty(scores.shape[1])
        if not scores.size or not _ranked(scores, places, sizes, ranks) or np.isnan(scores).any():
            return None
        _squares(scores, shares, least, parts, raw)
        return ranks, parts, raw

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
        _add_smoothing(near, likeness, rows, scores, parts, dense, share, how, sums, added)
        return sums, added
