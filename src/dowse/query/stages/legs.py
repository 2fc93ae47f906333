"""The search legs: each adds one ranked list per wording of the query."""

from __future__ import annotations

import msgspec
import numpy as np
from msgspec.structs import replace

from dowse.errors import UnavailableError
from dowse.ports import Embedder, Found, VectorSearch, WordSearch
from dowse.query.stages.state import QueryState, Ranking, TermsByLeg
from dowse.tokenizer import Tokenizer
from dowse.types import Leg

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
