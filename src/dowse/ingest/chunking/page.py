"""Documents with headings: a text, its sections and its metadata enter, a Document leaves.

The parts of a paper get their section type, and its references are cut five to a chunk.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby, pairwise

import msgspec
from msgspec.structs import replace

from dowse.ingest.chunking.document import ChunkSpan, Heading, Lines, build, file_name, trail, trimmed
from dowse.ingest.chunking.pack import PROSE, Budget, windows
from dowse.ingest.chunking.sections import Section, merged, pieces_of
from dowse.ingest.sources.kinds import PAGE, Kind, kind_of
from dowse.ports import SourceFile
from dowse.types import CorpusType, Document

_NUMBER = re.compile(r"(?:§\s*)?(?:appendix\s+)?(?:\d+(?:\.\d+)*|[ivx]{1,5}|[a-h])[.):]?[ \t—–-]+(?=\S)", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+")
_DATES = ("date", "created", "created_at", "published", "timestamp", "updated", "last_updated")
_TYPE_KEYS = ("type", "kind", "category", "doc_type", "document_type", "layout")
_NAMED = (
    (frozenset(("runbook", "runbooks", "playbook", "playbooks")), CorpusType.DOC_RUNBOOK),
    (frozenset(("adr", "adrs")), CorpusType.DOC_ADR),
    (frozenset(("paper", "preprint")), CorpusType.DOC_PAPER),
    (frozenset(("readme",)), CorpusType.DOC_README),
)
_ADR_HEADINGS = frozenset(
    ("status", "context", "consequences", "decision drivers", "considered options", "alternatives")
)
_RUNBOOK_HEADINGS = frozenset(
    ("symptom", "symptoms", "diagnose", "diagnosis", "mitigate", "mitigation", "remediation", "escalate", "escalation")
)
# A report on an incident has the same parts, and is not a runbook.
_REPORT_HEADINGS = frozenset(("timeline", "root cause", "lessons learned", "what went well", "action items"))

# The first that occurs in a heading decides.
_SECTION_TYPES = tuple(
    (name, re.compile(rf"\b(?:{words})\b"))
    for name, words in (
        ("references", r"references|bibliography|works cited|literature cited"),
        ("appendix", r"appendix|appendices|supplementary|supplement|supplemental"),
        ("abstract", r"abstract|synopsis"),
        ("related_work", r"related work|related works|prior work|previous work|literature review|state of the art"),
        ("introduction", r"introduction|background|motivation|overview"),
        ("conclusion", r"conclusions?|concluding remarks|closing remarks"),
        ("results", r"results?|findings|outcomes"),
        ("discussion", r"discussion|limitations|threats to validity|future work|implications"),
        ("experiments", r"experiments?|experimental|evaluation|evaluations|datasets?|case study|benchmarks?"),
        (
            "methodology",
            r"methods?|methodology|approach|algorithms?|materials|design|model|implementation|architecture",
        ),
    )
)
UNKNOWN = "unknown"


def plain(heading: str) -> str:
    """Return a heading without its number, in lower case."""
    bare = " ".join(heading.split())
    number = _NUMBER.match(bare)
    return bare[number.end() if number else 0 :].strip(" .:#*_").lower()


def section_type(headings: Sequence[tuple[int, str]], title: str | None) -> str:
    """Return the part of a paper under a path of headings; the innermost that names one decides."""
    below = [name for level, name in headings if level > 1 or name != title]
    if not below:
        return "title"
    for heading in reversed(below):
        words = plain(heading)
        found = "appendix" if heading.lower().startswith("appendix") else None
        found = found or next((name for name, pattern in _SECTION_TYPES if pattern.search(words)), None)
        if found:
            return found
    return UNKNOWN


def kind_by_content(
    file: SourceFile, title: str | None, headings: Iterable[str], pairs: Iterable[tuple[str, str]] = ()
) -> Kind:
    """Return the file's kind; the page decides its corpus type where no path or rule does."""
    kind = kind_of(file)
    if kind.corpus_type != PAGE or file.corpus_type:
        return kind
    given = dict(pairs)
    names = {plain(heading) for heading in headings}
    found = next((_named(given[key]) for key in _TYPE_KEYS if key in given and _named(given[key])), None)
    found = found or _named(title or "", exact=False) or _by_headings(names)
    return replace(kind, corpus_type=found) if found else kind


def _named(text: str, *, exact: bool = True) -> CorpusType | None:
    """Return the corpus type that a text names; a title must begin or end with runbook or ADR."""
    words = _WORD.findall(text.lower())
    if not exact:
        words = [word for word in {*words[:1], *words[-1:]} if word.startswith(("runbook", "playbook", "adr"))]
    return next((corpus_type for known, corpus_type in _NAMED if not known.isdisjoint(words)), None)


def _by_headings(names: set[str]) -> CorpusType | None:
    if "decision" in names and len(names & _ADR_HEADINGS) >= 2:
        return CorpusType.DOC_ADR
    if "abstract" in names and names & {"references", "bibliography"}:
        return CorpusType.DOC_PAPER
    words = {name.split(" ")[0] for name in names}
    if len(words & _RUNBOOK_HEADINGS) >= 2 and not names & _REPORT_HEADINGS:
        return CorpusType.DOC_RUNBOOK
    return None


REFERENCES_PER_CHUNK = 5  # chosen: one chunk of usual size
DOI = re.compile(r"\b10\.\d{4,9}/[^\s\"<>{}|\\^`]+[^\s\"<>{}|\\^`.,;:)\]]")
# [12], [Mar26], 12., (12), a bullet: the beginning of an entry of a bibliography.
_ENTRY = re.compile(r"^[ \t]*(?:\[[\w+.,: -]{1,24}\]|\(?\d{1,3}[.)]|[-*+•])[ \t]+\S", re.MULTILINE)


class SectionedText(msgspec.Struct, frozen=True):
    """Text of a file with headings, and its metadata."""

    text: str
    sections: Sequence[Section]  # touching each other, in order
    title: str | None = None  # None: the first heading, if it is of the first level
    meta: tuple[tuple[str, str], ...] = ()  # also names the author and the date
    page_starts: tuple[int, ...] = ()  # where each printed page starts in the text, if there are any


def document_of(file: SourceFile, page: SectionedText, lines: Callable[[int, int], Lines] | None = None) -> Document:
    """Return the document; `lines` are those of `build`."""
    budget = replace(PROSE, overlap_chars=0).fitted(page.text)  # its structure shows where to cut
    headings = [heading for section in page.sections for heading in section.headings]
    title = page.title or (headings[0][1] if headings and headings[0][0] == 1 else None)
    kind = kind_by_content(file, title, [name for _, name in headings], page.meta)
    given = dict(page.meta)
    date = next((given[key] for key in _DATES if given.get(key)), "")
    author = given.get("author") or given.get("authors")
    heading = Heading(title or file_name(file), author, moment(date) if date else None, page.meta)
    spans = list(_pieces(kind, page, title, budget))
    if spans and author and author not in page.text[slice(*spans[0].span)]:  # so that words find the name
        spans[0] = replace(spans[0], context_prefix=trail(spans[0].context_prefix, author))
    if page.page_starts:  # the page of the first words
        starts = [trimmed(page.text, each.span)[0] for each in spans]
        pages = [bisect_right(page.page_starts, start) for start in starts]
        spans = [replace(each, page=number) for each, number in zip(spans, pages, strict=True)]
    return build(file, page.text, spans, kind=kind, heading=heading, lines=lines)


def moment(value: str) -> datetime | None:
    """Parse ISO 8601 or seconds since the epoch as aware UTC; a naive time counts as UTC."""
    try:
        if re.fullmatch(r"\d{9,11}(\.\d+)?", value):
            return datetime.fromtimestamp(float(value), UTC)
        found = datetime.fromisoformat(value)
    except (ValueError, OverflowError):
        return None
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def _pieces(kind: Kind, page: SectionedText, title: str | None, budget: Budget) -> Iterator[ChunkSpan]:
    if kind.corpus_type != CorpusType.DOC_PAPER:
        for section in merged(page.sections, budget):
            yield from pieces_of(page.text, section, title, budget)
        return
    # Tiny sections are joined within a part of a paper, never across parts.
    for part, run in groupby(page.sections, key=lambda section: section_type(section.headings, title)):
        for section in merged(list(run), budget):
            pieces = list(pieces_of(page.text, section, title, budget))
            if part == "references":
                pieces = list(_batches(page.text, section, pieces[0], budget)) or pieces
            yield from (replace(piece, section_type=part) for piece in pieces)


def _batches(text: str, section: Section, like: ChunkSpan, budget: Budget) -> Iterator[ChunkSpan]:
    """Cut five references a piece; return nothing when the entries have no marks."""
    start, stop = section.span
    entries = [match.start() for match in _ENTRY.finditer(text, start, stop)]
    if len(entries) < 2:
        return
    cuts = [start, *entries[REFERENCES_PER_CHUNK::REFERENCES_PER_CHUNK], stop]
    for span in pairwise(cuts):
        for each in windows(text, span, budget):
            yield replace(like, span=each)
