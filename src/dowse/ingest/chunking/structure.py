"""A document with parents goes in; the same comes out with edges that say what is part of what, and in which order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dowse.types import Chunk, ChunkId, Document, Edge

RELATIONS = ("part_of", "sequence")
WEIGHT = 1.0


def with_structure(document: Document) -> Document:
    """Edges of the reader come first; what it said itself is not said again."""
    known = {(edge.source_id, edge.target_id, edge.relation) for edge in document.edges if edge.relation in RELATIONS}
    found = _edges(document.chunks)
    if known:
        found = (edge for edge in found if (edge.source_id, edge.target_id, edge.relation) not in known)
    return replace(document, edges=(*document.edges, *found))


def _edges(chunks: Sequence[Chunk]) -> Iterator[Edge]:
    """`part_of` to the parent, `sequence` from the earlier to the later of two neighbours under one parent (R-17)."""
    last: dict[tuple[str | None, str], str] = {}
    for chunk in chunks:
        own, parent = chunk.id, chunk.parent_id
        if parent:
            yield _edge(own, parent, "part_of")
        before = last.get((parent, chunk.level))
        if before is not None:
            yield _edge(before, own, "sequence")
        last[parent, chunk.level] = own


def _edge(source: ChunkId, target: ChunkId, relation: str) -> Edge:
    edge = object.__new__(Edge)
    fields = {"source_id": source, "target_id": target, "relation": relation, "weight": WEIGHT, "description": ""}
    object.__setattr__(edge, "__dict__", fields)  # half the time of what a frozen class does; every chunk has two
    return edge
