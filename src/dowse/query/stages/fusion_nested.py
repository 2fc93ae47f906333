"""Nested fusion: one fused list per variant of the query, then the mean vote over the variants.

The `papers` profile merges rewritten queries like this. The default is flat: nested ranks hide the margins of the legs,
and a variant counts as much as the query itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from dowse.fusion_kernel import FusionKernel
from dowse.ports import QuerySession, Ranks, Table, Values
from dowse.query.stages.fusion import Method, fused, reciprocal_rank_fusion, weighed
from dowse.query.stages.leg_weights import LegWeights
from dowse.query.stages.sort import Id, order
from dowse.query.stages.state import Fused, QueryState

MISSING_RANK = 1000  # of a chunk that a variant did not find


def cross_query_rank_fusion(
    lists: Sequence[Sequence[Id]], k: int = 60, missing_rank: int | None = MISSING_RANK
) -> list[tuple[Id, float]]:
    """Return 1/N · Σ 1/(k + rank) over the lists of N queries, best first, ties by id; rank counts from 1.

    N counts the given lists, so leave out those of failed queries. An id counts once per list, at its first place.
    """
    votes = reciprocal_rank_fusion({str(at): ids for at, ids in enumerate(lists)}, k=k, missing_rank=missing_rank)
    return [(each, vote / len(lists)) for each, vote in votes]


class CrossQuery(msgspec.Struct, frozen=True):
    """The formula of nested fusion."""

    inner: Method
    rank_constant: int = 60
    missing_rank: int = MISSING_RANK
    name: str = "rrf"

    def parts(self, scores: Table, ranks: Ranks, weights: Values) -> Table:
        """Return the share of each query in the mean of 1/(rank_constant + rank); rows are queries, not legs."""
        votes: Table = np.where(
            ranks > 0, 1 / (self.rank_constant + np.maximum(ranks, 1)), 1 / (self.rank_constant + self.missing_rank)
        ) / len(ranks)
        return votes

    def unit(self, raw: Values, weights: Values) -> Values:
        """Return the sums in [0,1]; 1 for the first of every query."""
        return np.clip(raw * (self.rank_constant + 1), 0.0, 1.0)


class FuseNested(msgspec.Struct, frozen=True):
    """Stage that fuses each variant alone, then takes the mean vote. Without variants it equals `Fuse`."""

    store: QuerySession
    method: Method
    weights: LegWeights
    kernel: FusionKernel | None = None
    name: str = "fuse"

    def __call__(self, state: QueryState, /) -> QueryState:
        lists, weights = weighed(state, self.weights)
        flat = fused(self.store, self.method, lists, weights, self.kernel)
        variants = sorted({each.variant for each in lists})
        if len(variants) == 1:
            return state.changed(fused=flat)
        ranks = np.array([_place_of(flat, variant) for variant in variants])
        method = CrossQuery(self.method)
        raw = method.parts(ranks, ranks, weights).sum(axis=0)
        best = order(raw, flat.ids)
        columns = tuple(
            replace(each, scores=each.scores[best], ranks=each.ranks[best], parts=each.parts[best])
            for each in flat.columns
        )
        raw, queries = raw[best], tuple(row[best] for row in ranks)
        merged = Fused(method, flat.ids[best], raw, method.unit(raw, raw), columns, queries)
        return state.changed(fused=merged)


def _place_of(flat: Fused, variant: int) -> Ranks:
    """Return ranks from 1 in the fused list of one variant; 0 for chunks that none of its legs found."""
    own = [column for column in flat.columns if column.variant == variant]
    total = np.sum([column.parts for column in own], axis=0)
    found = np.flatnonzero(np.any([column.ranks > 0 for column in own], axis=0))
    ranks = np.zeros(len(flat.ids), np.int64)
    ranks[found[order(total[found], flat.ids[found])]] = np.arange(1, len(found) + 1)
    return ranks
