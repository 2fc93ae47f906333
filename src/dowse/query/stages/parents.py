"""Parents of hits: sections and documents that are attached to hits or replace them.

A parent and all chunks below it pass the filter: its text and summary may quote any of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from dowse.filters import Filter, comparisons, matches
from dowse.ports import ChunkReader
from dowse.query.stages.state import Hit, QueryState, StageScore
from dowse.types import Chunk, ChunkId, ParentContext

_SHARED = frozenset(("document_id", "document_source", "file_path", "repo_name"))  # equal for all chunks of a document
DEEPEST = 8  # levels; chosen: documents have three, and a cycle must end


class ReplaceByParent(msgspec.Struct, frozen=True):
    """Stage that replaces chunks by their parent, at the rank of the best child, which stays as evidence.

    A hit without a parent, or with a deleted or filtered one, stays as it is.
    """

    store: ChunkReader
    name: str = "parents"

    def __call__(self, state: QueryState, /) -> QueryState:
        wanted = {hit.chunk.parent_id for hit in state.hits if hit.chunk.parent_id is not None}
        parents = visible_parents(self.store, self.store.get(wanted), state.query.where) if wanted else {}
        if not parents:
            return state
        best: dict[ChunkId, Hit] = {}
        for hit in state.hits:
            placed = self._placed(hit, parents)
            if placed.chunk.id not in best or placed.value > best[placed.chunk.id].value:  # hits may not be sorted
                best[placed.chunk.id] = placed
        hits = sorted(best.values(), key=lambda hit: -hit.value)
        return state.changed(hits=tuple(_numbered(hits, self.name)))

    def _placed(self, hit: Hit, parents: Mapping[ChunkId, Chunk]) -> Hit:
        parent = parents.get(hit.chunk.parent_id or "")
        if parent is None:
            return hit
        child = hit.chunk
        lines = f", lines {child.start_line}–{child.end_line}" if child.start_line is not None else ""
        why = f"{parent.level} in place of its best part {child.id}{lines}"
        return hit.changed(chunk=parent, child=child, scores=(*hit.scores, StageScore(self.name, hit.value, 0, why)))


class AttachParents(msgspec.Struct, frozen=True):
    """Stage that attaches section and document to each shown hit, outermost first."""

    store: ChunkReader
    name: str = "parents"

    def __call__(self, state: QueryState, /) -> QueryState:
        shown = state.hits[: state.query.k]
        above = self._above([hit.chunk for hit in shown], state.query.where)
        if not above:
            return state
        hits = (hit.changed(parents=tuple(_chain(hit.chunk, above))) for hit in shown)
        return state.changed(hits=(*hits, *state.hits[len(shown) :]))

    def _above(self, chunks: Iterable[Chunk], where: Filter) -> dict[ChunkId, Chunk]:
        known: dict[ChunkId, Chunk] = {}
        wanted = {chunk.parent_id for chunk in chunks if chunk.parent_id is not None}
        for _ in range(DEEPEST):
            new = wanted - known.keys()
            found = visible_parents(self.store, self.store.get(new), where) if new else {}
            if not found:
                break
            known |= found
            wanted = {chunk.parent_id for chunk in found.values() if chunk.parent_id is not None}
        return known


def visible_parents(store: ChunkReader, parents: Mapping[ChunkId, Chunk], where: Filter) -> dict[ChunkId, Chunk]:
    """Return the parents that pass the filter with every chunk below them."""
    if all(clause.field in _SHARED for clause in comparisons(where)):
        hidden: set[ChunkId] = set()
    else:
        hidden = {each for document_id in {chunk.document_id for chunk in parents.values()}
                  for each in _above_excluded(store.document_chunks(document_id), where)}  # fmt: skip
    return {each: chunk for each, chunk in parents.items() if each not in hidden and matches(chunk, where)}


def _above_excluded(chunks: Sequence[Chunk], where: Filter) -> set[ChunkId]:
    """Return all parents of the chunks of a document that the filter excludes."""
    parent_of = {chunk.id: chunk.parent_id for chunk in chunks}
    found: set[ChunkId] = set()
    for chunk in chunks:
        at = None if chunk.level != "chunk" or matches(chunk, where) else chunk.parent_id
        while at is not None and at not in found:
            found.add(at)
            at = parent_of.get(at)
    return found


def _chain(chunk: Chunk, above: Mapping[ChunkId, Chunk]) -> list[ParentContext]:
    chain: list[ParentContext] = []
    at = above.get(chunk.parent_id or "")
    while at is not None and len(chain) < DEEPEST and at.id != chunk.id:
        chain.insert(0, ParentContext(at.id, at.level, at.text, at.summary))
        at = above.get(at.parent_id or "")
    return chain


def _numbered(hits: Iterable[Hit], stage: str) -> list[Hit]:
    return [
        hit.changed(scores=(*hit.scores[:-1], replace(hit.scores[-1], rank=rank)))
        if hit.scores and hit.scores[-1].stage == stage
        else hit
        for rank, hit in enumerate(hits, start=1)
    ]
