"""The legs' lists of chunks go in; one list of documents comes out, each by its whole and by the best of its pieces.

A long document is in the index as a whole, which has all of its words and the vector of its beginning, and in pieces,
each of which can stand out. By its best piece alone it would rise with its length: of many pieces one is near to any
question. So in every leg a document scores as its whole does, moved some way towards its best piece; one that was not
cut scores as it is. docs/decisions/0013-long-documents.md has the figures.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from dowse.identity import id_number
from dowse.ports import Ids, Mask, StoreReader
from dowse.query.assemble import Wave
from dowse.query.stages.fusion import Fuse, Method, Table, weighed
from dowse.query.stages.leg_weights import Weights
from dowse.query.stages.sort import Order, order
from dowse.query.stages.state import Column, Fused, Ranking, Slate
from dowse.types import Document

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Places = NDArray[np.int64]
else:
    Places = Any

PIECE = 0.4  # of the way from the whole to the best piece; measured: .2 to .5 differ by less than .001 (decision 0013)


@dataclass(frozen=True, eq=False)
class Families:
    """Which chunks are of one document. The arrays of members run document by document, the whole of each first."""

    members: Ids
    starts: Places  # of each document in `members`
    counts: Places  # of each document's members
    ids: Ids  # the members, rising
    documents: Places  # whose each of `ids` is

    @classmethod
    def of(cls, documents: Iterable[Document]) -> Families:
        numbers = [[id_number(chunk.id) for chunk in each.chunks] for each in documents]
        counts = np.array([len(each) for each in numbers], np.int64)
        members = np.array([number for each in numbers for number in each], np.uint64)
        rising = np.argsort(members)
        return cls(members, np.cumsum(counts) - counts, counts, members[rising], _owners(counts)[rising])

    def documents_of(self, ids: Ids) -> Places:
        found: Places = self.documents[np.searchsorted(self.ids, ids)]
        return found

    def chosen(self, documents: Places) -> Families:
        """Those of a few documents, numbered anew from 0."""
        counts = self.counts[documents]
        starts = np.cumsum(counts) - counts
        owners = _owners(counts)
        members = self.members[self.starts[documents][owners] + np.arange(len(owners)) - starts[owners]]
        rising = np.argsort(members)
        return Families(members, starts, counts, members[rising], owners[rising])


def pooled(scores: Table, family: Families, piece: float) -> Table:
    """Scores of all members become scores of documents; a row is a leg."""
    whole = scores[:, family.starts]
    cut = family.counts > 1
    if not cut.any():
        return whole
    pieces = scores.copy()
    pieces[:, family.starts[cut]] = -np.inf
    best = np.maximum.reduceat(pieces, family.starts, axis=1)
    return whole + piece * (best - whole)


@dataclass(frozen=True)
class FuseDocuments:
    """As `stages.fusion.Fuse`, with documents for chunks; each goes by the chunk that the first leg likes best."""

    store: StoreReader
    method: Method
    weights: Weights
    families: Families
    piece: float = PIECE
    name: str = "fuse"

    def __call__(self, slate: Slate, /) -> Slate:
        lists, weights = weighed(slate, self.weights)
        brought = [self.families.documents_of(each.found.ids) for each in lists]
        documents = np.unique(np.concatenate(brought))
        family = self.families.chosen(documents)
        every = _scores(self.store, lists, family.members)
        scores = pooled(every, family, self.piece)
        told = _best_members(every[0], family)
        ranks = np.array([_ranks(np.isin(documents, own), row, told) for own, row in zip(brought, scores, strict=True)])
        parts = self.method.parts(scores, ranks, weights)
        raw = parts.sum(axis=0)
        best = order(raw, told)
        columns = tuple(
            Column(
                each.leg,
                float(weights[at]),
                len(each.found.ids),
                scores[at, best],
                ranks[at, best],
                parts[at, best],
                each.variant,
            )
            for at, each in enumerate(lists)
        )
        values = self.method.unit(raw[best], weights)
        return slate.changed(fused=Fused(self.method, told[best], raw[best], values, columns))


def by_document(waves: tuple[Wave, ...], families: Families) -> tuple[Wave, ...]:
    """The same path with documents fused instead of chunks; fusion of another kind stays as it is."""
    return tuple(
        tuple(
            replace(step, stage=FuseDocuments(step.stage.store, step.stage.method, step.stage.weights, families))
            if isinstance(step.stage, Fuse)
            else step
            for step in wave
        )
        for wave in waves
    )


def _owners(counts: Places) -> Places:
    return np.repeat(np.arange(len(counts)), counts)


def _scores(store: StoreReader, lists: list[Ranking], ids: Ids) -> Table:
    """Exact, a row a list."""
    if not len(ids):
        return np.zeros((len(lists), 0))
    return np.array(
        [
            store.score_words({each.leg: each.terms}, ids)[each.leg]
            if each.vector is None
            else store.score_vectors(each.vector, ids)
            for each in lists
        ],
        np.float64,
    )


def _best_members(row: Table, family: Families) -> Ids:
    """Of each document the member with the highest score, the first of equals."""
    owners = _owners(family.counts)
    falling = np.lexsort((np.arange(len(row)), -row, owners))
    found: Ids = family.members[falling[family.starts]]
    return found


def _ranks(brought: Mask, scores: Table, ids: Ids) -> Places:
    """From 1 among the documents that a leg brought, by score; 0 for the others."""
    rows: Order = np.flatnonzero(brought)
    ranks = np.zeros(len(ids), np.int64)
    ranks[rows[order(scores[rows], ids[rows])]] = np.arange(1, len(rows) + 1)
    return ranks
