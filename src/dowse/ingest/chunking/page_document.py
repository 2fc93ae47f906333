"""A page goes in as text, sections and what it says of itself; the Document of what it turns out to be comes out.

The parts of a paper know which they are, and its references go by five.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from itertools import pairwise

from dowse.ingest.chunking.document import Heading, Piece, build, file_name
from dowse.ingest.chunking.pack import PROSE, Budget, windows
from dowse.ingest.chunking.page import kind_by_content, section_type
from dowse.ingest.chunking.sections import Section, first_title, merged, pieces_of
from dowse.ingest.sources.kinds import Kind
from dowse.ports import SourceFile
from dowse.types import CorpusType, Document

REFERENCES_PER_CHUNK = 5
DOI = re.compile(r"\b10\.\d{4,9}/[^\s\"<>{}|\\^`]+[^\s\"<>{}|\\^`.,;:)\]]")
# [12], [Mar26], 12., (12), a bullet: what stands before an entry of a bibliography.
_ENTRY = re.compile(r"^[ \t]*(?:\[[\w+.,: -]{1,24}\]|\(?\d{1,3}[.)]|[-*+•])[ \t]+\S", re.MULTILINE)


@dataclass(frozen=True)
class Page:
    """What was read of a file with headings."""

    text: str
    sections: Sequence[Section]  # touching each other, in order
    title: str | None = None  # None: the first heading, if it is of the first level
    author: str | None = None
    timestamp: datetime | None = None
    meta: tuple[tuple[str, str], ...] = ()
    page_starts: tuple[int, ...] = ()  # where each printed page starts in the text, if there are any


def document_of(file: SourceFile, page: Page) -> Document:
    budget = replace(PROSE, overlap_chars=0).fitted(page.text)  # its structure shows where to cut
    title = page.title or first_title(page.sections)
    headings = (name for section in page.sections for _, name in section.headings)
    kind = kind_by_content(file, title, headings, page.meta)
    heading = Heading(title or file_name(file), page.author, page.timestamp, page.meta)
    pieces = _pieces(kind, page, title, budget)
    return build(file, kind, page.text, heading, map(partial(_on_page, page), pieces) if page.page_starts else pieces)


def _on_page(page: Page, piece: Piece) -> Piece:
    """With the printed page that its first words stand on."""
    start, stop = piece.span
    blank = len(page.text[start:stop]) - len(page.text[start:stop].lstrip())
    return replace(piece, page=bisect_right(page.page_starts, start + blank))


def _pieces(kind: Kind, page: Page, title: str | None, budget: Budget) -> Iterator[Piece]:
    if kind.corpus_type != CorpusType.DOC_PAPER:
        for section in merged(page.sections, budget):
            yield from pieces_of(page.text, section, title, budget)
        return
    for section in _merged_parts(page.sections, title, budget):
        part = section_type(section.headings, title)
        pieces = list(pieces_of(page.text, section, title, budget))
        if part == "references":
            pieces = list(_batches(page.text, section, pieces[0], budget)) or pieces
        yield from (replace(piece, section_type=part) for piece in pieces)


def _merged_parts(sections: Sequence[Section], title: str | None, budget: Budget) -> Iterator[Section]:
    """Tiny sections join the next one within a part of a paper, never across (R-25)."""
    run: list[Section] = []
    for section in sections:
        if run and section_type(run[-1].headings, title) != section_type(section.headings, title):
            yield from merged(run, budget)
            run = []
        run.append(section)
    yield from merged(run, budget)


def _batches(text: str, section: Section, like: Piece, budget: Budget) -> Iterator[Piece]:
    """Five references a piece; nothing when the entries cannot be told apart."""
    start, stop = section.span
    entries = [match.start() for match in _ENTRY.finditer(text, start, stop)]
    if len(entries) < 2:
        return
    cuts = [start, *entries[REFERENCES_PER_CHUNK::REFERENCES_PER_CHUNK], stop]
    for span in pairwise(cuts):
        for each in windows(text, span, budget):
            yield replace(like, span=each)
