"""Look-up commands: a target or a name enters; indexed text, symbols, outlines and links leave."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from dowse.cli.options import option
from dowse.cli.session import CommandSession, SessionCommand
from dowse.serve.plain_text import clean, clean_line, clean_path, plural, table
from dowse.serve.wire.result import Exit, chunk_object, plain, related_object, symbol_object

if TYPE_CHECKING:
    from dowse.types import Chunk

_RANGE = re.compile(r".+:(\d+)-(\d+)")
_FILES_SHOWN = 40  # of a folder; chosen: a screen


@click.command(cls=SessionCommand)
@click.argument("target")
def show(session: CommandSession, target: str) -> int:
    """Print a chunk, a file or a range of lines.

    \b
    dowse show 3f9c2ab7d1e04c55
    dowse show src/retry.go
    dowse show src/retry.go:10-40

    Prints the indexed text, which may be older than the file. FILE:10 is the chunk around line 10.
    """
    with session.open_reader() as engine:
        chunks = engine.show(target)
    if session.as_json:
        session.emit_json({"target": target, "chunks": [chunk_object(chunk) for chunk in chunks]})
    else:
        _print(session, chunks, target)
    return Exit.HITS


def _print(session: CommandSession, chunks: Sequence[Chunk], target: str) -> None:
    """Print every line once: chunks of prose overlap."""
    lines = _RANGE.fullmatch(target)
    first, last = (int(lines[1]), int(lines[2])) if lines else (1, None)
    document = None
    for chunk in chunks:
        if chunk.document_id != document:
            first = first if document is None else 1
            document = chunk.document_id
        about = chunk.qualified_name or chunk.section_path or chunk.document_title
        place = clean_path(chunk.source_uri) + (f":{chunk.start_line}-{chunk.end_line}" if chunk.start_line else "")
        session.note(f"{place}  {clean_line(about)}  {chunk.corpus_type}  {chunk.id}")
        for number, line in _numbered(chunk):
            if number is None:
                session.emit(line)
            elif number >= first and (last is None or number <= last):
                session.emit(f"{number:>6}  {line}".rstrip())
                first = number + 1


def _numbered(chunk: Chunk) -> list[tuple[int | None, str]]:
    lines = clean(chunk.text).split("\n")
    start = chunk.start_line
    if start is None or (chunk.end_line or 0) - start + 1 != len(lines):
        start = None  # text made from the file, such as a conversation or a page: its lines have no numbers
    return [(None if start is None else start + offset, line) for offset, line in enumerate(lines)]


@click.command(cls=SessionCommand)
@click.argument("name")
@option("--kind", metavar="KIND", help="Find one kind of symbol: function, class, method, … [default: all].")
@option("-k", "--top", "limit", metavar="N", type=click.IntRange(1, 1000), default=20,
        help="Print up to N symbols [default: 20].")  # fmt: skip
def symbols(session: CommandSession, name: str, kind: str | None, limit: int) -> int:
    """Find the definition of a symbol.

    \b
    dowse symbols RetryBudget
    dowse symbols Service.GetQuote
    dowse symbols "retry budget"     names that contain these words

    Exact matches rank first, then matches without case, by prefix and by word.
    """
    with session.open_reader() as engine:
        found = engine.symbols(name, kind=kind, limit=limit)
    if session.as_json:
        session.emit_json({"name": name, "symbols": [symbol_object(each) for each in found]})
    elif found:
        rows = [
            (
                _place(each.chunk, each.start_line),
                clean_line(each.kind or ""),
                clean_line(each.name),
                clean_line(each.signature or "")[:80],
                {"case": "(other case)", "start": "(prefix)"}.get(each.match, ""),
            )
            for each in found
        ]
        session.emit(*table(rows))
    else:
        kind_text = f" of kind {kind!r}" if kind else ""
        session.note(f"no symbol{kind_text} matches {name!r}; to search all text, run: dowse search {name}")
    return Exit.HITS if found else Exit.NOTHING


@click.command(cls=SessionCommand)
@click.argument("path")
@option("--depth", metavar="N", type=click.IntRange(1, 20), help="List N levels [default: all].")
def outline(session: CommandSession, path: str, depth: int | None) -> int:
    """List the symbols or headings of a file or folder.

    \b
    dowse outline src/retry.go
    dowse outline docs/runbooks --depth 1
    dowse outline "deploy/**/*.yaml" --json

    Lists the sections of a document, the symbols of code and the resources of a manifest, with line numbers.
    """
    with session.open_reader() as engine:
        found = engine.outline(path, depth=depth)
    if session.as_json:
        session.emit_json({"target": path, "documents": plain(found)})
        return Exit.HITS
    for document in found[:_FILES_SHOWN]:
        session.emit(f"{clean_path(document.source_uri)}  {clean_line(document.title)}  {document.corpus_type}")
        if document.summary and len(found) == 1:
            session.emit(f"  {clean_line(document.summary)}")
        for entry in document.entries:
            lines = f"{entry.start_line}-{entry.end_line}" if entry.start_line else ""
            kind = "" if entry.kind == "section" else f"{entry.kind} "
            text = clean_line(entry.signature or f"{kind}{entry.name}")[:100]
            session.emit(f"{lines:>11}  {'  ' * entry.depth}{text}")
    if len(found) > _FILES_SHOWN:
        session.note(f"and {plural(len(found) - _FILES_SHOWN, 'file')} more; name a subfolder, or use --json")
    return Exit.HITS


@click.command(cls=SessionCommand)
@click.argument("target")
@option("--relation", "relations", metavar="NAME", multiple=True,
        help="Show one relation, such as calls or mentions; can be repeated [default: all].")  # fmt: skip
@option("-k", "--top", "limit", metavar="N", type=click.IntRange(1, 1000), default=30,
        help="Show up to N links [default: 30].")  # fmt: skip
def related(session: CommandSession, target: str, relations: tuple[str, ...], limit: int) -> int:
    """Show callers, callees, docs and threads linked to a symbol, file or line.

    \b
    dowse related src/retry.go:42
    dowse related RetryBudget.tryWithdraw
    dowse related docs/runbooks/rollback.md --relation mentions

    TARGET is a file, FILE:LINE, a symbol or a chunk's id.
    """
    with session.open_reader() as engine:
        found = engine.related(target, relations=relations, limit=limit)
    if session.as_json:
        session.emit_json({"target": target} | related_object(found))
    elif found.neighbours:
        session.note("  ".join(dict.fromkeys(_place(chunk) for chunk in found.chunks)))
        for each in found.neighbours:
            arrow = "→" if each.direction == "out" else "←"
            session.emit(f"{arrow} {_place(each.chunk)}  {clean_line(each.sentence)}")
        if found.total > len(found.neighbours):
            session.note(f"and {plural(found.total - len(found.neighbours), 'link')} more; show them with -k")
    else:
        session.note(f"{target} has no links" + (f" of type {', '.join(relations)}" if relations else ""))
    return Exit.HITS if found.neighbours else Exit.NOTHING


def _place(chunk: Chunk, line_number: int | None = None) -> str:
    first = line_number or chunk.start_line
    line = f":{first}" if first else ""
    return f"{clean_path(chunk.file_path or chunk.source_uri)}{line}"
