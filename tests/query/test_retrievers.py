"""The familiar retrievers over a real store: what their users expect of them is checked, row by row."""

from __future__ import annotations

from typing import Any

import pytest

import dowse
from dowse.errors import BadRequestError, UnavailableError
from dowse.filters import by_repo
from dowse.ports import Candidate, Retriever
from dowse.query.plan.profiles import named
from dowse.query.retrievers import GraphRetriever, HybridRetriever, QueryProcessor, RetrievalPipeline
from dowse.query.stages.graph import GraphOptions
from dowse.query.stages.rerank_llm import LLMReranker
from dowse.store.memory import MemoryStore
from dowse.types import QueryRequest, QueryType, ScoredChunk
from shop_store import OverlapReranker, TrigramEmbedder, shop_store

EMBEDDER = TrigramEmbedder()


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return shop_store()


def ids(chunks: Any) -> list[str]:
    return [each.id for each in chunks]


@pytest.mark.parametrize("kind", [RetrievalPipeline, HybridRetriever, GraphRetriever, QueryProcessor])
def test_each_of_them_is_a_retriever(store: MemoryStore, kind: Any) -> None:
    """Consumers depend on the interface only."""
    retriever: Retriever = kind(store, EMBEDDER)
    found = retriever.retrieve("retries of payments", 3)
    assert 0 < len(found) <= 3
    assert all(0 <= each.final_score <= 1 for each in found)
    assert all(isinstance(each, ScoredChunk) for each in found)


@pytest.mark.parametrize("kind", [RetrievalPipeline, HybridRetriever, GraphRetriever, QueryProcessor])
def test_without_an_embedder_they_search_by_words(store: MemoryStore, kind: Any) -> None:
    """A missing leg is no error. Without vectors, words choose the seeds of the graph."""
    assert kind(store).retrieve("retries of payments", 3)


def test_pipeline_answers_as_its_profile(store: MemoryStore) -> None:
    pipeline = RetrievalPipeline(store, EMBEDDER, OverlapReranker())
    result = pipeline.query(QueryRequest("payment service", expand_graph=True, profile="papers"))
    assert result.chunks
    assert result.service_context is not None
    assert all(each.rerank_score is not None for each in result.chunks)


def test_hybrid_takes_weights_of_both_names(store: MemoryStore) -> None:
    """alpha = 1 − keyword weight; two that differ are refused."""
    assert HybridRetriever(store).profile.alpha == 1 - 0.3
    assert HybridRetriever(store, keyword_weight=0.4).profile.alpha == 1 - 0.4
    assert HybridRetriever(store, alpha=0.6, keyword_weight=0.4).profile.alpha == 0.6
    with pytest.raises(BadRequestError, match=r"alpha is 0.6 and keyword_weight is 0.3, which do not add up to 1"):
        HybridRetriever(store, EMBEDDER, alpha=0.6, keyword_weight=0.3).retrieve("q")


def test_hybrid_honours_an_alpha_of_zero_and_one(store: MemoryStore) -> None:
    """`alpha is not None`; pure lists."""
    retriever = HybridRetriever(store, EMBEDDER)
    words = retriever.retrieve("rollback", alpha=0.0)
    assert all((each.bm25_nlp_score or 0) > 0 for each in words)
    vectors = retriever.retrieve("rollback", alpha=1.0)
    assert ids(vectors) != ids(words)
    assert [each.dense_score for each in vectors] == sorted((each.dense_score for each in vectors), reverse=True)  # type: ignore[type-var]


def test_hybrid_replaces_children_reranks_and_drops(store: MemoryStore) -> None:
    """Parents, then reranker, then the minimum, then the trim."""
    retriever = HybridRetriever(store, EMBEDDER, reranker=OverlapReranker(), min_score=0.3)
    found = retriever.retrieve("kubectl rollout undo", 5)
    assert found[0].level == "section"
    assert found[0].rerank_score == 1.0
    assert all(each.final_score >= 0.3 for each in found)
    assert len(found) < len(
        HybridRetriever(store, EMBEDDER, reranker=OverlapReranker()).retrieve("kubectl rollout undo", 5)
    )


def test_hybrid_filters_both_legs(store: MemoryStore) -> None:
    found = HybridRetriever(store, EMBEDDER, where=(by_repo("ops"),)).retrieve("payment", 10)
    assert {each.repo_name for each in found} == {"ops"}


def test_hybrid_falls_back_when_the_embedder_is_down(store: MemoryStore) -> None:
    class Down(TrigramEmbedder):
        def embed(self, texts: Any, *, role: Any) -> Any:
            raise UnavailableError("no model")

    assert ids(HybridRetriever(store, Down()).retrieve("rollback")) == ids(HybridRetriever(store).retrieve("rollback"))


def test_graph_brings_what_the_edges_lead_to(store: MemoryStore) -> None:
    """The runbook documents RetryCharge, which calls ChargeCard."""
    options = GraphOptions(by_cosine=True, seeds=1, slots=2)
    found = GraphRetriever(store, EMBEDDER, options=options).retrieve(
        "Retries of payments are limited to three attempts with growing pauses", 5
    )
    discovered = {each.symbol_name: each for each in found if each.graph_context}
    assert discovered["RetryCharge"].graph_context[0].relation == "documents"
    assert found[0].graph_context == ()  # a seed has none


def test_processor_answers_with_type_and_style(store: MemoryStore) -> None:
    result = QueryProcessor(store, EMBEDDER).process("explain how payments are retried")
    assert (result.query_type, result.answer_style) == (QueryType.CONCEPTUAL, "detailed")
    assert QueryProcessor(store).answer_style("compare a and b") == "structured"


class TypingLLM:
    """Language model that finds every query conceptual and has one other wording."""

    model = "typing"

    def complete_json(self, prompt: str, schema: Any, timeout_s: float, *, max_tokens: int) -> Any:
        return {"type": "conceptual", "variants": ["growing pauses"]}


def test_processor_classifies_expands_and_processes_alike(store: MemoryStore) -> None:
    processor = QueryProcessor(store, EMBEDDER, TypingLLM())
    result = processor.process("number of retries")
    assert processor.classify("number of retries") == result.query_type == QueryType.CONCEPTUAL
    assert processor.expand("number of retries") == list(result.expanded_queries)
    assert QueryProcessor(store).expand("number of retries") == ["number of retries"]


def test_processor_returns_as_many_hits_as_asked_for(store: MemoryStore) -> None:
    assert len(QueryProcessor(store, EMBEDDER).retrieve("number of payment retries", 12)) == 12


def test_hybrid_takes_a_filter_for_one_query(store: MemoryStore) -> None:
    retriever = HybridRetriever(store, EMBEDDER)
    assert {each.repo_name for each in retriever.retrieve("payment", where=(by_repo("ops"),))} == {"ops"}


def test_a_half_life_of_0_turns_freshness_off(store: MemoryStore) -> None:
    pipeline = RetrievalPipeline(store, EMBEDDER)
    off = pipeline.query(QueryRequest("payment-service is down", freshness_weight=0.0))
    assert pipeline.query(QueryRequest("payment-service is down", freshness_half_life_days=0)).chunks == off.chunks


def test_an_llm_reranker_alone_passes_candidates_through_when_the_model_fails(store: MemoryStore) -> None:
    class Down(TypingLLM):
        def complete_json(self, *given: Any, **named: Any) -> Any:
            raise UnavailableError("down")

    hits = [Candidate(chunk, 0.5) for chunk in store.reader().document_chunks(next(iter(store.documents())).id)]
    assert LLMReranker(Down()).rerank("payment", hits, 2) == hits[:2]


@pytest.mark.parametrize("text", ["", "  \n"])
def test_processor_returns_early_for_a_blank_question(store: MemoryStore, text: str) -> None:
    result = QueryProcessor(store, EMBEDDER).process(text)
    assert (result.query_type, result.chunks, result.nothing_found) == (QueryType.FACTUAL, (), True)


def test_the_familiar_names_are_public() -> None:
    for name in (
        "QueryRequest", "QueryResult", "ScoredChunk", "ServiceContext", "QueryType", "RetrievalPipeline", "Retriever",
        "HybridRetriever", "GraphRetriever", "HeuristicReranker", "ScoreReranker", "CrossEncoderReranker",
        "LLMReranker", "reciprocal_rank_fusion", "apply_mmr", "QueryProcessor",
    ):  # fmt: skip
        assert hasattr(dowse, name)


def test_profiles_are_data_so_a_pipeline_can_have_any(store: MemoryStore) -> None:
    pipeline = RetrievalPipeline(store, EMBEDDER, profile=named("entities"))
    assert pipeline.retrieve("ChargeCard")[0].symbol_name == "ChargeCard"
