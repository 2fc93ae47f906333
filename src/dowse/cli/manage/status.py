"""`dowse status` and `dowse doctor`: an index enters; its contents and the results of checks leave."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import click

from dowse.cli.options import option
from dowse.cli.session import CommandSession, SessionCommand
from dowse.config import find_index
from dowse.errors import DowseError
from dowse.reports import Check, Status
from dowse.serve.plain_text import clean_line, clean_path, human_bytes, table
from dowse.serve.wire.result import Exit, plain

LOW_DISK_BYTES = 1024**3  # chosen: a compaction writes the derived parts a second time


@click.command(cls=SessionCommand)
def status(session: CommandSession) -> int:
    """Show the contents of the index and its stale files.

    \b
    dowse status
    dowse status --json
    dowse status --index ~/acme-index
    """
    with session.open_reader() as engine:
        found = engine.status()
    session.answer(plain(found), *_status_lines(found))
    if found.pending:
        session.note(f"Compute the missing vectors: {session.embed_command}")
    return Exit.HITS


def _status_lines(found: Status) -> list[str]:
    model = f"{found.model} ({found.dimension} dimensions)" if found.model else "none (words only)"
    covered = f"{found.vectors:,} of {found.chunks:,}"
    facts = [
        ("index", clean_path(found.path)),
        ("format", str(found.schema_version)),
        ("model", model),
        ("documents", f"{found.documents:,}"),
        ("chunks", f"{found.chunks:,}"),
        ("vectors", f"{covered}, {found.pending:,} missing" if found.pending else covered),
        ("size", human_bytes(found.size_bytes)),
        ("deleted", f"{found.dead_chunks:,} chunks still on disk"),
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


@click.command(cls=SessionCommand)
@option("--verify", is_flag=True, help="Read the whole index: rows, checksums and consistency.")
def doctor(session: CommandSession, verify: bool) -> int:
    """Check the installation and the index.

    \b
    dowse doctor
    dowse doctor --verify
    dowse doctor --json

    Exit code 1: a check failed.
    """
    checks = [*_installation(), *_models(session), *_index(session, deep=verify)]
    failed = any(check.state == "fail" for check in checks)
    rows = table([(check.state, check.name, clean_line(check.detail)) for check in checks])
    lines = [row + (f"\n      → {check.fix}" if check.fix else "") for row, check in zip(rows, checks, strict=True)]
    session.answer({"ok": not failed, "checks": plain(checks)}, *lines)
    return Exit.NOTHING if failed else Exit.HITS


def _installation() -> Iterator[Check]:
    import sqlite3

    version = ".".join(map(str, sys.version_info[:3]))
    yield Check("python", "ok", f"{version}, SQLite {sqlite3.sqlite_version}")


def _models(session: CommandSession) -> Iterator[Check]:
    """Check the configured models without a request to any server."""
    from dowse.models import fetch, registry

    own = session.config
    name = registry.DEFAULT if own.embedder == "auto" else own.embedder
    known = {state.entry.name: state.path for state in fetch.states(own.models_folder)}
    if own.embedder == "none":
        yield Check("embedder", "ok", "none: searches compare words only")
    elif name in known and known[name] is None:
        yield Check("embedder", "warn", f"{name} is not downloaded", f"dowse models pull {name}")
    else:
        yield Check("embedder", "ok", f"{name}{f' in {known[name]}' if known.get(name) else ''}")
    if own.reranker != "none":
        yield Check("reranker", "ok", own.reranker)
    if own.llm_base_url and own.llm_model:
        yield Check("language model", "ok", f"{own.llm_model} at {own.llm_base_url} (not contacted)")
    elif own.llm_base_url or own.llm_model:
        missing = "llm_model NAME" if own.llm_base_url else "llm_base_url https://host/v1"
        yield Check("language model", "warn", "half configured", f"dowse config set {missing}")


def _index(session: CommandSession, *, deep: bool) -> Iterator[Check]:
    place = session.config.index or find_index(session.cwd)
    if place is None:
        yield Check("index", "warn", f"none in {session.cwd} or its parents", "dowse index .")
        return
    try:
        with session.open_reader(repair=False) as engine:
            yield Check("index", "ok", str(engine.path))
            yield from engine.verify(deep=deep)
    except DowseError as err:
        # Here an error is a finding: a broken index must not end its own diagnosis.
        yield Check("index", "fail", f"{place}: {err}")
    if place.exists():
        yield _disk(place)


def _disk(place: Path) -> Check:
    free_bytes = shutil.disk_usage(place).free
    state: Literal["ok", "warn"] = "ok" if free_bytes >= LOW_DISK_BYTES else "warn"
    return Check("disk", state, f"{human_bytes(free_bytes)} free")
