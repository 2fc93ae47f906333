"""Hybrid and graph retrievers over a store: options, stores that lack parts, a tracer, a logger and further legs."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dowse
from dowse import (
    GraphRetriever,
    HybridRetriever,
    MemoryStore,
    QueryProcessor,
    RetrievalPipeline,
    ScoreReranker,
    by_document,
    by_repo,
)
from dowse.errors import BadRequestError
from shop_store import TrigramEmbedder, shop_store

EMBEDDER = TrigramEmbedder()
RETRIEVERS = [RetrievalPipeline, HybridRetriever, GraphRetriever, QueryProcessor]
ABOUT = "Retries of payments are limited to three attempts with growing pauses"


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return shop_store()


def test_the_options_of_the_hybrid_example_are_taken(store: MemoryStore) -> None:
    scope = next(iter(store.documents())).id
    retriever = HybridRetriever(
        store, EMBEDDER, keyword_weight=0.3, overfetch=3, reranker=ScoreReranker(0.1), min_score=0.05,
        where=by_document(scope),
    )  # fmt: skip
    found = retriever.retrieve("charge a card", 5)
    assert found
    assert {each.document_id for each in found} == {scope}
    assert all(each.score >= 0.1 for each in found)


def test_the_options_of_the_graph_example_are_taken(store: MemoryStore) -> None:
    retriever = GraphRetriever(
        store, EMBEDDER, max_hops=2, graph_weight=0.3, vector_weight=0.7, hop_decay=[1.0, 0.7, 0.5], bidirectional=True,
        relation_filter=["documents", "calls"], min_traversal_score=0.5, seed_top_k=1,
    )  # fmt: skip
    found = {each.symbol_name: each for each in retriever.retrieve(ABOUT, 5)}
    assert found["RetryCharge"].graph_context[0].relation == "documents"
    only_calls = GraphRetriever(store, EMBEDDER, seed_top_k=1, relation_filter=["calls"]).retrieve(ABOUT, 5)
    assert not any(each.graph_context for each in only_calls)


def test_the_graph_defaults_are_the_documents(store: MemoryStore) -> None:
    own = GraphRetriever(store, EMBEDDER).profile.graph_options
    assert (own.hops, own.graph_weight, own.vector_weight, own.seeds) == (2, 0.3, 0.7, 10)
    assert (own.decay, own.bidirectional, own.relations, own.min_weight) == ((1.0, 0.7, 0.5), False, (), 0.0)
    with pytest.raises(BadRequestError, match="an option of the graph retriever is wrong"):
        GraphRetriever(store, EMBEDDER, max_hops=0)


class Lacking:
    """Store whose reader lacks some methods."""

    def __init__(self, inner: MemoryStore, *missing: str, **replaced: Any) -> None:
        self._inner, self._missing, self._replaced = inner.reader(), missing, replaced

    def reader(self) -> Lacking:
        return self

    def documents(self, source: str | None = None, under: str = "") -> list[Any]:
        return []

    def __getattr__(self, name: str) -> Any:
        if name in self._missing or name == "session":
            raise AttributeError(name)
        return self._replaced.get(name) or getattr(self._inner, name)


def ids(found: Any) -> list[str]:
    return [each.id for each in found]


def test_a_store_without_keyword_search_is_searched_by_vectors(store: MemoryStore) -> None:
    lacking = HybridRetriever(Lacking(store, "search_words"), EMBEDDER)
    vectors = HybridRetriever(store, EMBEDDER)
    assert ids(lacking.retrieve("rollback", 3)) == ids(vectors.retrieve("rollback", 3, alpha=1.0))


def fail(*given: Any, **named: Any) -> Any:
    raise RuntimeError("edges are down")


@pytest.mark.parametrize("edges", [{"missing": "neighbours"}, {"neighbours": fail}])
def test_without_edges_the_graph_retriever_returns_its_seeds(store: MemoryStore, edges: dict[str, Any]) -> None:
    missing = [edges["missing"]] if "missing" in edges else []
    lacking = Lacking(store, *missing, **{name: act for name, act in edges.items() if name != "missing"})
    found = GraphRetriever(lacking, EMBEDDER, seed_top_k=4).retrieve(ABOUT, 4)
    assert len(found) == 4
    assert all(each.graph_context == () for each in found)


def test_parents_that_cannot_be_fetched_pass_the_children_through(store: MemoryStore) -> None:
    inner, calls = store.reader(), iter([True])

    def get(wanted: Any) -> Any:
        if next(calls, False):
            return inner.get(wanted)
        raise OSError("gone")

    found = HybridRetriever(Lacking(store, get=get), EMBEDDER).query("kubectl rollout undo")
    assert found.chunks[0].level == "chunk"
    assert "parents" in [each.stage for each in found.degraded]


NONSENSE: dict[str, Any] = {
    "search_words": lambda *given: "text",
    "search_vectors": lambda *given: None,
    "score_vectors": lambda *given: [1.0],
    "get": lambda *given: {"a": "b"},
    "passing": lambda *given: "all",
    "stats": None,
}


@pytest.mark.parametrize("method", NONSENSE)
def test_a_store_that_returns_nonsense_answers_without_an_exception(store: MemoryStore, method: str) -> None:
    result = RetrievalPipeline(Lacking(store, **{method: NONSENSE[method]}), EMBEDDER).query("payment")
    assert method == "stats" or result.degraded or result.chunks


def test_a_store_that_cannot_be_opened_is_named(store: MemoryStore) -> None:
    broken = type("Broken", (), {"reader": fail, "documents": fail})()
    result = RetrievalPipeline(broken, EMBEDDER).query("payment")
    assert (result.chunks, result.nothing_found) == ((), True)
    assert result.degraded[0].stage == "store"
    assert "RuntimeError: edges are down" in result.degraded[0].reason


# Tracer and logger.


@pytest.fixture
def exporter() -> Any:
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter").InMemorySpanExporter()
    memory.provider = sdk.TracerProvider()
    memory.provider.add_span_processor(export.SimpleSpanProcessor(memory))
    return memory


@pytest.mark.parametrize("kind", RETRIEVERS)
def test_every_retriever_makes_a_span_with_its_stages_and_a_record(
    store: MemoryStore, kind: Any, exporter: Any, caplog: pytest.LogCaptureFixture
) -> None:
    logger, tracer = logging.getLogger("own"), exporter.provider.get_tracer("test")
    with caplog.at_level(logging.INFO, "own"), tracer.start_as_current_span("request"):
        assert kind(store, EMBEDDER, tracer=tracer, logger=logger).retrieve("payment retries", 3)
    spans = {span.name: span for span in exporter.get_finished_spans()}
    whole = spans["retriever.retrieve"]
    assert whole.parent.span_id == spans["request"].context.span_id
    for stage in ("dense", "fuse", "hydrate"):
        assert spans[f"dowse.stage.{stage}"].parent.span_id == whole.context.span_id
    (record,) = caplog.records
    assert record.__dict__["dowse"]["hits"] == 3
    assert set(record.__dict__["dowse"]["stages"]) >= {"dense", "fuse", "hydrate"}


def test_without_a_tracer_there_is_no_span(store: MemoryStore, exporter: Any) -> None:
    HybridRetriever(store, EMBEDDER).retrieve("payment")
    assert exporter.get_finished_spans() == ()


def test_a_tracer_that_fails_costs_the_span(store: MemoryStore, caplog: pytest.LogCaptureFixture) -> None:
    tracer = type("Tracer", (), {"start_span": fail})()
    with caplog.at_level(logging.WARNING, "dowse.query"):
        result = HybridRetriever(store, EMBEDDER, tracer=tracer).query("payment")
    assert result.chunks
    assert [each.stage for each in result.degraded] == ["tracer"]
    assert caplog.records[-1].__dict__["dowse"]["degraded"] == ["tracer"]


# Async.


@pytest.mark.parametrize("kind", RETRIEVERS)
def test_every_retriever_can_be_awaited_while_the_loop_runs_on(store: MemoryStore, kind: Any) -> None:
    class Slow(TrigramEmbedder):
        def embed(self, texts: Any, *, role: Any) -> Any:
            time.sleep(0.2)
            return super().embed(texts, role=role)

    async def both() -> tuple[Any, int]:
        task = asyncio.create_task(kind(store, Slow()).aretrieve("payment retries", 3))
        ticks = 0
        while not task.done():
            await asyncio.sleep(0.01)
            ticks += 1
        return await task, ticks

    found, ticks = asyncio.run(both())
    assert ids(found) == ids(kind(store, EMBEDDER).retrieve("payment retries", 3))
    assert ticks >= 5


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[dowse.Engine]:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "retry.md").write_text("# Retries\n\nA payment is retried three times.\n")
    (tmp_path / "docs" / "lunch.md").write_text("# Lunch\n\nThe kitchen opens at noon.\n")
    with dowse.open(tmp_path / "index", embedder=TrigramEmbedder()) as engine:
        engine.index([tmp_path / "docs"])
        yield engine


def test_an_engine_is_awaited_and_streamed(engine: dowse.Engine) -> None:
    async def ask() -> tuple[Any, list[Any], Any]:
        result = await engine.aquery("payment", top_k=1)
        events = [event async for event in engine.astream("payment")]
        return result, events, await engine.aretrieve("payment", 1)

    result, events, hits = asyncio.run(ask())
    assert ids(result.chunks) == ids(hits) == ids(engine.retrieve("payment", 1))
    assert (events[0].kind, events[-1].kind) == ("first", "done")


def test_a_stream_can_be_left_early(engine: dowse.Engine) -> None:
    async def first() -> str:
        async for event in engine.astream("payment"):
            return event.kind
        return ""

    assert asyncio.run(first()) == "first"


# Further legs.


class ByLength:
    """Leg that finds the longest chunks."""

    name = "length"

    def __init__(self, chunks: list[Any]) -> None:
        self.chunks = chunks

    def search(self, query: str, k: int, *, where: Any = ()) -> list[tuple[str, float]]:
        return sorted(((each.id, float(len(each.text))) for each in self.chunks), key=lambda row: -row[1])[:k]


def test_a_further_leg_of_an_engine_votes_and_is_explained(engine: dowse.Engine, tmp_path: Path) -> None:
    chunks = [hit for hit in engine.query("payment kitchen noon", top_k=10).chunks]
    with dowse.open(tmp_path / "index", embedder=TrigramEmbedder(), legs=[ByLength(chunks)]) as other:
        result = other.query("payment")
        alone = other.query("payment", legs=("length",))
        weighed = other.query("payment", weights={"dense": 0, "bm25_code": 0, "bm25_nlp": 0, "length": 1})
        without = other.query("payment", legs=("dense", "bm25_code", "bm25_nlp"), weights=None)
    longest = max(chunks, key=lambda each: len(each.text))
    assert "length" in [score.stage for score in result.chunks[0].scores]
    assert result.query_metadata["counts"]["length"] == len(chunks)
    assert alone.chunks[0].id == weighed.chunks[0].id == longest.id
    assert alone.degraded == result.degraded == ()
    assert without.chunks


@pytest.mark.parametrize("reply", [fail, lambda *a, **n: None, lambda *a, **n: [("x", "y")], lambda *a, **n: ["ab"]])
def test_a_leg_that_fails_leaves_the_others(store: MemoryStore, reply: Any) -> None:
    leg = type("Leg", (), {"name": "mine", "search": staticmethod(reply)})()
    result = RetrievalPipeline(store, EMBEDDER, legs=[leg]).query("payment")
    assert ids(result.chunks) == ids(RetrievalPipeline(store, EMBEDDER).query("payment").chunks)
    assert [each.stage for each in result.degraded] == ["mine"]


def test_a_further_leg_cannot_pass_the_filter(store: MemoryStore) -> None:
    every = [chunk for info in store.documents() for chunk in store.reader().document_chunks(info.id)]
    pipeline = RetrievalPipeline(store, EMBEDDER, legs=[ByLength(every)])
    assert {each.repo_name for each in pipeline.query("payment", where=by_repo("ops")).chunks} == {"ops"}


def test_an_injected_embedder_of_an_engine_that_raises_leaves_the_words(engine: dowse.Engine, tmp_path: Path) -> None:
    class Broken(TrigramEmbedder):
        def embed(self, texts: Any, *, role: Any) -> Any:
            raise RuntimeError("no route")

    with dowse.open(tmp_path / "index", embedder=Broken()) as other:
        result = other.query("payment")
    assert result.chunks
    assert result.degraded[0].reason == "embedder Broken raised RuntimeError: no route"


def test_a_leg_without_a_name_or_with_a_taken_one_is_refused(store: MemoryStore, tmp_path: Path) -> None:
    with pytest.raises(BadRequestError, match="leg object needs a `name` and a method"):
        RetrievalPipeline(store, legs=[object()])  # type: ignore[list-item]
    with pytest.raises(BadRequestError, match="two legs have one name: length, length"):
        dowse.open(tmp_path / "other", embedder=None, legs=[ByLength([]), ByLength([])])


def test_an_embedder_of_another_length_costs_the_dense_leg(store: MemoryStore) -> None:
    class Short:
        def embed_query(self, text: str) -> list[float]:
            return [3.0, 4.0]

    result = RetrievalPipeline(store, Short()).query("payment")
    assert result.chunks
    assert result.degraded[0].reason == "Short gives 2 dimensions, the store has 64"


def test_an_embedder_need_not_return_unit_vectors(store: MemoryStore) -> None:
    class Long(TrigramEmbedder):
        def embed(self, texts: Any, *, role: Any) -> Any:
            return 7 * super().embed(texts, role=role)

    found = HybridRetriever(store, Long()).retrieve("payment", alpha=1.0)
    assert [each.dense_score for each in found] == pytest.approx(
        [each.dense_score for each in HybridRetriever(store, EMBEDDER).retrieve("payment", alpha=1.0)]
    )


def test_documents_that_cannot_be_listed_cost_the_metadata_answer(store: MemoryStore) -> None:
    class Broken(Lacking):
        def documents(self, source: str | None = None, under: str = "") -> Iterator[Any]:  # type: ignore[override]
            yield "nonsense"
            raise RuntimeError("no list")

    result = RetrievalPipeline(Broken(store), EMBEDDER, profile="papers").query("papers by Jane Smith")
    assert result.chunks
    assert "metadata" in [each.stage for each in result.degraded]


def test_filters_of_one_call_hold_in_every_retriever(engine: dowse.Engine, store: MemoryStore) -> None:
    assert {hit.file_path for hit in engine.retrieve("payment kitchen", 5, path_filter="lunch.md")} == {"lunch.md"}
    found = RetrievalPipeline(store, EMBEDDER).retrieve("payment", 5, repo_filter="ops")
    assert {each.repo_name for each in found} == {"ops"}
