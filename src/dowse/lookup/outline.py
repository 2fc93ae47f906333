"""Outline of a document: its sections or symbols, in order, with their lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from dowse.ports import StoreReader
from dowse.types import Chunk, ChunkId, DocumentInfo

SECTION = "section"
_PARTS = re.compile(r"::|->|[.#]")
_HEADING = re.compile(r"#+ ")
SEPARATOR = " > "


class OutlineItem(msgspec.Struct, frozen=True):
    """Symbol or section."""

    name: str
    kind: str  # function, class …, or "section"
    depth: int  # 0 outermost
    start_line: int | None
    end_line: int | None
    chunk_id: ChunkId
    signature: str | None = None
    summary: str | None = None


class DocumentOutline(msgspec.Struct, frozen=True):
    """Outline of one document."""

    document_id: str
    title: str
    source_uri: str
    source: str
    path: str
    corpus_type: str
    language: str | None
    summary: str | None
    total_lines: int | None  # the last line of a chunk
    entries: tuple[OutlineItem, ...]


def outline(info: DocumentInfo, reader: StoreReader, *, depth: int | None = None) -> DocumentOutline:
    """Outline one document; `depth` 1 keeps only the outermost items."""
    chunks = reader.document_chunks(info.id)
    entries = [entry for entry in _entries(chunks) if depth is None or entry.depth < depth]
    first = chunks[0] if chunks else None
    whole = next((chunk for chunk in chunks if chunk.level == "document"), None)
    return DocumentOutline(
        document_id=info.id,
        title=info.title,
        source_uri=f"{info.source}/{info.path}",
        source=info.source,
        path=info.path,
        corpus_type=first.corpus_type if first else "",
        language=first.language if first else None,
        summary=whole.summary if whole else None,
        total_lines=max((chunk.end_line for chunk in chunks if chunk.end_line), default=None),
        entries=tuple(entries),
    )


def _entries(chunks: Sequence[Chunk]) -> list[OutlineItem]:
    """List each name once, from the first line of its first chunk to the last line of its last."""
    found: dict[tuple[str, str], OutlineItem] = {}
    for chunk in chunks:
        for entry in _of_chunk(chunk) if chunk.level != "document" else ():
            earlier = found.get((entry.name, entry.kind))
            found[entry.name, entry.kind] = entry if earlier is None else _joined(earlier, entry)
    rows = sorted(found.values(), key=lambda entry: (entry.start_line or 0, entry.depth, -(entry.end_line or 0)))
    return [replace(row, name=row.name.rpartition(SEPARATOR)[2] if row.kind == SECTION else row.name) for row in rows]


def _of_chunk(chunk: Chunk) -> Iterator[OutlineItem]:
    lines = (chunk.start_line, chunk.end_line)
    own = chunk.qualified_name or chunk.symbol_name
    for each in chunk.defines:
        texts = (chunk.signature, chunk.summary) if each.qualified_name == own else (None, None)
        yield OutlineItem(each.qualified_name, each.kind, _depth(each.qualified_name), each.start_line, each.end_line,
                    chunk.id, *texts)  # fmt: skip
    if own and not chunk.defines and chunk.level == "chunk":
        kind = chunk.symbol_kind or "symbol"
        yield OutlineItem(own, kind, _depth(own), *lines, chunk.id, chunk.signature, chunk.summary)
    elif not own and chunk.section_path and chunk.level == "chunk":
        path = [_HEADING.sub("", part, count=1) for part in chunk.section_path.split(SEPARATOR)]
        yield OutlineItem(SEPARATOR.join(path), SECTION, len(path) - 1, *lines, chunk.id)


def _depth(qualified: str) -> int:
    return len(_PARTS.split(qualified)) - 1


def _joined(first: OutlineItem, second: OutlineItem) -> OutlineItem:
    starts = [each.start_line for each in (first, second) if each.start_line is not None]
    ends = [each.end_line for each in (first, second) if each.end_line is not None]
    return replace(first, start_line=min(starts, default=None), end_line=max(ends, default=None))
