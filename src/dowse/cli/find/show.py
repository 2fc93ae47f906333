"""`dowse show`: a chunk's id, a file or a range of its lines enters, the text as it was indexed leaves."""

from __future__ import annotations

import re
from collections.abc import Sequence

import click

from dowse.cli.session import Session, shared_options
from dowse.serve.wire.result import Exit
from dowse.types import Chunk

_RANGE = re.compile(r".+:(\d+)-(\d+)")


@click.command()
@click.argument("target")
@shared_options
def show(session: Session, target: str) -> int:
    """Print a chunk, a file or some of its lines.

    \b
    dowse show 3f9c2ab7d1e04c55
    dowse show src/retry.go
    dowse show src/retry.go:10-40

    The text is what was indexed, which may be older than the file. FILE:10 is the chunk around line 10.
    """
    with session.open_reader() as engine:
        chunks = engine.show(target)
    if session.as_json:
        from dowse.serve.wire.result import chunk_object

        session.emit_json({"target": target, "chunks": [chunk_object(chunk) for chunk in chunks]})
    else:
        _print(session, chunks, target)
    return Exit.HITS


def _print(session: Session, chunks: Sequence[Chunk], target: str) -> None:
    """Every line once: chunks of prose overlap."""
    asked = _RANGE.fullmatch(target)
    first, last = (int(asked[1]), int(asked[2])) if asked and len(target) != 16 else (1, None)
    document = None
    for chunk in chunks:
        if chunk.document_id != document:
            first = first if document is None else 1
            document = chunk.document_id
        session.note(_heading(chunk))
        for number, line in _numbered(chunk):
            if number is None:
                session.emit(line)
            elif number >= first and (last is None or number <= last):
                session.emit(f"{number:>6}  {line}".rstrip())
                first = number + 1


def _heading(chunk: Chunk) -> str:
    from dowse.serve.plain_text import clean_line, clean_path

    about = chunk.qualified_name or chunk.section_path or chunk.document_title
    lines = f":{chunk.start_line}-{chunk.end_line}" if chunk.start_line else ""
    return f"{clean_path(chunk.source_uri)}{lines}  {clean_line(about)}  {chunk.corpus_type}  {chunk.id}"


def _numbered(chunk: Chunk) -> list[tuple[int | None, str]]:
    from dowse.serve.plain_text import clean

    lines = clean(chunk.text).split("\n")
    start = chunk.start_line
    if start is None or (chunk.end_line or 0) - start + 1 != len(lines):
        start = None  # not the lines of the file, but what was made of them: a conversation, a page
    return [(None if start is None else start + offset, line) for offset, line in enumerate(lines)]
