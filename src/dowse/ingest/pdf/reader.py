"""Reader of PDF: a chunk for each section, under its headings and with its page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from msgspec.structs import replace

from dowse.ingest.chunking.document import no_lines
from dowse.ingest.chunking.page import DOI, SectionedText, document_of, section_type
from dowse.ingest.chunking.sections import Section, sections_of
from dowse.ingest.pdf.layout import rows_of
from dowse.ingest.pdf.runs import read_runs
from dowse.ingest.pdf.text import PdfPage, text_of
from dowse.ports import SourceFile
from dowse.types import Document

LONGEST_ABSTRACT_CHARS = 3000  # chosen
FRONT_CHARS = 8000  # that hold title, authors and keywords of a paper; chosen: its first page
_JUNK_TITLE = re.compile(r"untitled|microsoft|powerpoint|\.(?:docx?|tex|dvi|pdf|indd|qxd)\b|^slide ", re.IGNORECASE)
_PDF_DATE = re.compile(r"D:(\d{4})(\d{2})?(\d{2})?(\d{2})?(\d{2})?(\d{2})?")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = rf"({'|'.join(_MONTHS)})[a-z]*\.?"
_DATES = (
    re.compile(r"\b(?P<year>[12]\d{3})-(?P<month>\d\d)-(?P<day>\d\d)\b"),
    re.compile(rf"\b(?P<day>\d{{1,2}})\s+(?P<name>{_MONTH}),?\s+(?P<year>[12]\d{{3}})\b", re.IGNORECASE),
    re.compile(rf"\b(?P<name>{_MONTH})\s+(?P<day>\d{{1,2}}),?\s+(?P<year>[12]\d{{3}})\b", re.IGNORECASE),
)
_KEYWORDS = re.compile(
    r"^(?:key\s?words(?: and phrases)?|index terms)\s*[:.—–-]+\s*(.+(?:\n\S.*)?)", re.IGNORECASE | re.MULTILINE
)
_NAME = re.compile(r"[A-ZÀ-Þ][\w'’.-]*(?: (?:[A-ZÀ-Þ][\w'’.-]*|van|von|de|der|den|del|di|da|la|le|bin|al)){1,4}")
_REFERENCE = re.compile(r"^[ \t]*(?:\[\w[\w+., -]{0,22}\]|\d{1,3}\.)[ \t]+\S", re.MULTILINE)
_MARKS = re.compile(r"[*†‡§¶∗\d]+|\([^)]*\)")
_BETWEEN = re.compile(r"\s*(?:,|;|&|\band\b|\s{2,}|\s\|\s)\s*")


def read_pdf(file: SourceFile) -> Document:
    """Read papers by section, other files by heading, in reading order. A PDF has no lines."""
    pages, info = read_runs(file.data)
    pdf = text_of(rows_of(pages), len(pages))
    sections = sections_of(pdf.marks, 0, len(pdf.text))
    meta = _meta(pdf, sections, info)
    page = SectionedText(pdf.text, sections, dict(meta).get("title"), meta, pdf.page_starts)
    document = document_of(file, page, no_lines)
    blank = [str(at) for at, runs in enumerate(pages, start=1) if not runs]
    listed = (each.text for each in document.chunks if each.section_type == "references")
    references = sum(len(_REFERENCE.findall(text)) for text in listed)
    # Of the document alone: no chunk needs them.
    more = {
        "abstract": _abstract(pdf, sections),
        "pages": str(len(pages)),
        "pages_without_text": ", ".join(blank),
        "references_count": str(references or ""),
    }
    return replace(document, meta=(*document.meta, *((key, value) for key, value in more.items() if value)))


def _plausible(title: str) -> str | None:
    bare = " ".join(title.split())
    return bare if len(bare) > 3 and not _JUNK_TITLE.search(bare) else None


def _meta(pdf: PdfPage, sections: Sequence[Section], info: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the metadata of the first page, else that of the file's properties."""
    front = pdf.text[:FRONT_CHARS]
    body = next((section for section in sections if section.level > 1), None)
    head = pdf.text[: min(body.span[0], FRONT_CHARS) if body else 500]  # above the first heading below the title
    keywords = _KEYWORDS.search(front)
    doi = DOI.search(front)
    pairs = {
        "title": pdf.title or _plausible(info.get("Title", "")) or "",
        "authors": " ".join(info.get("Author", "").split()) or ", ".join(_authors(head, pdf.title)),
        "date": _written_date(head) or _info_date(info.get("CreationDate", "")),
        "doi": doi[0] if doi else "",
        "keywords": " ".join((keywords[1] if keywords else info.get("Keywords", "")).split()).strip(" ."),
        "subject": " ".join(info.get("Subject", "").split()),
    }
    return tuple((key, value) for key, value in pairs.items() if value)


def _authors(head: str, title: str | None) -> list[str]:
    """Return the names on the lines below the title, up to the first line without names."""
    lines = head.split("\n")
    shown = set((title or "").split())
    below = [line for line in lines if line.strip() and not set(line.split()) <= shown]
    names: list[str] = []
    for line in below if title else []:
        parts = [part.strip() for part in _BETWEEN.split(_MARKS.sub(" ", line)) if part.strip()]
        if not parts or not all(_NAME.fullmatch(part) for part in parts):
            break
        names += parts
    return list(dict.fromkeys(names))


def _written_date(head: str) -> str:
    for pattern in _DATES:
        for found in pattern.finditer(head):
            groups = found.groupdict()
            name = groups.get("name")
            month = _MONTHS.index(name[:3].lower()) + 1 if name else int(groups["month"])
            if 1 <= month <= 12 and 1 <= int(groups["day"]) <= 31:
                return f"{groups['year']}-{month:02d}-{int(groups['day']):02d}"
    return ""


def _info_date(text: str) -> str:
    found = _PDF_DATE.match(text)
    if found is None:
        return ""
    year, month, day, *clock = (int(part) if part else None for part in found.groups())
    try:
        hour, minute, second = (part or 0 for part in clock)
        return datetime(year or 0, month or 1, day or 1, hour, minute, second, tzinfo=UTC).isoformat()
    except ValueError:
        return ""


def _abstract(pdf: PdfPage, sections: Sequence[Section]) -> str:
    found = next((each for each in sections if section_type(each.headings, pdf.title) == "abstract"), None)
    if found is None:
        return ""
    text = " ".join(pdf.text[slice(*found.span)].split())
    return re.sub(r"^abstract\s*[.:—–-]*\s*", "", text, flags=re.IGNORECASE)[:LONGEST_ABSTRACT_CHARS]
