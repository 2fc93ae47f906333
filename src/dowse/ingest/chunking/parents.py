"""A document whose chunks have no parents goes in; the same with sections and the whole above its chunks comes out.

It works from the chunks alone, after secrets are masked, so that it serves every reader, installed ones too. Chunks
that stand under one heading, or failing that beside each other, share a section of up to 1,024 tokens, which holds the
text of each of them. A document that is no longer than that is the parent itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby, pairwise

from dowse.identity import chunk_id, embedded_text, text_hash
from dowse.ingest.chunking.document import altered
from dowse.ingest.chunking.pack import CODE, PROSE, TARGET_TOKENS
from dowse.ingest.chunking.sections import SEPARATOR
from dowse.ingest.chunking.summary import shortened, summarise
from dowse.types import Chunk, Document, Level

PARENT_TOKENS = 1024  # design section 3
SECTION_SUMMARY_CHARS = 300
DOCUMENT_SUMMARY_CHARS = 500
MOST_READ = 8  # chunks; chosen: what a document of any length is about is said early
LONGEST_LINE_CHARS = 120  # of a document's overview; chosen
_KEY_CHARS = 8  # enough of a text to look for it
_LONGEST_OVERLAP_CHARS = 2 * PROSE.overlap_chars  # windows overlap by less
# What a parent has only if all its children agree: it must not pass a filter that one of them would not.
_AGREED = ("section_type", "service_name", "author", "timestamp", "channel", "thread_id", "language", "meta")


def with_parents(document: Document) -> Document:
    """Sections and the document come first, then the chunks in their order.

    A reader that made parents of its own, as the one for code does, knows better: its document is left as it is.
    """
    chunks = document.chunks
    if not chunks or any(chunk.level != "chunk" or chunk.parent_id is not None for chunk in chunks):
        return document
    limit = _limit_chars(chunks)
    groups = _sections(list(chunks), 0, limit)
    if len(groups) == 1:
        whole = _parent(document, "document", chunks, joined(chunks), _summary(chunks, DOCUMENT_SUMMARY_CHARS))
        return replace(document, chunks=(whole, *(altered(chunk, parent_id=whole.id) for chunk in chunks)))
    occurrences: Counter[str] = Counter()
    sections: list[Chunk] = []
    for group in groups:
        text = joined(group)
        summary = _summary(group, SECTION_SUMMARY_CHARS)
        sections.append(_parent(document, "section", group, text, summary, occurrences[text]))
        occurrences[text] += 1
    whole = _overview(document, chunks, sections, limit)
    children = (
        altered(chunk, parent_id=above.id) for above, group in zip(sections, groups, strict=True) for chunk in group
    )
    return replace(document, chunks=(whole, *(altered(each, parent_id=whole.id) for each in sections), *children))


def joined(chunks: Sequence[Chunk]) -> str:
    """The chunks as one text, what they overlap by written once and blank lines between them as in the source."""
    parts = [chunks[0].text]
    for before, after in pairwise(chunks):
        gap = _gap_lines(before, after)
        if gap is not None and gap <= 0:
            shared = _overlap_chars(before.text, after.text)
            parts.append(after.text[shared:] if shared else " " + after.text.lstrip())
        else:
            parts.append("\n" * (2 if gap is None else min(gap, 2)) + after.text)
    return "".join(parts)


def _gap_lines(before: Chunk, after: Chunk) -> int | None:
    """Line ends between two chunks; 0 or less when they share a line. None when lines are not known."""
    if before.end_line is None or after.start_line is None:
        return None
    return after.start_line - before.end_line


def _overlap_chars(before: str, after: str) -> int:
    start = after[:_KEY_CHARS]
    at = before.find(start, max(len(before) - _LONGEST_OVERLAP_CHARS, 0))
    while at >= 0:
        if after.startswith(before[at:]):
            return len(before) - at
        at = before.find(start, at + 1)
    return next((size for size in range(len(start), 0, -1) if before.endswith(start[:size])), 0)


def _limit_chars(chunks: Sequence[Chunk]) -> int:
    budget = CODE if chunks[0].corpus_type.startswith("CODE") else PROSE
    sample = "".join(chunk.text for chunk in chunks[:8])
    return budget.fitted(sample).target_chars * (PARENT_TOKENS // TARGET_TOKENS)


def _sections(chunks: list[Chunk], depth: int, limit_chars: int) -> list[list[Chunk]]:
    """Groups of neighbours that fit the limit: whole sections where possible, else their subsections, else runs."""
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
    """Neighbours joined while they fit."""
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
    paths = [_path(chunk) for chunk in chunks]
    shared = paths[0]
    for path in paths[1:]:
        same = next((at for at, (a, b) in enumerate(zip(shared, path, strict=False)) if a != b), None)
        shared = shared[: len(path)] if same is None else shared[:same]
    return SEPARATOR.join(shared) or None


def _parent(
    document: Document, level: Level, chunks: Sequence[Chunk], text: str, summary: str | None, occurrence: int = 0
) -> Chunk:
    first, last = chunks[0], chunks[-1]
    path = _common_path(chunks) if level == "section" else None
    whole = Chunk(
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
        context_prefix=SEPARATOR.join(part for part in (document.title, path) if part),
    )
    parent = altered(whole, **{name: getattr(first, name) for name in _AGREED if _agree(chunks, name)})
    return altered(parent, content_hash=text_hash(embedded_text(parent)))


def _agree(chunks: Sequence[Chunk], name: str) -> bool:
    value = getattr(chunks[0], name)
    return all(getattr(chunk, name) == value for chunk in chunks)


def _overview(document: Document, chunks: Sequence[Chunk], sections: Sequence[Chunk], limit_chars: int) -> Chunk:
    """A document too long to be shown: its summary, and what stands in which of its parts."""
    summary = _summary_of_parts(chunks, sections)
    lines = [document.title, "", *([summary, ""] if summary else [])]
    for section in sections:
        place = f" (lines {section.start_line}–{section.end_line})" if section.start_line else ""
        place = place or (f" (page {section.page})" if section.page else "")
        told = section.section_path or section.summary or section.text.split("\n", 1)[0]
        lines.append(f"- {shortened(told, LONGEST_LINE_CHARS)}{place}")
    text = "\n".join(lines)[:limit_chars].rstrip()
    return _parent(document, "document", chunks, text, summary)


def _summary_of_parts(chunks: Sequence[Chunk], sections: Sequence[Chunk]) -> str | None:
    """Of the sections' summaries, which have been made already; a paper has an abstract for that."""
    told = any(chunk.section_type == "abstract" for chunk in chunks[:MOST_READ])
    if told or chunks[0].corpus_type.startswith("CODE"):
        return _summary(chunks, DOCUMENT_SUMMARY_CHARS)
    said = " ".join(section.summary for section in sections[:MOST_READ] if section.summary)
    return summarise(said, DOCUMENT_SUMMARY_CHARS) or None


def _summary(chunks: Sequence[Chunk], limit_chars: int) -> str | None:
    """Sentences of prose; of code and settings, what their parts say or are called."""
    if not chunks[0].corpus_type.startswith("CODE"):
        told = [chunk for chunk in chunks if chunk.section_type == "abstract"]
        told = told or [chunk for chunk in chunks if chunk.section_type not in ("title", "references")]
        return summarise(joined((told or chunks)[:MOST_READ]), limit_chars) or None
    said = [chunk.summary for chunk in chunks if chunk.summary]
    if said:
        return shortened(" ".join(said), limit_chars)
    names = [chunk.symbol_name or chunk.section_path or "" for chunk in chunks]
    return shortened(", ".join(dict.fromkeys(filter(None, names))), limit_chars) or None
