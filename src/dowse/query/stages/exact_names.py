"""A name asked for comes first: hits go in, those that bear a name the question spells as code come out in front."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from dowse.filters import In
from dowse.identity import id_number, number_id
from dowse.link_names import SYMBOL
from dowse.ports import StoreReader
from dowse.query.stages.rerank_heuristic import folded, is_named
from dowse.query.stages.state import Fused, Hit, Slate
from dowse.tokenizer import Tokenizer
from dowse.types import Chunk, ChunkId, Score

MOST = 10  # chunks of one name that are looked up; chosen: a page of hits


class ExactNames(msgspec.Struct, frozen=True):
    """Chunks whose name the question mentions (`retry_call`, EntityStore.search) come first, best value first.

    They are looked up by name, because a long question may leave them outside the pool. The value becomes the best
    there is, so that hits stay sorted by their value.
    """

    store: StoreReader
    tokenizer: Tokenizer
    name: str = "exact"

    def __call__(self, slate: Slate, /) -> Slate:
        names = slate.query.mentions
        if not names:
            return slate
        wanted = {folded(name) for name in names}
        hits = [*slate.hits, *self._looked_up(slate, names)]
        named = [hit for hit in hits if is_named(hit.found, wanted)]
        if not named:
            return slate
        named.sort(key=lambda hit: -hit.value)
        best = max(hit.value for hit in hits)
        first = (
            hit.changed(value=best, scores=(*hit.scores, Score(self.name, best, rank, f"is named {_spelled(hit)}")))
            for rank, hit in enumerate(named, start=1)
        )
        taken = {hit.chunk.id for hit in named}
        return slate.changed(hits=(*first, *(hit for hit in slate.hits if hit.chunk.id not in taken)))

    def _looked_up(self, slate: Slate, names: Sequence[str]) -> list[Hit]:
        """Chunks of that name that are not among the hits."""
        there = {hit.found.id for hit in slate.hits}
        found: dict[ChunkId, None] = {}
        for name in names:
            last = name.replace("::", ".").replace("#", ".").rsplit(".", 1)[-1]
            terms = self.tokenizer.query(last)["bm25_code"]
            # Most names belong to no symbol, and that is found out sooner than a filter goes through all chunks.
            if not terms or not self.store.names_from(SYMBOL, last, 1):
                continue
            where = (*slate.query.where, In("symbol_name", (last,)))
            ids = self.store.search_words("bm25_code", terms, MOST, where).ids
            found |= dict.fromkeys(number_id(each) for each in ids.tolist())
        missing = [each for each in found if each not in there]
        chunks = self.store.get(missing) if missing else {}
        return [_hit_of(chunks[each], slate.fused) for each in missing if each in chunks]


def _hit_of(chunk: Chunk, fused: Fused | None) -> Hit:
    rows = [] if fused is None else np.flatnonzero(fused.ids == np.uint64(id_number(chunk.id))).tolist()
    return Hit(chunk, float(fused.values[rows[0]]), rows[0]) if fused is not None and rows else Hit(chunk, 0.0)


def _spelled(hit: Hit) -> str:
    return hit.found.qualified_name or hit.found.symbol_name or ""
