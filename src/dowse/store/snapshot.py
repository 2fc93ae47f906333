"""One moment of the embedded store: derived parts joined behind the reader's port."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from dowse.errors import CorruptIndexError
from dowse.filters import Filter, check
from dowse.fusion_kernel import Tables
from dowse.ports import STANDARD, Bm25, Found, Ids, Mask, Matrix, StoreStats, Values, Vector
from dowse.store.kernels.bm25 import inverse_frequency
from dowse.store.kernels.numpy_kernel import NUMPY, Best, Kernel, Norm, joined
from dowse.store.segments.arrays import Maps, PartReader
from dowse.store.segments.columns import ColumnReader
from dowse.store.segments.forward import WORD_LEGS, Asked, ForwardReader, Slots, hash_term
from dowse.store.segments.frequencies import Frequencies
from dowse.store.segments.generation import Generation
from dowse.store.segments.inverted import InvertedReader
from dowse.store.segments.state import UNREAD, States, read_state
from dowse.store.segments.vectors import VectorReader, check_vector
from dowse.store.snapshot_cache import Few, Question, Room, Selection, Tallies, counted, known
from dowse.store.sql import links, services
from dowse.store.sql.codec import batches, signed, unsigned
from dowse.store.sql.database import Database
from dowse.store.sql.vector_cache import Model
from dowse.types import Chunk, ChunkId, DocumentInfo, Edge, Leg, Name, Service, ServiceEdge

_FORWARD_ROWS = 2000  # so few passing chunks are scored one and all, cheaper than going through all entries; chosen
_SELECTIONS = 16  # filters that are remembered, a byte a chunk each; chosen
_QUESTIONS = 64  # lists of terms that are remembered; chosen
_VIEWS = 4  # constants of BM25 that are remembered; chosen


class Snapshot:
    """Immutable but for memories; shared between threads."""

    def __init__(
        self,
        place: Generation,
        model: Model | None,
        database: Database,
        kernel: Kernel = NUMPY,
        maps: Maps | None = None,
        before: Snapshot | None = None,
        states: States = UNREAD,
    ) -> None:
        """`before` is an earlier moment, from which this one goes on if their generation is the same."""
        before = before if before is not None and before.place.number == place.number else None
        self.place: Generation = place
        self.model = model
        self._database = database
        # Vectors before rows: a vector is published after the row it belongs to, so none is without one.
        vector_state = (states.vectors or read_state(place.vectors(model.number))) if model else None
        part = PartReader(place.rows, states.rows, maps)
        self.seq: int = part.state.seq
        self.rows = part.state.rows
        self._ids: Ids = part.array("ids", "<u8")
        self.keys: Slots = part.array("keys", "<i8")
        self._forward: ForwardReader = ForwardReader(part, kernel, before._forward if before else None)
        self._kernel = kernel
        self.tables: Tables | None = kernel.tables
        self._columns = ColumnReader(part, database)
        self._inverted: InvertedReader = InvertedReader(part, before._inverted if before else None)
        if self._inverted.covered > self.rows or (vector_state and vector_state.seq > self.seq):
            raise CorruptIndexError(f"{place.rows} has lost chunks; run `dowse rebuild`")
        self._vectors = None
        if model and vector_state:
            vectors = PartReader(place.vectors(model.number), vector_state, maps)
            self._vectors = VectorReader(vectors, model.dimension, kernel)
        since, dead = (before.seq, before.dead) if before else (-1, np.empty(0, np.int64))
        died = database.tombstones(since, self.seq)
        self.dead: Slots = np.concatenate([dead, self._slots_of_keys(np.array(died, np.int64))])
        self._frequencies: Frequencies = Frequencies(
            self._inverted, self._forward, self.dead, kernel, before._frequencies if before else None
        )
        self.alive = np.ones(self.rows, np.bool_)
        self.alive[self.dead] = False
        self.living = self.rows - len(self.dead)
        self._documents = int(part.state.facts.get("documents", 0))
        self._lately: tuple[Ids, Slots] = (np.empty(0, np.uint64), np.empty(0, np.int64))  # of the last fusion
        self._selections: dict[Filter, Selection] = {}
        self._room = Room()
        self._questions: dict[tuple[Leg, tuple[str, ...]], Question] = {}
        self._tallies: Tallies = before._tallies if before else Tallies()
        self._bm25 = STANDARD
        self._views: dict[Bm25, Snapshot] = {}
        self._lock = Lock()

    @cached_property
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

    def with_bm25(self, constants: Bm25) -> Snapshot:
        with self._lock:
            found = self._views.get(constants)
            if found is None:
                found = copy.copy(self)  # shares the mapped arrays, and the memories that the constants do not touch
                found._bm25 = constants
                found._questions = {}
                found.__dict__.pop("_norms", None)
                if len(self._views) >= _VIEWS:
                    self._views.clear()
                self._views[constants] = found
            return found

    def search_words(self, leg: Leg, terms: Sequence[str], k: int, where: Filter) -> Found:
        chosen = self._selection(where)
        question = self._question(leg, terms)
        if not chosen.count or not len(question.asked.hashes) or k <= 0:
            return _nothing()
        if chosen.few is not None:
            scores = chosen.few.score(leg, question.asked, self._norms[leg])
            question.few = chosen.few, scores  # not read back: another thread may ask the same with another filter
            slots, scores = _holding(chosen.few.slots, scores)
        else:
            slots, scores = self._best(leg, question, k, chosen.refusing)
        return self._found(slots, scores, k, settled=chosen.few is not None)

    def search_vectors(self, vector: Vector, k: int, where: Filter) -> Found:
        check_vector(vector)
        chosen = self._selection(where)
        if self._vectors is None or not chosen.count or k <= 0:
            return _nothing()
        beside = chosen.beside.layers() if chosen.beside is not None else None
        rows, cosines = self._vectors.search(vector, k, chosen.vectors, beside)
        return self._found(self._vectors.slots[rows].astype(np.int64), cosines, k, settled=chosen.few is not None)

    def score_words(
        self, terms: Mapping[Leg, Sequence[str]], ids: Ids, slots: Slots | None = None
    ) -> Mapping[Leg, Values]:
        asked = {leg: self._question(leg, of_leg) for leg, of_leg in terms.items()}
        if slots is not None:
            self._lately = (ids, slots)
            scores = known(asked, slots) or self._tallies.known(asked, slots)
            missing = {leg: each for leg, each in asked.items() if leg not in scores}
            return scores | self._exact(slots, missing) if missing else scores
        slots = self._slots(ids)
        exist = slots >= 0
        return {leg: _spread(scores, exist, 0.0) for leg, scores in self._exact(slots[exist], asked).items()}

    def held_terms(self, terms: Mapping[Leg, Sequence[str]], ids: Ids) -> Sequence[Mapping[Leg, tuple[str, ...]]]:
        return self._forward.held(self._slots(ids), terms)

    def attainable_words(self, terms: Mapping[Leg, Sequence[str]]) -> Mapping[Leg, float]:
        return {leg: self._question(leg, of_leg).attainable for leg, of_leg in terms.items()}

    def score_vectors(self, vector: Vector, ids: Ids, slots: Slots | None = None) -> Values:
        rows = self._row_of_slot[self._slots(ids) if slots is None else slots]
        if self._vectors is None:
            return np.full(len(ids), np.nan)
        exist = rows >= 0
        return _spread(self._vectors.score(vector, rows if exist.all() else rows[exist]), exist, np.nan)

    def vectors(self, ids: Ids, slots: Slots | None = None) -> tuple[Matrix, Mask]:
        rows = self._row_of_slot[self._slots(ids) if slots is None else slots]
        exist = rows >= 0
        if self._vectors is not None and exist.all():
            return self._vectors.get(rows), exist
        found = np.zeros((len(ids), self.model.dimension if self.model else 0), np.float32)
        if self._vectors is not None:
            found[exist] = self._vectors.get(rows[exist])
        return found, exist

    def passing(self, ids: Ids, where: Filter, slots: Slots | None = None) -> Mask:
        mask = self._selection(where).mask
        if slots is not None:
            return mask[slots]
        slots = self._slots(ids)
        return (slots >= 0) & mask[np.maximum(slots, 0)] if self.rows else slots >= 0

    def embedded(self, where: Filter) -> int:
        return 0 if self._vectors is None else int(self._selection(where).mask[self._vectors.slots].sum())

    # --- rows of the truth --------------------------------------------------------------------------

    def get(self, ids: Collection[ChunkId], slots: Slots | None = None) -> Mapping[ChunkId, Chunk]:
        if slots is None:
            return self._database.chunks(ids, self.seq)
        keys = self.keys[slots].tolist()
        found = self._database.chunks_by_key(keys)
        if len(found) < len(keys):  # replaced since, and the new ones are published
            return self._database.chunks(ids, self.seq)
        return {each: found[key] for each, key in zip(ids, keys, strict=True)}

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

    def disagreeing_runs(self) -> Iterator[str]:
        """Runs of the inverted index that hold something else than the forward index."""
        return self._inverted.disagreeing(self._forward.entries)

    def vector_of(self, slot: int) -> Vector | None:
        row = int(self._row_of_slot[slot])
        return self._vectors.get(np.array([row]))[0] if self._vectors is not None and row >= 0 else None

    # --- parts --------------------------------------------------------------------------------------

    @cached_property
    def _row_of_slot(self) -> NDArray[np.int64]:
        found = np.full(self.rows + 1, -1, np.int64)  # the last one is for slot −1: no chunk, no vector
        if self._vectors is not None:
            found[self._vectors.slots] = np.arange(self._vectors.rows)
        return found

    @cached_property
    def _vector_count(self) -> int:
        return int((self._row_of_slot[:-1][self.alive] >= 0).sum())

    @cached_property
    def _norms(self) -> dict[Leg, Norm]:
        """By leg, against the mean tokens of a living chunk; at least 1, so that empty chunks divide by no zero."""
        k1, b = self._bm25.k1, self._bm25.b
        norms: dict[Leg, Norm] = {}
        known = self._forward.lengths
        for leg, lengths, tokens in zip(WORD_LEGS, known.by_leg, known.sums.tolist(), strict=True):
            living = tokens - int(lengths[self.dead].sum(dtype=np.int64))
            norms[leg] = Norm(lengths, k1 * (1 - b), k1 * b / max(living / max(self.living, 1), 1.0))
        return norms

    @cached_property
    def _tail(self) -> Slots:
        """Chunks that no run covers yet."""
        return np.arange(self._inverted.covered, self.rows)

    def _question(self, leg: Leg, terms: Sequence[str]) -> Question:
        """Remembered: a leg, fusion and later stages of one query ask for the same."""
        key = leg, tuple(terms)
        found = self._questions.get(key)
        if found is None:
            found = self._looked_up(leg, counted(terms))
            with self._lock:
                if len(self._questions) >= _QUESTIONS:
                    self._questions.clear()
                self._questions[key] = found
        return found

    def _looked_up(self, leg: Leg, said: Mapping[str, int]) -> Question:
        """Weights from how many living chunks hold each term; terms that none holds are only attainable."""
        pairs = sorted((hash_term(term, leg), times) for term, times in said.items())
        hashes = np.array([each for each, _ in pairs], np.uint32)
        holding, spans = self._frequencies.of(hashes)
        counts = holding.tolist()
        weights = [times * inverse_frequency(self.living, n) for (_, times), n in zip(pairs, counts, strict=True)]
        asked, attainable = Asked(hashes, np.array(weights)), sum(weights)
        if 0 in counts:
            held = np.flatnonzero(holding)
            asked = Asked(hashes[held], asked.weights[held])
            spans = [(run, starts[held], ends[held]) for run, starts, ends in spans]
        return Question(asked, spans, attainable)

    def _best(self, leg: Leg, question: Question, k: int, mask: Mask) -> Best:
        """At least the best k of the runs and of the tail."""
        tally = self._tallies.begin(leg)
        found = self._kernel.best(question.spans, question.asked.weights, self._norms[leg], mask, k, tally)
        if len(self._tail):
            tail = self._tail[mask[self._tail]] if len(mask) else self._tail
            late = _holding(tail, self._exact(tail, {leg: question})[leg])
            tally.add(*late)
            found = joined([found, late])
        self._tallies.keep(leg, tally, question, mask)
        return found

    def _exact(self, slots: Slots, questions: Mapping[Leg, Question]) -> dict[Leg, Values]:
        return self._forward.score(slots, {leg: each.asked for leg, each in questions.items()}, self._norms)

    def _selection(self, where: Filter) -> Selection:
        found = self._selections.get(where)
        if found is None:
            check(where)
            mask = self._columns.mask(where) & self.alive if where else self.alive
            count = int(mask.sum()) if where else self.living
            few = Few(np.flatnonzero(mask), self._forward, self._kernel) if where and count <= _FORWARD_ROWS else None
            found = Selection(mask, count, few, self._vectors, self._room)
            with self._lock:
                if len(self._selections) >= _SELECTIONS:
                    self._selections.clear()
                    self._room.empty()
                self._selections[where] = found
        return found

    def _found(self, slots: Slots, scores: Values, k: int, *, settled: bool) -> Found:
        """The best k with their ids, which are remembered: fusion asks for them again."""
        if len(scores) > 2 * k:  # a sort of all takes longer than finding the least that counts
            among = scores >= np.partition(scores, len(scores) - k)[len(scores) - k]
            slots, scores = slots[among], scores[among]
        ids = self._ids[slots]
        order = np.lexsort((ids, -scores))[:k]
        return Found(ids[order], scores[order], slots[order], settled)

    def _slots(self, ids: Ids) -> Slots:
        """By id, its living slot; −1 where there is none."""
        known_ids, known = self._lately
        found = np.full(len(ids), -1, np.int64)
        if len(known_ids):
            order = known_ids.argsort()
            at = order[np.minimum(known_ids.searchsorted(ids, sorter=order), len(order) - 1)]
            found = np.where(known_ids[at] == ids, known[at], found)
        missing = np.flatnonzero(found < 0)
        if len(missing):
            learned = self._learned(ids[missing].tolist())
            found[missing] = [learned.get(each, -1) for each in ids[missing].tolist()]
        return found

    def _learned(self, numbers: list[int]) -> dict[int, int]:
        """Living slots of ids that the last fusion did not bring."""
        found: dict[int, int] = {}
        for part in batches([signed(each) for each in numbers], 500):
            marks = ",".join("?" * len(part))
            rows = self._database.query(f"SELECT id, key FROM chunks WHERE id IN ({marks}) AND searchable", part)
            for number, key in rows:
                slot = self._slots_of_keys(np.array([key], np.int64))
                if len(slot) and self.alive[slot[0]]:
                    found[unsigned(number)] = int(slot[0])
        return found

    def _slots_of_keys(self, keys: NDArray[np.int64]) -> Slots:
        """Slots of the keys that have one; keys ascend with slots."""
        if not len(keys) or not self.rows:
            return np.empty(0, np.int64)
        at = np.minimum(np.searchsorted(self.keys, keys), self.rows - 1)
        return np.asarray(at[self.keys[at] == keys], np.int64)


def _nothing() -> Found:
    return Found(np.empty(0, np.uint64), np.empty(0, np.float64), np.empty(0, np.int64))


def _holding(slots: Slots, scores: Values) -> Best:
    """Those that hold a term; no score is below 0."""
    hits = scores.nonzero()[0]
    return slots[hits], scores[hits]


def _spread(values: Values, where: Mask, otherwise: float) -> Values:
    """Values at the places where they exist, another value elsewhere."""
    if len(values) == len(where):
        return values
    found = np.full(len(where), otherwise)
    found[where] = values
    return found
