"""Fusion by document: ranks documents by their whole and their best chunk.

The index holds a long document as a whole, with all its words and the vector of its beginning, and in chunks. By its
best chunk alone a document would rise with its length: of many chunks one is near any query. So in every leg the score
of a document is that of its whole, moved part of the way towards its best chunk. The figures are in
docs/decisions/0013-long-documents.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec.structs import replace

from dowse.identity import id_number
from dowse.ports import Ids, Mask, QuerySession
from dowse.query.assemble import Wave
from dowse.query.stages.fusion import Fuse, Method, Table, exact_scores, weighed
from dowse.query.stages.leg_weights import LegWeights
from dowse.query.stages.sort import Order, order
from dowse.query.stages.state import Column, Fused, QueryState
from dowse.types import Document

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Places = NDArray[np.int64]
else:
    Places = Any

PIECE = 0.4  # of the way from the whole to the best chunk; 0.2 to 0.5 differ by less than 0.001


class ChunkGroups(msgspec.Struct, frozen=True, eq=False):
    """Chunks grouped by document. Members are sorted by document, the whole of each first."""

    members: Ids
    starts: Places  # of each document in `members`
    counts: Places  # of each document's members
    ids: Ids  # the members, rising
    documents: Places  # document of each of `ids`

    @classmethod
    def of(cls, documents: Iterable[Document]) -> ChunkGroups:
        numbers = [[id_number(chunk.id) for chunk in each.chunks] for each in documents]
        counts = np.array([len(each) for each in numbers], np.int64)
        members = np.array([number for each in numbers for number in each], np.uint64)
        rising = np.argsort(members)
        return cls(members, np.cumsum(counts) - counts, counts, members[rising], _owners(counts)[rising])

    def documents_of(self, ids: Ids) -> Places:
        found: Places = self.documents[np.searchsorted(self.ids, ids)]
        return found

    def chosen(self, documents: Places) -> ChunkGroups:
        """Return the groups of a few documents, numbered from 0."""
        counts = self.counts[documents]
        starts = np.cumsum(counts) - counts
        owners = _owners(counts)
        members = self.members[self.starts[documents][owners] + np.arange(len(owners)) - starts[owners]]
        rising = np.argsort(members)
        return ChunkGroups(members, starts, counts, members[rising], owners[rising])


def pooled(scores: Table, group: ChunkGroups, piece: float) -> Table:
    """Compute scores of documents from those of all members; a row is a leg."""
    whole = scores[:, group.starts]
    cut = group.counts > 1
    if not cut.any():
        return whole
    pieces = scores.copy()
    pieces[:, group.starts[cut]] = -np.inf
    best = np.maximum.reduceat(pieces, group.starts, axis=1)
    return whole + piece * (best - whole)


class FuseDocuments(msgspec.Struct, frozen=True):
    """Fusion of documents; each is represented by its best chunk in the first leg."""

    store: QuerySession
    method: Method
    weights: LegWeights
    groups: ChunkGroups
    piece: float = PIECE
    name: str = "fuse"

    def __call__(self, state: QueryState, /) -> QueryState:
        lists, weights = weighed(state, self.weights)
        found_by_leg = [self.groups.documents_of(each.found.ids) for each in lists]
        documents = np.unique(np.concatenate(found_by_leg))
        group = self.groups.chosen(documents)
        every = exact_scores(self.store, lists, group.members)
        scores = pooled(every, group, self.piece)
        shown = _best_members(every[0], group)
        ranks = np.array(
            [_ranks(np.isin(documents, own), row, shown) for own, row in zip(found_by_leg, scores, strict=True)]
        )
        parts = self.method.parts(scores, ranks, weights)
        raw = parts.sum(axis=0)
        best = order(raw, shown)
        scores, ranks, parts, raw = scores[:, best], ranks[:, best], parts[:, best], raw[best]
        columns = tuple(
            Column(each.leg, float(weights[at]), len(each.found.ids), scores[at], ranks[at], parts[at], each.variant)
            for at, each in enumerate(lists)
        )
        return state.changed(fused=Fused(self.method, shown[best], raw, self.method.unit(raw, weights), columns))


def by_document(waves: tuple[Wave, ...], groups: ChunkGroups) -> tuple[Wave, ...]:
    """Replace fusion of chunks by fusion of documents; another kind of fusion stays."""
    return tuple(
        tuple(
            replace(step, stage=FuseDocuments(step.stage.store, step.stage.method, step.stage.weights, groups))
            if isinstance(step.stage, Fuse)
            else step
            for step in wave
        )
        for wave in waves
    )


def _owners(counts: Places) -> Places:
    return np.repeat(np.arange(len(counts)), counts)


def _best_members(row: Table, group: ChunkGroups) -> Ids:
    """Return the member of each document with the highest score, the first of equals."""
    owners = _owners(group.counts)
    falling = np.lexsort((np.arange(len(row)), -row, owners))
    found: Ids = group.members[falling[group.starts]]
    return found


def _ranks(found_by_leg: Mask, scores: Table, ids: Ids) -> Places:
    """Rank the documents of a leg from 1 by score; 0 for the others."""
    rows: Order = np.flatnonzero(found_by_leg)
    ranks = np.zeros(len(ids), np.int64)
    ranks[rows[order(scores[rows], ids[rows])]] = np.arange(1, len(rows) + 1)
    return ranks
