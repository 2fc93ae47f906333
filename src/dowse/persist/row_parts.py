"""The derived parts that hold one row a chunk, open for appending: rows go in, and are published together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dowse.identity import id_number, searchable_text
from dowse.persist.arrays import PartWriter
from dowse.persist.columns import ColumnWriter
from dowse.persist.database import Database
from dowse.persist.forward import ForwardWriter, Runs
from dowse.persist.generation import Generation
from dowse.persist.inverted import InvertedWriter
from dowse.persist.latest import Row


class Parts:
    """The parts that hold one row a chunk, open for appending."""

    def __init__(self, place: Generation, database: Database, runs: Runs) -> None:
        self._database = database
        self.rows = PartWriter(place.rows)
        self._forward = ForwardWriter(self.rows, runs)
        self._columns = ColumnWriter(self.rows, database)
        self._inverted = InvertedWriter(self.rows)
        self._count = self.rows.state.rows
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

    def settle(self) -> None:
        """What readers find in many pieces, they find in few from now on."""
        if self._inverted.settle():
            self.rows.publish(self._count, self.rows.state.seq)

    def sync(self) -> None:
        self.rows.sync()

    def close(self) -> None:
        self.rows.close()
