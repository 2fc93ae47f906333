"""Writer of the embedded store: documents become durable, then searchable; vectors follow."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import numpy as np

from dowse.errors import CorruptIndexError, ModelMismatchError
from dowse.identity import embedded_text
from dowse.ports import Matrix, Pending
from dowse.store.lock import WriterLock
from dowse.store.segments.arrays import PartReader, PartWriter
from dowse.store.segments.forward import Slots
from dowse.store.segments.generation import GENERATION, Generation, current, following
from dowse.store.segments.parts import SegmentWriters, WriterCache
from dowse.store.segments.state import STATE
from dowse.store.segments.vectors import VectorReader, VectorSegmentWriter, check_vectors
from dowse.store.snapshot import Snapshot
from dowse.store.sql import links
from dowse.store.sql.database import Database
from dowse.store.sql.recent_rows import MOST_RECENT_ROWS, Row
from dowse.store.sql.services import read_facts, replace_graph
from dowse.store.sql.vector_cache import Model, VectorCache
from dowse.types import Document, Edge, Service, ServiceEdge, ServiceFact, Source

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
        self._seq: int | None = None  # the last change, if this writer made it: no other can make one after it
        self._current: Generation | None = None  # none but this writer changes it while it holds the lock
        self._catch_up()

    # --- database -----------------------------------------------------------------------------------

    def add_source(self, source: Source) -> None:
        self._database.add_source(source)

    def remove_source(self, name: str) -> None:
        self._database.remove_source(name)

    def put(self, documents: Sequence[Document]) -> None:
        self._seq = self._database.put(documents)

    def remove(self, document_ids: Collection[str]) -> int:
        self._seq = None
        return self._database.remove(document_ids)

    def put_services(self, services: Sequence[Service], edges: Sequence[ServiceEdge]) -> None:
        replace_graph(self._database, services, edges)

    def service_facts(self) -> Sequence[ServiceFact] | None:
        return read_facts(self._database)

    def put_edges(self, maker: str, edges: Mapping[str, Sequence[Edge]]) -> None:
        links.put_edges(self._database, maker, edges)

    def unlinked(self, maker: str) -> Sequence[str]:
        return links.unlinked(self._database, maker)

    def renamed(self) -> Sequence[tuple[str, str]]:
        return links.renamed(self._database)

    def relink(self, maker: str, document_ids: Collection[str]) -> None:
        links.relink(self._database, maker, document_ids)

    # --- words --------------------------------------------------------------------------------------

    def publish(self) -> None:
        seq = self._database.seq() if self._seq is None else self._seq
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
        latest: list[tuple[int, Row]] = []
        try:
            added = self._append_rows(parts, seq, latest)
        except BaseException:
            self._close_parts()  # rows appended but not published are cut off when the segments are opened again
            raise
        models = self._embeddings.models()
        filled = {slot for model in models for slot in self._fill_from_cache(model, added)}
        if len(models) == 1 and len(latest) == len(added):
            self._fresh = [(slot, row) for slot, row in latest if slot not in filled]
        dead = self._database.query("SELECT count(*) FROM tombstones")[0][0]
        if dead > max(_DEAD_LEAST, _DEAD_SHARE * parts.rows.state.rows):
            self.compact()

    def compact(self) -> None:
        """Build a new generation from the database. The old one serves until the new one is complete."""
        self._close_parts()
        self._waiting, self._fresh = {}, None  # the rows get new slots
        serving = self._serving_number()
        seq = self._database.seq()
        place = following(self._derived, int(self._database.fact(GENERATION) or 0))
        parts = SegmentWriters(place, self._database, self._cache.runs)
        try:
            added = self._append_rows(parts, seq)
            for model in self._embeddings.models():
                self._rebuild_vectors(place, model, added, seq)
            parts.sync()
            parts.close()
        except BaseException:
            parts.close()
            shutil.rmtree(place.folder, ignore_errors=True)  # on a full disk, every byte counts
            raise
        self._database.set_fact(GENERATION, str(place.number))
        place = Generation(place.derived, place.number, serving)
        place.serve()
        self._current = place  # not before: on a full disk the old one goes on serving
        place.sweep()
        self._database.purge(seq, tombstones=True)

    # --- vectors ------------------------------------------------------------------------------------

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
        self._fill_with(serving)

    def replace_model(self, name: str, dimension: int) -> None:
        """Fill the vectors of another model while the old ones serve; `serve_model` switches."""
        self._fill_with(self._model(name, dimension))

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
        return len(self._reader().without_vector(self._vector_reader(model) if model else None))

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
                if self._vectors_folder(model):
                    parts.vectors(model)  # rows that a crashed writer left are merged and synced, too
            parts.merge()
            parts.sync()
            self._database.purge(parts.rows.state.seq, tombstones=False)
            self._cache.keep(parts)
            self._parts = None
        finally:
            self._close_parts()
            self._lock.close()

    # --- parts --------------------------------------------------------------------------------------

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
        if self._parts is None:
            self._parts = self._cache.open(self._place(), self._database)
        return self._parts

    def _place(self) -> Generation:
        if self._current is None:
            self.compact()
        return cast(Generation, self._current)

    def _close_parts(self) -> None:
        if self._parts is not None:
            self._parts.close()
            self._parts = None

    def _append_rows(
        self, parts: SegmentWriters, seq: int, latest: list[tuple[int, Row]] | None = None
    ) -> list[tuple[int, str]]:
        """Append the rows that the segments lack, and publish them. Return their slots and hashes; `latest` gets the
        first of the rows themselves.
        """
        added: list[tuple[int, str]] = []
        while rows := self._database.rows_after(parts.last_key, _BATCH_ROWS, seq):
            first = parts.append(rows)
            added += [(slot, row.content_hash) for slot, row in enumerate(rows, first)]
            if latest is not None and len(latest) < MOST_RECENT_ROWS:
                latest += enumerate(rows, first)
        parts.publish(seq)
        return added

    # --- vectors, inside ----------------------------------------------------------------------------

    def _serving_number(self) -> int | None:
        serving = self._current.model if self._current else None
        known = self._embeddings.models()
        if any(model.number == serving for model in known):
            return serving
        return known[0].number if known else None  # CURRENT is lost: the oldest model served

    def _serving(self) -> Model | None:
        number = self._serving_number()
        return next((model for model in self._embeddings.models() if model.number == number), None)

    def _serve(self, model: Model) -> None:
        place = self._place()
        if self._vector_reader(model) is None:
            part = PartWriter(place.vectors(model.number))
            part.publish(0, self._open().rows.state.seq)
            part.close()
        place = Generation(place.derived, place.number, model.number)
        place.serve()
        self._current = place

    def _need_model(self) -> Model:
        if self._filling is None:
            raise ValueError("use_model comes first")
        return self._filling

    def _fill_with(self, model: Model) -> None:
        self._filling = model
        self._waiting = {}

    def _missing(self, model: Model) -> Iterator[list[tuple[int, Row]]]:
        """Yield batches of slots and rows that lack a vector, after those that the cache fills."""
        parts = self._open()
        if self._fresh is not None and parts.vectors(model).rows + len(self._fresh) == parts.rows.state.rows:
            yield self._fresh  # a slot has one vector at most, so no other can lack one
            return
        snapshot = self._reader()
        missing = snapshot.without_vector(self._vector_reader(model))
        for start in range(0, len(missing), _BATCH_ROWS):
            slots = missing[start : start + _BATCH_ROWS].tolist()
            keys = snapshot.keys[slots].tolist()
            slot_of = dict(zip(keys, slots, strict=True))
            yield self._fill(model, [(slot_of[row.key], row) for row in self._database.rows(keys)])

    def _model(self, name: str, dimension: int) -> Model:
        known = next((model for model in self._embeddings.models() if model.name == name), None)
        if known and known.dimension != dimension:
            raise ModelMismatchError(f"{name} gives {dimension} dimensions, the index has {known.dimension}")
        return known or self._embeddings.add_model(name, dimension)

    def _vectors_folder(self, model: Model) -> Path | None:
        """Return the folder of its vectors; None while there are none."""
        folder = self._place().vectors(model.number)
        return folder if os.path.exists(f"{folder}/{STATE}") else None

    def _vector_reader(self, model: Model) -> VectorReader | None:
        folder = self._vectors_folder(model)
        return VectorReader(PartReader(folder), model.dimension) if folder else None

    def _fill_from_cache(self, model: Model, added: Sequence[tuple[int, str]]) -> list[int]:
        """Append cached vectors for new chunks and return their slots: a renamed file embeds nothing."""
        known = self._embeddings.get(model, [each for _, each in added])
        rows = [(slot, known[each]) for slot, each in added if each in known]
        if rows:
            self._append_vectors(model, np.array([slot for slot, _ in rows], np.int64), np.stack([v for _, v in rows]))
        return [slot for slot, _ in rows]

    def _fill(self, model: Model, rows: Sequence[tuple[int, Row]]) -> list[tuple[int, Row]]:
        """Fill rows from the cache; return the rest."""
        filled = set(self._fill_from_cache(model, [(slot, row.content_hash) for slot, row in rows]))
        return [(slot, row) for slot, row in rows if slot not in filled]

    def _rebuild_vectors(self, place: Generation, model: Model, added: Sequence[tuple[int, str]], seq: int) -> None:
        part = PartWriter(place.vectors(model.number))
        writer = VectorSegmentWriter(part, model.dimension)
        for start in range(0, len(added), _BATCH_ROWS):
            batch = added[start : start + _BATCH_ROWS]
            known = self._embeddings.get(model, [each for _, each in batch])
            found = [(slot, known[each]) for slot, each in batch if each in known]
            if found:
                slots = np.array([slot for slot, _ in found], np.int64)
                writer.append(slots, np.stack([vector for _, vector in found]))
        writer.publish(seq)
        writer.code_rest()
        part.sync()
        part.close()

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
