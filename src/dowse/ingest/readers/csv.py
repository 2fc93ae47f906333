"""Reader of tables (CSV, TSV): chunks hold whole rows, each value with the name of its column."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from itertools import accumulate

from msgspec.structs import replace

from dowse.ingest.chunking.document import ChunkSpan, Lines, build, decode
from dowse.ingest.chunking.pack import PROSE, Span, pack
from dowse.ingest.readers.text import read_text
from dowse.ports import SourceFile
from dowse.types import Document

_SEPARATORS = ",;\t|"
LONGEST_LABEL_CHARS = 60  # chosen

TableRow = tuple[list[str], int, int]
"""Cells, first line and last line."""


def read_csv(file: SourceFile) -> Document:
    """Read a table. A file that is no table is read as text.

    Rows carry the names of their columns, because bare values match no question.
    """
    text = decode(file.data)
    try:
        rows = list(_rows(text, separator_of(text)))
    except csv.Error:
        return read_text(file)
    header = header_of(rows)
    if header is None and max((len(cells) for cells, _, _ in rows), default=0) < 2:
        return read_text(file)
    return _document(file, header, rows)


def separator_of(text: str) -> str:
    """Return the separator that occurs most often in the first line with text."""
    first = next((line for line in text[:65536].split("\n") if line.strip()), "")
    return max(_SEPARATORS, key=lambda each: (first.count(each), -_SEPARATORS.index(each)))


def _rows(text: str, separator: str) -> Iterator[TableRow]:
    """Return every row that has any text."""
    lines = (line + "\n" for line in text.split("\n"))
    reader = csv.reader(lines, delimiter=separator, strict=False)
    before = 0
    for cells in reader:
        if any(cell.strip() for cell in cells):
            yield [" ".join(cell.split()) for cell in cells], before + 1, reader.line_num
        before = reader.line_num


def header_of(rows: Sequence[TableRow]) -> list[str] | None:
    """Return the first row, if its cells can be names: all there, all different, none a number."""
    if len(rows) < 2 or len(rows[0][0]) < 2:
        return None
    names = rows[0][0]
    named = all(name and not _is_number(name) for name in names) and len(set(names)) == len(names)
    return [name[:LONGEST_LABEL_CHARS] for name in names] if named else None


def _is_number(text: str) -> bool:
    return text.lstrip("+-$€£").replace(",", "").replace(".", "", 1).rstrip("%").isdecimal()


def _document(file: SourceFile, header: list[str] | None, rows: Sequence[TableRow]) -> Document:
    body = rows[1:] if header else rows
    written = [_labelled(header, cells) for cells, _, _ in body]
    text = "\n".join(written)
    starts = accumulate((len(row) + 1 for row in written), initial=0)
    blocks: list[Span] = [(start, start + len(row)) for start, row in zip(starts, written, strict=False)]
    spans = map(ChunkSpan, pack(text, blocks, replace(PROSE, overlap_chars=0).fitted(text)))
    meta = (("columns", ", ".join(header)), ("rows", str(len(written)))) if header else ()

    def lines(first: int, last: int) -> Lines:
        """Return the lines of rows in the file; in the text each row is one line."""
        return body[first - 1][1], body[last - 1][2]

    return build(file, text, spans, lines=lines, meta=meta)


def _labelled(header: list[str] | None, cells: Sequence[str]) -> str:
    """Return a row as text. Empty cells are left out; cells beyond the header have no label."""
    if header is None:
        return " | ".join(cells)
    labels = [*header, *[""] * max(len(cells) - len(header), 0)]
    return " | ".join(f"{label}: {cell}" if label else cell for label, cell in zip(labels, cells, strict=False) if cell)
