"""A Markdown file goes in; a Document with a chunk for each section, under its path of headings, comes out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import TYPE_CHECKING

from dowse.ingest.chunking.document import decode
from dowse.ingest.chunking.page_document import Page, document_of
from dowse.ingest.chunking.sections import Mark, Section, sections_of
from dowse.ingest.readers.front_matter import FrontMatter, parse
from dowse.ports import SourceFile
from dowse.types import Document

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

LONG_LIST = 200  # items; chosen: a list that a person wrote is shorter
_MARKERS = ("- ", "* ", "+ ")


@dataclass(frozen=True)
class MarkdownReader:
    """Finds sections, lists, tables and fences by a CommonMark parser; the text itself is kept as written."""

    parser: MarkdownIt
    name: str = "markdown"

    def read(self, file: SourceFile) -> Document:
        text = decode(file.data)
        front = parse(text)
        if not text[front.body_start :].strip():
            front = FrontMatter(front.pairs)  # nothing else to find the file by
        sections = markdown_sections(self.parser, text, front.body_start)
        author = front.get("author", "authors")
        return document_of(file, Page(text, sections, front.get("title"), author, front.timestamp, front.pairs))


def markdown_reader() -> MarkdownReader:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    # Only the outline is needed. Reference definitions are left in as paragraphs: their addresses are text as well.
    parser.disable(["inline", "text_join", "reference"], ignoreInvalid=True)
    return MarkdownReader(parser)


def markdown_sections(parser: MarkdownIt, text: str, body_start: int = 0) -> list[Section]:
    # The parser takes a lone carriage return for a line end; ours is the newline alone.
    body = text[body_start:].replace("\r", " ").replace("\0", " ")
    lines = body.split("\n")
    offsets = list(accumulate((len(line) + 1 for line in lines), initial=body_start))
    offsets[-1] = len(text)
    alike = _alike(lines) if len(lines) > LONG_LIST else []
    if alike:
        gone = {row for rows in alike for row in rows}
        body = "\n".join(line for row, line in enumerate(lines) if row not in gone)
        kept = [offset for row, offset in enumerate(offsets) if row not in gone]
        marks = _with_items(_marks(parser.parse(body), kept, text), alike, offsets)
    else:
        marks = _marks(parser.parse(body), offsets, text)
    return sections_of(_without_formulas(text, marks) if "$$" in text else marks, body_start, len(text))


def _alike(lines: Sequence[str]) -> list[range]:
    """Rows inside long runs of items that a parser would find to be as the items around them: a marker, then a letter.

    Of 80,000 items, each took it 50 µs; now it is 5.
    """
    found: list[range] = []
    row = 0
    for marker, run in groupby(lines, key=lambda line: line[:2] if line[1:2] == " " and line[2:3].isalpha() else ""):
        count = sum(1 for _ in run)
        if marker in _MARKERS and count > LONG_LIST:
            found.append(range(row + 1, row + count - 1))
        row += count
    return found


def _with_items(marks: Iterable[Mark], alike: Sequence[range], offsets: Sequence[int]) -> Iterator[Mark]:
    """With the items that were left out, wherever those around them turned out to be items."""
    left = list(reversed(alike))
    for mark in marks:
        while left and mark.start > offsets[left[-1].stop]:
            left.pop()  # in a fence, and no items
        if left and mark.start == offsets[left[-1].stop]:
            yield from (Mark(offsets[row]) for row in left.pop())
        yield mark


def _marks(tokens: Sequence[Token], offsets: Sequence[int], text: str) -> Iterator[Mark]:
    """Every place where the page may be cut."""
    for token, after in zip(tokens, [*tokens[1:], None], strict=False):
        if token.map is None or token.nesting < 0 or token.type == "inline":
            continue
        start = offsets[token.map[0]]
        if token.level == 0 and token.type == "heading_open":
            yield Mark(start, int(token.tag[1:]), after.content if after else "")
        elif token.level == 0 and token.type == "table_open":
            yield Mark(start, lead=text[start : offsets[token.map[0] + 1]].strip())
        elif token.level == 0 or (token.level == 1 and token.type == "list_item_open"):
            yield Mark(start)


def _without_formulas(text: str, marks: Iterator[Mark]) -> Iterator[Mark]:
    """No cut between a `$$` and the one that closes it."""
    counted, at = 0, 0
    for mark in marks:
        counted += text.count("$$", at, mark.start)
        at = mark.start
        if counted % 2 == 0 or mark.level:
            counted = 0 if mark.level else counted
            yield mark
