"""Regions of a manifest: a text and the starts of its parts enter, spans of whole parts leave."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from dowse.ingest.chunking.document import ChunkSpan, starts_of, trail
from dowse.ingest.chunking.pack import CODE, LIMIT_TOKENS, Budget, Span, pack, windows
from dowse.ingest.manifests.yaml_nodes import Node
from dowse.types import ServiceFact

WHOLE_TOKENS = 1024  # a resource, service, job or operation up to here is one chunk: as long as a parent


class Region(msgspec.Struct, frozen=True):
    """Lines [first, stop), counted from 0."""

    first: int
    stop: int


class TextLines(msgspec.Struct, frozen=True):
    """Text of a manifest with the offsets of its lines."""

    text: str
    lines: list[str]
    offsets: list[int]  # of each line, and of the end
    budget: Budget

    def span(self, region: Region) -> Span:
        return self.offsets[region.first], min(self.offsets[region.stop], len(self.text))

    @property
    def whole_chars(self) -> int:
        return self.budget.limit_chars * WHOLE_TOKENS // LIMIT_TOKENS

    @property
    def all(self) -> Region:
        return Region(0, len(self.lines))


def page_of(text: str) -> TextLines:
    return TextLines(text, text.split("\n"), starts_of(text), CODE.fitted(text))


def marked_regions(page: TextLines) -> Iterator[Region]:
    """Return the regions between `---` lines."""
    marks = [at for at, line in enumerate(page.lines) if line.startswith("---")]
    for first, stop in zip([0, *(at + 1 for at in marks)], [*marks, len(page.lines)], strict=True):
        if first < stop:
            yield Region(first, stop)


def regions(page: TextLines, within: Region, starts: Sequence[int]) -> Iterator[tuple[Region, int | None]]:
    """Return the regions from start to start with the number of the start, None before the first.

    A comment right above a start belongs to it.
    """
    lines = [above(page, start, within.first) for start in starts]
    if not lines or lines[0] > within.first:
        yield Region(within.first, lines[0] if lines else within.stop), None
    for number, (first, stop) in enumerate(pairwise([*lines, within.stop])):
        if first < stop:
            yield Region(first, stop), number


def above(page: TextLines, line: int, lowest: int, marks: tuple[str, ...] = ("#",)) -> int:
    """Return the first line of the comment right above a line, or the line."""
    while line > lowest and page.lines[line - 1].lstrip().startswith(marks):
        line -= 1
    return line


def keyed_regions(
    page: TextLines, within: Region, pairs: Sequence[tuple[Node, Node]]
) -> Iterator[tuple[Region, tuple[Node, Node] | None]]:
    """Return the regions of the pairs of a map; None for the region before the first."""
    for region, number in regions(page, within, [key.first for key, _ in pairs]):
        yield region, None if number is None else pairs[number]


def spans_of(
    page: TextLines,
    region: Region,
    node: Node | None,
    *titles: str,
    whole: bool = False,
    facts: tuple[ServiceFact, ...] = (),
    **fields: Any,
) -> Iterator[ChunkSpan]:
    """Return the chunks of a region, under the titles and the keys to each, with the facts of its lines.

    `whole` keeps a region up to the length of a parent in one chunk.
    """
    span = page.span(region)
    together = whole and span[1] - span[0] <= page.whole_chars
    cut = [Part(span, ())] if together else parts(page, region, node)
    for part, own in zip(cut, facts_by_part(page, cut, facts), strict=True):
        yield ChunkSpan(part.span, trail(*titles, *part.path), facts=own, **fields)


def facts_by_part(page: TextLines, cut: Sequence[Part], facts: Sequence[ServiceFact]) -> list[tuple[ServiceFact, ...]]:
    """Return for each part the facts of its lines; the first has those without a line, too."""
    starts = [bisect_right(page.offsets, part.span[0]) for part in cut]
    owners = [max(bisect_right(starts, int(fact.place or 0)) - 1, 0) for fact in facts]
    return [tuple(fact for fact, at in zip(facts, owners, strict=True) if at == own) for own in range(len(cut))]


class Part(msgspec.Struct, frozen=True):
    """Span and the keys that lead to it."""

    span: Span
    path: tuple[str, ...]


def parts(page: TextLines, region: Region, node: Node | None, path: tuple[str, ...] = ()) -> list[Part]:
    """Cut to the usual size: neighbours are packed, a long part is cut at the keys or items within it."""
    start, stop = page.span(region)
    if stop - start <= page.budget.limit_chars:
        return [Part((start, stop), path)]
    children = _children(node, region)
    if not children:
        return [Part(span, path) for span in windows(page.text, (start, stop), page.budget)]
    found: list[Part] = []
    small: list[Span] = []
    for part, number in regions(page, region, [line for line, _, _ in children]):
        span = page.span(part)
        if span[1] - span[0] <= page.budget.limit_chars or number is None:
            small.append(span)
            continue
        found += [Part(each, path) for each in pack(page.text, small, page.budget)]
        small = []
        _, key, child = children[number]
        found += parts(page, part, child, (*path, key) if key else path)
    return found + [Part(each, path) for each in pack(page.text, small, page.budget)]


def _children(node: Node | None, region: Region) -> list[tuple[int, str, Node]]:
    """Return line, key and value of children that start on a line of their own in the region."""
    if node is None:
        return []
    if node.kind == "map":
        found = [(key.first, key.text, value) for key, value in node.pairs]
    else:
        found = [(item.first, _label(item), item) for item in node.items]
    inside: list[tuple[int, str, Node]] = []
    for line, key, child in found:
        if region.first <= line < region.stop and (not inside or line > inside[-1][0]):
            inside.append((line, key, child))
    return inside


def _label(item: Node) -> str:
    """Return the name of an item of a list, if it has one."""
    return next((name for key in ("name", "id", "alert", "job") if (name := item.text_at(key))), "")
