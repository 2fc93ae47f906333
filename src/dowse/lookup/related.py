"""Chunks go in; the chunks that edges tie them to come out, each with a sentence that says how."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from dowse.ports import StoreReader
from dowse.query.stages.graph import sentence
from dowse.types import Chunk, Edge

STRUCTURE = ("part_of", "sequence")


@dataclass(frozen=True)
class Neighbour:
    """A chunk at the other end of an edge."""

    relation: str
    direction: Literal["out", "in"]  # out: the edge leads from what was asked about
    weight: float
    sentence: str  # who does what to whom, and why we think so
    chunk: Chunk


@dataclass(frozen=True)
class Related:
    """What was asked about, and what it is tied to."""

    chunks: tuple[Chunk, ...]
    neighbours: tuple[Neighbour, ...]
    total: int  # before the limit


def related(
    chunks: Sequence[Chunk], reader: StoreReader, *, relations: Collection[str] = (), limit: int = 50
) -> Related:
    """Neighbours by edge, the heaviest first; what only says that chunks stand beside each other comes last.

    Edges between the chunks themselves are left out, and of several chunks what stands around each of them.
    `relations`: only these.
    """
    ids = {chunk.id for chunk in chunks}
    edges: dict[tuple[str, str, str], tuple[Edge, bool]] = {}
    for incoming in (False, True):
        for edge in reader.neighbours(sorted(ids), incoming=incoming):
            inside = edge.source_id in ids and edge.target_id in ids
            if not inside and edge.relation in (relations or _shown(edge, many=len(ids) > 1)):
                edges.setdefault((edge.source_id, edge.target_id, edge.relation), (edge, incoming))
    others = reader.get({end for edge, _ in edges.values() for end in (edge.source_id, edge.target_id)} - ids)
    known = {chunk.id: chunk for chunk in chunks} | dict(others)
    found = [
        Neighbour(
            edge.relation,
            "in" if incoming else "out",
            edge.weight,
            sentence(edge, known),
            known[edge.source_id if incoming else edge.target_id],
        )
        for edge, incoming in edges.values()
        if edge.source_id in known and edge.target_id in known
    ]
    return Related(tuple(chunks), tuple(sorted(found, key=_order)[:limit]), len(found))


def _shown(edge: Edge, *, many: bool) -> tuple[str, ...]:
    return () if many and edge.relation in STRUCTURE else (edge.relation,)


def _order(neighbour: Neighbour) -> tuple[bool, float, str, str, int, str]:
    chunk = neighbour.chunk
    place = (chunk.source_uri, chunk.start_line or 0, chunk.id)
    return neighbour.relation in STRUCTURE, -neighbour.weight, neighbour.relation, *place
