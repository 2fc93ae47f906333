"""An injected part that raises, hangs or returns nonsense costs its stage; Dowse's own bugs surface."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

from dowse.query import guard
from dowse.query.guard import guarded
from dowse.query.retrievers import RetrievalPipeline
from dowse.store.memory import MemoryStore
from dowse.types import QueryRequest, QueryResult
from shop_store import TrigramEmbedder, shop_store

EMBEDDER = TrigramEmbedder()


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return shop_store()


def ask(store: MemoryStore, **parts: Any) -> QueryResult:
    given = {"embedder": EMBEDDER} | parts
    return RetrievalPipeline(store, **given).query(QueryRequest("payment retries", rerank=bool(parts)))


class Plugin(TrigramEmbedder):
    """Embedder whose reply the test chooses."""

    reply: Any = None

    def embed(self, texts: Any, *, role: Any) -> Any:
        if isinstance(self.reply, BaseException):
            raise self.reply
        return self.reply


@pytest.mark.parametrize(
    "reply",
    [RuntimeError("a"), TimeoutError("b"), KeyError("c"), None, "text", [[1.0], [2.0, 3.0]], np.full((1, 64), np.nan)],
    ids=["runtime", "timeout", "key", "none", "text", "ragged", "nan"],
)  # fmt: skip
def test_an_embedder_that_raises_or_returns_nonsense_leaves_the_words(store: MemoryStore, reply: Any) -> None:
    kind = type("Broken", (Plugin,), {"reply": reply})
    found = ask(store, embedder=kind())
    assert found.chunks
    assert "dense" in [each.stage for each in found.degraded]


def test_a_hanging_part_is_abandoned_after_its_timeout() -> None:
    release = threading.Event()

    class Hanging:
        def complete_json(self, *given: Any, **named: Any) -> None:
            release.wait(20)

    started_s = time.monotonic()
    try:
        with pytest.raises(guard.UnavailableError, match=r"language model Hanging did not answer in 0.1 s"):
            guarded(Hanging(), "language model").complete_json("q", {}, 0.1, max_tokens=1)
    finally:
        release.set()
    assert time.monotonic() - started_s < 2
    assert guard.TIMEOUT_S == 10


def test_a_reranker_of_the_other_shape_is_used(store: MemoryStore) -> None:
    class ByLength:
        def rerank(self, query: str, candidates: Any, top_k: int | None = None) -> list[dict[str, Any]]:
            return [{"id": each.chunk.id, "rerank_score": 1 / (1 + len(each.chunk.text))} for each in candidates]

    found = ask(store, reranker=ByLength())
    assert found.degraded == ()
    assert all(each.rerank_score == 1 / (1 + len(each.text)) for each in found.chunks)


@pytest.mark.parametrize("reply", [None, [1, 2], [{"id": "x"}], "text"])
def test_a_reranker_that_returns_nonsense_leaves_the_fused_order(store: MemoryStore, reply: Any) -> None:
    class Broken:
        def rerank(self, *given: Any) -> Any:
            return reply

    found = ask(store, reranker=Broken())
    assert [each.id for each in found.chunks] == [each.id for each in ask(store).chunks]
    assert [each.stage for each in found.degraded] == ["cross-encoder"]


def test_a_language_model_that_raises_leaves_the_plan_of_the_rules(store: MemoryStore) -> None:
    from dowse.query.plan.profiles import named

    class Broken:
        model = "broken"

        def complete_json(self, *given: Any, **named: Any) -> Any:
            raise ConnectionError("no route")

    found = ask(store, llm=Broken(), profile=named("papers"))
    assert found.chunks
    assert {each.stage for each in found.degraded} == {"expand", "llm"}


def test_own_parts_are_not_guarded(store: MemoryStore) -> None:
    assert guarded(store, "store") is store


def test_stored_attributes_are_read_without_a_thread_and_computed_ones_with_a_timeout() -> None:
    readers: list[threading.Thread] = []

    class Computed:
        dimension = 64

        @property
        def model(self) -> str:
            readers.append(threading.current_thread())
            return "computed"

    class Renamed(Computed):
        model = "stored"

        def __getattribute__(self, name: str) -> Any:
            readers.append(threading.current_thread())
            return "renamed" if name == "model" else object.__getattribute__(self, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guard, "in_time", None)
        assert guarded(Computed(), "embedder").dimension == Computed.dimension
    assert guarded(Computed(), "embedder").model == "computed"
    assert guarded(Renamed(), "embedder").model == "renamed"
    assert threading.current_thread() not in readers
