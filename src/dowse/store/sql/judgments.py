"""Judgments of results in SQLite: a later judgment of the same pair replaces the earlier one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from dowse.store.sql.database import Database


class Judgment(msgspec.Struct, frozen=True):
    """Grade of a chunk for a query; above 0 is relevant."""

    query: str
    target: str  # a chunk's id
    grade: float
    source_uri: str
    judged_at: datetime  # aware, UTC


class Judgments:
    """Table of judgments. Nothing searchable changes, so a transaction without the writer's lock is enough."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, judgments: Sequence[Judgment]) -> None:
        """Store judgments; a second one of the same pair replaces the first."""
        with self._database.transaction() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO judgments (query, target, grade, source_uri, judged_at) VALUES (?, ?, ?, ?, ?)",
                [(j.query, j.target, j.grade, j.source_uri, j.judged_at.isoformat()) for j in judgments],
            )

    def all(self) -> list[Judgment]:
        """Return all judgments by query, then target."""
        rows = self._database.query(
            "SELECT query, target, grade, source_uri, judged_at FROM judgments ORDER BY query, target"
        )
        return [
            Judgment(query, target, grade, uri, datetime.fromisoformat(at)) for query, target, grade, uri, at in rows
        ]

    def remove(self, query: str) -> int:
        """Delete the judgments of one query; return how many there were."""
        with self._database.transaction() as connection:
            return connection.execute("DELETE FROM judgments WHERE query = ?", [query]).rowcount
