"""The derived parts of a generation, open for appending: chunks and vectors go in, and are published.

A store keeps them open from one writer to the next: opening their forty files takes half as long as appending to them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dowse.identity import id_number, searchable_text
from dowse.store.files import Mark
from dowse.store.segments.arrays import PartWriter
from dowse.store.segments.columns import ColumnWriter
from dowse.store.segments.forward import ForwardWriter, Runs
from dowse.store.segments.generation import Generation
from dowse.store.segments.inverted import InvertedWriter
from dowse.store.segments.state import PartState
from dowse.store.segments.vectors import VectorWriter
from dowse.store.sql.database import Database
from dowse.store.sql.recent_rows import Row
from dowse.store.sql.vector_cache import Model, Recent


class Parts:
    """The part that holds one row a chunk, and one for the vectors of each model."""

    def __init__(self, place: Generation, database: Database, runs: Runs) -> None:
        self._place = place
        self._database = database
        self.rows = PartWriter(place.rows)
        self._forward = ForwardWriter(self.rows, runs)
        self._columns = ColumnWriter(self.rows, database)
        self._inverted = InvertedWriter(self.rows)
        self._count = self.rows.state.rows
        self._vectors: dict[int, VectorWriter] = {}
        self.last_key = self.rows.last("keys", "<i8")

    def append(self, rows: Sequence[Row]) -> int:
        """Derive chunks; return the slot of the first."""
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
        documents = self._database.count_documents(known.facts.get("documents", 0), known.seq, seq)
        self.rows.publish(self._count, seq, {"documents": documents})

    def vectors(self, model: Model) -> VectorWriter:
        """Those of a model, which come and are published by themselves."""
        found = self._vectors.get(model.number)
        if found is None:
            found = VectorWriter(PartWriter(self._place.vectors(model.number)), model.dimension)
            self._vectors[model.number] = found
        return found

    def settle(self) -> None:
        """What readers find in many pieces, they find in few from now on."""
        if self._inverted.settle():
            self.rows.publish(self._count, self.rows.state.seq)
        for each in self._vectors.values():
            each.settle()

    def sync(self) -> None:
        self.rows.sync()
        for each in self._vectors.values():
            each.part.sync()

    def published(self) -> list[tuple[Mark, PartState]]:
        """What was published last, and the mark of it. A reader may ask while a writer writes."""
        return [known for part in self._all() if (known := part.published) is not None]

    def still(self, place: Generation) -> bool:
        """Whether they are those of this generation, and no one has published in them since."""
        return self._place.number == place.number and all(part.still() for part in self._all())

    def rest(self) -> None:
        """Until the next writer, not much memory is held."""
        self._columns.rest()

    def close(self) -> None:
        for part in self._all():
            part.close()

    def _all(self) -> list[PartWriter]:
        return [self.rows, *(each.part for each in list(self._vectors.values()))]


class Shelf:
    """What a store keeps for its next writer: the words that were seen, and the parts where the last one left them."""

    def __init__(self) -> None:
        self.runs = Runs()
        self.recent = Recent()
        self._parts: Parts | None = None  # those that were taken last
        self._left = False  # whether they are here

    def take(self, place: Generation, database: Database) -> Parts:
        """Those that were left, if no other process has written since; or else opened anew."""
        parts = self._parts
        if parts is None or not self._left or not parts.still(place):
            self.close()
            parts = self._parts = Parts(place, database, self.runs)
        self._left = False
        return parts

    def leave(self, parts: Parts) -> None:
        parts.rest()
        self.runs.rest()
        self._parts, self._left = parts, True

    def published(self, mark: Mark | None) -> PartState | None:
        """The state that has this mark, if this process wrote it: it need not be read."""
        parts = self._parts
        known = parts.published() if parts is not None else ()
        return next((state for own, state in known if own == mark), None)

    def close(self) -> None:
        if self._parts is not None and self._left:
            self._parts.close()
        self._parts, self._left = None, False
