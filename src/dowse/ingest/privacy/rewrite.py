"""A document and a change of words go in; the document comes out with every text of it changed, and still whole.

A chunk's id is made from its text, so a changed text changes the id; parents and edges follow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dowse.identity import chunk_id, embedded_text, text_hash
from dowse.types import Chunk, ChunkId, Document, Edge

Change = Callable[[str], str]

_TEXTS = (
    "text", "document_title", "symbol_name", "qualified_name", "signature", "summary", "section_path", "author",
    "context_prefix",
)  # fmt: skip
_LISTS = ("calls_out", "imports")


def rewritten(document: Document, change: Change) -> Document:
    """The same document when nothing in it changes."""
    chunks = [_changed(chunk, change) for chunk in document.chunks]
    title = change(document.title)
    meta = _changed_pairs(document.meta, change)
    edges = tuple(_changed_edge(edge, change) for edge in document.edges)
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


def _changed(chunk: Chunk, change: Change) -> Chunk:
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
    return replace(chunk, **fields) if fields else chunk  # type: ignore[arg-type]


def _changed_pairs(pairs: tuple[tuple[str, str], ...], change: Change) -> tuple[tuple[str, str], ...]:
    return tuple((key, change(value)) for key, value in pairs)


def _changed_edge(edge: Edge, change: Change) -> Edge:
    return replace(edge, description=change(edge.description)) if edge.description else edge


def _new_ids(before: tuple[Chunk, ...], after: list[Chunk]) -> dict[ChunkId, ChunkId]:
    """Old id to new, for the chunks whose text changed; two that have become alike are told apart by number."""
    taken = {old.id for old, new in zip(before, after, strict=True) if old.text == new.text}
    ids: dict[ChunkId, ChunkId] = {}
    for old, new in zip(before, after, strict=True):
        if old.text == new.text:
            continue
        occurrence = 0
        while (fresh := chunk_id(new.source_uri, new.level, new.text, occurrence)) in taken:
            occurrence += 1
        taken.add(fresh)
        ids[old.id] = fresh
    return ids


def _with_ids(chunk: Chunk, ids: dict[ChunkId, ChunkId]) -> Chunk:
    parent = ids.get(chunk.parent_id, chunk.parent_id) if chunk.parent_id else None
    changed = replace(chunk, id=ids.get(chunk.id, chunk.id), parent_id=parent)
    return replace(changed, content_hash=text_hash(embedded_text(changed)))
