"""The company a chunk keeps: the fused list goes in; what resembles good chunks a little higher, it comes out.

Two corrections to the first 50, both from the vectors that are stored anyway. A chunk in a crowd is near to every
question, so its cosine counts less by what its nearest chunks have above the mean of all (hubness; Conneau and others,
ICLR 2018, "CSLS"). And what answers a question tends to resemble other answers, so a chunk's sum is pulled towards the
mean of its nearest chunks (score regularisation; Diaz, CIKM 2005). docs/decisions/0011-neighbour-smoothing.md has
the figures.
"""

from __future__ import annotations

from math import sqrt
from typing import Protocol

import msgspec
import numpy as np
from msgspec.structs import replace

from dowse.fusion_kernel import Table, Tables
from dowse.ports import Ids, Mask, Matrix, Slots, Values
from dowse.query.stages.fusion import FLAT, ZScore
from dowse.query.stages.sort import Order, order
from dowse.query.stages.state import Column, Fused, Slate

NEAREST = 5  # chunks that count as a chunk's company; measured: 3 and 10 differ by less than .002 (decision 0011)
FIRST = 50  # chunks of the fused list that are looked at; measured: 30 loses .002, 100 gains nothing (decision 0011)
_BLOCK_ROWS = 13  # of a product; chosen: 13·50·384 is below what makes OpenBLAS use threads
MOST = 0.5  # a sum is moved by; so that what stands out by itself keeps its lead; measured: costs .0015 (decision 0011)
_LEAST = 1e-9  # a weight for what points away, so that weights never add up to 0


class Vectors(Protocol):
    """All of a store that is needed here."""

    def vectors(self, ids: Ids, slots: Slots | None = None) -> tuple[Matrix, Mask]: ...


class Company(msgspec.Struct, frozen=True):
    """Moves the first chunks of a fusion by `z` of words and vectors; leaves every other list as it is."""

    store: Vectors
    crowd: float  # how much of a crowd's likeness is taken from the cosine
    pull: float  # the company's share in a chunk's sum; it moves it by `MOST` at most
    tables: Tables | None = None  # what is compiled of it
    name: str = "company"

    def __call__(self, slate: Slate, /) -> Slate:
        if slate.fused is None or slate.query.mentions:  # who names a thing wants it, and not what resembles it
            return slate
        return slate.changed(fused=with_company(slate.fused, self.store, self.crowd, self.pull, self.tables))


def with_company(fused: Fused, store: Vectors, crowd: float, pull: float, tables: Tables | None = None) -> Fused:
    """The first chunks moved, or the fused list as it is where there is no company to ask."""
    if not applies(fused):
        return fused
    vectors, there = store.vectors(fused.ids[:FIRST], None if fused.slots is None else fused.slots[:FIRST])
    rows = there.nonzero()[0]
    if len(rows) <= NEAREST:  # of so few, all would be company
        return fused
    return moved(fused, rows, vectors if len(rows) == len(vectors) else vectors[rows], crowd, pull, tables)


def applies(fused: Fused) -> bool:
    """Both channels speak: a leg that is asked alone answers as it is."""
    counted = {column.leg == "dense" for column in fused.columns if column.weight > 0}
    return isinstance(fused.method, ZScore) and len(counted) == 2


def moved(fused: Fused, rows: Order, vectors: Matrix, crowd: float, pull: float, tables: Tables | None = None) -> Fused:
    """The same chunks in a new order. `rows` are places in `fused`, each with its vector, more than `NEAREST`."""
    near, likeness = _nearest(vectors)
    parts = np.array([column.parts for column in fused.columns])
    dense = _only_dense(fused) if tables is not None else None
    if tables is not None and dense is not None:
        share = fused.columns[dense].weight / sum(column.weight for column in fused.columns)
        how = (crowd, pull, FLAT, _LEAST, MOST)
        sums, added = tables.company(near, likeness, rows, fused.columns[dense].scores, parts, dense, share, how)
    else:
        sums, added = _summed(fused, rows, near, likeness, parts, crowd, pull)
    raw = sums + added
    best = order(raw, fused.ids)
    raw = raw[best]
    return replace(
        fused,
        ids=fused.ids[best],
        raw=raw,
        values=fused.method.unit(raw, np.array([column.weight for column in fused.columns])),
        columns=tuple(_ordered(column, own, best) for column, own in zip(fused.columns, parts, strict=True)),
        slots=None if fused.slots is None else fused.slots[best],
        company=added[best],
    )


def _only_dense(fused: Fused) -> int | None:
    """The number of the dense column where there is one alone, complete, and z is squared: what is compiled."""
    numbers = [number for number, column in enumerate(fused.columns) if column.leg == "dense"]
    plain = len(numbers) == 1 and isinstance(fused.method, ZScore) and fused.method.exponent == 2
    return numbers[0] if plain and not np.isnan(fused.columns[numbers[0]].scores).any() else None


def _summed(
    fused: Fused, rows: Order, near: Order, likeness: Values, parts: Table, crowd: float, pull: float
) -> tuple[Values, Values]:
    """Sums of the parts, of which those of the dense leg are changed, and what company adds to them."""
    crowded = likeness.sum(axis=1) / NEAREST  # numpy's `mean` and `clip` cost as much as the rest of their lines
    shift = crowd * (crowded - crowded.sum() / len(crowded))
    total = sum(column.weight for column in fused.columns)
    for column, changing in zip(fused.columns, parts, strict=True):
        _uncrowd(fused, column, rows, shift, column.weight / total, changing)
    sums = parts.sum(axis=0)
    own = sums[rows]
    weights = np.maximum(likeness, _LEAST)
    added = np.zeros(len(fused.ids))
    company = (weights * own[near]).sum(axis=1) / weights.sum(axis=1)
    added[rows] = np.minimum(np.maximum(pull * (company - own), -MOST), MOST)
    return sums, added


def _nearest(vectors: Matrix) -> tuple[Order, Values]:
    """By chunk: which others are nearest, in any order, and their cosines."""
    # Some rows at a time: a larger product wakes the threads of BLAS, which takes .05 ms of work up to 20 (measured).
    blocks = range(0, len(vectors), _BLOCK_ROWS)
    cosines = np.concatenate([vectors[start : start + _BLOCK_ROWS] @ vectors.T for start in blocks])
    cosines.reshape(-1)[:: len(vectors) + 1] = -np.inf  # no chunk keeps itself company
    near = cosines.argpartition(-NEAREST, axis=1)[:, -NEAREST:]
    starts = np.arange(0, cosines.size, len(vectors))[:, None]
    return near, cosines.reshape(-1).take(near + starts).astype(np.float64)


def _uncrowd(fused: Fused, column: Column, rows: Order, shift: Values, share: float, parts: Values) -> None:
    """The dense leg's parts with cosines less the shift; mean and deviation stay those of the union."""
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
