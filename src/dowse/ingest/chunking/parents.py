"""Parents of chunks: a document of chunks enters, the same with sections and a whole leaves.

It needs the chunks alone, so it serves every reader, plug-ins too. It runs after secrets are masked. Chunks under one
heading, or else neighbours, share a section of up to 1,024 tokens that holds the text of each of them. A document that
is no longer than that is the parent itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise, takewhile
from operator import attrgetter

from msgspec.structs import replace

from dowse.identity import chunk_id, content_hash
from dowse.ingest.chunking.document import SEPARATOR, trail
from dowse.ingest.chunking.pack import CODE, PROSE, TARGET_TOKENS
from dowse.ingest.chunking.summary import shortened, summarise
from dowse.types import Chunk, Document, Edge, Level

PARENT_TOKENS = 1024  # chosen: four chunks, enough context for a reader
SECTION_SUMMARY_CHARS = 300  # chosen: two or three sentences
DOCUMENT_SUMMARY_CHARS = 500  # chosen: a paragraph
MOST_READ = 8  # chunks; chosen: a document names its subject early
LONGEST_LINE_CHARS = 120  # of a document's overview; chosen
_KEY_CHARS = 8  # enough of a text to look for it
_LONGEST_OVERLAP_CHARS = 2 * PROSE.overlap_chars  # windows overlap by less
# A parent has these only if all its children agree: it must not pass a filter that one of them would not.
_AGREED = ("section_type", "service_name", "author", "timestamp", "channel", "thread_id", "language", "meta")


def with_parents(document: Document) -> Document:
    """Return the document with its parents first, then the chunks in their order.

    A document that has parents already, as one of code, is returned as it is.
    """
    chunks = document.chunks
    if not chunks or any(chunk.level != "chunk" or chunk.parent_id is not None for chunk in chunks):
        return document
    budget = CODE if chunks[0].corpus_type.startswith("CODE") else PROSE
    sample = "".join(chunk.text for chunk in chunks[:8])
    limit = budget.fitted(sample).target_chars * (PARENT_TOKENS // TARGET_TOKENS)
    groups = _sections(list(chunks), 0, limit)
    if len(groups) == 1:
        whole = _parent(document, "document", chunks, joined(chunks), _summary(chunks, DOCUMENT_SUMMARY_CHARS))
        return replace(document, chunks=(whole, *(replace(chunk, parent_id=whole.id) for chunk in chunks)))
    occurrences: Counter[str] = Counter()
    sections: list[Chunk] = []
    for group in groups:
        text = joined(group)
        summary = _summary(group, SECTION_SUMMARY_CHARS)
        sections.append(_parent(document, "section", group, text, summary, occurrences[text]))
        occurrences[text] += 1
    whole = _overview(document, chunks, sections, limit)
    children = (
        replace(chunk, parent_id=above.id) for above, group in zip(sections, groups, strict=True) for chunk in group
    )
    return replace(document, chunks=(whole, *(replace(each, parent_id=whole.id) for each in sections), *children))


def joined(chunks: Sequence[Chunk]) -> str:
    """Join chunks to one text: overlaps are written once, blank lines between them are as in the source."""
    parts = [chunks[0].text]
    for before, after in pairwise(chunks):
        unknown = before.end_line is None or after.start_line is None
        gap = None if unknown else (after.start_line or 0) - (before.end_line or 0)  # up to 0 within one line
        if gap is not None and gap <= 0:
            shared = _overlap_chars(before.text, after.text)
            parts.append(after.text[shared:] if shared else " " + after.text.lstrip())
        else:
            parts.append("\n" * (2 if gap is None else min(gap, 2)) + after.text)
    return "".join(parts)


def _overlap_chars(before: str, after: str) -> int:
    start = after[:_KEY_CHARS]
    at = before.find(start, max(len(before) - _LONGEST_OVERLAP_CHARS, 0))
    while at >= 0:
        if after.startswith(before[at:]):
            return len(before) - at
        at = before.find(start, at + 1)
    return next((size for size in range(len(start), 0, -1) if before.endswith(start[:size])), 0)


def _sections(chunks: list[Chunk], depth: int, limit_chars: int) -> list[list[Chunk]]:
    """Group neighbours that fit the limit: sections where possible, else subsections, else runs."""
    if _chars(chunks) <= limit_chars:
        return [chunks]
    runs = [list(run) for _, run in groupby(chunks, key=lambda chunk: _path(chunk)[depth : depth + 1])]
    if len(runs) == 1 and not _path(chunks[0])[depth:]:
        return _packed([[chunk] for chunk in chunks], limit_chars)
    parts: list[list[Chunk]] = []
    siblings: list[list[Chunk]] = []
    for run in runs:
        if _chars(run) <= limit_chars:
            siblings.append(run)
            continue
        parts += _packed(siblings, limit_chars)
        siblings = []
        parts += _sections(run, depth + 1, limit_chars)
    return parts + _packed(siblings, limit_chars)


def _packed(runs: Iterable[list[Chunk]], limit_chars: int) -> list[list[Chunk]]:
    """Join neighbours while they fit."""
    packed: list[list[Chunk]] = []
    room = 0
    for run in runs:
        size = _chars(run)
        if packed and size <= room:
            packed[-1] = packed[-1] + run
            room -= size
        else:
            packed.append(run)
            room = limit_chars - size
    return packed


def _chars(chunks: Iterable[Chunk]) -> int:
    return sum(len(chunk.text) + 2 for chunk in chunks)


def _path(chunk: Chunk) -> list[str]:
    return chunk.section_path.split(SEPARATOR) if chunk.section_path else []


def _common_path(chunks: Sequence[Chunk]) -> str | None:
    levels = zip(*map(_path, chunks), strict=False)
    return SEPARATOR.join(names[0] for names in takewhile(lambda names: len(set(names)) == 1, levels)) or None


def _parent(
    document: Document, level: Level, chunks: Sequence[Chunk], text: str, summary: str | None, occurrence: int = 0
) -> Chunk:
    first, last = chunks[0], chunks[-1]
    path = _common_path(chunks) if level == "section" else None
    prefix = trail(document.title, path)
    return Chunk(
        id=chunk_id(first.source_uri, level, text, occurrence),
        document_id=document.id,
        text=text,
        corpus_type=first.corpus_type,
        source_uri=first.source_uri,
        document_title=document.title,
        document_source=first.document_source,
        level=level,
        repo_name=first.repo_name,
        file_path=first.file_path,
        start_line=first.start_line,
        end_line=last.end_line,
        section_path=path,
        page=first.page,
        summary=summary,
        context_prefix=prefix,
        content_hash=content_hash(prefix, text),
        **{name: getattr(first, name) for name in _AGREED if len(set(map(attrgetter(name), chunks))) == 1},
    )


def _overview(document: Document, chunks: Sequence[Chunk], sections: Sequence[Chunk], limit_chars: int) -> Chunk:
    """Return the parent of a document too long to show: its summary, and a line for each of its sections."""
    abstract = any(chunk.section_type == "abstract" for chunk in chunks[:MOST_READ])
    if abstract or chunks[0].corpus_type.startswith("CODE"):
        summary = _summary(chunks, DOCUMENT_SUMMARY_CHARS)
    else:
        summaries = " ".join(section.summary for section in sections[:MOST_READ] if section.summary)
        summary = summarise(summaries, DOCUMENT_SUMMARY_CHARS) or None
    lines = [document.title, "", *([summary, ""] if summary else [])]
    for section in sections:
        place = f" (lines {section.start_line}–{section.end_line})" if section.start_line else ""
        place = place or (f" (page {section.page})" if section.page else "")
        label = section.section_path or section.summary or section.text.split("\n", 1)[0]
        lines.append(f"- {shortened(label, LONGEST_LINE_CHARS)}{place}")
    text = "\n".join(lines)[:limit_chars].rstrip()
    return _parent(document, "document", chunks, text, summary)


def _summary(chunks: Sequence[Chunk], limit_chars: int) -> str | None:
    """Return sentences of prose, or the summaries and names of the parts of code and settings."""
    if not chunks[0].corpus_type.startswith("CODE"):
        read = [chunk for chunk in chunks if chunk.section_type == "abstract"]
        read = read or [chunk for chunk in chunks if chunk.section_type not in ("title", "references")]
        return summarise(joined((read or chunks)[:MOST_READ]), limit_chars) or None
    summaries = [chunk.summary for chunk in chunks if chunk.summary]
    if summaries:
        return shortened(" ".join(summaries), limit_chars)
    names = [chunk.symbol_name or chunk.section_path or "" for chunk in chunks]
    return shortened(", ".join(dict.fromkeys(filter(None, names))), limit_chars) or None


WEIGHT = 1.0  # the structure of a file is certain


def with_structure(document: Document) -> Document:
    """Return the document with edges to parents and neighbours, behind the reader's own."""
    known = {(edge.source_id, edge.target_id, edge.relation) for edge in document.edges}
    found: list[tuple[str, str, str]] = []
    last: dict[tuple[str | None, str], str] = {}  # by parent and level
    for chunk in document.chunks:
        place = (chunk.parent_id, chunk.level)
        if chunk.parent_id:
            found.append((chunk.id, chunk.parent_id, "part_of"))
        if place in last:
            found.append((last[place], chunk.id, "sequence"))
        last[place] = chunk.id
    return replace(document, edges=(*document.edges, *(Edge(*each, WEIGHT) for each in found if each not in known)))
