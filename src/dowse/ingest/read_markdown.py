"""A Markdown file goes in; a Document with a chunk for each section, under its path of headings, comes out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from dowse.ingest.document import Heading, Piece, build, decode, file_name
from dowse.ingest.front_matter import FrontMatter, parse
from dowse.ingest.kinds import classify
from dowse.ingest.pack import PROSE, Budget, Span, pack
from dowse.ports import SourceFile
from dowse.types import Document

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

LONGEST_HEADING_CHARS = 120  # chosen: a heading is a name; longer ones would crowd the text out of the embedding
SEPARATOR = " > "


@dataclass(frozen=True)
class Section:
    """From a heading to the next. `blocks` are where it may be cut; they touch and cover it."""

    headings: tuple[tuple[int, str], ...]  # level and text, outermost first; empty before the first heading
    blocks: tuple[Span, ...]

    @property
    def level(self) -> int:
        return self.headings[-1][0] if self.headings else 0

    @property
    def span(self) -> Span:
        return self.blocks[0][0], self.blocks[-1][1]

    @property
    def chars(self) -> int:
        return self.span[1] - self.span[0]


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
        budget = replace(PROSE, overlap_chars=0).fitted(text)  # its structure shows where to cut
        sections = _merged(_sections(self.parser, text, front.body_start), budget)
        title = front.get("title") or _first_title(sections)
        heading = Heading(title or file_name(file), front.get("author", "authors"), front.timestamp, front.pairs)
        pieces = (piece for section in sections for piece in _pieces(text, section, title, budget))
        return build(file, classify(file.path), text, heading, pieces)


def markdown_reader() -> MarkdownReader:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    # Only the outline is needed. Reference definitions are left in as paragraphs: their addresses are text as well.
    parser.disable(["inline", "text_join", "reference"], ignoreInvalid=True)
    return MarkdownReader(parser)


def _sections(parser: MarkdownIt, text: str, body_start: int) -> list[Section]:
    # The parser takes a lone carriage return for a line end; ours is the newline alone.
    body = text[body_start:].replace("\r", " ").replace("\0", " ")
    offsets = list(accumulate((len(line) + 1 for line in body.split("\n")), initial=body_start))
    offsets[-1] = len(text)
    sections: list[Section] = []
    path: tuple[tuple[int, str], ...] = ()
    starts = [body_start]
    after_heading = True  # what follows a heading is not cut from it
    for line, token, title in _outline(parser.parse(body)):
        start = offsets[line]
        if token.type == "heading_open":
            sections += _closed(path, starts, start)
            level = int(token.tag[1:])
            path = (*(entry for entry in path if entry[0] < level), (level, title))
            starts, after_heading = [start], True
        elif after_heading:
            after_heading = False
        elif start > starts[-1]:
            starts.append(start)
    return sections + _closed(path, starts, len(text))


def _outline(tokens: Sequence[Token]) -> Iterator[tuple[int, Token, str]]:
    """Line, token and (of a heading) text of every place where the page may be cut."""
    for token, after in zip(tokens, [*tokens[1:], None], strict=False):
        if token.map is None or token.nesting < 0 or token.type == "inline":
            continue
        if token.level == 0:
            yield token.map[0], token, after.content if after else ""
        elif token.level == 1 and token.type == "list_item_open":
            yield token.map[0], token, ""


def _closed(path: tuple[tuple[int, str], ...], starts: list[int], stop: int) -> list[Section]:
    if starts[0] >= stop:
        return []
    short = tuple((level, " ".join(text.split())[:LONGEST_HEADING_CHARS]) for level, text in path)
    return [Section(short, tuple(pairwise((*starts, stop))))]


def _merged(sections: list[Section], budget: Budget) -> list[Section]:
    """Tiny sections join the next one where that is their sibling or child; the longest of them gives the path."""
    merged: list[Section] = []
    for section in sections:
        last = merged[-1] if merged else None
        if last and last.chars < budget.tiny_chars and last.level <= section.level:
            longest = last if last.chars > section.chars and last.level == section.level else section
            first = (last.span[0], section.blocks[0][1])
            merged[-1] = Section(longest.headings, (first, *section.blocks[1:]))
        else:
            merged.append(section)
    return merged


def _first_title(sections: Sequence[Section]) -> str | None:
    """The first heading, if it is of the first level."""
    headings = next((section.headings for section in sections if section.headings), ())
    return headings[0][1] if headings and headings[0][0] == 1 else None


def _pieces(text: str, section: Section, title: str | None, budget: Budget) -> Iterator[Piece]:
    # The title leads the prefix already; as a heading it would be there twice.
    headings = [(level, name) for level, name in section.headings if level > 1 or name != title]
    path = SEPARATOR.join(f"{'#' * level} {name}" for level, name in headings) or None
    prefix = SEPARATOR.join(part for part in (title, path) if part)
    whole = section.chars <= budget.limit_chars
    for span in [section.span] if whole else pack(text, section.blocks, budget):
        yield Piece(span, prefix, path)
