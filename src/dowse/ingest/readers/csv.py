"""A table of separated values goes in; a Document whose chunks hold whole rows, each value labelled, comes out."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from dowse.ingest.chunking.document import Heading, Piece, altered, build, decode, file_name
from dowse.ingest.chunking.pack import PROSE, Span, pack
from dowse.ingest.readers.text import TextReader
from dowse.ingest.sources.kinds import kind_of
from dowse.ports import SourceFile
from dowse.types import Chunk, Document

_SEPARATORS = ",;\t|"
LONGEST_LABEL_CHARS = 60  # chosen


@dataclass(frozen=True)
class _Row:
    """A row as it is written down, and where it stands."""

    text: str
    first_line: int
    last_line: int


@dataclass(frozen=True)
class CsvReader:
    """Rows are labelled, because a chunk of bare values says nothing. What is no table is read as text."""

    name: str = "csv"

    def read(self, file: SourceFile) -> Document:
        text = decode(file.data)
        try:
            rows = list(_rows(text, separator_of(text)))
        except csv.Error:
            return TextReader().read(file)
        header = header_of(rows)
        if header is None and max((len(cells) for cells, _, _ in rows), default=0) < 2:
            return TextReader().read(file)
        return _document(file, header, rows)


def separator_of(text: str) -> str:
    """The one that the first line with text has most of."""
    first = next((line for line in text[:65536].split("\n") if line.strip()), "")
    return max(_SEPARATORS, key=lambda each: (first.count(each), -_SEPARATORS.index(each)))


def _rows(text: str, separator: str) -> Iterator[tuple[list[str], int, int]]:
    """Cells, first and last line of every row that has any text."""
    lines = (line + "\n" for line in text.split("\n"))
    reader = csv.reader(lines, delimiter=separator, strict=False)
    before = 0
    for cells in reader:
        if any(cell.strip() for cell in cells):
            yield [" ".join(cell.split()) for cell in cells], before + 1, reader.line_num
        before = reader.line_num


def header_of(rows: Sequence[tuple[list[str], int, int]]) -> list[str] | None:
    """The first row, if its cells can be names: all there, all different, none a number."""
    if len(rows) < 2 or len(rows[0][0]) < 2:
        return None
    names = rows[0][0]
    named = all(name and not _is_number(name) for name in names) and len(set(names)) == len(names)
    return [name[:LONGEST_LABEL_CHARS] for name in names] if named else None


def _is_number(text: str) -> bool:
    return text.lstrip("+-$€£").replace(",", "").replace(".", "", 1).rstrip("%").isdecimal()


def _document(file: SourceFile, header: list[str] | None, rows: Sequence[tuple[list[str], int, int]]) -> Document:
    body = rows[1:] if header else rows
    written = [_Row(_labelled(header, cells), first, last) for cells, first, last in body]
    text = "\n".join(row.text for row in written)
    starts = list(accumulate((len(row.text) + 1 for row in written), initial=0))
    blocks: list[Span] = [(start, start + len(row.text)) for start, row in zip(starts, written, strict=False)]
    budget = replace(PROSE, overlap_chars=0).fitted(text)
    pieces = map(Piece, pack(text, blocks, budget))
    document = build(file, kind_of(file), text, Heading(file_name(file)), pieces)
    if header is not None and rows:
        document = replace(document, meta=(("columns", ", ".join(header)), ("rows", str(len(written)))))
    return replace(document, chunks=tuple(_in_source(chunk, written) for chunk in document.chunks))


def _labelled(header: list[str] | None, cells: Sequence[str]) -> str:
    """Empty cells are left out; cells beyond the header have no label."""
    if header is None:
        return " | ".join(cells)
    labels = [*header, *[""] * max(len(cells) - len(header), 0)]
    return " | ".join(f"{label}: {cell}" if label else cell for label, cell in zip(labels, cells, strict=False) if cell)


def _in_source(chunk: Chunk, rows: Sequence[_Row]) -> Chunk:
    """Each row is one line of the text, whatever it is in the file."""
    first, last = rows[(chunk.start_line or 1) - 1], rows[(chunk.end_line or 1) - 1]
    return altered(chunk, start_line=first.first_line, end_line=last.last_line)
