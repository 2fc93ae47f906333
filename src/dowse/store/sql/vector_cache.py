"""The vector cache in SQLite: vectors go in by model and content hash, and serve every chunk with that content."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from dowse.store.sql.codec import batches, marks
from dowse.store.sql.database import Database

if TYPE_CHECKING:
    from dowse.ports import Matrix, Vector

_IN_LIMIT = 500
_MOST_RECENT = 2048  # chosen: sorted, so many change two fifths of the pages that they would one by one, of 100,000
_SETTLED = "embedded"  # in the table of facts: the last number that the table of hashes knows


@dataclass(frozen=True)
class Model:
    """A model that the index has vectors of."""

    number: int
    name: str
    dimension: int


class Recent:
    """Where the last vectors are, by model and hash, until the table of hashes has them.

    A store keeps it from one writer to the next; what another process wrote in between is read again.
    """

    def __init__(self) -> None:
        self.up_to = (-1, -1)  # the last number that the table of hashes knows, and the last of all
        self.numbers: dict[tuple[int, bytes], int] = {}


class Embeddings:
    """Made anew for every writer, and for every look of a reader: the models are read once."""

    def __init__(self, database: Database, recent: Recent | None = None) -> None:
        self._database = database
        self._recent = Recent() if recent is None else recent
        self._models: list[Model] | None = None

    def models(self) -> list[Model]:
        if self._models is None:
            rows = self._database.query("SELECT number, name, dimension FROM models ORDER BY number")
            self._models = [Model(*row) for row in rows]
        return self._models

    def add_model(self, name: str, dimension: int) -> Model:
        with self._database.transaction() as connection:
            connection.execute("INSERT INTO models (name, dimension) VALUES (?, ?)", [name, dimension])
        self._models = None
        return next(model for model in self.models() if model.name == name)

    def remove_model(self, model: Model) -> None:
        recent = self._look()
        with self._database.transaction() as connection:
            # So that no number is used twice, and whoever remembers some of its vectors looks again.
            _file_hashes(connection, recent.numbers, recent.up_to[1])
            for table in ("embeddings", "embedded"):
                connection.execute(f"DELETE FROM {table} WHERE model = ?", [model.number])
            connection.execute("DELETE FROM models WHERE number = ?", [model.number])
        self._models = None

    def put(self, model: Model, content_hashes: Sequence[str], vectors: Matrix) -> None:
        """Of two vectors for one content, the first counts once their hashes are filed; until then either may."""
        data, size = vectors.astype("<f4", copy=False).tobytes(), 4 * model.dimension
        blobs = [data[start : start + size] for start in range(0, len(data), size)]
        recent = self._look()
        settled, last = recent.up_to
        keys = [(model.number, bytes.fromhex(each)) for each in content_hashes]
        rows = list(zip(range(last + 1, last + 1 + len(keys)), keys, blobs, strict=True))
        numbers = {key: number for number, key, _ in reversed(rows)} | recent.numbers
        with self._database.transaction() as connection:
            connection.executemany(
                "INSERT INTO embeddings (number, model, content_hash, crc, vector) VALUES (?, ?, ?, ?, ?)",
                [(number, *key, crc32(blob), blob) for number, key, blob in rows],
            )
            last += len(rows)
            if len(numbers) > _MOST_RECENT:
                _file_hashes(connection, numbers, last)
                settled, numbers = last, {}
        recent.up_to, recent.numbers = (settled, last), numbers

    def get(self, model: Model, content_hashes: Sequence[str]) -> dict[str, Vector]:
        recent, hashes = self._look().numbers, sorted({bytes.fromhex(each) for each in content_hashes})
        numbers = [recent[model.number, each] for each in hashes if (model.number, each) in recent]
        others = [each for each in hashes if (model.number, each) not in recent]
        found: dict[str, Vector] = {}
        for part in batches(numbers, _IN_LIMIT):
            found |= self._vectors(f"embeddings WHERE number IN ({marks(part)})", part)
        for part in batches(others, _IN_LIMIT):
            # Two thirds of the time of IN, which makes a table of its own.
            wanted = f"(WITH wanted(hash) AS (VALUES {','.join(['(?)'] * len(part))}) SELECT number FROM wanted"
            known = f"{wanted} CROSS JOIN embedded ON model = ? AND content_hash = hash)"
            found |= self._vectors(f"{known} JOIN embeddings USING (number)", [*part, model.number])
        return found

    def _vectors(self, rows: str, parameters: Sequence[object]) -> dict[str, Vector]:
        found = self._database.query(f"SELECT content_hash, vector FROM {rows}", parameters)
        return {row[0].hex(): np.frombuffer(row[1], "<f4") for row in found}

    def _look(self) -> Recent:
        """What was written last, up to date."""
        recent = self._recent
        settled, last = self._database.query(
            "SELECT ifnull((SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?), 0),"
            " ifnull((SELECT max(number) FROM embeddings), 0)",
            [_SETTLED],
        )[0]
        up_to = (settled, max(settled, last))  # those of a model that was removed had the last ones
        if recent.up_to != up_to:
            rows = self._database.query(
                "SELECT model, content_hash, number FROM embeddings WHERE number > ? ORDER BY number DESC", [settled]
            )
            recent.numbers = {(model, each): number for model, each, number in rows}
            recent.up_to = up_to
        return recent


def _file_hashes(connection: sqlite3.Connection, numbers: Mapping[tuple[int, bytes], int], last: int) -> None:
    """Sorted, so that a page of the table is looked up once for all that go there. It goes up to `last` then."""
    known = sorted((*key, number) for key, number in numbers.items())
    connection.executemany("INSERT OR IGNORE INTO embedded VALUES (?, ?, ?)", known)
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", [_SETTLED, str(last)])
