"""Public retrievers for users who bring their own store, embedder or reranker; an Engine needs none of them.

Each is a profile under a familiar name, over any store of `dowse.ports`, and runs the pipeline of this package.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from msgspec import structs

from dowse.errors import BadRequestError
from dowse.filters import Filter
from dowse.ports import LLM, Embedder, Reranker, SearchableStore
from dowse.query.assemble import Parts
from dowse.query.guard import guarded
from dowse.query.pipeline import answer, planned
from dowse.query.plan.classify import Plan
from dowse.query.plan.profiles import POOL_FACTOR, Profile, named
from dowse.query.stages.graph import GraphOptions
from dowse.tokenizer import Tokenizer
from dowse.types import QueryRequest, QueryResult, QueryType, ScoredChunk

KEYWORD_WEIGHT = 0.3  # of the `graph` profile


@dataclass(frozen=True)
class RetrievalPipeline:
    """Pipeline of any profile over any store. `reranker` replaces the cross-encoder of the profile's chain."""

    store: SearchableStore
    embedder: Embedder | None = None
    reranker: Reranker | None = None
    llm: LLM | None = None
    profile: Profile = field(default_factory=lambda: named("engineering"))
    tokenizer: Tokenizer = field(default_factory=Tokenizer, compare=False, repr=False)

    def query(self, request: QueryRequest) -> QueryResult:
        """Answer a request; its own profile is ignored."""
        parts = Parts(
            llm=self.llm, cross_encoder=self.reranker, profiles=(self.profile,), documents=self.store.documents
        )
        request = replace(request, profile=self.profile.name)
        return answer(request, self.store.reader(), self.embedder, self.tokenizer, parts=parts)

    def retrieve(self, query: str, top_k: int | None = None) -> Sequence[ScoredChunk]:
        return self.query(QueryRequest(query, top_k=top_k)).chunks


@dataclass(frozen=True)
class HybridRetriever:
    """Retriever that fuses vectors and words by rank, replaces chunks by their parents, reranks, and cuts at a minimum.

    `alpha` is the weight of the vectors, 1 − `keyword_weight`: give one of them, or two that agree.
    """

    store: SearchableStore
    embedder: Embedder | None = None
    reranker: Reranker | None = None
    keyword_weight: float | None = None
    alpha: float | None = None
    overfetch: int = POOL_FACTOR  # candidates of each leg, per wanted hit
    min_score: float = 0.0
    missing_rank: int | None = None
    where: Filter = ()

    def retrieve(
        self, query: str, top_k: int | None = None, alpha: float | None = None, where: Filter = ()
    ) -> Sequence[ScoredChunk]:
        """Return the hits; `alpha` overrides the weight for this query: 0 is words only, 1 is vectors only.

        `where` adds clauses to the filter of the retriever, for this query.
        """
        own = self.profile()
        wanted = own.top_k if top_k is None else top_k
        request = QueryRequest(
            query, top_k=wanted, alpha=alpha, where=(*self.where, *where), depth=max(self.overfetch, 1) * max(wanted, 1)
        )
        return RetrievalPipeline(self.store, self.embedder, self.reranker, profile=own).query(request).chunks

    def profile(self) -> Profile:
        return structs.replace(
            named("graph"),
            name="hybrid",
            graph=False,
            alpha=self._dense_weight(),
            missing_rank=self.missing_rank,
            min_score=self.min_score,
            rerank=("cross-encoder",) if self.reranker else (),
        )

    def _dense_weight(self) -> float:
        keyword, dense = self.keyword_weight, self.alpha
        if keyword is not None and dense is not None and abs(1 - keyword - dense) > 1e-9:
            raise BadRequestError(
                f"alpha is {dense} and keyword_weight is {keyword}, which do not add up to 1; give one of them"
            )
        if dense is not None:
            return dense
        return 1 - (KEYWORD_WEIGHT if keyword is None else keyword)


@dataclass(frozen=True)
class GraphRetriever:
    """Retriever that finds seeds by vector and follows the edges of the chunk graph; a vector search without edges.

    With `seed_keyword_weight` above 0, words find seeds as well; their score remains the cosine.
    """

    store: SearchableStore
    embedder: Embedder | None = None
    reranker: Reranker | None = None
    options: GraphOptions = field(default_factory=lambda: GraphOptions(by_cosine=True))
    seed_keyword_weight: float = 0.0
    where: Filter = ()

    def retrieve(self, query: str, top_k: int | None = None) -> Sequence[ScoredChunk]:
        # The search finds seeds only; edges lead to the other hits.
        request = QueryRequest(query, top_k=top_k, where=self.where, depth=self.options.seeds)
        return RetrievalPipeline(self.store, self.embedder, self.reranker, profile=self.profile()).query(request).chunks

    def profile(self) -> Profile:
        return structs.replace(
            named("graph"),
            name="graph-retriever",
            alpha=1 - self.seed_keyword_weight,
            parents="off",
            graph_options=self.options,
            rerank=("cross-encoder",) if self.reranker else (),
        )


@dataclass(frozen=True)
class QueryProcessor:
    """Processor of the `papers` profile: classify, expand, retrieve, merge, rerank."""

    store: SearchableStore
    embedder: Embedder | None = None
    llm: LLM | None = None
    tokenizer: Tokenizer = field(default_factory=Tokenizer, compare=False, repr=False)

    def process(self, query: str, where: Filter = (), top_k: int | None = None) -> QueryResult:
        """Answer a query; a blank one gets an empty factual result. `top_k` overrides that of the query type."""
        if not query.strip():
            return QueryResult(query, query_type=QueryType.FACTUAL, answer_style="concise", nothing_found=True)
        pipeline = RetrievalPipeline(
            self.store, self.embedder, llm=self.llm, profile=named("papers"), tokenizer=self.tokenizer
        )
        return pipeline.query(QueryRequest(query, top_k=top_k, where=where))

    def retrieve(self, query: str, top_k: int | None = None) -> Sequence[ScoredChunk]:
        return self.process(query, top_k=top_k).chunks

    def classify(self, query: str) -> QueryType:
        """Return the type that `process` uses: the language model's if there is one, else that of the rules."""
        return self._plan(query).query_type

    def expand(self, query: str) -> list[str]:
        """Return the query and other wordings; the query alone without a language model or its answer."""
        return [query, *self._plan(query).variants]

    def _plan(self, query: str) -> Plan:
        own = named("papers")
        return planned(QueryRequest(query), own, Parts(llm=guarded(self.llm, "language model")), None)[0]

    def answer_style(self, query: str) -> str:
        """Return concise, detailed, structured or direct."""
        return self._plan(query).answer_style
