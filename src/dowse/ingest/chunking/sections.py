"""Sections of a text: its headings and blocks enter, spans under their path of headings leave.

Markdown, reStructuredText, HTML, Word files, notebooks and PDFs differ in how a heading looks; the steps after it is
found are the same for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import msgspec

from dowse.ingest.chunking.document import SEPARATOR, ChunkSpan, trail
from dowse.ingest.chunking.pack import Budget, Span, pack

LONGEST_HEADING_CHARS = 120  # chosen: a heading is a name; longer ones would crowd the text out of the embedding
LONGEST_LEAD_CHARS = 200  # chosen: the header of a table, repeated above each part of it


class CutPoint(msgspec.Struct, frozen=True):
    """Place where a text may be cut: a heading, or the start of a block."""

    start: int
    level: int = 0  # of a heading, from 1; 0 for a block
    title: str = ""
    lead: str = ""  # repeated before each later part of the block, if it has to be cut


class Section(msgspec.Struct, frozen=True):
    """Text from a heading to the next. `blocks` show where it may be cut; they touch and cover it."""

    headings: tuple[tuple[int, str], ...]  # level and text, outermost first; empty before the first heading
    blocks: tuple[Span, ...]
    leads: tuple[tuple[Span, str], ...] = ()  # blocks that have one

    @property
    def level(self) -> int:
        return self.headings[-1][0] if self.headings else 0

    @property
    def span(self) -> Span:
        return self.blocks[0][0], self.blocks[-1][1]

    @property
    def chars(self) -> int:
        return self.span[1] - self.span[0]


def sections_of(marks: Iterable[CutPoint], start: int, stop: int) -> list[Section]:
    """Return the sections between headings. `marks` rise; a heading stays with its first block."""
    sections: list[Section] = []
    headings: tuple[tuple[int, str], ...] = ()
    cuts = [CutPoint(start)]
    after_heading = True
    for mark in marks:
        if mark.level:
            sections += _closed(headings, cuts, mark.start)
            title = " ".join(mark.title.split())[:LONGEST_HEADING_CHARS]
            headings = (*(each for each in headings if each[0] < mark.level), (mark.level, title))
            cuts, after_heading = [mark], True
        else:
            if mark.start > cuts[-1].start and (mark.lead or not after_heading):
                cuts.append(mark)
            after_heading = False
    return sections + _closed(headings, cuts, stop)


def _closed(headings: tuple[tuple[int, str], ...], cuts: list[CutPoint], stop: int) -> list[Section]:
    if cuts[0].start >= stop:
        return []
    blocks = tuple(pairwise((*(mark.start for mark in cuts), stop)))
    leads = tuple((block, mark.lead) for block, mark in zip(blocks, cuts, strict=True) if mark.lead)
    return [Section(headings, blocks, leads)]


def merged(sections: Sequence[Section], budget: Budget) -> list[Section]:
    """Join tiny sections with a next sibling or child; the longest gives the path."""
    found: list[Section] = []
    for section in sections:
        last = found[-1] if found else None
        if last and last.chars < budget.tiny_chars and last.level <= section.level:
            longest = last if last.chars > section.chars and last.level == section.level else section
            first = (last.span[0], section.blocks[0][1])
            found[-1] = Section(longest.headings, (first, *section.blocks[1:]), section.leads)
        else:
            found.append(section)
    return found


def pieces_of(text: str, section: Section, title: str | None, budget: Budget) -> Iterator[ChunkSpan]:
    """Return the whole section if it fits, else its parts."""
    # The title leads the prefix already; as a heading it would be there twice.
    names = (f"{'#' * level} {name}" for level, name in section.headings if level > 1 or name != title)
    path = SEPARATOR.join(names) or None
    whole = section.chars <= budget.limit_chars
    for span in [section.span] if whole else pack(text, section.blocks, budget):
        lead = next((lead for (start, stop), lead in section.leads if start < span[0] < stop), "")
        yield ChunkSpan(span, trail(title, path, lead[:LONGEST_LEAD_CHARS]), path)
