"""A Markdown file goes in; a Document with a chunk for each section, under its path of headings, comes out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from dowse.ingest.document import decode
from dowse.ingest.front_matter import FrontMatter, parse
from dowse.ingest.outline import Mark, Section, sections_of
from dowse.ingest.page import Page, document_of
from dowse.ports import SourceFile
from dowse.types import Document

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


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
    offsets = list(accumulate((len(line) + 1 for line in body.split("\n")), initial=body_start))
    offsets[-1] = len(text)
    marks = _marks(parser.parse(body), offsets, text)
    return sections_of(_without_formulas(text, marks) if "$$" in text else marks, body_start, len(text))


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
