"""Writer of the embedded store: documents become durable, then searchable; vectors follow."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np

from dowse.errors import CorruptIndexError, ModelMismatchError
from dowse.identity import embedded_text
from dowse.ports import Matrix, Pending
from dowse.store.lock import WriterLock
from dowse.store.segments.forward import Slots
from dowse.store.segments.generation import GENERATION, Generation, current, following
from dowse.store.segments.parts import SegmentWriters, WriterCache
from dowse.store.segments.vectors import check_vectors
from dowse.store.snapshot import Snapshot
from dowse.store.sql import links
from dowse.store.sql.database import Database, Row
from dowse.store.sql.services import read_facts, replace_graph
from dowse.store.sql.vector_cache import Model, VectorCache

_BATCH_ROWS = 1000
_DEAD_SHARE = 0.2  # deleted rows that are worth a compaction; chosen
_DEAD_LEAST = 1000  # chosen: below this a compaction saves nothing worth having


class EmbeddedWriter:
    """The one writer: holds the lock from construction to `close`. Satisfies `ports.StoreWriter`.

    It begins with a publication of the rows that a crashed writer left.
    """

    def __init__(
        self, derived: Path, database: Database, lock: WriterLock, reader: Callable[[], Snapshot], shelf: WriterCache
    ) -> None:
        self._derived = derived
        self._database = database
        self._embeddings = VectorCache(database, shelf.recent)
        self._lock = lock
        self._reader = reader
        self._cache = shelf
        self._filling: Model | None = None
        self._waiting: dict[str, list[int]] = {}
        self._fresh: list[tuple[int, Row]] | None = None  # rows of the last publication without a vector, if known
        self._parts: SegmentWriters | None = None
        self._current: Generation | None = None  # none but this writer changes it while it holds the lock
        # Only the database has these; segments follow when documents are published.
        self.add_source, self.remove_source = database.add_source, database.remove_source
        self.put, self.remove = database.put, database.remove
        self.put_services, self.service_facts = partial(replace_graph, database), partial(read_facts, database)
        self.put_edges, self.relink = partial(links.put_edges, database), partial(links.relink, database)
        self.unlinked, self.renamed = partial(links.unlinked, database), partial(links.renamed, database)
        self._catch_up()

    def publish(self) -> None:
        seq = self._database.seq()
        if self._current is None:  # nothing was published yet
            if seq:
                self.compact()
            return
        try:
            parts = self._open()
        except CorruptIndexError:  # a publication failed halfway on a full disk, and the database has newer rows
            self.compact()
            return
        if seq == parts.rows.state.seq:
            return
        self._fresh = None
        try:
            added, latest = self._append_rows(parts, seq)
        except BaseException:
            self._close_parts()  # rows appended but not published are cut off when the segments are opened again
            raise
        models = self._embeddings.models()
        filled = {slot for model in models for slot in self._fill_from_cache(model, added)}
        if len(models) == 1 and len(latest) == len(added):  # one batch: its rows are still in memory
            self._fresh = [(slot, row) for slot, row in latest if slot not in filled]
        dead = self._database.query("SELECT count(*) FROM tombstones")[0][0]
        if dead > max(_DEAD_LEAST, _DEAD_SHARE * parts.rows.state.rows):
            self.compact()

    def compact(self) -> None:
        """Build a new generation from the database. The old one serves until the new one is complete."""
        self._close_parts()
        self._waiting, self._fresh = {}, None  # the rows get new slots
        serving = self._serving()
        seq = self._database.seq()
        place = following(self._derived, self._database.number(GENERATION))
        parts = SegmentWriters(place, self._database, self._cache.runs)
        try:
            added, _ = self._append_rows(parts, seq)
            for model in self._embeddings.models():
                vectors = parts.vectors(model)
                for start in range(0, len(added), _BATCH_ROWS):
                    vectors.append(*self._cached(model, added[start : start + _BATCH_ROWS]))
                vectors.publish(seq)
                vectors.code_rest()
            parts.sync()
        except BaseException:
            shutil.rmtree(place.folder, ignore_errors=True)  # on a full disk, every byte counts
            raise
        finally:
            parts.close()
        self._database.set_fact(GENERATION, str(place.number))
        place = Generation(place.derived, place.number, serving.number if serving else None)
        place.serve()
        self._current = place  # not before: on a full disk the old one goes on serving
        place.sweep()
        self._database.purge(seq, tombstones=True)

    def use_model(self, name: str, dimension: int) -> None:
        serving = self._serving()
        if serving is None:
            serving = self._model(name, dimension)
            self._serve(serving)
        if serving.name != name:
            raise ModelMismatchError(
                f"the index has vectors of {serving.name}, not of {name}; "
                f"run `dowse reembed {name}` to change, or use --embedder {serving.name}"
            )
        if serving.dimension != dimension:
            raise ModelMismatchError(f"{name} gives {dimension} dimensions, the index has {serving.dimension}")
        self._filling, self._waiting = serving, {}

    def replace_model(self, name: str, dimension: int) -> None:
        """Fill the vectors of another model while the old ones serve; `serve_model` switches."""
        self._filling, self._waiting = self._model(name, dimension), {}

    def serve_model(self) -> None:
        """Switch to the model that was filled, and delete the others."""
        filling = self._need_model()
        self._serve(filling)
        for model in self._embeddings.models():
            if model.number != filling.number:
                self._embeddings.remove_model(model)

    def pending(self, limit: int) -> Sequence[Pending]:
        model = self._need_model()
        self._waiting = {}
        found: dict[str, Pending] = {}
        for batch in self._missing(model):
            for slot, row in batch:
                if row.content_hash not in found and len(found) >= limit:
                    continue
                self._waiting.setdefault(row.content_hash, []).append(slot)
                found.setdefault(row.content_hash, Pending(row.content_hash, embedded_text(row.chunk)))
            if len(found) >= limit:
                break
        return list(found.values())

    def pending_count(self) -> int:
        model = self._filling or self._serving()
        return len(self._without_vector(model)) if model else self._reader().living

    def put_vectors(self, content_hashes: Sequence[str], vectors: Matrix) -> None:
        model = self._need_model()
        check_vectors(vectors, len(content_hashes), model.dimension)
        self._embeddings.put(model, content_hashes, vectors)
        unasked = any(each not in self._waiting for each in content_hashes)
        slots, rows = [], []
        for number, each in enumerate(content_hashes):
            for slot in self._waiting.pop(each, ()):
                slots.append(slot)
                rows.append(number)
        self._append_vectors(model, np.array(slots, np.int64), vectors[rows])
        if unasked:  # chunks came or got new slots since `pending`
            self._fresh = None
            for _ in self._missing(model):  # the iteration fills them
                pass

    def close(self) -> None:
        try:
            self.publish()
            if self._current is None:
                return
            parts = self._open()
            for model in self._embeddings.models():
                parts.vectors(model)  # rows that a crashed writer left are merged and synced, too
            parts.merge()
            parts.sync()
            self._database.purge(parts.rows.state.seq, tombstones=False)
            self._cache.keep(parts)
            self._parts = None
        finally:
            self._close_parts()
            self._lock.close()

    def _catch_up(self) -> None:
        """Publish rows that a crashed writer left unpublished; rebuild missing or damaged segments."""
        try:
            self._current = current(self._derived)
            if self._current is not None:
                self._open()
                self._reader()
            elif self._database.fact(GENERATION) is not None:
                self.compact()
            self.publish()
        except CorruptIndexError:
            self.compact()

    def _open(self) -> SegmentWriters:
        if self._current is None:
            self.compact()
        if self._parts is None:
            self._parts = self._cache.open(cast(Generation, self._current), self._database)
        return self._parts

    def _close_parts(self) -> None:
        if self._parts is not None:
            self._parts.close()
            self._parts = None

    def _append_rows(self, parts: SegmentWriters, seq: int) -> tuple[list[tuple[int, str]], list[tuple[int, Row]]]:
        """Append the rows that the segments lack, and publish them.

        Return the slots and hashes of all, and the slots and rows of the last batch.
        """
        added: list[tuple[int, str]] = []
        latest: list[tuple[int, Row]] = []
        while rows := self._database.rows_after(parts.last_key, _BATCH_ROWS, seq):
            latest = list(enumerate(rows, parts.append(rows)))
            added += [(slot, row.content_hash) for slot, row in latest]
        parts.publish(seq)
        return added, latest

    def _serving(self) -> Model | None:
        number = self._current.model if self._current else None
        known = self._embeddings.models()
        oldest = known[0] if known else None  # it served if CURRENT is lost
        return next((model for model in known if model.number == number), oldest)

    def _serve(self, model: Model) -> None:
        parts = self._open()
        if not parts.vectors(model).rows:
            parts.vectors(model).publish(parts.rows.state.seq)
        place = Generation(self._derived, parts.place.number, model.number)
        place.serve()
        self._current = place

    def _need_model(self) -> Model:
        if self._filling is None:
            raise ValueError("call use_model before put_vectors")
        return self._filling

    def _missing(self, model: Model) -> Iterator[list[tuple[int, Row]]]:
        """Yield batches of slots and rows that lack a vector, after those that the cache fills."""
        parts = self._open()
        if self._fresh is not None and parts.vectors(model).rows + len(self._fresh) == parts.rows.state.rows:
            yield self._fresh  # a slot has one vector at most, so no other can lack one
            return
        missing, key_of = self._without_vector(model), self._reader().keys
        for start in range(0, len(missing), _BATCH_ROWS):
            slots = missing[start : start + _BATCH_ROWS]
            slot_of = dict(zip(key_of[slots].tolist(), slots.tolist(), strict=True))
            rows = [(slot_of[row.key], row) for row in self._database.rows(list(slot_of))]
            filled = self._fill_from_cache(model, [(slot, row.content_hash) for slot, row in rows])
            yield [(slot, row) for slot, row in rows if slot not in filled]

    def _without_vector(self, model: Model) -> Slots:
        """Return the living slots that have no vector of this model, in order."""
        covered = self._open().vectors(model).part.array("slots", "<u4")
        missing = self._reader().alive.copy()
        missing[covered] = False
        return np.flatnonzero(missing)

    def _model(self, name: str, dimension: int) -> Model:
        known = next((model for model in self._embeddings.models() if model.name == name), None)
        if known and known.dimension != dimension:
            raise ModelMismatchError(f"{name} gives {dimension} dimensions, the index has {known.dimension}")
        return known or self._embeddings.add_model(name, dimension)

    def _fill_from_cache(self, model: Model, added: Sequence[tuple[int, str]]) -> set[int]:
        """Append cached vectors for new chunks and return their slots: a renamed file embeds nothing."""
        slots, vectors = self._cached(model, added)
        self._append_vectors(model, slots, vectors)
        return set(slots.tolist())

    def _cached(self, model: Model, rows: Sequence[tuple[int, str]]) -> tuple[Slots, Matrix]:
        """Return the slots whose content has a vector in the database, and these vectors."""
        known = self._embeddings.get(model, [each for _, each in rows])
        found = [(slot, known[each]) for slot, each in rows if each in known]
        vectors = np.array([vector for _, vector in found], np.float32).reshape(-1, model.dimension)
        return np.array([slot for slot, _ in found], np.int64), vectors

    def _append_vectors(self, model: Model, slots: Slots, vectors: Matrix) -> None:
        if not len(slots):
            return
        parts = self._open()
        try:
            writer = parts.vectors(model)
            writer.append(slots, vectors)
            writer.publish(parts.rows.state.seq)
        except BaseException:
            self._close_parts()
            raise
        if self._fresh is not None:
            filled = set(slots.tolist())
            self._fresh = [(slot, row) for slot, row in self._fresh if slot not in filled]
