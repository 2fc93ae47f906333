"""The public API as a user types it, for `mypy --strict`; test_typed_user.py runs the checker over this file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

import dowse
from dowse import (
    BM25Index,
    Candidate,
    Chunk,
    Config,
    Degradation,
    Embedder,
    Filter,
    GraphRetriever,
    HeuristicReranker,
    HybridRetriever,
    LLMReranker,
    MemoryStore,
    QueryProcessor,
    QueryRequest,
    QueryResult,
    QueryType,
    Reranker,
    RetrievalPipeline,
    Retriever,
    ScoredChunk,
    ScoreReranker,
    SearchLeg,
    ServiceContext,
)


class Mine:
    """Embedder, reranker and leg of a user, typed by their protocols."""

    name = "mine"
    model = "mine"
    dimension = 2

    def embed(self, texts: Sequence[str], *, role: str) -> NDArray[np.float32]:
        return np.ones((len(texts), 2), np.float32)

    def score(
        self, query: str, candidates: Sequence[Candidate], *, timeout_s: float | None = None
    ) -> Sequence[float | None]:
        return [candidate.value for candidate in candidates]

    def search(self, query: str, k: int, *, where: Filter = ()) -> Iterable[tuple[str, float]]:
        return [("0000000000000001", 1.0)]


def read(result: QueryResult) -> tuple[list[str], float, str | None, datetime | None, list[Degradation]]:
    hits: Sequence[ScoredChunk] = result.results
    texts: list[str] = [hit.content for hit in hits]
    service: dict[str, ServiceContext] = result.service_context or {}
    sources: list[str] = [edge["source"] for context in service.values() for edge in context.edges]
    total_ms: float = result.query_metadata["total_ms"]
    when: datetime | None = hits[0].created_at if hits else None
    stamp: str | None = hits[0].timestamp if hits else None
    return texts + sources, total_ms, stamp, when, list(result.degraded)


def retrieve(store: MemoryStore) -> list[Retriever]:
    embedder: Embedder = Mine()
    reranker: Reranker = Mine()
    leg: SearchLeg = Mine()
    index = BM25Index(remove_stopwords=False)
    index.build_index([Chunk("1", "d", "text", "DOC_PAGE", "s")])
    found: list[ScoredChunk] = index.search("text", n_results=5, paper_id="d")
    ranked: list[Candidate] = HeuristicReranker().rerank("text", found, top_k=3)
    ranked = ScoreReranker(0.1).rerank("text", ranked) + LLMReranker(None).rerank("text", ranked)
    assert [(each.original_score, each.reranked_score, each.source, each["text"]) for each in ranked]
    processor = QueryProcessor(HybridRetriever(store, embedder, index))
    kind: QueryType = processor.classify_query("text")
    wordings: list[str] = processor.expand_query("text")
    assert wordings[0] != kind
    return [
        RetrievalPipeline(store, embedder, reranker, legs=[leg]),
        HybridRetriever(store, embedder, index, 0.7, 20, reranker=reranker, where=dowse.by_document("d")),
        GraphRetriever(store, embedder, max_hops=2, bidirectional=True),
        processor,
    ]


async def ask(folder: str) -> QueryResult:
    with dowse.open(folder, config=Config(), embedder=Mine(), legs=[Mine()]) as engine:
        request = QueryRequest("text", top_k=5, corpus_filter=("CODE_LOGIC",), where=(dowse.by_repo("r"),))
        async for event in engine.astream("text"):
            first: QueryResult = event.result
            assert first
        return await engine.aquery(request)
