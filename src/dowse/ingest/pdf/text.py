"""The rows of a PDF go in; its text, with headings, paragraphs and tables found by how they are set, comes out."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median

from dowse.ingest.chunking.page import UNKNOWN, section_type
from dowse.ingest.chunking.sections import Mark
from dowse.ingest.pdf.layout import Row

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
# Headings that need no larger type: nothing else stands on a line of its own under these names.
_ALONE = re.compile(
    r"abstract|introduction|background|related works?|methods?|methodology|experiments|evaluation|results|discussion"
    r"|conclusions?|references|bibliography|appendix|acknowledge?ments|materials and methods|results and discussion"
    r"|limitations",
    re.IGNORECASE,
)
_NO_HEADING = re.compile(r"@|(?:\. ?){4}")  # an address; the dots of a table of contents
_HYPHENATED = re.compile(r"[^\W\d_]{2}-$")
_SENTENCE_END = (".", "!", "?", ":", ";", "。")


@dataclass(frozen=True)
class PdfPage:
    """The text of a PDF."""

    text: str
    marks: tuple[Mark, ...]
    page_starts: tuple[int, ...]  # offset of the first character of each page, in order
    title: str | None
    body_size: float


def text_of(rows: Sequence[Row], page_count: int) -> PdfPage:
    body = body_size(rows)
    title = _title_rows(rows, body)
    writer = _Writer(rows, body, {id(row) for row in title}, leading_of(rows, body), page_count)
    writer.write()
    starts = [min(writer.starts[page:], default=writer.length) for page in range(page_count)]
    shown = " ".join(row.text for row in title)
    return PdfPage("".join(writer.parts), tuple(writer.marks), tuple(starts), shown or None, body)


def body_size(rows: Sequence[Row]) -> float:
    """The size that most characters have."""
    counts: Counter[float] = Counter()
    for row in rows:
        for run in row.runs:
            counts[round(run.size * 2) / 2] += len(run.text)
    return max(counts.items(), key=lambda item: (item[1], item[0]))[0] if counts else 10.0


def leading_of(rows: Sequence[Row], body: float) -> float:
    gaps = [
        before.first.y - after.first.y
        for before, after in pairwise(rows)
        if (before.page, before.column) == (after.page, after.column) and 0 < before.first.y - after.first.y < 4 * body
    ]
    return median(gaps) if gaps else 1.2 * body


def _title_rows(rows: Sequence[Row], body: float) -> list[Row]:
    """The largest type on the first page, if it is larger than the text, on neighbouring rows near its top."""
    first = [row for row in rows if row.page == 1][:30]
    largest = max((row.first.size for row in first), default=0.0)
    if largest < TITLE_LARGER * body:
        return []
    found: list[Row] = []
    for row in first:
        if row.first.size >= 0.95 * largest:
            found.append(row)
        elif found:
            break
    return found if sum(len(row.text) for row in found) <= 300 else []


@dataclass
class _Writer:
    """The text so far."""

    rows: Sequence[Row]
    body: float
    title: set[int]  # ids of the title's rows
    leading: float
    page_count: int
    parts: list[str] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    length: int = 0
    hyphenated: bool = False

    def write(self) -> None:
        self.starts = [1 << 62] * self.page_count
        tables = _tables(self.rows)
        before: Row | None = None
        for at, row in enumerate(self.rows):
            if at in tables:
                self._table_row(row, at, tables)
            elif id(row) in self.title:
                self._title(row, before)
            else:
                self._row(row, before)
            before = row

    def _title(self, row: Row, before: Row | None) -> None:
        again = before is not None and id(before) in self.title
        if not again:
            title = " ".join(each.text for each in self.rows if id(each) in self.title)
            self._add(row, row.text, "\n\n", Mark(0, 1, title))
        else:
            self._add(row, row.text, "\n")

    def _row(self, row: Row, before: Row | None) -> None:
        level = self._heading_level(row, before)
        abstract = _ABSTRACT.match(row.text) if not self.marks or len(self.marks) < 12 else None
        after_heading = bool(self.marks) and self.marks[-1].level > 0 and before is not None
        if abstract and len(row.runs) == 1:
            self._add(row, row.text, "\n\n", Mark(0, 2, "Abstract"))
        elif level and before is not None and after_heading and self._goes_on(row, before):
            self._add(row, row.text, "\n")
        elif level:
            self._add(row, row.text, "\n\n", Mark(0, level, row.text))
        elif before is None or self._is_new_paragraph(row, before):
            self._add(row, row.text, "\n\n", Mark(0))
        else:
            self._add(row, row.text, "\n")

    def _goes_on(self, row: Row, before: Row) -> bool:
        """The second line of a long heading."""
        return (
            (row.page, row.column) == (before.page, before.column)
            and row.first.size == before.first.size
            and row.first.bold == before.first.bold
            and before.first.y - row.first.y < 1.5 * row.first.size
            and not _NUMBERED.match(row.text)
            and self._heading_level(before, None) > 0
            and len(before.text) > 30
        )

    def _heading_level(self, row: Row, before: Row | None) -> int:
        """0 for none. A heading is short, and either set apart by its type or one of those that every paper has."""
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

    def _is_new_paragraph(self, row: Row, before: Row) -> bool:
        if (row.page, row.column) != (before.page, before.column):
            return before.text.endswith(_SENTENCE_END) and not before.first.hyphenated
        gap = before.first.y - row.first.y
        changed = abs(row.first.size - before.first.size) > 0.15 * self.body
        indented = row.first.left - before.first.left > 0.8 * row.first.size and before.text.endswith(_SENTENCE_END)
        return gap > PARAGRAPH_GAP * self.leading or changed or indented

    def _table_row(self, row: Row, at: int, tables: dict[int, int]) -> None:
        """Rows of a table stand below each other; the first says what stands in the columns."""
        text = " | ".join(run.text for run in row.runs)
        if tables[at] == at:
            captioned = bool(self.parts) and _CAPTION.match(self._last_paragraph()) is not None
            self._add(row, text, "\n" if captioned else "\n\n", None if captioned else Mark(0, lead=text))
            if captioned and self.marks and not self.marks[-1].level:
                last = self.marks[-1]
                self.marks[-1] = Mark(last.start, lead=text)
        else:
            self._add(row, text, "\n")

    def _last_paragraph(self) -> str:
        start = self.marks[-1].start if self.marks else 0
        return "".join(self.parts)[start:] if self.length - start < 2000 else ""

    def _add(self, row: Row, text: str, blank: str, mark: Mark | None = None) -> None:
        if self.hyphenated and mark is None:
            blank = self._hyphen(text)
        elif not self.parts:
            blank = ""
        self.length += len(blank)
        self.starts[row.page - 1] = min(self.starts[row.page - 1], self.length)
        if mark is not None:
            self.marks.append(Mark(self.length, mark.level, mark.title, mark.lead))
        self.parts += (blank, text)
        self.length += len(text)
        self.hyphenated = row.runs[-1].hyphenated or _HYPHENATED.search(text) is not None

    def _hyphen(self, text: str) -> str:
        """What stands between the halves of a word: nothing if the second starts small, else the hyphen."""
        written = self.parts[-1].endswith("-")
        if not text[:1].islower():
            return "\n" if written else "-"
        if written:
            self.parts[-1] = self.parts[-1][:-1]
            self.length -= 1
        return ""


def _tables(rows: Sequence[Row]) -> dict[int, int]:
    """Rows of tables, and for each the place of its table's first: neighbours with at least two cells each."""
    found: dict[int, int] = {}
    start: int | None = None
    for at in range(len(rows) + 1):
        row = rows[at] if at < len(rows) else None
        if row is not None and len(row.runs) >= 2 and (start is None or _same_place(rows[at - 1], row)):
            start = at if start is None else start
            continue
        if start is not None and at - start >= FEWEST_TABLE_ROWS:
            found |= dict.fromkeys(range(start, at), start)
        start = at if row is not None and len(row.runs) >= 2 else None
    return found


def _same_place(before: Row, row: Row) -> bool:
    return (before.page, before.column) == (row.page, row.column)
