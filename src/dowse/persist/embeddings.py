"""The vector cache in SQLite: vectors go in by model and content hash, and serve every chunk with that content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from dowse.persist.database import Database
from dowse.persist.sqlite_rows import batches

if TYPE_CHECKING:
    from dowse.ports import Matrix, Vector

_IN_LIMIT = 500


@dataclass(frozen=True)
class Model:
    """A model that the index has vectors of."""

    number: int
    name: str
    dimension: int


class Embeddings:
    """Made anew for every writer, and for every look of a reader: the models are read once."""

    def __init__(self, database: Database) -> None:
        self._database = database
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
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM embeddings WHERE model = ?", [model.number])
            connection.execute("DELETE FROM models WHERE number = ?", [model.number])
        self._models = None

    def put(self, model: Model, content_hashes: Sequence[str], vectors: Matrix) -> None:
        data, size = vectors.astype("<f4", copy=False).tobytes(), 4 * model.dimension
        blobs = [data[start : start + size] for start in range(0, len(data), size)]
        with self._database.transaction() as connection:
            connection.executemany(
                "INSERT OR IGNORE INTO embeddings (model, content_hash, crc, vector) VALUES (?, ?, ?, ?)",
                [
                    (model.number, bytes.fromhex(each), crc32(blob), blob)
                    for each, blob in zip(content_hashes, blobs, strict=True)
                ],
            )

    def get(self, model: Model, content_hashes: Sequence[str]) -> dict[str, Vector]:
        found: dict[str, Vector] = {}
        for part in batches(sorted(set(content_hashes)), _IN_LIMIT):
            wanted = ",".join(["(?)"] * len(part))  # two thirds of the time of IN, which makes a table of its own
            rows = self._database.query(
                f"WITH wanted(hash) AS (VALUES {wanted}) SELECT content_hash, vector"
                " FROM wanted CROSS JOIN embeddings ON model = ? AND content_hash = hash",
                [*(bytes.fromhex(each) for each in part), model.number],
            )
            found.update((row[0].hex(), np.frombuffer(row[1], "<f4")) for row in rows)
        return found
