"""Snapshot of the embedded store: segments and SQLite rows behind the reader's ports."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property, partial
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from dowse.errors import CorruptIndexError
from dowse.filters import Filter, check, phrase_expression
from dowse.identity import searchable_text
from dowse.ports import STANDARD, Bm25, Found, Ids, Mask, Matrix, StoreStats, Values, Vector
from dowse.store.kernels.numpy_kernel import NUMPY, Kernel, ScoreAccumulator
from dowse.store.segments.arrays import MappedFiles, PartReader
from dowse.store.segments.columns import ColumnReader
from dowse.store.segments.forward import ForwardReader, Slots, hash_term
from dowse.store.segments.generation import UNPUBLISHED, Generation
from dowse.store.segments.inverted import InvertedReader
from dowse.store.segments.parts import BASE, DEAD
from dowse.store.segments.state import PartState, read_state
from dowse.store.segments.vectors import VectorReader
from dowse.store.session import SnapshotSession
from dowse.store.snapshot_cache import MemoryBudget, Selection, SmallFilterSet
from dowse.store.sql import links
from dowse.store.sql.codec import batches, marks, signed, unsigned
from dowse.store.sql.database import Database
from dowse.store.sql.schema import DATABASE
from dowse.store.sql.services import read_edges, read_services
from dowse.store.sql.vector_cache import Model
from dowse.store.word_index import TermFrequencies, WordIndex
from dowse.tokenizer import Tokenizer
from dowse.types import ChunkId, Edge, Leg

_FORWARD_ROWS = 2000  # so few passing chunks are all scored, which is cheaper than a scan of all postings; chosen
_READ_ROWS = 2000  # chunks that are read at once to verify a phrase; chosen
_SELECTIONS = 16  # remembered filters, a byte a chunk each; chosen
_INDEXES = 4  # remembered BM25 constants; chosen


class Snapshot:
    """One consistent state of the store, immutable but for caches; shared between threads.

    Satisfies `ports.StoreReader`.
    """

    def __init__(
        self,
        place: Generation,
        model: Model | None,
        database: Database,
        kernel: Kernel = NUMPY,
        maps: MappedFiles | None = None,
        before: Snapshot | None = None,
    ) -> None:
        """`before` is an earlier snapshot, whose parts this one takes over if their generation is the same."""
        before = before if before is not None and before.place.number == place.number else None
        self.place: Generation = place
        self.model = model
        self._database = database
        self.document, self.documents_of = database.document, database.documents_of
        self.document_chunks = database.document_chunks
        self.named, self.names_from = partial(links.named, database), partial(links.names_from, database)
        self.services, self.service_edges = partial(read_services, database), partial(read_edges, database)
        # Vectors before rows: a vector is published after its row, so every vector read here has one.
        vector_state = read_state(place.vectors(model.number)) if model else None
        part = PartReader(place.rows, PartState(0, 0) if place.number == UNPUBLISHED else None, maps)
        self.seq: int = part.state.seq
        self.get = partial(database.chunks, seq=self.seq)
        self.rows = part.state.rows
        self.ids: Ids = part.array("ids", "<u8")
        self.keys: Slots = part.array("keys", "<i8")
        self.forward: ForwardReader = ForwardReader(part, kernel, before.forward if before else None)
        self.kernel = kernel
        self._columns = ColumnReader(part, database, self._containing)
        self.inverted = InvertedReader(part)
        if self.inverted.covered > self.rows or (vector_state and vector_state.seq > self.seq):
            raise CorruptIndexError(f"chunks are missing from {place.rows}; run `dowse rebuild`")
        self.vector_reader: VectorReader | None = None
        if model and vector_state:
            vectors = PartReader(place.vectors(model.number), vector_state, maps)
            self.vector_reader = VectorReader(vectors, model.dimension, kernel)
        base = self._base = int(part.state.facts.get(BASE, -1))  # none in an index of an earlier version
        since, dead = (before.seq, before.dead) if before else (base, np.empty(0, np.int64))
        died = database.tombstones(since, self.seq)
        if before and before._base == base:
            self._died: tuple[int, int] = before._died[0] + len(died), before._died[1] + sum(died)
        else:
            self._died = database.count_tombstones(base, self.seq) if before else (len(died), sum(died))
        if base >= 0 and self._died != tuple(part.state.facts.get(name) for name in DEAD):
            raise CorruptIndexError(f"the deleted chunks in {DATABASE} do not match {place.rows}; run `dowse rebuild`")
        self.dead: Slots = np.concatenate([dead, self._slots_of_keys(np.array(died, np.int64))])
        self._frequencies: TermFrequencies = TermFrequencies(
            self.inverted, self.forward, self.dead, kernel, before._frequencies if before else None
        )
        self.alive = np.ones(self.rows, np.bool_)
        self.alive[self.dead] = False
        self.living = self.rows - len(self.dead)
        self._documents = int(part.state.facts.get("documents", 0))
        self._selections: dict[Filter, Selection] = {}
        self._budget = MemoryBudget()
        self._indexes: dict[Bm25, WordIndex] = {}
        self.free_sums: list[ScoreAccumulator] = before.free_sums if before else []  # shared by the queries
        self._lock = Lock()

    @cached_property
    def stats(self) -> StoreStats:
        model = self.model
        return StoreStats(
            documents=self._documents,
            chunks=self.living,
            vectors=int((self.row_of_slot[:-1][self.alive] >= 0).sum()),
            model=model.name if model else None,
            dimension=model.dimension if model else None,
        )

    def session(self, constants: Bm25 = STANDARD) -> SnapshotSession:
        return SnapshotSession(self, self._indexes.get(constants) or self._index(constants))

    def search_words(self, leg: Leg, terms: Sequence[str], k: int, where: Filter) -> Found:
        return self.session().search_words(leg, terms, k, where)

    def score_words(self, terms: Mapping[Leg, Sequence[str]], ids: Ids) -> Mapping[Leg, Values]:
        return self.session().score_words(terms, ids)

    def held_terms(self, terms: Mapping[Leg, Sequence[str]], ids: Ids) -> Sequence[Mapping[Leg, tuple[str, ...]]]:
        return self.session().held_terms(terms, ids)

    def attainable_words(self, terms: Mapping[Leg, Sequence[str]]) -> Mapping[Leg, float]:
        return self.session().attainable_words(terms)

    def search_vectors(self, vector: Vector, k: int, where: Filter) -> Found:
        return self.session().search_vectors(vector, k, where)

    def score_vectors(self, vector: Vector, ids: Ids) -> Values:
        return self.session().score_vectors(vector, ids)

    def vectors(self, ids: Ids) -> tuple[Matrix, Mask]:
        return self.session().vectors(ids)

    def passing(self, ids: Ids, where: Filter) -> Mask:
        return self.session().passing(ids, where)

    def embedded(self, where: Filter) -> int:
        return 0 if self.vector_reader is None else int(self.selection(where).mask[self.vector_reader.slots].sum())

    def values(self, field: str) -> Sequence[str]:
        """Return the values that chunks have, or had, in a field of text."""
        return self._columns.values(field)

    def _containing(self, phrase: str) -> Mask:
        """Mark the chunks whose text has a phrase: of those that hold all its words, read each."""
        terms = Tokenizer()(phrase.lower())
        hashes = np.unique(np.array([hash_term(each, "bm25_nlp") for each in (*terms.prose, *terms.stops)], np.uint32))
        slots = self._frequencies.holding(hashes) if len(hashes) else np.arange(self.rows)
        expression, found = phrase_expression(phrase), np.zeros(self.rows, np.bool_)
        for start in range(0, len(slots), _READ_ROWS):
            part = slots[start : start + _READ_ROWS]
            rows = self._database.rows(self.keys[part].tolist())
            keys = [row.key for row in rows if expression.search(searchable_text(row.chunk))]
            found[self._slots_of_keys(np.array(keys, np.int64))] = True
        return found

    def neighbours(self, ids: Collection[ChunkId], *, incoming: bool = False) -> Sequence[Edge]:
        return sorted(self._database.edges(ids, incoming=incoming), key=links.edge_order)

    @cached_property
    def row_of_slot(self) -> NDArray[np.int64]:
        found = np.full(self.rows + 1, -1, np.int64)  # the last one is for slot −1: no chunk, no vector
        if self.vector_reader is not None:
            found[self.vector_reader.slots] = np.arange(self.vector_reader.rows)
        return found

    def _index(self, constants: Bm25) -> WordIndex:
        with self._lock:
            if constants not in self._indexes:
                if len(self._indexes) >= _INDEXES:
                    self._indexes.clear()
                self._indexes[constants] = WordIndex(self._frequencies, self.rows, constants)
            return self._indexes[constants]

    def selection(self, where: Filter) -> Selection:
        found = self._selections.get(where)
        if found is None:
            check(where)
            mask = self._columns.mask(where) & self.alive if where else self.alive
            count = int(mask.sum()) if where else self.living
            refusing = mask[:0] if count == self.rows else mask
            small = None
            if where and count <= _FORWARD_ROWS:
                small = SmallFilterSet(np.flatnonzero(mask), self.forward, self.kernel)
            found = Selection(mask, refusing, count, small, self.vector_reader, self._budget)
            with self._lock:
                if len(self._selections) >= _SELECTIONS:
                    self._selections.clear()
                    self._budget.reset()
                self._selections[where] = found
        return found

    def slots_of(self, ids: Ids) -> list[int]:
        """Return the living slot of each id; −1 where there is none."""
        found: dict[int, int] = {}
        numbers = ids.tolist()
        for part in batches([signed(each) for each in numbers]):
            rows = self._database.query(f"SELECT id, key FROM chunks WHERE id IN ({marks(part)}) AND searchable", part)
            for number, key in rows:
                slot = self._slots_of_keys(np.array([key], np.int64))
                if len(slot) and self.alive[slot[0]]:
                    found[unsigned(number)] = int(slot[0])
        return [found.get(each, -1) for each in numbers]

    def _slots_of_keys(self, keys: NDArray[np.int64]) -> Slots:
        """Return the slots of the keys that have one; keys ascend with slots."""
        if not len(keys) or not self.rows:
            return np.empty(0, np.int64)
        at = np.minimum(np.searchsorted(self.keys, keys), self.rows - 1)
        return np.asarray(at[self.keys[at] == keys], np.int64)
