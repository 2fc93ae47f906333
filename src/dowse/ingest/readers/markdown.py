"""Reader of Markdown: a chunk for each section, under its path of headings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate, groupby
from typing import TYPE_CHECKING

import msgspec

from dowse.ingest.chunking.document import decode
from dowse.ingest.chunking.page import SectionedText, document_of
from dowse.ingest.chunking.sections import CutPoint, Section, sections_of
from dowse.ports import SourceFile
from dowse.types import Document

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


_FENCES = {"---": ("---", "..."), "+++": ("+++",)}
_PAIR = re.compile(r"([A-Za-z_][\w .-]{0,60}?)\s*[:=]\s*(.*)")
_ITEM = re.compile(r"\s*-\s+(.*)")
_LONGEST_LINES = 200  # chosen: a rule line at the top of a long page is not front matter


class FrontMatter(msgspec.Struct, frozen=True):
    """Front matter of a page: pairs in their order, each key once and in lower case."""

    pairs: tuple[tuple[str, str], ...] = ()
    body_start: int = 0  # character offset


def parse(text: str) -> FrontMatter:
    """Parse `key: value` lines and lists, and skip deeper structure. No closing line: no front matter."""
    lines = text.split("\n", _LONGEST_LINES)
    closing = _FENCES.get(lines[0].rstrip())
    if closing is None:
        return FrontMatter()
    pairs: dict[str, str] = {}
    key, start = "", len(lines[0]) + 1
    for line in lines[1:_LONGEST_LINES]:
        start += len(line) + 1
        if line.rstrip() in closing:
            return FrontMatter(tuple(pairs.items()), min(start, len(text)))
        if (pair := _PAIR.fullmatch(line)) is not None:
            key = pair[1].lower()
            pairs[key] = _plain(pair[2])
        elif key and (item := _ITEM.fullmatch(line)) is not None:
            pairs[key] = ", ".join(part for part in (pairs[key], _plain(item[1])) if part)
    return FrontMatter()


def _plain(value: str) -> str:
    """Return the value without quotes, and a list without its brackets."""
    value = value.strip()
    if value[:1] == "[" and value[-1:] == "]":
        return ", ".join(_plain(part) for part in value[1:-1].split(",") if part.strip())
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


LONG_LIST = 200  # items; chosen: a list that a person wrote is shorter
_MARKERS = ("- ", "* ", "+ ")


def read_markdown(file: SourceFile) -> Document:
    """Read sections, lists, tables and fences with a CommonMark parser; the text itself stays as written."""
    text = decode(file.data)
    front = parse(text)
    if not text[front.body_start :].strip():
        front = FrontMatter(front.pairs)  # a page of front matter alone is found by it
    sections = markdown_sections(text, front.body_start)
    title = dict(front.pairs).get("title") or None
    return document_of(file, SectionedText(text, sections, title, front.pairs))


@cache
def markdown_parser() -> MarkdownIt:
    """Return the parser, made once a process."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    # Only the outline is needed. Reference definitions stay in as paragraphs: their addresses are text as well.
    return parser.disable(["inline", "text_join", "reference"], ignoreInvalid=True)


def markdown_sections(text: str, body_start: int = 0) -> list[Section]:
    # The parser treats a lone carriage return as a line end; here only a newline is one.
    body = text[body_start:].replace("\r", " ").replace("\0", " ")
    lines = body.split("\n")
    offsets = list(accumulate((len(line) + 1 for line in lines), initial=body_start))
    offsets[-1] = len(text)
    parser = markdown_parser()
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
    """Return rows inside long runs of items that begin alike: a marker and a letter.

    The parser need not see them: it takes 50 µs an item of a list of 80,000, and 5 without these rows.
    """
    found: list[range] = []
    row = 0
    for marker, run in groupby(lines, key=lambda line: line[:2] if line[1:2] == " " and line[2:3].isalpha() else ""):
        count = sum(1 for _ in run)
        if marker in _MARKERS and count > LONG_LIST:
            found.append(range(row + 1, row + count - 1))
        row += count
    return found


def _with_items(marks: Iterable[CutPoint], alike: Sequence[range], offsets: Sequence[int]) -> Iterator[CutPoint]:
    """Add the items that were left out, wherever the parser found items around them."""
    left = list(reversed(alike))
    for mark in marks:
        while left and mark.start > offsets[left[-1].stop]:
            left.pop()  # in a fence, and no items
        if left and mark.start == offsets[left[-1].stop]:
            yield from (CutPoint(offsets[row]) for row in left.pop())
        yield mark


def _marks(tokens: Sequence[Token], offsets: Sequence[int], text: str) -> Iterator[CutPoint]:
    """Return every place where the page may be cut."""
    for token, after in zip(tokens, [*tokens[1:], None], strict=False):
        if token.map is None or token.nesting < 0 or token.type == "inline":
            continue
        start = offsets[token.map[0]]
        if token.level == 0 and token.type == "heading_open":
            yield CutPoint(start, int(token.tag[1:]), after.content if after else "")
        elif token.level == 0 and token.type == "table_open":
            yield CutPoint(start, lead=text[start : offsets[token.map[0] + 1]].strip())
        elif token.level == 0 or (token.level == 1 and token.type == "list_item_open"):
            yield CutPoint(start)


def _without_formulas(text: str, marks: Iterator[CutPoint]) -> Iterator[CutPoint]:
    """Drop the cuts between a `$$` and the one that closes it."""
    counted, at = 0, 0
    for mark in marks:
        counted += text.count("$$", at, mark.start)
        at = mark.start
        if counted % 2 == 0 or mark.level:
            counted = 0 if mark.level else counted
            yield mark
