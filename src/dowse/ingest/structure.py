"""A document with parents goes in; the same comes out with edges that say what is part of what, and in which order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from dowse.types import Chunk, Document, Edge

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
        if chunk.parent_id:
            yield Edge(chunk.id, chunk.parent_id, "part_of", WEIGHT)
        before = last.get((chunk.parent_id, chunk.level))
        if before is not None:
            yield Edge(before, chunk.id, "sequence", WEIGHT)
        last[chunk.parent_id, chunk.level] = chunk.id
