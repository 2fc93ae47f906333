"""Compiled loops over the tables of a fusion: chunks and their scores go in; places, parts and sums come out.

As `query` does it with numpy, to the last digit; of tables this small, it is the calls that cost.
"""

from __future__ import annotations

import numpy as np

from dowse.fusion_kernel import How, Ids, Places, Sums, Table, Values
from dowse.store.kernels.numba_core import compiled

_BESIDE, _LONGEST = 8, 128  # how numpy adds: so many sums beside each other, over at most so many values


@compiled
def summed(values):  # type: ignore[no-untyped-def]
    """In the order in which numpy adds, so that the last digit is the same: halves of halves, eight sums in each."""
    if len(values) > _LONGEST:
        half = len(values) // 2
        half -= half % _BESIDE
        return summed(values[:half]) + summed(values[half:])
    total, start = 0.0, 0
    if len(values) >= _BESIDE:
        beside, start = values[:_BESIDE].copy(), _BESIDE
        while start + _BESIDE <= len(values):
            beside += values[start : start + _BESIDE]
            start += _BESIDE
        total = ((beside[0] + beside[1]) + (beside[2] + beside[3])) + (
            (beside[4] + beside[5]) + (beside[6] + beside[7])
        )
    for at in range(start, len(values)):
        total += values[at]
    return total


@compiled
def _joined(every, order, ids, first, places):  # type: ignore[no-untyped-def]
    size = 0
    for at in order:
        if size == 0 or every[at] != ids[size - 1]:
            ids[size], first[size] = every[at], at
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
def _shift(scores, rows, likeness, share, crowd, flat, parts):  # type: ignore[no-untyped-def]
    """The dense leg's parts with cosines less what a crowd has above the mean of all."""
    crowded = np.empty(len(rows))
    for at in range(len(rows)):
        crowded[at] = summed(likeness[at]) / likeness.shape[1]
    usual = summed(crowded) / len(crowded)
    mean = summed(scores) / len(scores)
    apart = scores - mean
    deviation = np.sqrt(summed(apart * apart) / len(scores))
    if deviation >= flat:
        for at in range(len(rows)):
            z = (scores[rows[at]] - crowd * (crowded[at] - usual) - mean) / deviation
            parts[rows[at]] = share * np.copysign(z * z, z)


@compiled
def _pull(near, likeness, rows, own, pull, least, most, added):  # type: ignore[no-untyped-def]
    """What moves sums towards the mean of the nearest ones', weighed by likeness."""
    for at in range(len(rows)):
        company, weights = 0.0, 0.0
        for number in range(near.shape[1]):
            weight = max(likeness[at, number], least)
            company += weight * own[rows[near[at, number]]]
            weights += weight
        added[rows[at]] = min(max(pull * (company / weights - own[rows[at]]), -most), most)


@compiled
def _add_company(near, likeness, rows, scores, parts, dense, share, how, sums, added):  # type: ignore[no-untyped-def]
    crowd, pull, flat, least, most = how
    _shift(scores, rows, likeness, share, crowd, flat, parts[dense])
    sums[:] = parts[0]
    for number in range(1, len(parts)):
        sums += parts[number]
    added[:] = 0
    _pull(near, likeness, rows, sums, pull, least, most, added)


class FastTables:
    """Satisfies `ports.Tables`."""

    def union(self, every: Ids) -> tuple[Ids, Places, Places]:
        order = every.argsort()
        ids, first, places = np.empty_like(every), np.empty_like(order), np.empty_like(order)
        size = _joined(every, order, ids, first, places)
        return ids[:size], first[:size], places

    def squares(self, scores: Table, places: Places, sizes: Places, shares: Values, least: float) -> Sums | None:
        ranks, parts, raw = np.zeros(scores.shape, np.int64), np.empty_like(scores), np.empty(scores.shape[1])
        if not scores.size or not _ranked(scores, places, sizes, ranks) or np.isnan(scores).any():
            return None
        _squares(scores, shares, least, parts, raw)
        return ranks, parts, raw

    def company(
        self,
        near: Places,
        likeness: Table,
        rows: Places,
        scores: Values,
        parts: Table,
        dense: int,
        share: float,
        how: How,
    ) -> tuple[Values, Values]:
        sums, added = np.empty(len(scores)), np.empty(len(scores))
        _add_company(near, likeness, rows, scores, parts, dense, share, how, sums, added)
        return sums, added
