"""Rewriting of all texts of a document, with consistent ids.

A chunk's id is a hash of its text, so that a changed text changes the id; parents and edges follow.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from msgspec.structs import replace

from dowse.identity import chunk_id, embedded_text, text_hash
from dowse.types import Chunk, ChunkId, Document

TextChange = Callable[[str], str]

_TEXTS = (
    "text", "document_title", "symbol_name", "qualified_name", "signature", "summary", "section_path", "author",
    "context_prefix",
)  # fmt: skip
_LISTS = ("calls_out", "imports")


def rewritten(document: Document, change: TextChange) -> Document:
    """Change every text; return the same document if nothing changes."""
    chunks = [_changed(chunk, change) for chunk in document.chunks]
    title = change(document.title)
    meta = _changed_pairs(document.meta, change)
    edges = tuple(
        replace(edge, description=change(edge.description)) if edge.description else edge for edge in document.edges
    )
    if (title, meta, edges) == (document.title, document.meta, document.edges) and all(
        new is old for new, old in zip(chunks, document.chunks, strict=True)
    ):
        return document
    ids = _new_ids(document.chunks, chunks)
    return replace(
        document,
        title=title,
        meta=meta,
        chunks=tuple(_with_ids(chunk, ids) for chunk in chunks),
        edges=tuple(
            replace(e, source_id=ids.get(e.source_id, e.source_id), target_id=ids.get(e.target_id, e.target_id))
            for e in edges
        ),
        facts=tuple(replace(fact, chunk_id=ids.get(fact.chunk_id, fact.chunk_id)) for fact in document.facts),
    )


def _changed(chunk: Chunk, change: TextChange) -> Chunk:
    fields: dict[str, object] = {}
    for name in _TEXTS:
        value = getattr(chunk, name)
        if value and (new := change(value)) != value:
            fields[name] = new
    for name in _LISTS:
        values = getattr(chunk, name)
        if values and (changed := tuple(map(change, values))) != values:
            fields[name] = changed
    if (meta := _changed_pairs(chunk.meta, change)) != chunk.meta:
        fields["meta"] = meta
    return replace(chunk, **fields) if fields else chunk


def _changed_pairs(pairs: tuple[tuple[str, str], ...], change: TextChange) -> tuple[tuple[str, str], ...]:
    return tuple((key, change(value)) for key, value in pairs)


def _new_ids(before: tuple[Chunk, ...], after: list[Chunk]) -> dict[ChunkId, ChunkId]:
    """Map old ids to new ones for chunks whose text changed; equal texts get different occurrence numbers."""
    taken = {old.id for old, new in zip(before, after, strict=True) if old.text == new.text}
    ids: dict[ChunkId, ChunkId] = {}
    for old, new in zip(before, after, strict=True):
        if old.text == new.text:
            continue
        numbered = (chunk_id(new.source_uri, new.level, new.text, number) for number in count())
        fresh = next(each for each in numbered if each not in taken)
        taken.add(fresh)
        ids[old.id] = fresh
    return ids


def _with_ids(chunk: Chunk, ids: dict[ChunkId, ChunkId]) -> Chunk:
    parent = chunk.parent_id and ids.get(chunk.parent_id, chunk.parent_id)
    changed = replace(chunk, id=ids.get(chunk.id, chunk.id), parent_id=parent)
    return replace(changed, content_hash=text_hash(embedded_text(changed)))
