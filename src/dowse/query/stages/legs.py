"""The search legs, each of which adds one ranked list per wording of the query, and hydration, which fetches chunks."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np
from msgspec.structs import replace

from dowse.errors import UnavailableError
from dowse.filters import Filter
from dowse.identity import id_number, number_id
from dowse.ports import ChunkReader, Embedder, Found, Ids, VectorSearch, WordSearch
from dowse.query.stages.state import Hit, QueryState, Ranking, TermsByLeg
from dowse.tokenizer import Tokenizer
from dowse.types import ChunkId, Leg

NOTHING = Found(np.empty(0, np.uint64), np.empty(0, np.float64))


class Prepare(msgspec.Struct, frozen=True):
    """Stage that splits the query and its variants into terms, once for both word legs."""

    tokenizer: Tokenizer
    name: str = "prepare"

    def __call__(self, state: QueryState, /) -> QueryState:
        query = state.query
        variants = tuple(replace(each, terms=self._terms(each.text)) for each in query.variants)
        return state.changed(query=replace(query, terms=self._terms(query.text), variants=variants))

    def _terms(self, text: str) -> TermsByLeg:
        return tuple((leg, tuple(of_leg)) for leg, of_leg in self.tokenizer.query(text).items())


class Dense(msgspec.Struct, frozen=True):
    """Leg that finds the nearest chunks by cosine. It embeds the query itself, in parallel with the word legs."""

    store: VectorSearch
    embedder: Embedder
    depth: int
    dimension: int | None = None  # of the stored vectors; None: not checked
    name: Leg = "dense"

    def __call__(self, state: QueryState, /) -> QueryState:
        query = state.query
        vectors = self.embedder.embed([each.text for each in query.wordings], role="query")
        if self.dimension not in (None, vectors.shape[1]):
            raise UnavailableError(
                f"{self.embedder.model} gives {vectors.shape[1]} dimensions, the store has {self.dimension}"
            )
        added = (
            Ranking("dense", self.store.search_vectors(vector, self.depth, query.where), vector=vector, variant=at)
            for at, vector in enumerate(vectors)
        )
        return state.changed(lists=(*state.lists, *added))


class Words(msgspec.Struct, frozen=True):
    """Leg that finds the best chunks by BM25 over the terms of one tokenizer."""

    store: WordSearch
    name: Leg
    depth: int

    def __call__(self, state: QueryState, /) -> QueryState:
        added = []
        for at, each in enumerate(state.query.wordings):
            terms = dict(each.terms).get(self.name, ())
            found = self.store.search_words(self.name, terms, self.depth, state.query.where) if terms else NOTHING
            added.append(Ranking(self.name, found, terms=terms, variant=at))
        return state.changed(lists=(*state.lists, *added))


def numbers(ids: Iterable[ChunkId]) -> Ids:
    return np.array([id_number(each) for each in ids], np.uint64)


def passing(store: ChunkReader, ids: Iterable[ChunkId], where: Filter) -> list[ChunkId]:
    """Return the ids of the chunks that exist and pass the filter, in order."""
    wanted = list(ids)
    passes = store.passing(numbers(wanted), where)
    return [each for each, ok in zip(wanted, passes.tolist(), strict=True) if ok]


class Hydrate(msgspec.Struct, frozen=True):
    """Stage that fetches the best `window` chunks. It counts ids that the store no longer has; the next best follow.

    Earlier hits stay, and fetching continues after them. With `enough`, it fetches only that many, unless a chunk of
    the window passes the filter `unless`: a later stage may reorder such a chunk. Most queries show ten hits that no
    stage moves: a fifth of the fetching.
    """

    store: ChunkReader
    window: int
    enough: int | None = None
    unless: Filter = ()
    name: str = "hydrate"

    def __call__(self, state: QueryState, /) -> QueryState:
        fused = state.fused
        if fused is None:
            return state
        hits = list(state.hits)
        row, count = len(hits) + state.dropped, min(self.enough or self.window, self.window)
        if count < self.window and self.unless and self.store.passing(fused.ids[: self.window], self.unless).any():
            count = self.window
        while len(hits) < count and row < len(fused.ids):
            wanted = slice(row, row + count - len(hits))
            batch = [number_id(each) for each in fused.ids[wanted].tolist()]
            chunks = self.store.get(batch)
            values = fused.values[wanted].tolist()
            hits += [
                Hit(chunks[each], value, at)
                for at, (each, value) in enumerate(zip(batch, values, strict=True), start=row)
                if each in chunks
            ]
            row += len(batch)
        return state.changed(hits=tuple(hits), dropped=row - len(hits))
