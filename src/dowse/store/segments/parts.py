"""Segment writers of a generation: chunks and vectors enter and are published.

A store keeps them open from one writer to the next: to open forty files takes half as long as to append to them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dowse.identity import id_number, searchable_text
from dowse.store.segments.arrays import PartWriter
from dowse.store.segments.columns import ColumnWriter
from dowse.store.segments.forward import ForwardWriter, TermCache
from dowse.store.segments.generation import Generation
from dowse.store.segments.inverted import InvertedWriter
from dowse.store.segments.vectors import VectorSegmentWriter
from dowse.store.sql.database import Database, Row
from dowse.store.sql.vector_cache import Model, RecentVectors

BASE, DEAD = "base", ("dead", "dead keys")  # facts: the change it was built at; chunks deleted since, sum of their keys


class SegmentWriters:
    """Writers of the part with one row a chunk, and of one part for the vectors of each model."""

    def __init__(self, place: Generation, database: Database, runs: TermCache) -> None:
        self.place = place
        self._database = database
        self.rows = PartWriter(place.rows)
        self._forward = ForwardWriter(self.rows, runs)
        self._columns = ColumnWriter(self.rows, database)
        self._inverted = InvertedWriter(self.rows)
        self._count = self.rows.state.rows
        self._vectors: dict[int, VectorSegmentWriter] = {}
        self.last_key = self.rows.last("keys", "<i8")

    def append(self, rows: Sequence[Row]) -> int:
        """Append chunks to all columns and indexes; return the slot of the first."""
        first = self._count
        self.rows.append("ids", np.array([id_number(row.id) for row in rows], "<u8"))
        self.rows.append("keys", np.array([row.key for row in rows], "<i8"))
        self._columns.append([row.chunk for row in rows], first)
        self._forward.append_texts([searchable_text(row.chunk) for row in rows])
        self._count += len(rows)
        self.last_key = rows[-1].key
        return first

    def publish(self, seq: int) -> None:
        self._inverted.catch_up(self._count)
        known = self.rows.state
        facts = {"documents": self._database.count_documents(known.facts.get("documents", 0), known.seq, seq)}
        if not known.files and BASE not in known.facts:
            facts[BASE] = seq
        base = facts.get(BASE, known.facts.get(BASE))
        if base is not None:  # none in a part of an earlier version
            facts |= dict(zip(DEAD, self._database.count_tombstones(int(base), seq), strict=True))
        self.rows.publish(self._count, seq, facts | self._columns.facts)

    def vectors(self, model: Model) -> VectorSegmentWriter:
        """Return the writer of a model's vectors, which are published apart."""
        found = self._vectors.get(model.number)
        if found is None:
            found = VectorSegmentWriter(PartWriter(self.place.vectors(model.number)), model.dimension)
            self._vectors[model.number] = found
        return found

    def merge(self) -> None:
        """Merge runs and code vectors that wait, so that readers search fewer pieces."""
        if self._inverted.merge():
            self.rows.publish(self._count, self.rows.state.seq)
        for each in self._vectors.values():
            each.code_rest()

    def sync(self) -> None:
        self.rows.sync()
        for each in self._vectors.values():
            each.part.sync()

    def still(self, place: Generation) -> bool:
        """Check that they are of this generation, and that no other writer has published since."""
        return self.place.number == place.number and all(part.still() for part in self._all())

    def close(self) -> None:
        for part in self._all():
            part.close()

    def _all(self) -> list[PartWriter]:
        return [self.rows, *(each.part for each in self._vectors.values())]


class WriterCache:
    """Cache of a store for its next writer: tokenized words, recent vectors and open segment writers."""

    def __init__(self) -> None:
        self.runs = TermCache()
        self.recent = RecentVectors()
        self._parts: SegmentWriters | None = None  # while no writer uses them

    def open(self, place: Generation, database: Database) -> SegmentWriters:
        """Return the cached segment writers if no other process has written since, else open them."""
        parts, self._parts = self._parts, None
        if parts is not None and parts.still(place):
            return parts
        if parts is not None:
            parts.close()
        return SegmentWriters(place, database, self.runs)

    def keep(self, parts: SegmentWriters) -> None:
        self.runs.trim()
        self._parts = parts

    def close(self) -> None:
        if self._parts is not None:
            self._parts.close()
            self._parts = None
