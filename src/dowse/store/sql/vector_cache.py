"""Vector cache in SQLite: vectors enter by model and content hash, and serve every chunk with that content."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from zlib import crc32

import msgspec
import numpy as np

from dowse.store.sql.codec import batches, marks
from dowse.store.sql.database import Database

if TYPE_CHECKING:
    from dowse.ports import Matrix, Vector

_MOST_RECENT = 2048  # chosen: sorted, so many change two fifths of the pages that single ones would, of 100,000
_FILED = "embedded"  # fact: the last number in the table of hashes


class Model(msgspec.Struct, frozen=True):
    """Model with vectors in the index."""

    number: int
    name: str
    dimension: int


class RecentVectors:
    """Numbers of the last vectors by model and hash, until the table of hashes has them.

    A store keeps it from one writer to the next, and reads the vectors of other processes again.
    """

    def __init__(self) -> None:
        self.up_to = (-1, -1)  # the last number in the table of hashes, and the last of all
        self.numbers: dict[tuple[int, bytes], int] = {}


class VectorCache:
    """Cache of vectors, one object a writer or reader: it reads the models once."""

    def __init__(self, database: Database, recent: RecentVectors | None = None) -> None:
        self._database = database
        self._recent = RecentVectors() if recent is None else recent
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
            # So that no number is used twice, and other processes read their recent vectors again.
            _file_hashes(connection, recent.numbers, recent.up_to[1])
            for table in ("embeddings", "embedded"):
                connection.execute(f"DELETE FROM {table} WHERE model = ?", [model.number])
            connection.execute("DELETE FROM models WHERE number = ?", [model.number])
        self._models = None

    def put(self, model: Model, content_hashes: Sequence[str], vectors: Matrix) -> None:
        """Store vectors. Of two for one content the first counts once its hash is filed, until then either."""
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
        for part in batches(numbers):
            found |= self._vectors(marks(part), part)
        for part in batches(others):
            filed = f"SELECT number FROM embedded WHERE model = ? AND content_hash IN ({marks(part)})"
            found |= self._vectors(filed, [model.number, *part])
        return found

    def _vectors(self, numbers: str, parameters: Sequence[object]) -> dict[str, Vector]:
        """Return vectors. A damaged one counts as missing, so that its text is embedded again."""
        sql = f"SELECT content_hash, vector, crc FROM embeddings WHERE number IN ({numbers})"
        found = self._database.query(sql, parameters)
        return {each.hex(): np.frombuffer(vector, "<f4") for each, vector, crc in found if crc32(vector) == crc}

    def _look(self) -> RecentVectors:
        """Return the recent vectors, up to date."""
        recent = self._recent
        settled, last = self._database.query(
            "SELECT ifnull((SELECT CAST(value AS INTEGER) FROM meta WHERE key = ?), 0),"
            " ifnull((SELECT max(number) FROM embeddings), 0)",
            [_FILED],
        )[0]
        up_to = (settled, max(settled, last))  # a removed model had the last ones
        if recent.up_to != up_to:
            rows = self._database.query(
                "SELECT model, content_hash, number FROM embeddings WHERE number > ? ORDER BY number DESC", [settled]
            )
            recent.numbers = {(model, each): number for model, each, number in rows}
            recent.up_to = up_to
        return recent


def _file_hashes(connection: sqlite3.Connection, numbers: Mapping[tuple[int, bytes], int], last: int) -> None:
    """Write hashes up to `last` into their table, sorted, so that SQLite looks up each page once."""
    known = sorted((*key, number) for key, number in numbers.items())
    connection.executemany("INSERT OR IGNORE INTO embedded VALUES (?, ?, ?)", known)
    connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", [_FILED, str(last)])
