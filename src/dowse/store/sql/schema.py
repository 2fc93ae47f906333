"""Schema version of an index, and the upgrade of older ones. An unknown version is an error."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from dowse.errors import SchemaVersionError

SCHEMA_VERSION = 3
OLDEST_VERSION = 2  # that the first writer upgrades
DATABASE = "dowse.db"
LOCK = "write.lock"
DERIVED = "derived"
CURRENT = "CURRENT"  # in DERIVED: which generation and which model serve


def check_version(found: str | None, where: Path) -> None:
    if found == str(SCHEMA_VERSION):
        return
    if found is None or not found.isdigit():
        raise SchemaVersionError(f"{where} is not a Dowse index; give another place with --index")
    if int(found) > SCHEMA_VERSION:
        advice = "install a newer Dowse"
    elif int(found) >= OLDEST_VERSION:
        advice = "run `dowse index` to upgrade it"
    else:
        advice = "index its sources again into a new folder"
    raise SchemaVersionError(f"{where} has schema {found}, this Dowse has {SCHEMA_VERSION}; {advice}")


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
    """Upgrade inside a transaction: another process may have done it in the meantime."""
    found = int(connection.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchone()[0])
    for version in range(found, SCHEMA_VERSION):
        for statement in _STEPS[version]:
            connection.execute(statement)
    connection.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", [str(SCHEMA_VERSION)])
