"""The stretches of text of a PDF's pages go in; its rows, in the order people read them, come out.

A page has two columns when hardly anything crosses a line near its middle and what stands on both sides fills them.
Then what crosses it, titles and wide tables, parts the page into bands, and each band is read left side first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from dowse.ingest.pdf.runs import Run

FEWEST_LINES = 5  # on each side of a gutter; chosen
MOST_CROSSING = 0.35  # of the lines beside the gutter; chosen: a title, an abstract and a figure's caption
FILLED = 0.25  # of the text's width that a column's lines have; chosen: the cells of a table have less
SAME_LINE = 0.4  # of the size of the type; chosen: a superscript is still in its line
FEWEST_REPEATED = 3  # pages that have the same line at the top or bottom; chosen
_PAGE_NUMBER = re.compile(
    r"(?:page\s+)?[-–]?\s*(?:\d{1,4}|[ivxl]{1,6})\s*[-–]?(?:\s*(?:/|of)\s*\d{1,4})?", re.IGNORECASE
)
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True)
class Row:
    """What stands on one line of a column: one stretch of text, or the cells of a table."""

    page: int  # from 1
    column: int  # which of the page's bands and sides: a row below the one before has the same
    runs: tuple[Run, ...]

    @property
    def text(self) -> str:
        return "  ".join(run.text for run in self.runs)

    @property
    def first(self) -> Run:
        return self.runs[0]


def rows_of(pages: Sequence[Sequence[Run]]) -> list[Row]:
    """All rows but running heads and page numbers."""
    ordered = [_page_rows(runs, number) for number, runs in enumerate(pages, start=1)]
    repeated = _running_heads(ordered)
    return [row for rows in ordered for row in _without(rows, repeated)]


def _page_rows(runs: Sequence[Run], number: int) -> list[Row]:
    gutter = gutter_of(runs)
    if gutter is None:
        return _rows(runs, number, 0)
    rows: list[Row] = []
    band: list[Run] = []
    crossing: list[Run] = []
    column = 0
    for run in sorted(runs, key=lambda run: (-run.y, run.left)):
        crosses = run.left < gutter < run.right
        if crosses and band:
            rows += _band(band, gutter, number, column)
            column, band = column + 2, []
        elif not crosses and crossing:
            rows += _rows(crossing, number, column)
            column, crossing = column + 1, []
        (crossing if crosses else band).append(run)
    return rows + _rows(crossing, number, column) + _band(band, gutter, number, column + 1)


def _band(runs: Sequence[Run], gutter: float, number: int, column: int) -> list[Row]:
    left = [run for run in runs if run.right <= gutter]
    right = [run for run in runs if run.right > gutter]
    return _rows(left, number, column) + _rows(right, number, column + 1)


def _rows(runs: Iterable[Run], number: int, column: int) -> list[Row]:
    """From top to bottom; runs on one baseline are one row, from left to right."""
    rows: list[list[Run]] = []
    for run in sorted(runs, key=lambda run: (-run.y, run.left)):
        if rows and abs(rows[-1][0].y - run.y) <= SAME_LINE * max(run.size, rows[-1][0].size):
            rows[-1].append(run)
        else:
            rows.append([run])
    return [Row(number, column, tuple(sorted(row, key=lambda run: run.left))) for row in rows]


def gutter_of(runs: Sequence[Run]) -> float | None:
    """The middle of the widest stretch near the page's middle that the fewest lines cross; None for one column."""
    if len(runs) < 2 * FEWEST_LINES:
        return None
    left, right = min(run.left for run in runs), max(run.right for run in runs)
    width = right - left
    first, last = int(left + 0.3 * width), int(left + 0.7 * width)
    if last <= first:
        return None
    changes = Counter[int]()
    for run in runs:
        changes[max(int(run.left) + 1, first)] += 1
        changes[max(int(run.right) + 1, first)] -= 1
    crossing, best, start, gutters = 0, len(runs) + 1, first, list[tuple[int, int, int]]()
    for x in range(first, last + 1):
        crossing += changes[x]
        if crossing != best or x == first:
            best, start = crossing, x
        gutters.append((crossing, start - x, start))
    fewest, span, start = min(gutters)
    gutter = start - span / 2
    sides = [run for run in runs if run.right <= gutter], [run for run in runs if run.left >= gutter]
    return gutter if _are_columns(sides, fewest, width) else None


def _are_columns(sides: tuple[list[Run], list[Run]], crossing: int, width: float) -> bool:
    left, right = sides
    if min(len(left), len(right)) < FEWEST_LINES or crossing > MOST_CROSSING * (len(left) + len(right)):
        return False
    return all(median(run.width for run in side) >= FILLED * width for side in sides)


def _running_heads(pages: Sequence[Sequence[Row]]) -> set[tuple[str, int]]:
    """Texts, with their numbers blotted out, that several pages have at the top or bottom."""
    seen: Counter[tuple[str, int]] = Counter()
    for rows in pages:
        seen.update({_blotted(row) for row in _margins(rows)})
    return {text for text, count in seen.items() if count >= FEWEST_REPEATED}


def _margins(rows: Sequence[Row]) -> list[Row]:
    by_height = sorted(rows, key=lambda row: -row.first.y)
    return by_height[:2] + by_height[-2:]


def _blotted(row: Row) -> tuple[str, int]:
    """Its size is part of it: a running head often repeats the title, which must stay."""
    return _DIGITS.sub("#", row.text), round(row.first.size)


def _without(rows: Sequence[Row], repeated: set[tuple[str, int]]) -> list[Row]:
    margins = {id(row) for row in _margins(rows)}
    return [
        row
        for row in rows
        if id(row) not in margins or (_blotted(row) not in repeated and not _PAGE_NUMBER.fullmatch(row.text))
    ]
