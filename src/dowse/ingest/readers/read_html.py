"""An HTML file goes in; a Document with a chunk for each section of what a visitor reads comes out.

Navigation, scripts and forms are left out; headings, lists, tables and preformatted text keep their shape.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dowse.errors import BadRequestError
from dowse.ingest.chunking.document import altered, decode
from dowse.ingest.chunking.page_document import Page, document_of
from dowse.ingest.chunking.sections import sections_of
from dowse.ingest.readers.front_matter import moment
from dowse.ingest.readers.html import HtmlText, write_text
from dowse.ports import SourceFile
from dowse.types import Chunk, Document

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

DEEPEST = 512  # elements; where browsers stop nesting, too. The parser's time grows with the square of it
FEWEST_MAIN_CHARS = 200  # chosen: a shorter <main> is an empty frame


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DROPPED = ["script", "style", "noscript", "template", "svg", "iframe", "object", "canvas", "nav", "button", "select"]
_FRAME = ["footer", "aside"]  # of a page without <main>
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)([^<>]*)")
# Elements that have no end tag, or may do without: they say nothing about depth.
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


@dataclass(frozen=True)
class HtmlReader:
    """What is read on the page, in order."""

    name: str = "html"

    def read(self, file: SourceFile) -> Document:
        source = decode_html(file.data)
        page, lines = read_page(source)
        return _relined(document_of(file, page), lines)


def decode_html(data: bytes) -> str:
    """As its byte order mark says, or UTF-8 where it is that, or as its own <meta> says, or as any other text."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        said = _CHARSET.search(data[:2048])
        if said is not None and b"\0" not in data:
            name = said[1].decode("ascii")
            try:
                return data.decode(name).replace("\r\n", "\n")
            except (LookupError, UnicodeDecodeError) as err:
                raise BadRequestError(f"not valid {name}, as its <meta> says; convert it to UTF-8") from err
    return decode(data)


def read_page(source: str) -> tuple[Page, tuple[tuple[int, int], ...]]:
    """The page, and for each line of its text the first and last line of the source that it comes from."""
    from selectolax.lexbor import LexborHTMLParser

    _check_depth(source)
    tree = LexborHTMLParser(source)
    meta = _meta(tree)
    title = _title(tree)
    tree.strip_tags(_DROPPED, recursive=True)
    root = _main(tree)
    found = HtmlText("", (), ()) if root is None else write_text(root, source)
    said = dict(meta)
    headed = any(mark.level == 1 for mark in found.marks)
    page = Page(
        found.text,
        sections_of(found.marks, 0, len(found.text)),
        None if headed else title,
        said.get("author"),
        moment(said.get("date", "")),
        meta,
    )
    return page, found.lines


def _check_depth(source: str) -> None:
    depth = 0
    for found in _TAG.finditer(source):
        closing, name, rest = found.groups()
        if rest.endswith("/") or name.lower() in _NO_DEPTH:
            continue
        depth = max(depth - 1, 0) if closing else depth + 1
        if depth > DEEPEST:
            raise BadRequestError(
                f"HTML nested deeper than {DEEPEST} elements; it is generated data rather than a page"
            )


def _meta(tree: LexborHTMLParser) -> tuple[tuple[str, str], ...]:
    said: dict[str, list[str]] = {}
    for node in tree.css("meta"):
        key = (node.attributes.get("name") or node.attributes.get("property") or "").lower()
        value = " ".join((node.attributes.get("content") or "").split())
        if key and value:
            said.setdefault(key, []).append(value)
    found = ((key, next((said[name] for name in names if name in said), None)) for key, names in _META.items())
    return tuple((key, ", ".join(dict.fromkeys(values))) for key, values in found if values)


def _title(tree: LexborHTMLParser) -> str | None:
    node = tree.css_first("title")
    return (" ".join(node.text().split()) or None) if node is not None else None


def _main(tree: LexborHTMLParser) -> LexborNode | None:
    for selector in ("main", "[role=main]", "article"):
        found = tree.css(selector)
        if len(found) == 1 and len(found[0].text(strip=True)) >= FEWEST_MAIN_CHARS:
            return found[0]
    tree.strip_tags(_FRAME, recursive=True)
    return tree.body


def _relined(document: Document, lines: tuple[tuple[int, int], ...]) -> Document:
    """With lines of the source in place of lines of the text."""

    def moved(chunk: Chunk) -> Chunk:
        first, last = (lines[min(each or 1, len(lines)) - 1] for each in (chunk.start_line, chunk.end_line))
        return altered(chunk, start_line=first[0], end_line=max(last[1], first[0]))

    return replace(document, chunks=tuple(moved(chunk) for chunk in document.chunks))
