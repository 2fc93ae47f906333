"""Text of a PDF: rows enter; text with headings, paragraphs and tables leaves, found by their type."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import groupby, pairwise
from statistics import median

import msgspec
from msgspec.structs import replace

from dowse.ingest.chunking.page import UNKNOWN, section_type
from dowse.ingest.chunking.sections import CutPoint
from dowse.ingest.pdf.layout import TextRow

LONGEST_HEADING_CHARS = 100  # chosen
LARGER = 1.12  # than the body's type; chosen: 11 points over 10 may be a mere caption, 12 a heading
TITLE_LARGER = 1.2
PARAGRAPH_GAP = 1.4  # of the usual distance of lines; chosen
FEWEST_TABLE_ROWS = 2
_NUMBERED = re.compile(
    r"(?:(\d{1,2}(?:\.\d{1,2}){0,3})\.?|([IVX]{1,5})\.|([A-H])\.?|Appendix\s+[A-Z]\b[.:]?)\s+(?=[A-Z“\"])"
)
_ABSTRACT = re.compile(r"(abstract|summary)\s*(?:[.:—–-]+\s*|$)", re.IGNORECASE)
_CAPTION = re.compile(r"(?:table|tab\.)\s+(?:\d+|[IVX]+)\b", re.IGNORECASE)
# Headings that need no larger type: a line with one of these names alone is always one.
_ALONE = re.compile(
    r"abstract|introduction|background|related works?|methods?|methodology|experiments|evaluation|results|discussion"
    r"|conclusions?|references|bibliography|appendix|acknowledge?ments|materials and methods|results and discussion"
    r"|limitations",
    re.IGNORECASE,
)
_NO_HEADING = re.compile(r"@|(?:\. ?){4}")  # an address; the dots of a table of contents
_HYPHENATED = re.compile(r"[^\W\d_]{2}-$")
_SENTENCE_END = (".", "!", "?", ":", ";", "。")


class PdfPage(msgspec.Struct, frozen=True):
    """Text of a PDF, where it may be cut, and where its pages start."""

    text: str
    marks: tuple[CutPoint, ...]
    page_starts: tuple[int, ...]  # offset of the first character of each page, in order
    title: str | None


def text_of(rows: Sequence[TextRow], page_count: int) -> PdfPage:
    body = body_size(rows)
    title = _title_rows(rows, body)
    writer = _PdfWriter(rows, body, title, page_count)
    starts = [min(writer.starts[page:], default=writer.length) for page in range(page_count)]
    return PdfPage("".join(writer.parts), tuple(writer.marks), tuple(starts), writer.title_text or None)


def body_size(rows: Sequence[TextRow]) -> float:
    """Return the size of most characters."""
    counts: Counter[float] = Counter()
    for row in rows:
        for run in row.runs:
            counts[round(run.size * 2) / 2] += len(run.text)
    return max(counts.items(), key=lambda item: (item[1], item[0]))[0] if counts else 10.0


def leading_of(rows: Sequence[TextRow], body: float) -> float:
    gaps = [
        before.first.y - after.first.y
        for before, after in pairwise(rows)
        if before.place == after.place and 0 < before.first.y - after.first.y < 4 * body
    ]
    return median(gaps) if gaps else 1.2 * body


def _title_rows(rows: Sequence[TextRow], body: float) -> list[TextRow]:
    """Return the rows of the largest type near the top of the first page, if larger than the text."""
    first = [row for row in rows if row.page == 1][:30]
    largest = max((row.first.size for row in first), default=0.0)
    if largest < TITLE_LARGER * body:
        return []
    found: list[TextRow] = []
    for row in first:
        if row.first.size >= 0.95 * largest:
            found.append(row)
        elif found:
            break
    return found if sum(len(row.text) for row in found) <= 300 else []


class _PdfWriter:
    """Writer of the text and of the places where it may be cut."""

    def __init__(self, rows: Sequence[TextRow], body: float, title: Sequence[TextRow], page_count: int) -> None:
        self.body = body
        self.leading = leading_of(rows, body)
        self.title = {id(row) for row in title}
        self.title_text = " ".join(row.text for row in title)
        self.parts: list[str] = []
        self.marks: list[CutPoint] = []
        self.starts = [1 << 62] * page_count
        self.length = 0
        self.hyphenated = False
        tables = _tables(rows)
        before: TextRow | None = None
        for at, row in enumerate(rows):
            if at in tables:
                self._table_row(row, first=tables[at] == at)
            elif id(row) in self.title:
                again = before is not None and id(before) in self.title
                self._add(row, row.text, "\n" if again else "\n\n", None if again else CutPoint(0, 1, self.title_text))
            else:
                self._row(row, before)
            before = row

    def _row(self, row: TextRow, before: TextRow | None) -> None:
        level = self._heading_level(row, before)
        abstract = _ABSTRACT.match(row.text) if len(self.marks) < 12 else None
        mark: CutPoint | None = None
        if abstract and len(row.runs) == 1:
            mark = CutPoint(0, 2, "Abstract")
        elif level:
            after_heading = before is not None and bool(self.marks) and self.marks[-1].level > 0
            if not (after_heading and before is not None and self._goes_on(row, before)):
                mark = CutPoint(0, level, row.text)
        elif before is None or self._is_new_paragraph(row, before):
            mark = CutPoint(0)
        self._add(row, row.text, "\n\n" if mark else "\n", mark)

    def _goes_on(self, row: TextRow, before: TextRow) -> bool:
        """Tell whether a row is the second line of a long heading."""
        return (
            row.place == before.place
            and row.first.size == before.first.size
            and row.first.bold == before.first.bold
            and before.first.y - row.first.y < 1.5 * row.first.size
            and not _NUMBERED.match(row.text)
            and self._heading_level(before, None) > 0
            and len(before.text) > 30
        )

    def _heading_level(self, row: TextRow, before: TextRow | None) -> int:
        """Return the level, or 0. A heading is short and of other type, or one that every paper has."""
        text, run = row.text, row.first
        if len(row.runs) > 2 or len(text) > LONGEST_HEADING_CHARS or len(text) < 3 or not any(map(str.isalpha, text)):
            return 0
        if _NO_HEADING.search(text):
            return 0
        numbered = _NUMBERED.match(text)
        larger = run.size >= LARGER * self.body
        upper = text.isupper()
        alone = _ALONE.fullmatch(text.strip(" .:")) is not None
        if not (larger or run.bold or upper or numbered or alone) or (len(row.runs) == 2 and not numbered):
            return 0
        known = alone or (len(text.split()) <= 5 and section_type([(2, text)], None) != UNKNOWN)
        apart = larger or run.bold or (upper and (known or bool(numbered)))
        if text.endswith((".", ",", ";")) and not (numbered and apart):
            return 0
        if not (apart or alone or (numbered and known)):
            return 0
        if numbered and numbered[1]:
            return min(2 + numbered[1].count("."), 6)
        return 2 if known or larger or numbered else 3

    def _is_new_paragraph(self, row: TextRow, before: TextRow) -> bool:
        if row.place != before.place:
            return before.text.endswith(_SENTENCE_END) and not before.first.hyphenated
        gap = before.first.y - row.first.y
        changed = abs(row.first.size - before.first.size) > 0.15 * self.body
        indented = row.first.left - before.first.left > 0.8 * row.first.size and before.text.endswith(_SENTENCE_END)
        return gap > PARAGRAPH_GAP * self.leading or changed or indented

    def _table_row(self, row: TextRow, *, first: bool) -> None:
        """Write a row of a table; the first names the columns."""
        text = " | ".join(run.text for run in row.runs)
        captioned = first and bool(self.parts) and _CAPTION.match(self._last_paragraph()) is not None
        apart = first and not captioned
        self._add(row, text, "\n\n" if apart else "\n", CutPoint(0, lead=text) if apart else None)
        if captioned and self.marks and not self.marks[-1].level:
            self.marks[-1] = CutPoint(self.marks[-1].start, lead=text)

    def _last_paragraph(self) -> str:
        start = self.marks[-1].start if self.marks else 0
        return "".join(self.parts)[start:] if self.length - start < 2000 else ""

    def _add(self, row: TextRow, text: str, blank: str, mark: CutPoint | None = None) -> None:
        if self.hyphenated and mark is None:
            blank = self._hyphen(text)
        elif not self.parts:
            blank = ""
        self.length += len(blank)
        self.starts[row.page - 1] = min(self.starts[row.page - 1], self.length)
        if mark is not None:
            self.marks.append(replace(mark, start=self.length))
        self.parts += (blank, text)
        self.length += len(text)
        self.hyphenated = row.runs[-1].hyphenated or _HYPHENATED.search(text) is not None

    def _hyphen(self, text: str) -> str:
        """Return the joint between halves of a word: nothing before a small letter, else the hyphen."""
        written = self.parts[-1].endswith("-")
        if not text[:1].islower():
            return "\n" if written else "-"
        if written:
            self.parts[-1] = self.parts[-1][:-1]
            self.length -= 1
        return ""


def _tables(rows: Sequence[TextRow]) -> dict[int, int]:
    """Return rows of tables with the first row of each: neighbours with at least two cells each."""
    found: dict[int, int] = {}
    start = 0
    for (_, has_cells), run in groupby(rows, key=lambda row: (row.place, len(row.runs) >= 2)):
        stop = start + sum(1 for _ in run)
        if has_cells and stop - start >= FEWEST_TABLE_ROWS:
            found |= dict.fromkeys(range(start, stop), start)
        start = stop
    return found
