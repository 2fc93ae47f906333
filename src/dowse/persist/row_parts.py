"""The derived parts that hold one row a chunk, open for appending: rows go in, and are published together."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from dowse.errors import CorruptIndexError
from dowse.identity import id_number, searchable_text
from dowse.persist.arrays import PartReader, PartWriter, storing
from dowse.persist.columns import ColumnWriter
from dowse.persist.database import Database, Row
from dowse.persist.forward import ForwardWriter
from dowse.persist.generation import Generation
from dowse.persist.words import WordsWriter
from dowse.text import Tokenizer


class Intent(msgspec.Struct, frozen=True):
    """Written before tantivy commits: what it will hold when the rows are published."""

    seq: int
    rows: int


class Parts:
    """The parts that hold one row a chunk, open for appending."""

    def __init__(self, place: Generation, database: Database) -> None:
        self._place = place
        self._database = database
        self.rows = PartWriter(place.rows)
        self._forward = ForwardWriter(self.rows)
        self._columns = ColumnWriter(self.rows, database)
        self._words = WordsWriter(place.words)
        self._count = self.rows.state.rows
        self._ahead = 0  # chunks that tantivy has and the rows have not
        keys = PartReader(place.rows, self.rows.state).array("keys", "<i8")
        self.last_key = int(keys[-1]) if len(keys) else 0

    def check(self, seq: int) -> None:
        """tantivy and the rows agree, or differ by exactly one publication that was cut short."""
        self._ahead = self._words.rows() - self._count
        if self._ahead and not (self._ahead > 0 and self._intent() == Intent(seq, self._count + self._ahead)):
            raise CorruptIndexError(f"{self._place.words} and its rows disagree; run `dowse rebuild`")

    def append(self, rows: Sequence[Row], tokenizer: Tokenizer) -> int:
        """Derive chunks; return the slot of the first."""
        first = self._count
        terms = [tokenizer(searchable_text(row.chunk)) for row in rows]
        self.rows.append("ids", np.array([id_number(row.id) for row in rows], "<u8"))
        self.rows.append("keys", np.array([row.key for row in rows], "<i8"))
        tags = self._columns.append([row.chunk for row in rows], first)
        self._forward.append(terms)
        skip = min(self._ahead, len(rows))
        self._ahead -= skip
        self._words.append(first + skip, terms[skip:], tags[skip:])
        self._count += len(rows)
        self.last_key = rows[-1].key
        return first

    def publish(self, seq: int) -> None:
        """Words first: readers take what the rows' state says, and by then it is there."""
        if self._count > self.rows.state.rows:
            with storing(self._place.words):
                (self._place.folder / "intent.json").write_bytes(msgspec.json.encode(Intent(seq, self._count)))
            self._words.commit()
        elif not self.rows.state.files:
            self._words.commit()
        documents = self._database.query("SELECT count(*) FROM documents")[0][0]
        self.rows.publish(self._count, seq, {"documents": documents})

    def abandon(self) -> None:
        self.rows.close()
        self._words.abandon()

    def close(self) -> None:
        self.rows.close()
        self._words.close()

    def _intent(self) -> Intent | None:
        try:
            return msgspec.json.decode((self._place.folder / "intent.json").read_bytes(), type=Intent)
        except (FileNotFoundError, msgspec.DecodeError):
            return None
