"""Parents of chunks: a document of chunks enters, the same with sections and a whole leaves.

It needs the chunks alone, so it serves every reader, plug-ins too. It runs after secrets are masked. Chunks under one
heading, or else neighbours, share a section of up to 1,024 tokens that holds the text of each of them. A document that
is no longer than that is the parent itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise

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
    limit = _limit_chars(chunks)
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
        gap = _gap_lines(before, after)
        if gap is not None and gap <= 0:
            shared = _overlap_chars(before.text, after.text)
            parts.append(after.text[shared:] if shared else " " + after.text.lstrip())
        else:
            parts.append("\n" * (2 if gap is None else min(gap, 2)) + after.text)
    return "".join(parts)


def _gap_lines(before: Chunk, after: Chunk) -> int | None:
    """Count line ends between two chunks: 0 or less when they share a line, None when lines are not known."""
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
        **{name: getattr(first, name) for name in _AGREED if _agree(chunks, name)},
    )


def _agree(chunks: Sequence[Chunk], name: str) -> bool:
    value = getattr(chunks[0], name)
    return all(getattr(chunk, name) == value for chunk in chunks)


def _overview(document: Document, chunks: Sequence[Chunk], sections: Sequence[Chunk], limit_chars: int) -> Chunk:
    """Return the parent of a document too long to show: its summary, and a line for each of its sections."""
    summary = _summary_of_parts(chunks, sections)
    lines = [document.title, "", *([summary, ""] if summary else [])]
    for section in sections:
        place = f" (lines {section.start_line}–{section.end_line})" if section.start_line else ""
        place = place or (f" (page {section.page})" if section.page else "")
        label = section.section_path or section.summary or section.text.split("\n", 1)[0]
        lines.append(f"- {shortened(label, LONGEST_LINE_CHARS)}{place}")
    text = "\n".join(lines)[:limit_chars].rstrip()
    return _parent(document, "document", chunks, text, summary)


def _summary_of_parts(chunks: Sequence[Chunk], sections: Sequence[Chunk]) -> str | None:
    """Summarise the summaries of the sections; a paper has an abstract instead."""
    abstract = any(chunk.section_type == "abstract" for chunk in chunks[:MOST_READ])
    if abstract or chunks[0].corpus_type.startswith("CODE"):
        return _summary(chunks, DOCUMENT_SUMMARY_CHARS)
    summaries = " ".join(section.summary for section in sections[:MOST_READ] if section.summary)
    return summarise(summaries, DOCUMENT_SUMMARY_CHARS) or None


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


RELATIONS = ("part_of", "sequence")
WEIGHT = 1.0  # the structure of a file is certain


def with_structure(document: Document) -> Document:
    """Return the document with edges to parents and neighbours, behind the reader's own."""
    known = {(edge.source_id, edge.target_id, edge.relation) for edge in document.edges if edge.relation in RELATIONS}
    found = _edges(document.chunks)
    if known:
        found = (edge for edge in found if (edge.source_id, edge.target_id, edge.relation) not in known)
    return replace(document, edges=(*document.edges, *found))


def _edges(chunks: Sequence[Chunk]) -> Iterator[Edge]:
    """Return `part_of` edges to the parent and `sequence` edges to the next under one parent."""
    last: dict[tuple[str | None, str], str] = {}
    for chunk in chunks:
        own, parent = chunk.id, chunk.parent_id
        if parent:
            yield Edge(own, parent, "part_of", WEIGHT)
        before = last.get((parent, chunk.level))
        if before is not None:
            yield Edge(before, own, "sequence", WEIGHT)
        last[parent, chunk.level] = own
