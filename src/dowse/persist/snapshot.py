"""One moment of the embedded store: derived parts joined behind the reader's port."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from dowse.errors import CorruptIndexError
from dowse.filters import Filter, check
from dowse.persist import links, services
from dowse.persist.arrays import PartReader, read_state
from dowse.persist.bm25 import attainable, query_weights
from dowse.persist.columns import ColumnReader, tag
from dowse.persist.database import Database
from dowse.persist.embeddings import Model
from dowse.persist.forward import WORD_LEGS, DeadTerms, ForwardReader, Slots
from dowse.persist.generation import Generation
from dowse.persist.kernel import NUMPY, Kernel
from dowse.persist.sqlite_rows import batches, signed, unsigned
from dowse.persist.vectors import VectorReader
from dowse.persist.words import WordsReader
from dowse.ports import Found, Ids, Mask, Matrix, StoreStats, Values, Vector
from dowse.types import Chunk, ChunkId, DocumentInfo, Edge, Leg, Name, Service, ServiceEdge

_FORWARD_ROWS = 2000  # so few passing chunks are scored one and all: exact, and cheaper than asking tantivy; chosen
_PUSHED_CODES = 64  # a clause with more values than this is left to the mask; chosen
_KNOWN_LIMIT = 50_000  # ids and terms that are remembered, some 5 MB each; chosen: 180 questions
_SELECTIONS = 64  # filters, and term lists, that are remembered; chosen


@dataclass(frozen=True)
class _Selection:
    """The living chunks that pass a filter: as a mask over slots, and as the rows of their vectors."""

    mask: Mask
    count: int
    vectors: Slots | None  # None: all of them
    few: Slots | None = None  # the slots themselves, where there are few


class Snapshot:
    """Immutable but for memories; shared between threads."""

    def __init__(self, place: Generation, model: Model | None, database: Database, kernel: Kernel = NUMPY) -> None:
        self.place = place
        self.model = model
        self._database = database
        # Vectors before rows: a vector is published after the row it belongs to, so none is without one.
        vector_state = read_state(place.vectors(model.number)) if model else None
        part = PartReader(place.rows)
        self.seq = part.state.seq
        self.rows = part.state.rows
        self._ids: Ids = part.array("ids", "<u8")
        self.keys: Slots = part.array("keys", "<i8")
        self._forward = ForwardReader(part, kernel)
        self._columns = ColumnReader(part, database)
        self._words = WordsReader(place.words)
        if self._words.rows < self.rows:
            raise CorruptIndexError(f"{place.words} has lost chunks; run `dowse rebuild`")
        self._vectors = None
        if model and vector_state:
            self._vectors = VectorReader(PartReader(place.vectors(model.number), vector_state), model.dimension, kernel)
        self.dead = self._slots_of_keys(np.array(database.tombstones(self.seq), np.int64))
        self.alive = np.ones(self.rows, np.bool_)
        self.alive[self.dead] = False
        self.living = int(self.alive.sum())
        self._documents = int(part.state.facts.get("documents", 0))
        self._known: dict[int, int] = {}
        self._frequencies: dict[tuple[Leg, str], int] = {}
        self._last_slots: tuple[Ids | None, Slots] = (None, np.empty(0, np.int64))
        self._selections: dict[Filter, _Selection] = {}
        self._term_weights: dict[tuple[Leg, tuple[str, ...]], dict[str, float]] = {}
        self._lock = Lock()

    @property
    def stats(self) -> StoreStats:
        model = self.model
        return StoreStats(
            documents=self._documents,
            chunks=self.living,
            vectors=self._vector_count,
            model=model.name if model else None,
            dimension=model.dimension if model else None,
        )

    # --- legs ---------------------------------------------------------------------------------------

    def search_words(self, leg: Leg, terms: Sequence[str], k: int, where: Filter) -> Found:
        chosen = self._selection(where)
        weights = self._weights({leg: terms})
        if not chosen.count or not weights[leg] or k <= 0:
            return _nothing()
        if chosen.few is not None:
            slots = chosen.few
        else:
            said = Counter(term for term in terms if term in weights[leg])
            slots = self._candidates(leg, said, k, where, chosen)
        scores = self._forward.score(slots, weights, self._mean_lengths)[leg]
        hits = np.flatnonzero(scores > 0)
        return self._found(slots[hits], scores[hits], k)

    def search_vectors(self, vector: Vector, k: int, where: Filter) -> Found:
        chosen = self._selection(where)
        if self._vectors is None or not chosen.count or k <= 0:
            return _nothing()
        rows, cosines = self._vectors.search(vector, k, chosen.vectors)
        return self._found(self._vectors.slots[rows], cosines, k)

    def score_words(self, terms: Mapping[Leg, Sequence[str]], ids: Ids) -> Mapping[Leg, Values]:
        slots = self._slots(ids)
        exist = slots >= 0
        scores = self._forward.score(slots[exist], self._weights(terms), self._mean_lengths)
        return {leg: _spread(values, exist, 0.0) for leg, values in scores.items()}

    def held_terms(self, terms: Mapping[Leg, Sequence[str]], ids: Ids) -> Sequence[Mapping[Leg, tuple[str, ...]]]:
        return self._forward.held(self._slots(ids), terms)

    def attainable_words(self, terms: Mapping[Leg, Sequence[str]]) -> Mapping[Leg, float]:
        return {leg: attainable(of_leg, self.living, self._frequency(leg)) for leg, of_leg in terms.items()}

    def score_vectors(self, vector: Vector, ids: Ids) -> Values:
        rows = self._vector_rows(ids)
        if self._vectors is None:
            return np.full(len(ids), np.nan)
        return _spread(self._vectors.score(vector, rows[rows >= 0]), rows >= 0, np.nan)

    def vectors(self, ids: Ids) -> tuple[Matrix, Mask]:
        rows = self._vector_rows(ids)
        found = np.zeros((len(ids), self.model.dimension if self.model else 0), np.float32)
        if self._vectors is not None:
            found[rows >= 0] = self._vectors.get(rows[rows >= 0])
        return found, rows >= 0

    def passing(self, ids: Ids, where: Filter) -> Mask:
        slots, mask = self._slots(ids), self._selection(where).mask
        return (slots >= 0) & mask[np.maximum(slots, 0)] if self.rows else slots >= 0

    def embedded(self, where: Filter) -> int:
        return 0 if self._vectors is None else int(self._selection(where).mask[self._vectors.slots].sum())

    # --- rows of the truth --------------------------------------------------------------------------

    def get(self, ids: Collection[ChunkId]) -> Mapping[ChunkId, Chunk]:
        return self._database.chunks(ids)

    def neighbours(self, ids: Collection[ChunkId], *, incoming: bool = False) -> Sequence[Edge]:
        return sorted(self._database.edges(ids, incoming=incoming), key=links.edge_order)

    def named(self, kind: str, names: Collection[str]) -> Sequence[Name]:
        return links.named(self._database, kind, names)

    def names_from(self, kind: str, prefix: str, limit: int) -> Sequence[Name]:
        return links.names_from(self._database, kind, prefix, limit)

    def services(self) -> Sequence[Service]:
        return services.read_services(self._database)

    def service_edges(self) -> Sequence[ServiceEdge]:
        return services.read_edges(self._database)

    def document(self, document_id: str) -> DocumentInfo | None:
        return self._database.document(document_id)

    def documents_of(self, document_ids: Collection[str]) -> Sequence[DocumentInfo]:
        return self._database.documents_of(document_ids)

    def document_chunks(self, document_id: str) -> Sequence[Chunk]:
        return self._database.document_chunks(document_id)

    # --- for the writer -----------------------------------------------------------------------------

    def without_vector(self, vectors: VectorReader | None) -> Slots:
        """Living slots that these vectors do not cover, in order."""
        missing = self.alive.copy()
        if vectors is not None:
            missing[vectors.slots] = False
        return np.flatnonzero(missing)

    # --- for the doctor -----------------------------------------------------------------------------

    def terms_of(self, slot: int) -> NDArray[np.uint32]:
        return self._forward.terms_of(np.array([slot]))

    def frequency_bounds(self, leg: Leg, term: str) -> tuple[int, int]:
        """Between what numbers tantivy puts the living chunks with a term: it counts dead and unpublished ones too."""
        most = self._words.frequency(leg, term)
        dead = self._dead_terms.count(leg)(term) if self._dead_terms else 0
        return most - dead - self.ahead, most

    @property
    def ahead(self) -> int:
        """Chunks that tantivy has and the rows have not."""
        return self._words.rows - self.rows

    def vector_of(self, slot: int) -> Vector | None:
        row = int(self._row_of_slot[slot])
        return self._vectors.get(np.array([row]))[0] if self._vectors is not None and row >= 0 else None

    # --- parts --------------------------------------------------------------------------------------

    @cached_property
    def _row_of_slot(self) -> NDArray[np.int64]:
        found = np.full(self.rows, -1, np.int64)
        if self._vectors is not None:
            found[self._vectors.slots] = np.arange(self._vectors.rows)
        return found

    @cached_property
    def _vector_count(self) -> int:
        return int((self._row_of_slot[self.alive] >= 0).sum())

    @cached_property
    def _mean_lengths(self) -> dict[Leg, float]:
        """Mean tokens of a living chunk by leg; at least 1, so that empty chunks divide nothing by zero."""
        sums = self._forward.lengths[self.alive].sum(axis=0, dtype=np.int64)
        return {leg: max(float(each) / max(self.living, 1), 1.0) for leg, each in zip(WORD_LEGS, sums, strict=True)}

    @cached_property
    def _dead_terms(self) -> DeadTerms | None:
        return DeadTerms(self._forward, self.dead) if len(self.dead) else None

    def _weights(self, terms: Mapping[Leg, Sequence[str]]) -> dict[Leg, dict[str, float]]:
        return {leg: self._leg_weights(leg, tuple(of_leg)) for leg, of_leg in terms.items()}

    def _leg_weights(self, leg: Leg, terms: tuple[str, ...]) -> dict[str, float]:
        """Remembered: a leg, fusion and later stages of one query ask for the same."""
        found = self._term_weights.get((leg, terms))
        if found is None:
            found = query_weights(terms, self.living, self._frequency(leg))
            with self._lock:
                if len(self._term_weights) >= _SELECTIONS:
                    self._term_weights.clear()
                self._term_weights[leg, terms] = found
        return found

    def _frequency(self, leg: Leg) -> Callable[[str], int]:
        """How many living chunks hold a term; remembered, because a question's terms are asked for three times."""
        dead = self._dead_terms.count(leg) if self._dead_terms else None
        known = self._frequencies

        def of_term(term: str) -> int:
            found = known.get((leg, term))
            if found is None:
                found = max(self._words.frequency(leg, term) - (dead(term) if dead else 0), 0)
                if len(known) >= _KNOWN_LIMIT:
                    known.clear()
                known[leg, term] = found
            return found

        return of_term

    def _candidates(self, leg: Leg, terms: Mapping[str, int], k: int, where: Filter, chosen: _Selection) -> Slots:
        """Slots that pass, from tantivy: asked for more until there are enough or no more."""
        tags = self._tags(where)
        limit = k + k // 4 + 20  # a few more than asked, because lengths are rounded there
        while True:
            slots = self._words.candidates(leg, terms, limit, tags)
            passing = slots[slots < self.rows]
            passing = passing[chosen.mask[passing]]
            if len(passing) >= k or len(slots) < limit:
                return passing
            limit *= 4

    def _tags(self, where: Filter) -> list[list[str]]:
        """The clauses that tantivy can apply itself. The mask has the last word on all of them."""
        groups = []
        for clause in where:
            codes = self._columns.codes(clause)
            if codes is not None and len(codes) <= _PUSHED_CODES:
                groups.append([tag(clause.field, code) for code in codes])
        return groups

    def _selection(self, where: Filter) -> _Selection:
        found = self._selections.get(where)
        if found is None:
            check(where)
            mask = self._columns.mask(where) & self.alive if where else self.alive
            count = int(mask.sum()) if where else self.living
            some = self._vectors is not None and count < self.rows
            rows = np.flatnonzero(mask[self._vectors.slots]) if self._vectors is not None and some else None
            few = np.flatnonzero(mask) if where and count <= _FORWARD_ROWS else None
            found = _Selection(mask, count, rows, few)
            with self._lock:
                if len(self._selections) >= _SELECTIONS:
                    self._selections.clear()
                self._selections[where] = found
        return found

    def _found(self, slots: Slots, scores: Values, k: int) -> Found:
        """The best k with their ids, which are remembered: fusion asks for them again."""
        ids = self._ids[slots]
        order = np.lexsort((ids, -scores))[:k]
        with self._lock:
            if len(self._known) > _KNOWN_LIMIT:
                self._known.clear()
            self._known.update(zip(ids[order].tolist(), slots[order].tolist(), strict=True))
        return Found(ids[order], scores[order])

    def _vector_rows(self, ids: Ids) -> Slots:
        """By id, the row of its vector; −1 where there is none."""
        slots = self._slots(ids)
        if not self.rows:
            return slots
        return np.where(slots >= 0, self._row_of_slot[np.maximum(slots, 0)], -1)

    def _slots(self, ids: Ids) -> Slots:
        """By id, its living slot; −1 where there is none. Fusion asks for the same ids twice in a row."""
        last_ids, last = self._last_slots
        if ids is last_ids:
            return last
        numbers = ids.tolist()
        found = list(map(self._known.get, numbers))
        if None in found:
            self._learn([each for each, slot in zip(numbers, found, strict=True) if slot is None])
            found = [self._known.get(each, -1) for each in numbers]
        slots = np.array(found, np.int64)
        self._last_slots = (ids, slots)
        return slots

    def _learn(self, numbers: list[int]) -> None:
        for part in batches([signed(each) for each in numbers], 500):
            marks = ",".join("?" * len(part))
            rows = self._database.query(f"SELECT id, key FROM chunks WHERE id IN ({marks}) AND searchable", part)
            for number, key in rows:
                slot = self._slots_of_keys(np.array([key], np.int64))
                if len(slot) and self.alive[slot[0]]:
                    self._known[unsigned(number)] = int(slot[0])

    def _slots_of_keys(self, keys: NDArray[np.int64]) -> Slots:
        """Slots of the keys that have one; keys ascend with slots."""
        if not len(keys) or not self.rows:
            return np.empty(0, np.int64)
        at = np.minimum(np.searchsorted(self.keys, keys), self.rows - 1)
        return np.asarray(at[self.keys[at] == keys], np.int64)


def _nothing() -> Found:
    return Found(np.empty(0, np.uint64), np.empty(0, np.float64))


def _spread(values: Values, where: Mask, otherwise: float) -> Values:
    """Values at the places where they exist, another value elsewhere."""
    found = np.full(len(where), otherwise)
    found[where] = values
    return found
