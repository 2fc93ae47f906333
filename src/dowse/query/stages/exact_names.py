"""Exact names: chunks whose name the query spells as code rank first."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec
import numpy as np

from dowse.filters import Filter, In
from dowse.identity import id_number, number_id
from dowse.link_names import SYMBOL
from dowse.ports import QuerySession
from dowse.query.stages.legs import passing
from dowse.query.stages.rerank_heuristic import folded, is_named
from dowse.query.stages.sort import put_first
from dowse.query.stages.state import Fused, Hit, QueryState
from dowse.tokenizer import Tokenizer
from dowse.types import Chunk, ChunkId

MOST = 10  # chunks per name; chosen: a page of hits
UNNAMED = 4  # distance of a chunk without a name that the query spells


class ExactNames(msgspec.Struct, frozen=True):
    """Stage that ranks chunks first whose name the query mentions (`retry_call`, EntityStore.search).

    It looks them up by name, because a long query may not find them. They get the best value of all hits, so that hits
    stay sorted by value.
    """

    store: QuerySession
    tokenizer: Tokenizer
    name: str = "exact"

    def __call__(self, state: QueryState, /) -> QueryState:
        names = state.query.mentions
        if not names:
            return state
        wanted = {folded(name) for name in names}
        hits = [*state.hits, *self._looked_up(state, names)]
        spelled = tuple(dotted(name) for name in names)
        named = [hit for hit in hits if is_named(hit.found, wanted) or _defines(hit.found, spelled)]
        if not named:
            return state
        named.sort(key=lambda hit: (distance(hit.found, spelled), -hit.value))
        best = max(hit.value for hit in hits)
        return state.changed(hits=put_first(self.name, named, state.hits, best, _why))

    def _looked_up(self, state: QueryState, names: Sequence[str]) -> list[Hit]:
        there = {hit.found.id for hit in state.hits}
        found: dict[ChunkId, None] = {}
        for name in names:
            last = name.replace("::", ".").replace("#", ".").rsplit(".", 1)[-1]
            terms = self.tokenizer.query(last)["bm25_code"]
            # Most names belong to no symbol: this check is cheaper than a filter over all chunks.
            if not terms or not self.store.names_from(SYMBOL, last, 1):
                continue
            found |= dict.fromkeys(self._defining(last, state.query.where))
            where = (*state.query.where, In("symbol_name", (last,)))
            ids = self.store.search_words("bm25_code", terms, MOST, where).ids
            found |= dict.fromkeys(number_id(each) for each in ids.tolist())
        missing = [each for each in found if each not in there]
        chunks = self.store.get(missing) if missing else {}
        return [_hit_of(chunks[each], state.fused) for each in missing if each in chunks]

    def _defining(self, name: str, where: Filter) -> list[ChunkId]:
        """Return the chunks that define a name, spelled like this if any is; none for a name of many."""
        rows = self.store.named(SYMBOL, [name])
        rows = [each for each in rows if each.name == name] or list(rows)
        if not rows or len(rows) > MOST:
            return []
        return passing(self.store, [each.chunk_id for each in rows], where)


def dotted(name: str) -> str:
    """Return a name as `qualified_name` spells it: parts joined by dots."""
    return name.strip().strip("`\"'").removesuffix("()").replace("::", ".").replace("#", ".")


def distance(chunk: Chunk, names: Collection[str]) -> int:
    """Return 0 for the definition of a name, 1 for another piece of it, 2 and 3 where only the case differs."""
    defined = [each.qualified_name for each in chunk.defines]
    own = [chunk.qualified_name or chunk.symbol_name or ""]
    for step, fold in ((0, str), (2, str.casefold)):
        for further, qualified in ((0, defined), (1, own)):
            if any(_ends(fold(each), fold(name)) for each in qualified for name in names):
                return step + further
    return 3


def _ends(qualified: str, name: str) -> bool:
    return qualified == name or qualified.endswith(f".{name}")


def _defines(chunk: Chunk, names: Collection[str]) -> bool:
    """Return whether a chunk defines a name, spelled like this; `mod name;` in Rust only refers to a file."""
    rust = chunk.language == "rust"
    whole = (each.qualified_name for each in chunk.defines if not (rust and each.kind == "module"))
    return any(_ends(each, name) for each in whole for name in names)


def _hit_of(chunk: Chunk, fused: Fused | None) -> Hit:
    rows = [] if fused is None else np.flatnonzero(fused.ids == np.uint64(id_number(chunk.id))).tolist()
    return Hit(chunk, float(fused.values[rows[0]]), rows[0]) if fused is not None and rows else Hit(chunk, 0.0)


def _why(hit: Hit) -> str:
    return f"is named {hit.found.qualified_name or hit.found.symbol_name or ''}"
