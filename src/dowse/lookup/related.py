"""Chunks linked to given chunks by edges, each with a sentence about the relation."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import msgspec

from dowse.ports import StoreReader
from dowse.query.stages.graph import sentence
from dowse.types import Chunk, Edge

STRUCTURE = ("part_of", "sequence")


class LinkedChunk(msgspec.Struct, frozen=True):
    """Chunk at the other end of an edge."""

    relation: str
    direction: Literal["out", "in"]  # out: the edge starts at a given chunk
    weight: float
    sentence: str  # the relation and its reason
    chunk: Chunk


class RelatedChunks(msgspec.Struct, frozen=True):
    """Given chunks and their linked chunks."""

    chunks: tuple[Chunk, ...]
    neighbours: tuple[LinkedChunk, ...]
    total: int  # before the limit


def related(
    chunks: Sequence[Chunk], reader: StoreReader, *, relations: Collection[str] = (), limit: int = 50
) -> RelatedChunks:
    """Find chunks linked from outside, the heaviest edges first, structure last; only `relations` if given."""
    ids = {chunk.id for chunk in chunks}
    hidden = STRUCTURE if len(ids) > 1 else ()  # several chunks show what they are linked to, not how they follow
    edges: dict[tuple[str, str, str], tuple[Edge, bool]] = {}
    for incoming in (False, True):
        for edge in reader.neighbours(sorted(ids), incoming=incoming):
            inside = edge.source_id in ids and edge.target_id in ids
            if not inside and (edge.relation in relations if relations else edge.relation not in hidden):
                edges.setdefault((edge.source_id, edge.target_id, edge.relation), (edge, incoming))
    others = reader.get({end for edge, _ in edges.values() for end in (edge.source_id, edge.target_id)} - ids)
    known = {chunk.id: chunk for chunk in chunks} | dict(others)
    found = [
        LinkedChunk(
            edge.relation,
            "in" if incoming else "out",
            edge.weight,
            sentence(edge, known),
            known[edge.source_id if incoming else edge.target_id],
        )
        for edge, incoming in edges.values()
        if edge.source_id in known and edge.target_id in known
    ]
    return RelatedChunks(tuple(chunks), tuple(sorted(found, key=_order)[:limit]), len(found))


def _order(neighbour: LinkedChunk) -> tuple[bool, float, str, str, int, str]:
    chunk = neighbour.chunk
    place = (chunk.source_uri, chunk.start_line or 0, chunk.id)
    return neighbour.relation in STRUCTURE, -neighbour.weight, neighbour.relation, *place
