"""Session of one query on a snapshot: searches remember rows and sums, and the scoring after them reuses these.

Fusion scores the chunks that the legs found, so the session keeps where each of them is stored, and each word leg's
sums, until they are scored. Nothing of that is in the port, in a thread or in the snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from dowse.filters import Filter
from dowse.ports import Found, Ids, Mask, Matrix, Values, Vector
from dowse.store.kernels.numpy_kernel import ScoreAccumulator
from dowse.store.segments.forward import Slots
from dowse.store.segments.vectors import check_vector
from dowse.store.snapshot_cache import SmallFilterSet
from dowse.store.word_index import WordIndex, WordQuery, holding
from dowse.types import Leg

if TYPE_CHECKING:
    from dowse.store.snapshot import Snapshot

_FREE_SUMS = 8  # accumulators that wait for the next queries, 12 bytes a chunk: two legs of four queries; chosen


class LegSums(msgspec.Struct, frozen=True, eq=False):
    """Scores of all chunks that a word leg scanned: those of a small filter set, or an accumulator's."""

    query: WordQuery
    small: SmallFilterSet | None
    scores: Values  # by place in the small set
    sums: ScoreAccumulator | None
    mask: Mask  # of the accumulator; an empty one lets all pass


class SnapshotSession:
    """Session of one query; its legs may search side by side. Satisfies `ports.QuerySession`."""

    def __init__(self, snapshot: Snapshot, words: WordIndex) -> None:
        self._snapshot = snapshot
        self._words = words
        self._found: list[tuple[Ids, Slots]] = []  # by search, until it is part of `_known`
        self._known: tuple[Ids, Slots] = (_NO_IDS, _NO_SLOTS)  # by id ascending
        self._last: tuple[Ids, Slots, int] = (_NO_IDS, _NO_SLOTS, 0)  # the last that were looked up
        self._sums: dict[Leg, LegSums] = {}
        self.stats = snapshot.stats
        self.embedded, self.get = snapshot.embedded, snapshot.get
        self.document, self.documents_of = snapshot.document, snapshot.documents_of
        self.document_chunks = snapshot.document_chunks
        self.neighbours, self.named, self.names_from = snapshot.neighbours, snapshot.named, snapshot.names_from
        self.services, self.service_edges = snapshot.services, snapshot.service_edges

    def search_words(self, leg: Leg, terms: Sequence[str], k: int, where: Filter) -> Found:
        chosen, query = self._snapshot.selection(where), self._words.query(leg, terms)
        if not chosen.count or not len(query.terms.hashes) or k <= 0:
            return Found(_NO_IDS, _NO_SCORES)
        # One that is not put back, since the search was interrupted, is lost: it may hold sums of no query.
        before = self._sums.pop(leg, None)
        if chosen.small is not None:
            scores = chosen.small.score(leg, query.terms, self._words.norms[leg])
            self._sums[leg] = LegSums(query, chosen.small, scores, None, _NO_MASK)
            return self._best(*holding(chosen.small.slots, scores), k)
        sums = before.sums if before is not None and before.sums is not None else self._borrowed()
        found = self._words.best(leg, query, k, chosen.refusing, sums)
        self._sums[leg] = LegSums(query, None, _NO_SCORES, sums, chosen.refusing)
        return self._best(*found, k)

    def score_words(self, terms: Mapping[Leg, Sequence[str]], ids: Ids) -> Mapping[Leg, Values]:
        queries = {leg: self._words.query(leg, of_leg) for leg, of_leg in terms.items()}
        slots, missing = self._slots(ids)
        exist = slots >= 0 if missing else _NO_MASK
        own = slots[exist] if missing else slots
        scores = self._recalled(queries, own)
        if len(scores) < len(queries):
            scores |= self._words.exact(own, {leg: each for leg, each in queries.items() if leg not in scores})
        return {leg: _spread(each, exist, 0.0) for leg, each in scores.items()} if missing else scores

    def held_terms(self, terms: Mapping[Leg, Sequence[str]], ids: Ids) -> Sequence[Mapping[Leg, tuple[str, ...]]]:
        return self._snapshot.forward.held(self._slots(ids)[0], terms)

    def attainable_words(self, terms: Mapping[Leg, Sequence[str]]) -> Mapping[Leg, float]:
        return {leg: self._words.query(leg, of_leg).attainable for leg, of_leg in terms.items()}

    def _recalled(self, queries: Mapping[Leg, WordQuery], slots: Slots) -> dict[Leg, Values]:
        """Of the legs whose last search went through all these slots, their scores.

        An accumulator serves one scoring and returns to the snapshot, for it is as long as the index.
        """
        found: dict[Leg, Values] = {}
        places: dict[SmallFilterSet, Slots | None] = {}  # the legs of a query share one filter
        for leg, query in queries.items():
            kept = self._sums.get(leg)
            if kept is None or kept.query is not query:
                continue
            if kept.small is not None:
                if kept.small not in places:
                    places[kept.small] = kept.small.places(slots)
                if (at := places[kept.small]) is not None:
                    found[leg] = kept.scores[at]
            elif kept.sums is not None and (not len(kept.mask) or kept.mask[slots].all()):
                found[leg] = kept.sums.sums[slots]
                del self._sums[leg]
                if len(self._snapshot.free_sums) < _FREE_SUMS:
                    self._snapshot.free_sums.append(kept.sums)
        return found

    def _borrowed(self) -> ScoreAccumulator:
        """Return a free accumulator: one of an index's length takes longer to make than a query."""
        try:
            return self._snapshot.free_sums.pop()
        except IndexError:
            return ScoreAccumulator()

    def search_vectors(self, vector: Vector, k: int, where: Filter) -> Found:
        check_vector(vector)
        chosen, vectors = self._snapshot.selection(where), self._snapshot.vector_reader
        if vectors is None or not chosen.count or k <= 0:
            return Found(_NO_IDS, _NO_SCORES)
        copy = chosen.vector_copy.layers() if chosen.vector_copy is not None else None
        rows, cosines = vectors.search(vector, k, chosen.vectors, copy)
        return self._best(vectors.slots[rows].astype(np.int64), cosines, k)

    def score_vectors(self, vector: Vector, ids: Ids) -> Values:
        vectors = self._snapshot.vector_reader
        if vectors is None:
            return np.full(len(ids), np.nan)
        rows = self._snapshot.row_of_slot[self._slots(ids)[0]]
        exist = rows >= 0
        if exist.all():
            return vectors.score(vector, rows)
        return _spread(vectors.score(vector, rows[exist]), exist, np.nan)

    def vectors(self, ids: Ids) -> tuple[Matrix, Mask]:
        rows, vectors = self._snapshot.row_of_slot[self._slots(ids)[0]], self._snapshot.vector_reader
        exist = rows >= 0
        if vectors is not None and exist.all():
            return vectors.get(rows), exist
        found = np.zeros((len(ids), self.stats.dimension or 0), np.float32)
        if vectors is not None:
            found[exist] = vectors.get(rows[exist])
        return found, exist

    def passing(self, ids: Ids, where: Filter) -> Mask:
        mask = self._snapshot.selection(where).mask
        slots, missing = self._slots(ids)
        if not missing:
            return mask[slots]
        return (slots >= 0) & mask[np.maximum(slots, 0)] if len(mask) else slots >= 0

    def _best(self, slots: Slots, scores: Values, k: int) -> Found:
        """The best k with their ids; their slots are remembered."""
        if len(scores) > 2 * k:  # a sort of all takes longer than finding the least that counts
            among = scores >= np.partition(scores, len(scores) - k)[len(scores) - k]
            slots, scores = slots[among], scores[among]
        ids = self._snapshot.ids[slots]
        order = np.lexsort((ids, -scores))[:k]
        ids = ids[order]
        self._found.append((ids, slots[order]))
        return Found(ids, scores[order])

    def _slots(self, ids: Ids) -> tuple[Slots, int]:
        """By id its living slot, −1 where there is none; and how many of those there are."""
        known, slots, missing = self._last
        if ids is known:  # fusion scores one list in every leg
            return slots, missing
        if self._found:
            found, self._found = self._found, []
            every = np.concatenate([self._known[0], *(each for each, _ in found)])
            order = every.argsort()
            self._known = every[order], np.concatenate([self._known[1], *(each for _, each in found)])[order]
        slots, missing = self._snapshot.kernel.slots_of(*self._known, ids)
        if missing:
            unknown = np.flatnonzero(slots < 0)
            slots[unknown] = self._snapshot.slots_of(ids[unknown])
            missing = int(np.count_nonzero(slots < 0))
        self._last = ids, slots, missing
        return slots, missing


_NO_IDS, _NO_SCORES = np.empty(0, np.uint64), np.empty(0, np.float64)
_NO_SLOTS, _NO_MASK = np.empty(0, np.int64), np.empty(0, np.bool_)


def _spread(values: Values, where: Mask, otherwise: float) -> Values:
    """Values at the places where they exist, another value elsewhere."""
    found = np.full(len(where), otherwise)
    found[where] = values
    return found
