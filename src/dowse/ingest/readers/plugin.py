"""Public part of readers: `Piece` and `build_document` make the Document of a plug-in.

A plug-in reader is a function from text to pieces. The builder decodes the file, splits long pieces, counts lines, and
makes ids, hashes and parents.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from dowse.errors import BadRequestError
from dowse.ingest.chunking.document import DocumentBuilder, Heading, decode, file_name, starts_of, trimmed
from dowse.ingest.chunking.pack import CODE, PROSE, windows
from dowse.ingest.sources.kinds import kind_of
from dowse.ports import SourceFile
from dowse.types import Chunk, Document


class Piece(msgspec.Struct, frozen=True):
    """Part of a file that becomes a chunk, or several where it is long. Only the text is required."""

    text: str
    start_line: int | None = None  # in the file, from 1; by default where the text is found in the file
    section_path: str | None = None  # headings above it, as "# Setup > ## Linux"; searched and embedded with the text
    symbol_name: str | None = None  # name that it defines, for look-ups by symbol
    symbol_kind: str | None = None  # function, class, table …
    summary: str | None = None  # one or two sentences
    page: int | None = None  # printed page, from 1
    author: str | None = None
    timestamp: datetime | None = None  # aware
    meta: Mapping[str, str] = {}


TextFunction = Callable[[str], Iterable[Piece | str]]


class FunctionReader(msgspec.Struct, frozen=True):
    """Reader made of a function from a file to its document."""

    name: str
    read: Callable[[SourceFile], Document]


def text_reader(name: str, function: TextFunction) -> FunctionReader:
    """Return the reader of a function from text to pieces."""

    def read(file: SourceFile) -> Document:
        text = decode(file.data)
        try:
            return build_document(file, function(text), text=text)
        except ValueError as err:
            raise BadRequestError(f"reader {name!r} failed: {err}") from err

    return FunctionReader(name, read)


def build_document(
    file: SourceFile, pieces: Iterable[Piece | str], *, text: str = "", title: str | None = None
) -> Document:
    """Return the document of a file with a chunk for each piece, in order; a string is a piece, too.

    `text` is the text of the file, in which the lines of pieces are looked up. `title` is by default the file's name.
    """
    builder = DocumentBuilder(file, kind_of(file), Heading(title or file_name(file)))
    starts = starts_of(text)
    at = 0  # where the search for the next piece begins
    chunks: list[Chunk] = []
    for given in pieces:
        piece = Piece(given) if isinstance(given, str) else given
        if not isinstance(piece, Piece):
            raise TypeError(f"a reader must yield dowse.Piece or str, not {type(piece).__name__}")
        start = piece.start_line
        if start is None and (found := text.find(piece.text, at)) >= 0:
            at, start = found + 1, bisect_right(starts, found)
        chunks += _chunks(builder, piece, start)
    return builder.document(chunks)


def _chunks(builder: DocumentBuilder, piece: Piece, start: int | None) -> Iterator[Chunk]:
    text = piece.text
    budget = CODE if builder.shared.corpus_type.startswith("CODE") else PROSE
    given: dict[str, Any] = {name: value for name in _COPIED if (value := getattr(piece, name)) is not None}
    given["context_prefix"] = piece.section_path or ""
    given["meta"] = tuple((str(key), str(value)) for key, value in piece.meta.items())
    for span in windows(text, (0, len(text)), budget.fitted(text)):
        first, stop = trimmed(text, span)
        if first < stop:
            if start is not None:
                given["start_line"] = start + text.count("\n", 0, first)
                given["end_line"] = start + text.count("\n", 0, stop)
            yield builder.chunk(text[first:stop], given)


_COPIED = ("section_path", "symbol_name", "symbol_kind", "summary", "page", "author", "timestamp")
