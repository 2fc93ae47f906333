"""`dowse symbols`, `outline` and `related`: a name, a path or a place enters; definitions, contents or ties leave."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from dowse.cli.session import Session, shared_options
from dowse.serve.wire.result import Exit

if TYPE_CHECKING:
    from dowse.lookup.outline import Outline
    from dowse.lookup.related import Related
    from dowse.lookup.symbols import Symbol
    from dowse.types import Chunk

_FILES_SHOWN = 40  # of a folder; chosen: a screen


@click.command()
@click.argument("name")
@click.option("--kind", metavar="KIND", help="Only these: function, class, method …")
@click.option("-k", "--top", "limit", metavar="N", type=click.IntRange(1, 1000), default=20, help="How many; 20.")
@shared_options
def symbols(session: Session, name: str, kind: str | None, limit: int) -> int:
    """Find where a name is defined.

    \b
    dowse symbols RetryBudget
    dowse symbols Service.GetQuote
    dowse symbols "retry budget"     any name that holds these words

    Exact names come first, then those that differ in case, begin so, or hold the words.
    """
    with session.open_reader() as engine:
        found = engine.symbols(name, kind=kind, limit=limit)
    if session.as_json:
        from dowse.serve.wire.lookup import symbol_object

        session.emit_json({"name": name, "symbols": [symbol_object(each) for each in found]})
    elif found:
        _print_symbols(session, found)
    else:
        session.note(f"no symbol like {name!r}; `dowse search {name}` looks through all text")
    return Exit.HITS if found else Exit.NOTHING


@click.command()
@click.argument("path")
@click.option("--depth", metavar="N", type=click.IntRange(1, 20), help="Leave out what stands deeper; 1 keeps the top.")
@shared_options
def outline(session: Session, path: str, depth: int | None) -> int:
    """Show what stands in a file or folder.

    \b
    dowse outline src/retry.go
    dowse outline docs/runbooks --depth 1
    dowse outline "deploy/**/*.yaml" --json

    Sections of a document, symbols of code, resources of a manifest, with their lines.
    """
    with session.open_reader() as engine:
        found = engine.outline(path, depth=depth)
    if session.as_json:
        from dowse.serve.wire.lookup import outline_object

        session.emit_json({"target": path, "documents": [outline_object(each) for each in found]})
    else:
        _print_outlines(session, found)
    return Exit.HITS


@click.command()
@click.argument("target")
@click.option(
    "--relation", "relations", metavar="NAME", multiple=True, help="Only these: calls, mentions …; repeatable."
)
@click.option("-k", "--top", "limit", metavar="N", type=click.IntRange(1, 1000), default=30, help="How many; 30.")
@shared_options
def related(session: Session, target: str, relations: tuple[str, ...], limit: int) -> int:
    """Show what a place or symbol is tied to, and how.

    \b
    dowse related src/retry.go:42
    dowse related RetryBudget.tryWithdraw
    dowse related docs/runbooks/rollback.md --relation mentions

    TARGET is a file, FILE:LINE, a symbol or a chunk's id.
    """
    with session.open_reader() as engine:
        found = engine.related(target, relations=relations, limit=limit)
    if session.as_json:
        from dowse.serve.wire.lookup import related_object

        session.emit_json({"target": target} | related_object(found))
    elif found.neighbours:
        _print_related(session, found)
    else:
        session.note(f"nothing is tied to {target}" + (f" by {', '.join(relations)}" if relations else ""))
    return Exit.HITS if found.neighbours else Exit.NOTHING


def _print_symbols(session: Session, found: Iterable[Symbol]) -> None:
    from dowse.serve.plain_text import clean_line, table

    rows = [
        (
            _place(each.chunk, each.start_line),
            clean_line(each.kind or ""),
            clean_line(each.name),
            clean_line(each.signature or "")[:80],
            "" if each.match in ("exact", "part") else f"({each.match})",
        )
        for each in found
    ]
    for line in table(rows):
        session.emit(line)


def _print_outlines(session: Session, found: tuple[Outline, ...]) -> None:
    from dowse.serve.plain_text import clean_line, clean_path, plural

    for document in found[:_FILES_SHOWN]:
        session.emit(f"{clean_path(document.source_uri)}  {clean_line(document.title)}  {document.corpus_type}")
        if document.summary and len(found) == 1:
            session.emit(f"  {clean_line(document.summary)}")
        for entry in document.entries:
            lines = f"{entry.start_line}-{entry.end_line}" if entry.start_line else ""
            kind = "" if entry.kind == "section" else f"{entry.kind} "
            told = clean_line(entry.signature or f"{kind}{entry.name}")[:100]
            session.emit(f"{lines:>11}  {'  ' * entry.depth}{told}")
    if len(found) > _FILES_SHOWN:
        session.note(f"and {plural(len(found) - _FILES_SHOWN, 'file')} more; name a folder below, or use --json")


def _print_related(session: Session, found: Related) -> None:
    from dowse.serve.plain_text import clean_line, plural

    session.note("  ".join(dict.fromkeys(_place(chunk) for chunk in found.chunks)))
    for each in found.neighbours:
        arrow = "→" if each.direction == "out" else "←"
        session.emit(f"{arrow} {_place(each.chunk)}  {clean_line(each.sentence)}")
    if found.total > len(found.neighbours):
        session.note(f"and {plural(found.total - len(found.neighbours), 'tie')} more; ask for more with -k")


def _place(chunk: Chunk, line_number: int | None = None) -> str:
    from dowse.serve.plain_text import clean_path

    first = line_number or chunk.start_line
    line = f":{first}" if first else ""
    return f"{clean_path(chunk.file_path or chunk.source_uri)}{line}"
