"""The three legs: a question goes in, a ranked list a variant comes out of each; nothing is fused or fetched here."""

from __future__ import annotations

import msgspec
import numpy as np
from msgspec.structs import replace

from dowse.filters import Filter
from dowse.ports import Embedder, Found, StoreReader
from dowse.query.stages.state import Ranking, Slate, TermsByLeg
from dowse.tokenizer import Tokenizer
from dowse.types import Leg


class Prepare(msgspec.Struct, frozen=True):
    """Cuts the question and its variants into terms, once for both word legs."""

    tokenizer: Tokenizer
    name: str = "prepare"

    def __call__(self, slate: Slate, /) -> Slate:
        query = slate.query
        variants = tuple(replace(each, terms=self._terms(each.text)) for each in query.variants)
        return slate.changed(query=replace(query, terms=self._terms(query.text), variants=variants))

    def _terms(self, text: str) -> TermsByLeg:
        return tuple((leg, tuple(of_leg)) for leg, of_leg in self.tokenizer.query(text).items())


class Dense(msgspec.Struct, frozen=True):
    """The nearest chunks by cosine. The question is embedded here, so that this happens beside the words."""

    store: StoreReader
    embedder: Embedder
    depth: int
    name: Leg = "dense"

    def __call__(self, slate: Slate, /) -> Slate:
        query = slate.query
        vectors = self.embedder.embed([each.text for each in query.asked], role="query")
        added = (
            Ranking("dense", self.store.search_vectors(vector, self.depth, query.where), vector=vector, variant=at)
            for at, vector in enumerate(vectors)
        )
        return slate.changed(lists=(*slate.lists, *added))


class Words(msgspec.Struct, frozen=True):
    """The best chunks by BM25 over one tokenizer's terms."""

    store: StoreReader
    name: Leg
    depth: int

    def __call__(self, slate: Slate, /) -> Slate:
        added = (
            Ranking(self.name, self._found(terms, slate.query.where), terms=terms, variant=at)
            for at, each in enumerate(slate.query.asked)
            for terms in [each.terms_of(self.name)]
        )
        return slate.changed(lists=(*slate.lists, *added))

    def _found(self, terms: tuple[str, ...], where: Filter) -> Found:
        if not terms:
            return Found(np.empty(0, np.uint64), np.empty(0, np.float64))
        return self.store.search_words(self.name, terms, self.depth, where)
