"""Regions of a manifest: a text and the starts of its parts enter, spans of whole parts leave."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import msgspec

from dowse.ingest.chunking.document import ChunkSpan, starts_of, trail
from dowse.ingest.chunking.pack import CODE, LIMIT_TOKENS, Budget, Span, pack, windows
from dowse.ingest.manifests.yaml_nodes import Node
from dowse.types import ServiceFact

T = TypeVar("T")

WHOLE_TOKENS = 1024  # a resource, service, job or operation up to here is one chunk: as long as a parent


Keys = tuple[str, ...]


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


def regions(page: TextLines, within: Region, starts: Sequence[tuple[int, T]]) -> Iterator[tuple[Region, T | None]]:
    """Return the regions from line to line with what starts there, None before the first.

    A comment right above a start belongs to it.
    """
    lines = [above(page, line, within.first) for line, _ in starts]
    if not lines or lines[0] > within.first:
        yield Region(within.first, lines[0] if lines else within.stop), None
    for (first, stop), (_, started) in zip(pairwise([*lines, within.stop]), starts, strict=True):
        if first < stop:
            yield Region(first, stop), started


def above(page: TextLines, line: int, lowest: int, marks: tuple[str, ...] = ("#",)) -> int:
    """Return the first line of the comment right above a line, or the line."""
    while line > lowest and page.lines[line - 1].lstrip().startswith(marks):
        line -= 1
    return line


def keyed_regions(
    page: TextLines, within: Region, pairs: Sequence[tuple[Node, Node]]
) -> Iterator[tuple[Region, tuple[Node, Node] | None]]:
    """Return the regions of the pairs of a map; None for the region before the first."""
    return regions(page, within, [(pair[0].first, pair) for pair in pairs])


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
    cut = [(span, ())] if together else _parts(page, region, node)
    starts = [bisect_right(page.offsets, start) for (start, _), _ in cut]
    # The first part has the facts without a line, too.
    owners = [max(bisect_right(starts, int(fact.place or 0)) - 1, 0) for fact in facts]
    for number, (span, path) in enumerate(cut):
        own = tuple(fact for fact, owner in zip(facts, owners, strict=True) if owner == number)
        yield ChunkSpan(span, trail(*titles, *path), facts=own, **fields)


def _parts(page: TextLines, region: Region, node: Node | None, path: Keys = ()) -> list[tuple[Span, Keys]]:
    """Cut to the usual size: neighbours are packed, a long part is cut at the keys or items within it.

    Each span has the keys that lead to it.
    """
    start, stop = page.span(region)
    if stop - start <= page.budget.limit_chars:
        return [((start, stop), path)]
    children = _children(node, region) if node else []
    if not children:
        return [(span, path) for span in windows(page.text, (start, stop), page.budget)]
    found: list[tuple[Span, Keys]] = []
    small: list[Span] = []
    for part, started in regions(page, region, children):
        span = page.span(part)
        if span[1] - span[0] <= page.budget.limit_chars or started is None:
            small.append(span)
            continue
        found += [(each, path) for each in pack(page.text, small, page.budget)]
        small = []
        key, child = started
        found += _parts(page, part, child, (*path, key) if key else path)
    return found + [(each, path) for each in pack(page.text, small, page.budget)]


def _children(node: Node, region: Region) -> list[tuple[int, tuple[str, Node]]]:
    """Return lines of children that start on a line of their own in the region, each with its key and value."""
    pairs = [(key.first, (key.text, value)) for key, value in node.pairs]
    items = [(item.first, (_label(item), item)) for item in node.items]
    inside: list[tuple[int, tuple[str, Node]]] = []
    for line, child in pairs or items:
        if region.first <= line < region.stop and (not inside or line > inside[-1][0]):
            inside.append((line, child))
    return inside


def _label(item: Node) -> str:
    """Return the name of an item of a list, if it has one."""
    return next((name for key in ("name", "id", "alert", "job") if (name := item.text_at(key))), "")
