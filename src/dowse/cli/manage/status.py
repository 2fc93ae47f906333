"""`dowse status` and `dowse doctor`: an index enters, what it holds and whether it is sound leaves."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import click

from dowse.cli.session import Session, shared_options
from dowse.config import find_index
from dowse.errors import DowseError
from dowse.reports import Check, Status
from dowse.serve.wire.result import Exit

LOW_DISK_BYTES = 1024**3  # chosen: a compaction writes the derived parts a second time


@click.command()
@shared_options
def status(session: Session) -> int:
    """Say what the index holds and what is stale.

    \b
    dowse status
    dowse status --json
    dowse status --index ~/acme-index
    """
    with session.open_reader() as engine:
        found = engine.status()
    if session.as_json:
        from dowse.serve.wire.result import plain

        session.emit_json(plain(found))
    else:
        for line in _status_lines(found):
            session.emit(line)
        if found.pending:
            session.note("make the missing vectors with: dowse index")
    return Exit.HITS


def _status_lines(found: Status) -> list[str]:
    from dowse.serve.plain_text import clean_path, human_bytes, table

    model = f"{found.model} ({found.dimension} dimensions)" if found.model else "none: words only"
    covered = f"{found.vectors:,} of {found.chunks:,}"
    facts = [
        ("index", clean_path(found.path)),
        ("format", str(found.schema_version)),
        ("model", model),
        ("documents", f"{found.documents:,}"),
        ("chunks", f"{found.chunks:,}"),
        ("vectors", f"{covered}, {found.pending:,} to make" if found.pending else covered),
        ("size", human_bytes(found.size_bytes)),
        ("dead", f"{found.dead_chunks:,} chunks"),
    ]
    rows = [
        (
            clean_path(source.name),
            f"{source.documents:,}",
            f"{source.chunks:,}",
            f"{100 * source.embedded / source.chunks:.0f} %" if source.chunks else "-",
            f"{source.stale:,}",
            f"{source.missing:,}",
            f"{source.last_indexed:%Y-%m-%d %H:%M}Z" if source.last_indexed else "never",
            clean_path(source.root),
        )
        for source in found.sources
    ]
    head = ("source", "documents", "chunks", "embedded", "stale", "missing", "indexed", "folder")
    return [*table(facts), "", *table([head, *rows], right=(1, 2, 3, 4, 5))] if rows else table(facts)


@click.command()
@click.option("--verify", is_flag=True, help="Read everything: rows, checksums, agreement of all parts.")
@shared_options
def doctor(session: Session, verify: bool) -> int:
    """Check the installation and the index.

    \b
    dowse doctor
    dowse doctor --verify
    dowse doctor --json

    Exits with 1 when something fails.
    """
    checks = [*_installation(), *_index(session, deep=verify)]
    failed = any(check.state == "fail" for check in checks)
    if session.as_json:
        from dowse.serve.wire.result import plain

        session.emit_json({"ok": not failed, "checks": plain(checks)})
    else:
        from dowse.serve.plain_text import clean_line, table

        rows = [(check.state, check.name, clean_line(check.detail)) for check in checks]
        for line, check in zip(table(rows), checks, strict=True):
            session.emit(line)
            if check.fix:
                session.emit(f"      → {check.fix}")
    return Exit.NOTHING if failed else Exit.HITS


def _installation() -> Iterator[Check]:
    import sqlite3

    version = ".".join(map(str, sys.version_info[:3]))
    yield Check("python", "ok", f"{version}, SQLite {sqlite3.sqlite_version}")


def _index(session: Session, *, deep: bool) -> Iterator[Check]:
    place = session.config.index or find_index(session.cwd)
    if place is None:
        yield Check("index", "warn", f"none in {session.cwd} or above it", "dowse index .")
        return
    try:
        with session.open_reader(mend=False) as engine:
            yield Check("index", "ok", str(engine.path))
            yield from engine.verify(deep=deep)
    except DowseError as err:
        # The one place where an error of ours is a finding and not the end: a doctor reports what is broken.
        yield Check("index", "fail", f"{place}: {err}")
    if place.exists():
        yield _disk(place)


def _disk(place: Path) -> Check:
    from dowse.serve.plain_text import human_bytes

    free_bytes = shutil.disk_usage(place).free
    state: Literal["ok", "warn"] = "ok" if free_bytes >= LOW_DISK_BYTES else "warn"
    return Check("disk", state, f"{human_bytes(free_bytes)} free")
