"""An index of an earlier schema goes in; it comes out as one of this schema, with all that it holds."""

from __future__ import annotations

import sqlite3

from dowse.store.sql.schema import OLDEST_VERSION, SCHEMA_VERSION

_STEPS = {
    2: (
        "CREATE TABLE embedded (model INTEGER NOT NULL, content_hash BLOB NOT NULL, number INTEGER NOT NULL,"
        " PRIMARY KEY (model, content_hash)) WITHOUT ROWID",
        "INSERT INTO embedded SELECT model, content_hash, number FROM embeddings ORDER BY model, content_hash",
        "DROP INDEX embeddings_by_hash",
        "INSERT INTO meta SELECT 'embedded', ifnull(max(number), 0) FROM embeddings",
    ),
}


def upgradable(version: str | None) -> bool:
    return version is not None and version.isdigit() and OLDEST_VERSION <= int(version) < SCHEMA_VERSION


def upgrade(connection: sqlite3.Connection) -> None:
    """Inside a transaction: another process may have done it since this one looked."""
    found = int(connection.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()[0])
    for version in range(found, SCHEMA_VERSION):
        for statement in _STEPS[version]:
            connection.execute(statement)
    connection.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", [str(SCHEMA_VERSION)])
