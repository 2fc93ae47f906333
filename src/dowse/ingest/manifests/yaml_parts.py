"""A YAML text and where things start in it go in; spans that keep those things together come out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from dowse.ingest.chunking.pack import CODE, Budget, Span, pack, windows
from dowse.ingest.manifests.yaml_nodes import Node

WHOLE_TOKENS = 1024  # a resource, service, job or operation up to here is one chunk: as long as a parent (design 3)
SEPARATOR = " > "


@dataclass(frozen=True)
class Region:
    """Lines [first, stop), counted from 0."""

    first: int
    stop: int


@dataclass(frozen=True)
class Page:
    """A text by its lines."""

    text: str
    lines: list[str]
    offsets: list[int]  # of each line, and of the end
    budget: Budget

    def span(self, region: Region) -> Span:
        return self.offsets[region.first], min(self.offsets[region.stop], len(self.text))

    @property
    def whole_chars(self) -> int:
        return self.budget.limit_chars * WHOLE_TOKENS // 384

    @property
    def all(self) -> Region:
        return Region(0, len(self.lines))


def page_of(text: str) -> Page:
    lines = text.split("\n")
    return Page(text, lines, list(accumulate((len(line) + 1 for line in lines), initial=0)), CODE.fitted(text))


def regions(page: Page, within: Region, starts: Sequence[int]) -> Iterator[tuple[Region, int | None]]:
    """What lies between the starts, with the number of its start; None for what comes before the first.

    A comment that stands right above a start belongs to it.
    """
    lines = [_above(page, start, within.first) for start in starts]
    if not lines or lines[0] > within.first:
        yield Region(within.first, lines[0] if lines else within.stop), None
    for number, (first, stop) in enumerate(pairwise([*lines, within.stop])):
        if first < stop:
            yield Region(first, stop), number


def _above(page: Page, line: int, lowest: int) -> int:
    while line > lowest and page.lines[line - 1].lstrip().startswith("#"):
        line -= 1
    return line


def whole_or_parts(page: Page, region: Region, node: Node | None, path: tuple[str, ...] = ()) -> Iterator[Part]:
    """One part where it fits into a long chunk; else what `parts` gives."""
    start, stop = page.span(region)
    if stop - start <= page.whole_chars:
        yield Part((start, stop), path)
    else:
        yield from parts(page, region, node, path)


@dataclass(frozen=True)
class Part:
    """A span and the keys that lead to it."""

    span: Span
    path: tuple[str, ...]


def parts(page: Page, region: Region, node: Node | None, path: tuple[str, ...] = ()) -> list[Part]:
    """Spans of the usual size: neighbours are packed, what is too long is cut at the keys or items within it."""
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
    """Line, key and value of what starts on a line of its own in the region; what an alias means stands elsewhere."""
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
    """What an item of a list is called, if it says so."""
    return next((name for key in ("name", "id", "alert", "job") if (name := item.text_at(key))), "")
