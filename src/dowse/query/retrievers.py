"""The familiar retrievers: a store and a few options go in; objects that answer by the stages of this package come out.

Each is a profile with the names its users know, over any store of `dowse.ports`; none has a path of its own. An Engine
does all of this and more; these are for those who bring a store, an embedder or a reranker of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dowse.errors import BadRequestError
from dowse.filters import Filter
from dowse.ports import LLM, Embedder, Reranker, Store
from dowse.query.assemble import Parts
from dowse.query.pipeline import answer
from dowse.query.plan.classify import classify, plan
from dowse.query.plan.profiles import POOL_FACTOR, Profile, named
from dowse.query.stages.graph import GraphOptions
from dowse.tokenizer import Tokenizer
from dowse.types import QueryRequest, QueryResult, QueryType, ScoredChunk

KEYWORD_WEIGHT = 0.3  # S4-08


@dataclass(frozen=True)
class RetrievalPipeline:
    """Any profile over any store (S0-06). `reranker` takes the cross-encoder's place in the profile's chain."""

    store: Store
    embedder: Embedder | None = None
    reranker: Reranker | None = None
    llm: LLM | None = None
    profile: Profile = field(default_factory=lambda: named("engineering"))
    tokenizer: Tokenizer = field(default_factory=Tokenizer, compare=False, repr=False)

    def query(self, request: QueryRequest) -> QueryResult:
        """The request's own profile is not looked at: this pipeline is one."""
        parts = Parts(
            llm=self.llm, cross_encoder=self.reranker, profiles=(self.profile,), documents=self.store.documents
        )
        request = replace(request, profile=self.profile.name)
        return answer(request, self.store.reader(), self.embedder, self.tokenizer, parts=parts)

    def retrieve(self, query: str, top_k: int | None = None) -> Sequence[ScoredChunk]:
        return self.query(QueryRequest(query, top_k=top_k)).chunks


@dataclass(frozen=True)
class HybridRetriever:
    """Vectors and words, fused by rank; parents in place of their children, then the reranker, then a minimum (S4-04).

    `alpha` is the weight of the vectors, 1 − `keyword_weight`: give one of them, or two that agree (C-03).
    """

    store: Store
    embedder: Embedder | None = None
    reranker: Reranker | None = None
    keyword_weight: float | None = None
    alpha: float | None = None
    overfetch: int = POOL_FACTOR  # candidates of each leg, for each hit wanted (S4-05)
    min_score: float = 0.0
    missing_rank: int | None = None  # S3-09 had 1000
    where: Filter = ()

    def retrieve(self, query: str, top_k: int | None = None, alpha: float | None = None) -> Sequence[ScoredChunk]:
        """`alpha` of this question; 0 (words only) and 1 (vectors only) count as given (S3-12)."""
        own = self.profile()
        wanted = own.top_k if top_k is None else top_k
        request = QueryRequest(
            query, top_k=wanted, alpha=alpha, where=self.where, depth=max(self.overfetch, 1) * max(wanted, 1)
        )
        return RetrievalPipeline(self.store, self.embedder, self.reranker, profile=own).query(request).chunks

    def profile(self) -> Profile:
        return replace(
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
    """Seeds by vector, then along the edges of the chunk graph (S4-14). Without edges it is a vector search.

    `seed_keyword_weight` above 0 lets words choose seeds, too; they are still scored by their cosine (B-35).
    """

    store: Store
    embedder: Embedder | None = None
    reranker: Reranker | None = None
    options: GraphOptions = field(default_factory=lambda: GraphOptions(by_cosine=True))
    seed_keyword_weight: float = 0.0
    where: Filter = ()

    def retrieve(self, query: str, top_k: int | None = None) -> Sequence[ScoredChunk]:
        # Only seeds are searched for: what else is found comes along the edges.
        request = QueryRequest(query, top_k=top_k, where=self.where, depth=self.options.seeds)
        return RetrievalPipeline(self.store, self.embedder, self.reranker, profile=self.profile()).query(request).chunks

    def profile(self) -> Profile:
        return replace(
            named("graph"),
            name="graph-retriever",
            alpha=1 - self.seed_keyword_weight,
            parents="off",
            graph_options=self.options,
            rerank=("cross-encoder",) if self.reranker else (),
        )


@dataclass(frozen=True)
class QueryProcessor:
    """The `papers` profile: classify, expand, retrieve, merge, rerank (S3-26)."""

    store: Store
    embedder: Embedder | None = None
    llm: LLM | None = None
    tokenizer: Tokenizer = field(default_factory=Tokenizer, compare=False, repr=False)

    def process(self, query: str, where: Filter = ()) -> QueryResult:
        """A blank question is answered at once: factual, and with nothing (S3-43)."""
        if not query.strip():
            return QueryResult(query, query_type=QueryType.FACTUAL, answer_style="concise", nothing_found=True)
        pipeline = RetrievalPipeline(
            self.store, self.embedder, llm=self.llm, profile=named("papers"), tokenizer=self.tokenizer
        )
        return pipeline.query(QueryRequest(query, where=where))

    def retrieve(self, query: str, top_k: int | None = None) -> Sequence[ScoredChunk]:
        return self.process(query).chunks[:top_k]

    def classify(self, query: str) -> QueryType:
        return classify(query)

    def answer_style(self, query: str) -> str:
        """concise, detailed, structured or direct (S3-32)."""
        return plan(query).answer_style
