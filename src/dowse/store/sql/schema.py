"""What an index says about itself: its schema version. A mismatch is an error, never a guess."""

from __future__ import annotations

from pathlib import Path

from dowse.errors import SchemaVersionError

SCHEMA_VERSION = 3
OLDEST_VERSION = 2  # that is brought up to date by the first who may write
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
        advice = "run `dowse index` to bring it up to date"
    else:
        advice = "index its sources again into a new folder"
    raise SchemaVersionError(f"{where} has schema {found}, this Dowse has {SCHEMA_VERSION}; {advice}")
