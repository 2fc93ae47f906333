"""Reader of reStructuredText: a chunk for each section, under its path of headings.

A heading is a line with a line of one punctuation mark below it, at least as long, and perhaps the same above; which
mark stands for which level, the file itself decides by the order of their first use. A directive and what is indented
below it stay together, as do literal blocks, fields and tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dowse.ingest.chunking.document import decode, starts_of
from dowse.ingest.chunking.page import SectionedText, document_of
from dowse.ingest.chunking.sections import CutPoint, sections_of
from dowse.ports import SourceFile
from dowse.types import Document

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*\s*")
_FIELD = re.compile(r":([A-Za-z][\w .-]{0,40}):[ \t]+(\S.*)")
_ITEM = re.compile(r"(?:[-*+•]|(?:\d+|#|[A-Za-z])[.)]|\(\w+\))\s+\S")
_TABLE = re.compile(r"[+=][-=+ ]{2,}$")
_BIBLIOGRAPHIC = re.compile("authors?|date|doi|keywords|status|version|organization|tags|type|title|copyright")
_FIELD_LINES = 40  # chosen: bibliographic fields stand at the top


def read_rst(file: SourceFile) -> Document:
    """Read sections, lists, directives and tables by their layout; the text itself is kept as written."""
    text = decode(file.data)
    lines = text.split("\n")
    sections = sections_of(_marks(lines, starts_of(text)), 0, len(text))
    fields = _fields(lines)
    return document_of(file, SectionedText(text, sections, fields.get("title"), tuple(fields.items())))


def _marks(lines: Sequence[str], offsets: Sequence[int]) -> Iterator[CutPoint]:
    """Headings, and unindented lines after a blank one."""
    styles: list[tuple[str, bool]] = []
    after_blank = True
    at = 0
    while at < len(lines):
        line = lines[at]
        found = _heading(lines, at) if after_blank or at == 0 else None
        if found is not None:
            style, title, size = found
            if style not in styles:
                styles.append(style)
            yield CutPoint(offsets[at], min(styles.index(style) + 1, 6), title)
            at, after_blank = at + size, True
            continue
        if line and not line[0].isspace() and (after_blank or _ITEM.match(line)):
            lead = lines[at + 1].strip() if _TABLE.match(line) and at + 1 < len(lines) else ""
            yield CutPoint(offsets[at], lead=lead)
        after_blank = not line.strip()
        at += 1


def _heading(lines: Sequence[str], at: int) -> tuple[tuple[str, bool], str, int] | None:
    """Its style, its text and how many lines it takes."""
    line = lines[at]
    below = lines[at + 1] if at + 1 < len(lines) else ""
    if _is_adornment(line):
        closing = lines[at + 2] if at + 2 < len(lines) else ""
        fits = bool(below.strip()) and len(line.rstrip()) >= len(below.strip()) and closing.rstrip() == line.rstrip()
        return ((line[0], True), below.strip(), 3) if fits and not _is_adornment(below) else None
    if not line.strip() or line[0].isspace() or not _is_adornment(below):
        return None
    long_enough = len(below.rstrip()) >= min(len(line.rstrip()), 4)
    return ((below[0], False), line.strip(), 2) if long_enough else None


def _is_adornment(line: str) -> bool:
    return len(line.rstrip()) >= 2 and _ADORNMENT.fullmatch(line) is not None and line.rstrip() not in ("..", "::")


def _fields(lines: Sequence[str]) -> dict[str, str]:
    """Return the bibliographic fields at the top, each key once and in lower case."""
    pairs: dict[str, str] = {}
    for line in lines[:_FIELD_LINES]:
        found = _FIELD.fullmatch(line.rstrip())
        if found and _BIBLIOGRAPHIC.fullmatch(found[1].lower()):
            pairs.setdefault(found[1].lower(), found[2].strip())
    return pairs
