"""Fusion in two storeys: every variant's lists go in, one fused list a variant is made, and their mean vote comes out.

This is how the `papers` profile merges rewritten questions (S3-29). The default is flat, because here the inner
ranks hide how sure each leg was, and a variant counts as much as the question itself (C-22).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

import numpy as np
from msgspec.structs import replace

from dowse.ports import StoreReader, Values
from dowse.query.stages.fusion import Id, Method, RankTable, Table, fused, weighed
from dowse.query.stages.leg_weights import Weights
from dowse.query.stages.sort import Order, order, ranked
from dowse.query.stages.state import Fused, Ranks, Slate

MISSING_RANK = 1000  # S3-29: what a query did not find counts as found at that rank


def cross_query_rank_fusion(
    lists: Sequence[Sequence[Id]], k: int = 60, missing_rank: int | None = MISSING_RANK
) -> list[tuple[Id, float]]:
    """1/N · Σ 1/(k + rank) over the N queries' lists, best first, ties by id; rank counts from 1.

    N counts the lists that are given, so leave out those of queries that failed (B-60). An id counts once per list,
    at its first place (B-61).
    """
    places = [{each: rank for rank, each in enumerate(dict.fromkeys(ids), start=1)} for ids in lists]
    absent = 0.0 if missing_rank is None else 1 / (k + missing_rank)
    return ranked(
        (each, fsum(1 / (k + at[each]) if each in at else absent for at in places) / len(places))
        for each in dict.fromkeys(each for at in places for each in at)
    )


@dataclass(frozen=True)
class CrossQuery:
    """A method that has been applied already: only its name and constants are left to tell."""

    inner: Method
    rank_constant: int = 60
    missing_rank: int = MISSING_RANK
    name: str = "rrf"

    def parts(self, scores: Table, ranks: RankTable, weights: Values) -> Table:
        """Each query's share of the mean of 1/(rank_constant + rank); rows are queries here, not legs."""
        votes: Table = np.where(
            ranks > 0, 1 / (self.rank_constant + np.maximum(ranks, 1)), 1 / (self.rank_constant + self.missing_rank)
        ) / len(ranks)
        return votes

    def unit(self, raw: Values, weights: Values) -> Values:
        """First in every query is 1."""
        unit: Values = np.clip(raw * (self.rank_constant + 1), 0.0, 1.0)
        return unit


@dataclass(frozen=True)
class FuseNested:
    """`fuse.Fuse` for each variant alone, then the mean vote. With one question there is nothing to merge."""

    store: StoreReader
    method: Method
    weights: Weights
    name: str = "fuse"

    def __call__(self, slate: Slate, /) -> Slate:
        lists, weights = weighed(slate, self.weights)
        flat = fused(self.store, self.method, lists, weights)
        variants = sorted({each.variant for each in lists})
        if len(variants) == 1:
            return slate.changed(fused=flat)
        ranks = np.array([_place_of(flat, variant) for variant in variants])
        method = CrossQuery(self.method)
        raw = method.parts(ranks, ranks, weights).sum(axis=0)
        best = order(raw, flat.ids)
        return slate.changed(fused=_reordered(flat, method, raw, best, ranks))


def _place_of(flat: Fused, variant: int) -> Ranks:
    """Ranks, from 1, in one variant's own fused list; 0 for what none of its legs brought."""
    own = [column for column in flat.columns if column.variant == variant]
    total = np.sum([column.parts for column in own], axis=0)
    found = np.flatnonzero(np.any([column.ranks > 0 for column in own], axis=0))
    ranks = np.zeros(len(flat.ids), np.int64)
    ranks[found[order(total[found], flat.ids[found])]] = np.arange(1, len(found) + 1)
    return ranks


def _reordered(flat: Fused, method: CrossQuery, raw: Values, best: Order, ranks: RankTable) -> Fused:
    columns = tuple(
        replace(column, scores=column.scores[best], ranks=column.ranks[best], parts=column.parts[best])
        for column in flat.columns
    )
    return Fused(
        method,
        flat.ids[best],
        raw[best],
        method.unit(raw[best], raw),
        columns,
        queries=tuple(row[best] for row in ranks),
        slots=None if flat.slots is None else flat.slots[best],
    )
