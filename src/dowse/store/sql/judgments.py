"""What people said of hits: judgments go into the index's database and come out again, newest word winning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from dowse.store.sql.database import Database


@dataclass(frozen=True)
class Judgment:
    """How well a chunk answers a query; above 0 is right."""

    query: str
    target: str  # a chunk's id
    grade: float
    source_uri: str
    judged_at: datetime  # aware, UTC


class Judgments:
    """They change nothing that is searched, so they need no writer's lock, only a transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, judgments: Sequence[Judgment]) -> None:
        """A second judgment of the same pair replaces the first."""
        with self._database.transaction() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO judgments (query, target, grade, source_uri, judged_at) VALUES (?, ?, ?, ?, ?)",
                [(j.query, j.target, j.grade, j.source_uri, j.judged_at.isoformat()) for j in judgments],
            )

    def all(self) -> list[Judgment]:
        """By query, then target."""
        rows = self._database.query(
            "SELECT query, target, grade, source_uri, judged_at FROM judgments ORDER BY query, target"
        )
        return [
            Judgment(query, target, grade, uri, datetime.fromisoformat(at)) for query, target, grade, uri, at in rows
        ]

    def remove(self, query: str) -> int:
        """Forget what was said of one query; how many judgments that were."""
        with self._database.transaction() as connection:
            return connection.execute("DELETE FROM judgments WHERE query = ?", [query]).rowcount
