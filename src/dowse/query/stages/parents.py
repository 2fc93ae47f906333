"""What a passage stands in: hits go in; with their parents beside them, or with parents in their place, they come out.

Parents pass the filter like anything else that is shown (B-34), and are fetched a level at a time (B-27).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import msgspec

from dowse.filters import Filter, matches
from dowse.ports import StoreReader
from dowse.query.stages.state import Hit, Slate
from dowse.types import Chunk, ChunkId, ParentContext, Score

DEEPEST = 8  # levels; chosen: real ones have three, and a ring of parents must end


@dataclass(frozen=True)
class ReplaceByParent:
    """The parent takes its best child's place, value and history; the child stays as evidence (S4-07, C-27).

    A hit without a parent, or whose parent is gone or outside the filter, stays as it is.
    """

    store: StoreReader
    name: str = "parents"

    def __call__(self, slate: Slate, /) -> Slate:
        wanted = {hit.chunk.parent_id for hit in slate.hits if hit.chunk.parent_id is not None}
        parents = _passing(self.store.get(wanted), slate.query.where) if wanted else {}
        if not parents:
            return slate
        best: dict[ChunkId, Hit] = {}
        for hit in slate.hits:
            placed = self._placed(hit, parents)
            if placed.chunk.id not in best or placed.value > best[placed.chunk.id].value:
                # B-38: the first is not believed to be the best; the place in the order is settled below.
                best[placed.chunk.id] = placed
        hits = sorted(best.values(), key=lambda hit: -hit.value)
        return slate.changed(hits=tuple(_numbered(hits, self.name)))

    def _placed(self, hit: Hit, parents: Mapping[ChunkId, Chunk]) -> Hit:
        parent = parents.get(hit.chunk.parent_id or "")
        if parent is None:
            return hit
        child = hit.chunk
        lines = f", lines {child.start_line}–{child.end_line}" if child.start_line is not None else ""
        why = f"{parent.level} in place of its best part {child.id}{lines}"
        return hit.changed(chunk=parent, child=child, scores=(*hit.scores, Score(self.name, hit.value, 0, why)))


class AttachParents(msgspec.Struct, frozen=True):
    """Section and document beside each hit that will be shown, outermost first (S1-10, R-35)."""

    store: StoreReader
    name: str = "parents"

    def __call__(self, slate: Slate, /) -> Slate:
        shown = slate.hits[: slate.query.k]
        above = self._above([hit.chunk for hit in shown], slate.query.where)
        if not above:
            return slate
        hits = (hit.changed(parents=tuple(_chain(hit.chunk, above))) for hit in shown)
        return slate.changed(hits=(*hits, *slate.hits[len(shown) :]))

    def _above(self, chunks: Iterable[Chunk], where: Filter) -> dict[ChunkId, Chunk]:
        known: dict[ChunkId, Chunk] = {}
        wanted = {chunk.parent_id for chunk in chunks if chunk.parent_id is not None}
        for _ in range(DEEPEST):
            found = _passing(self.store.get(wanted - known.keys()), where) if wanted - known.keys() else {}
            if not found:
                break
            known |= found
            wanted = {chunk.parent_id for chunk in found.values() if chunk.parent_id is not None}
        return known


def _passing(chunks: Mapping[ChunkId, Chunk], where: Filter) -> dict[ChunkId, Chunk]:
    return {each: chunk for each, chunk in chunks.items() if matches(chunk, where)}


def _chain(chunk: Chunk, above: Mapping[ChunkId, Chunk]) -> list[ParentContext]:
    chain: list[ParentContext] = []
    at = above.get(chunk.parent_id or "")
    while at is not None and len(chain) < DEEPEST and at.id != chunk.id:
        chain.insert(0, ParentContext(at.id, at.level, at.text, at.summary))
        at = above.get(at.parent_id or "")
    return chain


def _numbered(hits: Iterable[Hit], stage: str) -> list[Hit]:
    """Places after the merge, in the scores that this stage gave."""
    return [
        hit.changed(scores=(*hit.scores[:-1], replace(hit.scores[-1], rank=rank)))
        if hit.scores and hit.scores[-1].stage == stage
        else hit
        for rank, hit in enumerate(hits, start=1)
    ]
