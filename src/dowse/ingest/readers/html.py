"""Reader of HTML: a chunk for each section of the text that a visitor reads.

Navigation, scripts and forms are left out; headings, lists, tables and preformatted text keep their shape.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dowse.errors import BadRequestError
from dowse.ingest.chunking.document import Lines, decode, starts_of
from dowse.ingest.chunking.page import SectionedText, document_of
from dowse.ingest.chunking.sections import CutPoint, sections_of
from dowse.ports import SourceFile
from dowse.types import Document

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BLOCKS = _names(
    "address article aside blockquote body caption dd details div dl dt fieldset figcaption figure footer form header "
    "hr html li main ol p pre section summary table tbody tfoot thead tr ul h1 h2 h3 h4 h5 h6"
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_TIGHT = _names("li tr dt dd thead tbody tfoot caption ul ol")  # no blank line before
_CELLS = _names("td th")
_ESCAPED = re.compile(r"[&<>\"'\r\xa0]|[^\x00-\x7f]")
_BODY = re.compile(r"<body\b", re.IGNORECASE)
_BLANK_LINES = re.compile(r"\A(?:[^\S\n]*\n)+")
_LOOKED_FOR_CHARS = 40  # chosen: enough to be unique nearby


class _HtmlWriter:
    """Writer of the text and of the places where it may be cut."""

    def __init__(self, source: str) -> None:
        body = _BODY.search(source)
        self.source = source
        self.line_starts = starts_of(source)[:-1]
        self.at = body.start() if body else 0  # in the source
        self.parts: list[str] = []
        self.marks: list[CutPoint] = []
        self.lines: list[tuple[int, int]] = []  # of the source, first and last, for each line begun
        self.length = 0
        self.blank = ""  # to write before the next text
        self.pre = 0
        self.wrapped = False  # the last text ended with its line
        self.first_cell = True
        self.heading: CutPoint | None = None
        self.heading_part = 0
        self.pending: CutPoint | None = None

    def write(self, root: LexborNode) -> None:
        """Enter and leave every node in order; a list replaces recursion."""
        above: list[LexborNode] = [root]
        node = root.first_child
        self._enter(root)
        while above:
            if node is None:
                node = above.pop()
                self._leave(node)
                node = node.next if above else None
                continue
            self._enter(node)
            if node.is_element_node and node.first_child is not None:
                above.append(node)
                node = node.first_child
            else:
                self._leave(node)
                node = node.next

    def _enter(self, node: LexborNode) -> None:
        if node.is_text_node:
            self._text(node.text_content or "")
            return
        tag = node.tag or ""
        if tag in _HEADINGS:
            self._break("\n\n")
            self.pending = CutPoint(0, _HEADINGS[tag])
        elif tag in _CELLS:
            self.blank = self.blank if self.first_cell else " | "
            self.first_cell = False
        elif tag in _BLOCKS:
            self._break("\n" if tag in _TIGHT else "\n\n")
            self._open(tag, node)
        elif tag == "br":
            self._break("\n")
        elif tag == "img" and node.attributes.get("alt"):
            self._text(str(node.attributes["alt"]), find=False)

    def _leave(self, node: LexborNode) -> None:
        tag = node.tag or ""
        if tag in _HEADINGS:
            self._end_heading()
            self._break("\n\n")
        elif tag in _BLOCKS:
            self.pre -= tag == "pre"
            self._break("\n" if tag in _TIGHT else "\n\n")

    def _open(self, tag: str, node: LexborNode) -> None:
        if tag == "pre":
            self.pre += 1
        elif tag == "tr":
            self.first_cell = True
        elif tag == "table":
            row = node.css_first("tr")
            cells = [" ".join(cell.text().split()) for cell in row.css("th")] if row is not None else []
            self.pending = CutPoint(0, lead=" | ".join(cells))
        if self.pending is None and tag not in ("thead", "tbody", "tfoot", "tr"):
            self.pending = CutPoint(0)

    def _break(self, blank: str) -> None:
        if len(blank) > len(self.blank) or not self.blank.startswith("\n"):
            self.blank = blank

    def _text(self, text: str, *, find: bool = True) -> None:
        shown = _BLANK_LINES.sub("", text).rstrip() if self.pre else " ".join(text.split())
        if find and shown and (self.wrapped or "\n" in text or "\n" in self.blank or not self.parts):
            self._find(text)
            self.wrapped = "\n" in text[len(text.rstrip()) :]
        if not shown.strip():
            if text and not self.blank and self.parts:
                self.blank = " "
            return
        if not self.pre and text[0].isspace() and not self.blank:
            self.blank = " "
        self._write(shown, text.strip().count("\n"))
        self.blank = ("\n" if "\n" in text[len(text.rstrip()) :] and self.pre else " ") if text[-1].isspace() else ""

    def _write(self, shown: str, source_lines: int) -> None:
        """Write a text; `source_lines` counts the line ends of its source."""
        blank = self.blank if self.parts else ""
        line = bisect_right(self.line_starts, self.at)
        self.lines += [(line, line)] * (blank.count("\n") if self.parts else 1)
        self.length += len(blank)
        if self.pending is not None:
            mark = replace(self.pending, start=self.length)
            self.pending = None
            if mark.level:
                self.heading, self.heading_part = mark, len(self.parts) + 1
            else:
                self.marks.append(mark)
        self.parts += (blank, shown)
        self.length += len(shown)
        kept = shown.count("\n")
        stop = len(self.line_starts)
        self.lines += [(min(line + more + 1, stop),) * 2 for more in range(kept)]
        self.lines[-1] = (self.lines[-1][0], min(max(self.lines[-1][1], line + source_lines), stop))

    def _end_heading(self) -> None:
        """Add the heading: its title is all text since its start tag."""
        if self.heading is not None:
            self.marks.append(replace(self.heading, title="".join(self.parts[self.heading_part :])))
        self.heading = self.pending = None

    def _find(self, text: str) -> None:
        """Move to the text in the source, past escaped characters; stay where it is not found."""
        bare = text.lstrip()
        skipped = text[: len(text) - len(bare)]
        escaped = _ESCAPED.search(bare)
        plain = bare[: min(escaped.start() if escaped else len(bare), _LOOKED_FOR_CHARS)]
        found = self.source.find(">" + skipped + bare[:_LOOKED_FOR_CHARS], self.at)
        if found < 0 and escaped:
            found = self.source.find(">" + skipped + (plain or "&"), self.at)
        if found < 0 and len(plain) > 8:
            found = self.source.find(plain, self.at) - 1
        if found >= 0:
            self.at = found + 1 + len(skipped)


DEEPEST = 512  # elements, as in browsers; the parser's time grows with its square
FEWEST_MAIN_CHARS = 200  # chosen: a shorter <main> is an empty frame


_DROPPED = ["script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "nav", "button", "select"]
_FRAME = ["footer", "aside"]  # of a page without <main>
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)([^<>]*)")
# Elements that have no end tag, or may omit it: they do not count as depth.
_NO_DEPTH = _names(
    "area base br col embed hr img input link meta source track wbr param p li dt dd tr td th thead tbody tfoot option "
    "optgroup colgroup rp rt"
)
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})", re.IGNORECASE)
_META = {
    "author": ("author", "article:author", "citation_author", "dc.creator"),
    "date": ("article:published_time", "citation_publication_date", "date", "dc.date", "dcterms.created"),
    "description": ("description", "og:description"),
    "keywords": ("keywords", "citation_keywords"),
    "doi": ("citation_doi", "dc.identifier"),
}


def read_html(file: SourceFile) -> Document:
    """Read the visible text of a page, in order."""
    page, places = read_page(decode_html(file.data))

    def lines(first: int, last: int) -> Lines:
        start, stop = (places[min(line, len(places)) - 1] for line in (first, last))
        return start[0], max(stop[1], start[0])

    return document_of(file, page, lines)


def decode_html(data: bytes) -> str:
    """Decode by the byte order mark, as UTF-8 where it is valid, by its own <meta>, or as any other text."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        declared = _CHARSET.search(data[:2048])
        if declared is not None and b"\0" not in data:
            name = declared[1].decode("ascii")
            try:
                return data.decode(name).replace("\r\n", "\n")
            except (LookupError, UnicodeDecodeError) as err:
                raise BadRequestError(f"not valid {name}, the encoding in its <meta>; convert it to UTF-8") from err
    return decode(data)


def read_page(source: str) -> tuple[SectionedText, list[tuple[int, int]]]:
    """Return the page, and for each line of its text the first and last line in the source."""
    from selectolax.lexbor import LexborHTMLParser

    _check_depth(source)
    tree = LexborHTMLParser(source)
    meta = _meta(tree)
    node = tree.css_first("title")
    title = " ".join(node.text().split()) if node is not None else ""
    tree.strip_tags(_DROPPED, recursive=True)
    writer = _HtmlWriter(source)
    if (root := _main(tree)) is not None:
        writer.write(root)
    text = "".join(writer.parts).rstrip()
    marks = [mark for mark in writer.marks if mark.start < len(text)]
    headed = any(mark.level == 1 for mark in marks)
    return SectionedText(text, sections_of(marks, 0, len(text)), None if headed else title or None, meta), writer.lines


def _check_depth(source: str) -> None:
    depth = 0
    for found in _TAG.finditer(source):
        closing, name, rest = found.groups()
        if rest.endswith("/") or name.lower() in _NO_DEPTH:
            continue
        depth = max(depth - 1, 0) if closing else depth + 1
        if depth > DEEPEST:
            raise BadRequestError(
                f"HTML nested deeper than {DEEPEST} elements, as only generated pages are; add it to .dowseignore"
            )


def _meta(tree: LexborHTMLParser) -> tuple[tuple[str, str], ...]:
    pairs: dict[str, list[str]] = {}
    for node in tree.css("meta"):
        key = (node.attributes.get("name") or node.attributes.get("property") or "").lower()
        value = " ".join((node.attributes.get("content") or "").split())
        if key and value:
            pairs.setdefault(key, []).append(value)
    found = ((key, next((pairs[name] for name in names if name in pairs), None)) for key, names in _META.items())
    return tuple((key, ", ".join(dict.fromkeys(values))) for key, values in found if values)


def _main(tree: LexborHTMLParser) -> LexborNode | None:
    for selector in ("main", "[role=main]", "article"):
        found = tree.css(selector)
        if len(found) == 1 and len(found[0].text(strip=True)) >= FEWEST_MAIN_CHARS:
            return found[0]
    tree.strip_tags(_FRAME, recursive=True)
    return tree.body
