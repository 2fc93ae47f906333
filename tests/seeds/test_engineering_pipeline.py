"""A pipeline of injected parts: vectors, two word lists, a service graph and a reranker, each a small fake."""

from __future__ import annotations

import logging
import threading
import time
from datetime import UTC, datetime
from typing import Any
from unittest.mock import MagicMock

import pytest

from dowse import QueryRequest, RetrievalPipeline, ScoredChunk, ServiceContext
from dowse.errors import BadRequestError
from dowse.query import guard

ROWS: list[dict[str, Any]] = [
    {"id": "get-user", "text": "func GetUser(id string) User { return db.Find(id) }", "corpus_type": "CODE_LOGIC",
     "service_name": "auth-service", "repo_name": "shop", "symbol_name": "GetUser", "_distance": 0.2},
    {"id": "order", "text": "func CreateOrder(item string) Order { http.Post(url) }", "corpus_type": "CODE_LOGIC",
     "service_name": "order-service", "repo_name": "shop", "_distance": 0.4},
    {"id": "slack-1", "text": "auth-service is throwing 503s", "corpus_type": "CONVO_SLACK", "service_name": None,
     "repo_name": None, "channel": "incident", "timestamp": "2025-01-01T10:00:00Z", "_distance": 0.6},
]  # fmt: skip


class Embedder:
    def embed_query(self, text: str) -> list[float]:
        return [1.0, 0.0]


class LanceStore:
    def __init__(self, rows: Any = None) -> None:
        self.rows = ROWS if rows is None else rows
        self.asked: dict[str, Any] = {}

    def search(
        self, vector: Any, top_k: int, corpus_filter: Any = None, service_filter: Any = None, repo_filter: Any = None
    ) -> Any:
        self.asked = {"top_k": top_k, "corpus": corpus_filter, "service": service_filter, "repo": repo_filter}
        return self.rows[:top_k]


class BM25Store:
    def query(self, tokens: list[str], top_k: int) -> list[tuple[str, float]]:
        return [("get-user", 7.5)] if "user" in tokens else [("order", 3.0), ("unknown", 1.0)]


class ServiceGraph:
    def get_neighborhood(self, services: list[str]) -> dict[str, ServiceContext]:
        edge = {"source": "order-service", "target": "auth-service"}
        return {name: ServiceContext(name, called_by=("order-service",), edges=(edge,)) for name in services}  # type: ignore[arg-type]


class Reranker:
    """As the document writes it: sets a key of each candidate, and sorts; scores are logits."""

    def rerank(self, query: str, candidates: list[dict[str, Any]], top_k: int | None = None) -> list[dict[str, Any]]:
        for candidate in candidates:
            candidate["rerank_score"] = -8.0 if "GetUser" in candidate["text"] else float(len(candidate["text"]))
        ranked = sorted(candidates, key=lambda each: each["rerank_score"], reverse=True)
        return ranked[:top_k] if top_k else ranked


def pipeline(**parts: Any) -> RetrievalPipeline:
    given = {"embedder": Embedder(), "lance_store": LanceStore(), "bm25_store": BM25Store()} | parts
    return RetrievalPipeline(**given)


def test_three_lists_are_fused_by_reciprocal_rank() -> None:
    result = pipeline().query(QueryRequest("GetUser function of a user", top_k=20))
    assert result.degraded == ()
    best = result.chunks[0]
    assert (best.id, best.symbol_name) == ("get-user", "GetUser")
    assert best.rrf_score == pytest.approx(3 / (60 + 1))
    assert (best.dense_score, best.bm25_code_score, best.bm25_nlp_score) == (pytest.approx(0.8), 7.5, 7.5)


def test_a_vector_store_gets_three_times_top_k_and_the_filters() -> None:
    store = LanceStore()
    request = QueryRequest("user", corpus_filter=("CODE_LOGIC",), service_filter=("auth-service",), top_k=20)
    found = pipeline(vector_store=store, lance_store=None).query(request).chunks
    assert store.asked == {"top_k": 3 * 20, "corpus": ["CODE_LOGIC"], "service": "auth-service", "repo": None}
    assert [each.id for each in found] == ["get-user"]  # rows that the fake did not filter are dropped


def test_rows_of_one_list_without_text_are_dropped_unless_another_list_has_it() -> None:
    result = pipeline().query(QueryRequest("orders"))
    assert "order" in [each.id for each in result.chunks]
    assert "unknown" not in [each.id for each in result.chunks]
    assert result.query_metadata["counts"]["dropped"] == 1


def test_text_that_no_list_brings_is_fetched_from_the_vector_store() -> None:
    class Fetching(LanceStore):
        def get_by_ids(self, ids: list[str]) -> list[dict[str, Any]]:
            return [{"id": each, "text": f"text of {each}"} for each in ids]

    found = pipeline(lance_store=Fetching([])).query(QueryRequest("orders")).chunks
    assert {each.id: each.text for each in found} == {"order": "text of order", "unknown": "text of unknown"}


def test_service_context_and_its_edges_are_mappings() -> None:
    result = pipeline(service_graph=ServiceGraph()).query(QueryRequest("GetUser", expand_graph=True))
    assert result.service_context is not None
    around = result.service_context["auth-service"]
    assert around.called_by == ("order-service",)
    assert around.edges[0]["source"] == "order-service"
    assert result.query_metadata["total_ms"] > 0
    assert result.query_metadata["stages"]["fuse"] >= 0
    assert pipeline(service_graph=ServiceGraph()).query(QueryRequest("GetUser")).service_context is None


def test_a_reranker_that_sorts_dicts_by_logits_decides_the_order() -> None:
    found = pipeline(reranker=Reranker()).query(QueryRequest("GetUser")).chunks
    assert [each.id for each in found][-1] == "get-user"
    assert all(each.rerank_score is not None and 0 <= each.rerank_score <= 1 for each in found)
    without = pipeline(reranker=Reranker()).query(QueryRequest("GetUser", rerank=False)).chunks
    assert all(each.rerank_score is None for each in without)


def test_a_conversation_has_its_timestamp_as_text_and_as_a_datetime() -> None:
    found = {each.id: each for each in pipeline().query(QueryRequest("503")).chunks}["slack-1"]
    assert found.timestamp == "2025-01-01T10:00:00Z"
    assert found.created_at == datetime(2025, 1, 1, 10, tzinfo=UTC)
    assert (found.content, found.chunk_id, found.score) == (found.text, found.id, found.final_score)


def test_a_hit_is_made_with_the_fields_of_the_document() -> None:
    hit = ScoredChunk(
        id="c1", text="t", context_prefix="", corpus_type="CONVO_SLACK", source_uri="slack/a", service_name=None,
        repo_name=None, file_path=None, language=None, symbol_name=None, signature=None, section_path=None,
        author="ada", timestamp="2025-01-01T10:00:00Z", channel="incident", rrf_score=0.5, final_score=0.5,
    )  # fmt: skip
    assert (hit.created_at, hit.score) == (datetime(2025, 1, 1, 10, tzinfo=UTC), 0.5)


def test_mocks_of_every_part_are_taken() -> None:
    embedder, lance, bm25, graph, reranker = (MagicMock() for _ in range(5))
    embedder.embed_query.return_value = [0.1] * 8
    lance.search.return_value = [dict(row) for row in ROWS]
    bm25.query.return_value = [("order", 2.0)]
    graph.get_neighborhood.return_value = {"auth-service": {"calls": ["a"], "called_by": [], "edges": []}}
    result = RetrievalPipeline(
        embedder=embedder, lance_store=lance, bm25_store=bm25, service_graph=graph, reranker=reranker
    ).query(QueryRequest("who calls it", expand_graph=True))
    assert result.chunks[0].id == "order"
    assert result.service_context == {"auth-service": ServiceContext("auth-service", ("a",))}
    assert [each.stage for each in result.degraded] == ["cross-encoder"]  # a mock returns no scores
    lance.search.assert_called_once()


def raising(error: BaseException) -> Any:
    def fail(*given: Any, **named: Any) -> Any:
        raise error

    return fail


@pytest.mark.parametrize("reply", [RuntimeError("off"), None, "text", 7, [{"text": "no id"}], [("a", float("nan"))]])
@pytest.mark.parametrize(
    ("part", "method", "stage"),
    [
        ("embedder", "embed_query", "dense"),
        ("lance_store", "search", "dense"),
        ("bm25_store", "query", "bm25_nlp"),
        ("service_graph", "get_neighborhood", "services"),
        ("reranker", "rerank", "cross-encoder"),
    ],
)
def test_a_part_that_raises_or_returns_nonsense_costs_its_stage(
    part: str, method: str, stage: str, reply: Any, caplog: pytest.LogCaptureFixture
) -> None:
    act = raising(reply) if isinstance(reply, BaseException) else lambda *given, **named: reply
    broken = type("Broken", (), {method: staticmethod(act)})()
    words = type("Words", (), {"search": lambda self, text, n_results: ROWS})()  # rows with text, if vectors are down
    parts = {"bm25_store": words, "service_graph": ServiceGraph(), part: broken}
    with caplog.at_level(logging.WARNING, "dowse.query"):
        result = pipeline(**parts).query(QueryRequest("GetUser", expand_graph=True))
    assert stage in [each.stage for each in result.degraded]
    assert result.chunks
    assert stage in str(caplog.records[-1].__dict__["dowse"]["degraded"])


def test_parts_that_hang_cost_their_timeout_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "TIMEOUT_S", 0.3)
    release = threading.Event()
    hang = type("Hanging", (), {"search": lambda *a, **n: release.wait(20), "query": lambda *a, **n: release.wait(20)})
    started_s = time.monotonic()
    try:
        result = pipeline(lance_store=hang(), bm25_store=hang()).query(QueryRequest("GetUser"))
    finally:
        release.set()
    assert time.monotonic() - started_s < 3 * 0.3
    assert {each.stage for each in result.degraded} >= {"dense", "bm25_code", "bm25_nlp"}
    assert "did not answer in 0.3 s" in result.degraded[0].reason


def test_legs_run_side_by_side() -> None:
    class Slow(LanceStore, BM25Store):
        def search(self, *given: Any, **named: Any) -> Any:
            time.sleep(0.2)
            return super().search(*given, **named)

        def query(self, tokens: list[str], top_k: int) -> list[tuple[str, float]]:
            time.sleep(0.2)
            return super().query(tokens, top_k)

    started_s = time.monotonic()
    assert pipeline(lance_store=Slow(), bm25_store=Slow()).query(QueryRequest("user")).chunks
    assert time.monotonic() - started_s < 2 * 0.2


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"top_k": "5"}, r"top_k is '5'; give a whole number"),
        ({"alpha": "half"}, r"alpha is 'half'; give a number between 0"),
        ({"freshness_weight": "x"}, r"freshness_weight is 'x'; give a number"),
        ({"deadline_s": "soon"}, r"deadline_s is 'soon'; give a number of seconds"),
        ({"rerank": 7}, r"rerank is 7; give True, False, or names"),
        ({"rerank": ["nonsense"]}, r"unknown reranker 'nonsense'; choose from none, heuristic"),
        ({"weights": (("dense", "heavy"),)}, r"weights are .*; give pairs of leg and number"),
        ({"legs": ("colbert",)}, r"unknown leg 'colbert'; choose from dense, bm25_code, bm25_nlp"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_with_a_sentence(fields: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadRequestError, match=sentence):
        pipeline().query("GetUser", **fields)


def test_lists_and_dicts_are_taken_where_tuples_are_kept() -> None:
    found = pipeline().query("GetUser", rerank=["heuristic"], weights={"dense": 1, "bm25_code": 2, "bm25_nlp": 0})
    assert found.chunks[0].rerank_score == 1.0
    assert QueryRequest("q", corpus_filter=["CODE_LOGIC"], rerank=["heuristic", "llm"]).rerank == "heuristic,llm"  # type: ignore[arg-type]


def test_text_that_is_no_text_is_refused() -> None:
    with pytest.raises(BadRequestError, match="the query is None; give text"):
        pipeline().query(QueryRequest(None))  # type: ignore[arg-type]


def test_a_pipeline_without_any_part_is_refused() -> None:
    with pytest.raises(BadRequestError, match="give a store, a vector_store, a bm25_store or legs"):
        RetrievalPipeline()
