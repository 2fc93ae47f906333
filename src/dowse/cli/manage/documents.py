"""Command `dowse add`: documents without files, as lines of JSON."""

from __future__ import annotations

from typing import IO

import click

from dowse.cli.options import option
from dowse.cli.session import CommandSession, SessionCommand
from dowse.serve.plain_text import clean_line, clean_path, plural
from dowse.serve.wire.result import Exit, report_object


@click.command(cls=SessionCommand)
@click.argument("file", metavar="[FILE]", type=click.File("rb"), default="-")
@option("--embedder", metavar="MODEL", help="Embed with auto, none, a name, a folder, a hub id or URL#model.")
@option("--no-embed", is_flag=True, help="Add words only; the next index run computes the vectors.")
def add(session: CommandSession, file: IO[bytes], embedder: str | None, no_embed: bool) -> int:
    """Add documents that are not files, as JSON Lines.

    \b
    dowse add tickets.jsonl
    echo '{"id": "T-1", "title": "Login fails", "text": "..."}' | dowse add
    dowse remove T-1

    Reads standard input without FILE. A document replaces the one with the same id and source. Fields: id, text (or
    data in base64 with media_type), title, source, url, author, created_at, corpus_type, channel, service, parent,
    metadata. A bad line is reported, the others are added.
    """
    session = session.with_config(embedder=embedder)
    with session.open_writer(create=True) as engine:
        report = engine.add((line for line in file if line.strip()), embed=not no_embed)
    count = report.added + report.changed
    text = f"Added {plural(count, 'document')} ({plural(report.chunks, 'chunk')}) in {report.seconds:.1f} s: "
    text += f"{report.added:,} new, {report.changed:,} changed, {report.unchanged:,} unchanged."
    session.answer(report_object(report), text)
    for problem in report.problems:
        click.echo(f"dowse: {clean_path(problem.path)}: {clean_line(problem.reason)}", err=True)
    return Exit.PARTIAL if report.problems else Exit.HITS
