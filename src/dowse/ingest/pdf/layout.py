"""Page layout of a PDF: runs of text enter, rows in reading order leave.

A page has two columns when few lines cross its middle and the lines on both sides fill them. Then lines that cross it,
titles and wide tables, divide the page into bands, and each band is read left side first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median

import msgspec

from dowse.ingest.pdf.runs import TextRun

FEWEST_LINES = 5  # on each side of a gutter; chosen
MOST_CROSSING = 0.35  # of the lines beside the gutter; chosen: a title, an abstract and a figure's caption
FILLED = 0.25  # of the text's width that a column's lines have; chosen: the cells of a table have less
SAME_LINE = 0.4  # of the size of the type; chosen: a superscript is still in its line
FEWEST_REPEATED = 3  # pages that have the same line at the top or bottom; chosen
_PAGE_NUMBER = re.compile(
    r"(?:page\s+)?[-–]?\s*(?:\d{1,4}|[ivxl]{1,6})\s*[-–]?(?:\s*(?:/|of)\s*\d{1,4})?", re.IGNORECASE
)
_DIGITS = re.compile(r"\d+")


class TextRow(msgspec.Struct, frozen=True):
    """Line of a column: one run of text, or the cells of a table."""

    page: int  # from 1
    column: int  # which of the page's bands and sides: a row below the one before has the same
    runs: tuple[TextRun, ...]

    @property
    def text(self) -> str:
        return "  ".join(run.text for run in self.runs)

    @property
    def place(self) -> tuple[int, int]:
        return self.page, self.column

    @property
    def first(self) -> TextRun:
        return self.runs[0]


def rows_of(pages: Sequence[Sequence[TextRun]]) -> list[TextRow]:
    """Return all rows but running heads and page numbers."""
    ordered = [_page_rows(runs, number) for number, runs in enumerate(pages, start=1)]
    # Texts, without their numbers, that several pages have at the top or bottom.
    margins = Counter(text for rows in ordered for text in {_blotted(row) for row in _margins(rows)})
    repeated = {text for text, count in margins.items() if count >= FEWEST_REPEATED}
    return [row for rows in ordered for row in _without(rows, repeated)]


def _page_rows(runs: Sequence[TextRun], number: int) -> list[TextRow]:
    gutter = gutter_of(runs)
    if gutter is None:
        return _rows(runs, number, 0)
    rows: list[TextRow] = []
    band: list[TextRun] = []
    crossing: list[TextRun] = []
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


def _band(runs: Sequence[TextRun], gutter: float, number: int, column: int) -> list[TextRow]:
    left = [run for run in runs if run.right <= gutter]
    right = [run for run in runs if run.right > gutter]
    return _rows(left, number, column) + _rows(right, number, column + 1)


def _rows(runs: Iterable[TextRun], number: int, column: int) -> list[TextRow]:
    """Return rows from top to bottom; runs on one baseline are one row, from left to right."""
    rows: list[list[TextRun]] = []
    for run in sorted(runs, key=lambda run: (-run.y, run.left)):
        if rows and abs(rows[-1][0].y - run.y) <= SAME_LINE * max(run.size, rows[-1][0].size):
            rows[-1].append(run)
        else:
            rows.append([run])
    return [TextRow(number, column, tuple(sorted(row, key=lambda run: run.left))) for row in rows]


def gutter_of(runs: Sequence[TextRun]) -> float | None:
    """Return the middle of the widest gap that the fewest lines cross; None for one column."""
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
    if min(map(len, sides)) < FEWEST_LINES or fewest > MOST_CROSSING * sum(map(len, sides)):
        return None
    return gutter if all(median(run.width for run in side) >= FILLED * width for side in sides) else None


def _margins(rows: Sequence[TextRow]) -> list[TextRow]:
    by_height = sorted(rows, key=lambda row: -row.first.y)
    return by_height[:2] + by_height[-2:]


def _blotted(row: TextRow) -> tuple[str, int]:
    """Return text and size of a row: a running head often repeats the title, which must stay."""
    return _DIGITS.sub("#", row.text), round(row.first.size)


def _without(rows: Sequence[TextRow], repeated: set[tuple[str, int]]) -> list[TextRow]:
    margins = {id(row) for row in _margins(rows)}
    return [
        row
        for row in rows
        if id(row) not in margins or (_blotted(row) not in repeated and not _PAGE_NUMBER.fullmatch(row.text))
    ]
