"""The chunks of one file go in; edges from those that call to those that are called come out."""

from __future__ import annotations

from collections.abc import Sequence

from dowse.types import Chunk, ChunkId, Defined, Edge

OWN_WEIGHT = 0.9  # a bare name, or one of self; chosen
OTHER_WEIGHT = 0.6  # a name of some object, which only happens to be unique in the file; chosen
SHORTEST_OTHER = 5  # characters; chosen: x.get() and x.run() may be anybody's
CALLABLE = frozenset(("function", "method", "constructor", "macro", "class", "struct", "record", "object"))


def call_edges(chunks: Sequence[Chunk]) -> tuple[Edge, ...]:
    """By name, where only one definition in the file can be meant; the caller's own class counts first."""
    by_name: dict[str, list[tuple[Defined, ChunkId]]] = {}
    for chunk in chunks:
        for each in chunk.defines:
            if each.kind in CALLABLE:
                by_name.setdefault(each.name, []).append((each, chunk.id))
    if not by_name:
        return ()
    edges: dict[tuple[ChunkId, ChunkId], Edge] = {}
    for chunk in chunks:
        for spelled in chunk.calls_out:
            receiver, _, name = spelled.rpartition(".")
            target = _meant(by_name.get(name, ()), receiver, chunk)
            if target is None or target == chunk.id:
                continue
            weight = OTHER_WEIGHT if receiver else OWN_WEIGHT
            known = edges.get((chunk.id, target))
            if known is None or known.weight < weight:
                edges[chunk.id, target] = Edge(chunk.id, target, "calls", weight, f"as {spelled}")
    return tuple(edges.values())


def _meant(named: Sequence[tuple[Defined, ChunkId]], receiver: str, caller: Chunk) -> ChunkId | None:
    if not named:
        return None
    if receiver:
        exact = {target for each, target in named if f".{each.qualified_name}".endswith(f".{receiver}.{each.name}")}
        if len(exact) == 1:
            return exact.pop()
        if len(named[0][0].name) < SHORTEST_OTHER:
            return None
    else:
        own = caller.qualified_name or ""
        around = {each for each in (own, own.rpartition(".")[0]) if each}  # the head of a class is named after it
        beside = {target for each, target in named if each.qualified_name.rpartition(".")[0] in around}
        if len(beside) == 1:
            return beside.pop()
    targets = {target for _, target in named}
    return targets.pop() if len(targets) == 1 else None
