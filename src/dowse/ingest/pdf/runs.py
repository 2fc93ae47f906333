"""Text runs of a PDF: bytes enter, the text of each page with place and size leaves.

Only this module imports PDFium. It returns characters in drawing order, words of one line together. A line is cut at
gaps wider than a space: the gutter between two columns, or between cells of a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from ctypes import c_char, c_double, c_int
from typing import TYPE_CHECKING, Any

import msgspec

from dowse.errors import BadRequestError

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfTextPage

MOST_PAGES = 5_000  # chosen
WIDEST_SPACE = 1.2  # of the size of the type; chosen: words of a justified line are closer, columns farther apart
HYPHEN = "\ufffe"  # what PDFium writes for a hyphen at the end of a line, in place of the line's end
_LINE = re.compile(r"[^\r\n\ufffe]+(\ufffe?)")
_BLANKS = re.compile(" +")
_BOLD = re.compile(rb"bold|black|heavy|demi|[-,]bd\b|cmbx|\bb\b", re.IGNORECASE)
_LONGEST_FONT_BYTES = 64


class TextRun(msgspec.Struct, frozen=True):
    """Text of one line, in points from the lower left corner of its page."""

    text: str
    left: float
    right: float
    y: float  # of the baseline
    size: float
    bold: bool = False
    hyphenated: bool = False  # its last word goes on in the next line

    @property
    def width(self) -> float:
        return self.right - self.left


Pages = tuple[tuple[TextRun, ...], ...]


def read_runs(data: bytes) -> tuple[Pages, dict[str, str]]:
    """Return text runs by page, and properties: Title, Author, CreationDate …

    Raise BadRequestError for a damaged, locked, too long or scanned file.
    """
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as err:
        locked, reason = "assword" in str(err), str(err).rstrip(".")
        damaged = f"damaged, or not a PDF ({reason}); open and save it again"
        raise BadRequestError("encrypted PDF; save it without a password" if locked else damaged) from err
    try:
        if len(document) > MOST_PAGES:
            raise BadRequestError(f"{len(document):,} pages, the limit is {MOST_PAGES:,}; split the file")
        pages = tuple(_page(document, number) for number in range(len(document)))
        info = {key: value for key, value in document.get_metadata_dict().items() if value.strip()}
    except pypdfium2.PdfiumError as err:
        raise BadRequestError(f"damaged PDF: {err}; open and save it again") from err
    finally:
        document.close()
    if not any(pages):
        raise BadRequestError(
            f"no text in its {len(pages)} page{'s' if len(pages) != 1 else ''}, only pictures; "
            "a scan needs text recognition first, for example with ocrmypdf"
        )
    return pages, info


def _page(document: PdfDocument, number: int) -> tuple[TextRun, ...]:
    page = document[number]
    text = page.get_textpage()
    try:
        return tuple(_runs(text))
    finally:
        text.close()
        page.close()


def _runs(page: PdfTextPage) -> Iterator[TextRun]:
    import pypdfium2.raw as pdfium

    glyphs = _Glyphs(page, pdfium)
    for line in _LINE.finditer(page.get_text_range()):
        text = line[0].rstrip(HYPHEN)
        if not text.strip():
            continue
        at = pdfium.FPDFText_GetCharIndexFromTextIndex(page.raw, line.start())
        if at < 0:
            continue
        parts = list(_parts(text, at, glyphs.size(at), glyphs))
        for part, (start, stop) in enumerate(parts):
            words = text[start:stop].replace("\xad", "").replace("\0", "")
            bare = words.strip()
            if not bare:
                continue
            first = at + start + len(words) - len(words.lstrip())
            left, _ = glyphs.edges(first)
            _, right = glyphs.edges(at + start + len(words.rstrip()) - 1)
            hyphenated = bool(line[1]) and part == len(parts) - 1
            size = glyphs.size(first)  # the next column may be set in another
            yield TextRun(bare, left, max(left, right), glyphs.baseline(first), size, glyphs.bold(first), hyphenated)


def _parts(text: str, at: int, size: float, glyphs: _Glyphs) -> Iterator[tuple[int, int]]:
    """Return where a line is cut: at spaces wider than one character."""
    start = 0
    for space, after in (blank.span() for blank in _BLANKS.finditer(text)):
        if start < space and after < len(text):
            gap = glyphs.edges(at + after)[0] - glyphs.edges(at + space - 1)[1]
            # Back to the left, or far to the right.
            if gap > WIDEST_SPACE * size or gap < -2 * size:
                yield start, space
                start = after
    yield start, len(text)


class _Glyphs:
    """Measures of single characters by PDFium's C functions; their out-parameters are made once."""

    def __init__(self, page: PdfTextPage, pdfium: Any) -> None:
        self._raw = page.raw
        self._pdfium = pdfium
        self._box = (c_double(), c_double(), c_double(), c_double())
        self._font = (c_char * _LONGEST_FONT_BYTES)()
        self._flags = c_int()

    def edges(self, at: int) -> tuple[float, float]:
        self._pdfium.FPDFText_GetCharBox(self._raw, at, *self._box)
        return self._box[0].value, self._box[1].value

    def baseline(self, at: int) -> float:
        x, y, _, _ = self._box
        self._pdfium.FPDFText_GetCharOrigin(self._raw, at, x, y)
        return y.value

    def size(self, at: int) -> float:
        size = float(self._pdfium.FPDFText_GetFontSize(self._raw, at))
        if size > 2:
            return size
        # A font of size 1 that is scaled on the page: its height counts.
        self.edges(at)
        _, _, bottom, top = self._box
        return max(1.4 * (top.value - bottom.value), 4.0)

    def bold(self, at: int) -> bool:
        count = self._pdfium.FPDFText_GetFontInfo(self._raw, at, self._font, _LONGEST_FONT_BYTES, self._flags)
        named = 0 < count <= _LONGEST_FONT_BYTES and _BOLD.search(self._font.value) is not None
        return named or self._pdfium.FPDFText_GetFontWeight(self._raw, at) >= 600
