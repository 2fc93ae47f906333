"""What an index says about itself: its schema version. A mismatch is an error, never a guess."""

from __future__ import annotations

from pathlib import Path

from dowse.errors import SchemaVersionError

SCHEMA_VERSION = 2
DATABASE = "dowse.db"
LOCK = "write.lock"
DERIVED = "derived"
CURRENT = "CURRENT"  # in DERIVED: which generation and which model serve


def check_version(found: str | None, where: Path) -> None:
    if found == str(SCHEMA_VERSION):
        return
    if found is None or not found.isdigit():
        raise SchemaVersionError(f"{where} is not a Dowse index; give another place with --index")
    older = int(found) < SCHEMA_VERSION
    advice = "index its sources again into a new folder" if older else "install a newer Dowse"
    raise SchemaVersionError(f"{where} has schema {found}, this Dowse has {SCHEMA_VERSION}; {advice}")
