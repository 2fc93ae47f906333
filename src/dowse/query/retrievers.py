"""Public retrievers for users who bring their own store, embedder, index or reranker; an Engine needs none of them.

Each is a profile under a familiar name and runs the pipeline of this package, over a store of `dowse.ports` or over
parts of another system: see `query.plugins`. Any part may fail; the hits of the others are returned.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
from msgspec import structs

from dowse.errors import BadRequestError, UnavailableError
from dowse.filters import Clause, Filter, by_document, by_section_type, from_request
from dowse.ports import LLM, ChunkReader, Embedder, Reranker, SearchableStore, SearchLeg
from dowse.query.aio import AsyncQueries
from dowse.query.assemble import Parts
from dowse.query.guard import guarded, in_time
from dowse.query.pipeline import answer, planned
from dowse.query.plan.classify import Plan
from dowse.query.plan.profiles import POOL_FACTOR, Profile, named
from dowse.query.plugins import RetrieverLeg, RowLeg, RowStore, checked_legs, row_leg, vector_leg, word_legs
from dowse.query.session import documents_of
from dowse.query.stages.graph import GraphOptions
from dowse.tokenizer import Tokenizer
from dowse.tracing import LOGGER, Tracing
from dowse.types import LEGS, Degradation, QueryRequest, QueryResult, QueryType, ScoredChunk

KEYWORD_WEIGHT = 0.3  # of the `graph` profile
SPAN = "retriever.retrieve"


class RetrievalPipeline(AsyncQueries):
    """Pipeline of any profile over a store, or over parts that each have a port or the shape of another system.

    `vector_store` (or `lance_store`): `search(vector, top_k=…)`. `bm25_store`: `query(tokens, top_k)` or
    `search(text, …)`. `service_graph`: `get_neighborhood(services)`. `reranker` replaces the cross-encoder of the
    profile's chain. `legs` are further ways to find chunks. `tracer` is OpenTelemetry's.
    """

    def __init__(
        self,
        store: SearchableStore | Any = None,
        embedder: Embedder | Any = None,
        reranker: Reranker | Any = None,
        llm: LLM | None = None,
        profile: Profile | str = "engineering",
        *,
        lance_store: Any = None,
        vector_store: Any = None,
        bm25_store: Any = None,
        service_graph: Any = None,
        legs: Sequence[SearchLeg] = (),
        tokenizer: Tokenizer | None = None,
        tracer: Any = None,
        logger: logging.Logger | None = None,
    ) -> None:
        given = [each for each in (store, lance_store, vector_store) if each is not None]
        if not given and bm25_store is None and not legs:
            raise BadRequestError("give a store, a vector_store, a bm25_store or legs")
        self.store = next((each for each in given if _is_store(each)), None)
        self.vector_store = next((each for each in given if not _is_store(each)), None)
        self.bm25_store, self.service_graph, self.legs = bm25_store, service_graph, checked_legs(legs)
        self.embedder, self.reranker, self.llm = embedder, reranker, llm
        self.profile = named(profile) if isinstance(profile, str) else profile
        self.tokenizer = tokenizer or Tokenizer()
        self.tracer, self.logger = tracer, logger or logging.getLogger(LOGGER)

    def query(self, text: QueryRequest | str, **fields: Any) -> QueryResult:
        """Answer a request, or a text with fields of QueryRequest; a profile in it is ignored."""
        request = text if isinstance(text, QueryRequest) else QueryRequest(text, **fields)
        request = replace(request, profile=self.profile.name)
        try:
            result = self._answered(request)
        except UnavailableError as err:
            if request.strict:
                raise
            result = QueryResult(request.text, nothing_found=True, degraded=(Degradation("store", str(err)),))
        return self._reported(result)

    def retrieve(self, query: str, top_k: int | None = None, **fields: Any) -> Sequence[ScoredChunk]:
        """Return the hits; `fields` are those of QueryRequest."""
        return self.query(query, top_k=top_k, **fields).chunks

    def _answered(self, request: QueryRequest) -> QueryResult:
        store: Any = guarded(self.store, "store")
        rows = RowStore(from_request(request), self.vector_store) if store is None else None
        own = self.legs if rows is None else (row_leg(leg, rows) for leg in self.legs)
        legs: tuple[SearchLeg, ...] = (*self._plugged(rows), *own)
        if rows is not None and request.legs == LEGS:
            request = replace(request, legs=tuple(dict.fromkeys(leg.name for leg in legs)))
        parts = Parts(
            llm=self.llm,
            cross_encoder=self.reranker,
            profiles=(self.profile,),
            legs=legs,
            service_graph=self.service_graph,
            documents=(lambda: ()) if self.store is None else partial(documents_of, self.store),
        )
        reader: ChunkReader = store.reader() if rows is None else rows
        threads = ThreadPoolExecutor(max_workers=3 + len(legs), thread_name_prefix="dowse-leg")
        try:
            return answer(request, reader, self.embedder, self.tokenizer, threads, parts=parts)
        finally:
            threads.shutdown(wait=False)

    def _plugged(self, rows: RowStore | None) -> tuple[RowLeg, ...]:
        embedder = guarded(self.embedder, "embedder")
        dense = () if self.vector_store is None else (vector_leg(self.vector_store, embedder, rows),)
        if self.bm25_store is not None:
            return (*dense, *word_legs(self.bm25_store, self.tokenizer, rows, by=self._word_methods))
        if hasattr(type(self.vector_store), "search_chunks_keyword"):
            return (*dense, *word_legs(self.vector_store, self.tokenizer, rows, by=("search_chunks_keyword",)))
        return dense

    _word_methods: tuple[str, ...] = ("query", "search")

    def _reported(self, result: QueryResult) -> QueryResult:
        """Write the span and the log record. A tracer that fails is named in `degraded`."""
        tracing = Tracing(self.tracer, self.logger, SPAN)
        if self.tracer is not None:
            try:
                in_time(lambda: tracing.trace(result), "tracer")
            except UnavailableError as err:
                result = replace(result, degraded=(*result.degraded, Degradation("tracer", str(err))))
        tracing.log(result)
        return result


def _is_store(part: object) -> bool:
    """Return whether a part has the port of a store; asks its type, since a mock object has every method."""
    return hasattr(type(part), "reader")


class HybridRetriever(RetrievalPipeline):
    """Retriever that fuses vectors and words by rank, then reranks and cuts at a minimum score.

    Chunks are replaced by their parents before the reranker. `alpha` (or `default_alpha`) is the weight of the vectors,
    1 − `keyword_weight`: give one of them, or two that agree. With a `bm25_index`, a chunk that one side did not find
    counts there as rank 1,000.
    """

    _word_methods = ("search", "query")

    def __init__(
        self,
        store: SearchableStore | Any = None,
        embedder: Embedder | Any = None,
        bm25_index: Any = None,
        default_alpha: float | None = None,
        candidates_per_source: int | None = None,
        *,
        vector_store: Any = None,
        embedding_service: Any = None,
        reranker: Reranker | Any = None,
        keyword_weight: float | None = None,
        alpha: float | None = None,
        overfetch: int = POOL_FACTOR,
        min_score: float = 0.0,
        missing_rank: int | None = None,
        where: Filter | Clause = (),
        **others: Any,
    ) -> None:
        alpha = default_alpha if alpha is None else alpha
        if keyword_weight is not None and alpha is not None and abs(1 - keyword_weight - alpha) > 1e-9:
            raise BadRequestError(
                f"alpha is {alpha} and keyword_weight is {keyword_weight}, which do not add up to 1; give one of them"
            )
        own = structs.replace(
            named("graph"),
            name="hybrid",
            graph=False,
            alpha=1 - (KEYWORD_WEIGHT if keyword_weight is None else keyword_weight) if alpha is None else alpha,
            missing_rank=1000 if missing_rank is None and bm25_index is not None else missing_rank,
            min_score=min_score,
            rerank=("cross-encoder",) if reranker is not None else (),
        )
        super().__init__(
            store,
            embedder if embedding_service is None else embedding_service,
            reranker,
            profile=own,
            vector_store=vector_store,
            bm25_store=bm25_index,
            **others,
        )
        self.where: Filter = _clauses(where)
        self._overfetch, self._candidates = overfetch, candidates_per_source

    def retrieve(
        self,
        query: str,
        top_k: int | None = None,
        alpha: float | None = None,
        where: Filter | Clause = (),
        paper_id: str | None = None,
        section_type: str | None = None,
        **fields: Any,
    ) -> Sequence[ScoredChunk]:
        """Return the hits; `alpha` overrides the weight for this query: 0 is words only, 1 is vectors only.

        `where`, `paper_id` (a document) and `section_type` add to the filter of the retriever, for this query.
        """
        wanted = top_k if isinstance(top_k, int) else self.profile.top_k
        depth = max(self._candidates or max(self._overfetch, 1) * wanted, wanted, 1)
        clauses = (*self.where, *_clauses(where), *_paper(paper_id, section_type))
        return self.query(query, top_k=top_k, alpha=alpha, where=clauses, **({"depth": depth} | fields)).chunks


def _clauses(where: Filter | Clause) -> Filter:
    return where if isinstance(where, tuple) else (where,)


def _paper(paper_id: str | None, section_type: str | None) -> Filter:
    document = () if paper_id is None else (by_document(paper_id),)
    return document if section_type is None else (*document, by_section_type(section_type))


class GraphRetriever(RetrievalPipeline):
    """Retriever that finds seeds by vector and follows the edges of the chunk graph; a vector search without edges.

    With `seed_keyword_weight` above 0, words find seeds as well; their score remains the cosine. `options` are those of
    the graph profile; the other arguments override them.
    """

    def __init__(
        self,
        store: SearchableStore | Any,
        embedder: Embedder | Any = None,
        *,
        reranker: Reranker | Any = None,
        options: GraphOptions | None = None,
        max_hops: int | None = None,
        graph_weight: float | None = None,
        vector_weight: float | None = None,
        hop_decay: Sequence[float] | None = None,
        bidirectional: bool | None = None,
        relation_filter: Sequence[str] | None = None,
        min_traversal_score: float | None = None,
        seed_top_k: int | None = None,
        seed_keyword_weight: float = 0.0,
        where: Filter | Clause = (),
        **others: Any,
    ) -> None:
        given: dict[str, Any] = {
            "hops": max_hops,
            "graph_weight": graph_weight,
            "vector_weight": vector_weight,
            "decay": None if hop_decay is None else tuple(hop_decay),
            "bidirectional": bidirectional,
            "relations": None if relation_filter is None else tuple(relation_filter),
            "min_weight": min_traversal_score,
            "seeds": seed_top_k,
        }
        changed = {name: value for name, value in given.items() if value is not None}
        base = GraphOptions(by_cosine=True) if options is None else options
        try:
            chosen = msgspec.convert(structs.asdict(base) | changed, GraphOptions)
        except msgspec.ValidationError as err:
            raise BadRequestError(f"an option of the graph retriever is wrong: {err}") from err
        own = structs.replace(
            named("graph"),
            name="graph-retriever",
            alpha=1 - seed_keyword_weight,
            parents="off",
            graph_options=chosen,
            rerank=("cross-encoder",) if reranker is not None else (),
        )
        super().__init__(store, embedder, reranker, profile=own, **others)
        self.where: Filter = _clauses(where)

    def retrieve(
        self, query: str, top_k: int | None = None, where: Filter | Clause = (), **fields: Any
    ) -> Sequence[ScoredChunk]:
        # The search finds seeds only; edges lead to the other hits.
        clauses, seeds = (*self.where, *_clauses(where)), self.profile.graph_options.seeds
        return self.query(query, top_k=top_k, where=clauses, **({"depth": seeds} | fields)).chunks


class QueryProcessor(RetrievalPipeline):
    """Processor of the `papers` profile: classify, expand, retrieve, merge, rerank.

    `store` may also be a retriever, whose parts are used; of another system, its `retrieve(query, top_k=…)` is called.
    """

    def __init__(
        self,
        store: SearchableStore | Any,
        embedder: Embedder | Any = None,
        llm: LLM | None = None,
        *,
        reranker: Reranker | Any = None,
        **others: Any,
    ) -> None:
        profile, self._retriever = named("papers"), None
        if isinstance(store, HybridRetriever):
            given = store
            reranker = embedder if reranker is None else reranker
            others |= {"vector_store": given.vector_store, "bm25_store": given.bm25_store}
            store, embedder = given.store, given.embedder
            self._word_methods = HybridRetriever._word_methods
        elif hasattr(store, "retrieve") and not _is_store(store):
            reranker = embedder if reranker is None else reranker
            self._retriever = store
            others |= {"legs": (RetrieverLeg(store),)}
            store, embedder = None, None
        if reranker is not None:
            profile = structs.replace(profile, rerank=("cross-encoder",))
        super().__init__(store, embedder, reranker, llm, profile, **others)

    def process(
        self,
        query: str,
        paper_id: str | None = None,
        section_type: str | None = None,
        *,
        where: Filter | Clause = (),
        **fields: Any,
    ) -> QueryResult:
        """Answer a query; a blank one gets an empty factual result. `fields` override those of the query type."""
        if not query.strip():
            return QueryResult(query, query_type=QueryType.FACTUAL, answer_style="concise", nothing_found=True)
        request = QueryRequest(query, where=(*_clauses(where), *_paper(paper_id, section_type)), **fields)
        if self._retriever is None:
            return self.query(request)
        kind = self.classify(query)
        legs = (RetrieverLeg(self._retriever, self.profile.for_type(kind, request).alpha),)
        shared: dict[str, Any] = {"tracer": self.tracer, "logger": self.logger, "tokenizer": self.tokenizer}
        other = RetrievalPipeline(None, None, self.reranker, self.llm, self.profile, legs=legs, **shared)
        return other.query(replace(request, query_type=kind))

    def retrieve(self, query: str, top_k: int | None = None, **fields: Any) -> Sequence[ScoredChunk]:
        return self.process(query, top_k=top_k, **fields).chunks

    def classify(self, query: str) -> QueryType:
        """Return the type that `process` uses: the language model's if there is one, else that of the rules."""
        return self._plan(query).query_type

    def expand(self, query: str) -> list[str]:
        """Return the query and other wordings; the query alone without a language model or its answer."""
        return [query, *self._plan(query).variants]

    classify_query, expand_query = classify, expand

    def answer_style(self, query: str) -> str:
        """Return concise, detailed, structured or direct."""
        return self._plan(query).answer_style

    def _plan(self, query: str) -> Plan:
        return planned(QueryRequest(query), self.profile, Parts(llm=guarded(self.llm, "language model")), None)[0]
