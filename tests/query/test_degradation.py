"""Each optional stage and each collaborator goes down; the answer is that of the pipeline without it, and says so."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec import structs

from dowse.errors import NoRecallError, UnavailableError
from dowse.ports import STANDARD, Bm25, Candidate, Matrix, StoreReader
from dowse.query.assemble import NO_LLM, Parts, Step
from dowse.query.pipeline import PreparedQuery, answer, finished, prepared
from dowse.query.stages.state import QueryState
from dowse.store.memory import MemoryStore
from dowse.tokenizer import Tokenizer
from dowse.types import Degradation, QueryRequest, QueryResult, Role
from shop_store import NOW, OverlapReranker, TrigramEmbedder, shop_store
from values import replace

QUESTION = "how to retry payments with RetryCharge when the service is down"
EVERYTHING: dict[str, Any] = {
    "mmr": True, "graph": True, "expand_graph": True, "rerank": "heuristic,cross-encoder", "parents": "attach",
    "min_score": 0.01,
}  # fmt: skip
EMBEDDER = TrigramEmbedder()
PARTS = Parts(cross_encoder=OverlapReranker(), now=lambda: NOW)
DEADLINE_S = 0.4


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return shop_store()


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(3) as executor:
        yield executor


def ready_for(store: MemoryStore, **fields: Any) -> PreparedQuery:
    request = QueryRequest(QUESTION, **EVERYTHING | fields)
    return prepared(request, store.reader(), EMBEDDER, Tokenizer(), parts=PARTS)


def optional_stages() -> list[str]:
    ready = ready_for(shop_store())
    return [step.stage.name for wave in ready.waves for step in wave if step.optional and step.stage.name != "fuse"]


@dataclass(frozen=True)
class Broken:
    """A stage in the place and under the name of another."""

    inner: Any
    act: Callable[[], None]

    @property
    def name(self) -> str:
        return str(self.inner.name)

    def __call__(self, state: QueryState, /) -> QueryState:
        self.act()
        return state


def raising(error: Exception) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


def broken_step(step: Step, error: Exception) -> Step:
    return structs.replace(step, stage=Broken(step.stage, raising(error)))


def with_stage(ready: PreparedQuery, name: str, change: Callable[[Step], Step | None]) -> PreparedQuery:
    waves = tuple(
        tuple(new for step in wave if (new := change(step) if step.stage.name == name else step) is not None)
        for wave in ready.waves
    )
    return replace(ready, waves=tuple(wave for wave in waves if wave))


def plain(result: QueryResult) -> Any:
    """What is shown, without timings and notes."""
    return (result.chunks, result.service_context, result.metadata_answer, result.query_type)


@pytest.mark.parametrize("name", optional_stages())
def test_a_stage_that_is_down_leaves_the_answer_without_it(store: MemoryStore, name: str) -> None:
    reason = f"{name} cannot be reached"
    broken = with_stage(
        ready_for(store),
        name,
        lambda step: structs.replace(step, stage=Broken(step.stage, raising(UnavailableError(reason)))),
    )
    without = finished(with_stage(ready_for(store), name, lambda step: None))
    found = finished(broken)
    assert plain(found) == plain(without)
    assert found.degraded == (*without.degraded, Degradation(name, reason))


@pytest.mark.parametrize("name", [*optional_stages(), "fuse"])
def test_a_bug_is_not_swallowed(store: MemoryStore, name: str) -> None:
    broken = with_stage(
        ready_for(store),
        name,
        lambda step: structs.replace(step, stage=Broken(step.stage, raising(TypeError("a bug")))),
    )
    with pytest.raises(TypeError, match="a bug"):
        finished(broken)


# Collaborators.


@dataclass(frozen=True)
class ActingReranker(OverlapReranker):
    """Does something first, and may say something else."""

    act: Callable[[], None] = lambda: None
    says: Callable[[int], Any] | None = None

    def score(self, query: str, candidates: Sequence[Candidate], *, timeout_s: float | None = None) -> Any:
        self.act()
        return OverlapReranker.score(self, query, candidates) if self.says is None else self.says(len(candidates))


@dataclass(frozen=True)
class ActingEmbedder(TrigramEmbedder):
    act: Callable[[], None] = lambda: None

    def embed(self, texts: Sequence[str], *, role: Role) -> Matrix:
        self.act()
        return super().embed(texts, role=role)


def ask(store: MemoryStore, pool: ThreadPoolExecutor | None = None, **fields: Any) -> QueryResult:
    parts, embedder = fields.pop("parts", PARTS), fields.pop("embedder", EMBEDDER)
    reader = fields.pop("reader", store.reader())
    return answer(QueryRequest(QUESTION, **fields), reader, embedder, Tokenizer(), pool, parts=parts)


@pytest.mark.parametrize(
    ("says", "reason"),
    [
        (lambda n: [float("nan")] * n, "reranker ActingReranker returned a score that is not finite"),
        (lambda n: ["7"] * n, "reranker ActingReranker returned scores that are no numbers"),
        (lambda n: [0.5] * (n - 1), "overlap returned"),
        (lambda n: [None] * n, "overlap scored none of"),
    ],
)
def test_a_reranker_that_talks_nonsense_leaves_the_fused_order(
    store: MemoryStore, says: Callable[[int], Any], reason: str
) -> None:
    """The rule of expected unavailability"""
    found = ask(store, parts=replace(PARTS, cross_encoder=ActingReranker(says=says)))
    without = ask(store, rerank=False)
    assert found.chunks == without.chunks
    assert [each.stage for each in found.degraded] == ["cross-encoder"]
    assert found.degraded[0].reason.startswith(reason)


def test_a_reranker_that_is_down_leaves_the_fused_order(store: MemoryStore) -> None:
    found = ask(store, parts=replace(PARTS, cross_encoder=ActingReranker(act=raising(UnavailableError("off")))))
    assert found.chunks == ask(store, rerank=False).chunks
    assert found.degraded == (Degradation("cross-encoder", "off"),)


@pytest.mark.parametrize("part", ["cross_encoder", "embedder"])
def test_a_part_that_hangs_costs_the_deadline_and_no_more(
    store: MemoryStore, pool: ThreadPoolExecutor, part: str
) -> None:
    release = threading.Event()

    def hang() -> None:
        release.wait(20)

    fields: dict[str, Any] = (
        {"parts": replace(PARTS, cross_encoder=ActingReranker(act=hang))}
        if part == "cross_encoder"
        else {"embedder": ActingEmbedder(act=hang), "rerank": False}
    )
    started_s = time.monotonic()
    try:
        found = ask(store, pool, deadline_s=DEADLINE_S, **fields)
        spent_s = time.monotonic() - started_s
    finally:
        release.set()
    assert spent_s < DEADLINE_S + 0.5
    without = ask(
        store,
        rerank=False,
        legs=("bm25_code", "bm25_nlp") if part == "embedder" else ("dense", "bm25_code", "bm25_nlp"),
    )
    assert found.chunks == without.chunks
    stage = "dense" if part == "embedder" else "cross-encoder"
    (lost,) = found.degraded
    assert lost.stage == stage
    assert re.search(rf"skipped after the deadline of {DEADLINE_S:g} s|did not answer in 0\.\d+ s", lost.reason)


@pytest.mark.parametrize("deadline_s", [None, 5.0])
def test_an_injected_reranker_that_raises_anything_costs_its_stage(
    store: MemoryStore, deadline_s: float | None
) -> None:
    broken = replace(PARTS, cross_encoder=ActingReranker(act=raising(ZeroDivisionError("a bug"))))
    found = ask(store, parts=broken, deadline_s=deadline_s)
    assert found.chunks == ask(store, rerank=False).chunks
    assert found.degraded == (Degradation("cross-encoder", "reranker ActingReranker raised ZeroDivisionError: a bug"),)


def test_an_embedder_that_is_down_leaves_the_words(store: MemoryStore) -> None:
    found = ask(store, embedder=ActingEmbedder(act=raising(UnavailableError("no model"))))
    assert found.chunks == ask(store, legs=("bm25_code", "bm25_nlp")).chunks
    assert found.degraded == (Degradation("dense", "no model"),)


def test_a_missing_llm_is_named_and_the_question_is_asked_as_it_is(store: MemoryStore) -> None:
    found = ask(store, expand=True, rerank="llm")
    assert found.chunks == ask(store, rerank=False).chunks
    assert found.degraded == (Degradation("expand", NO_LLM), Degradation("llm", NO_LLM))


METHODS = {
    "vectors": "mmr",
    "neighbours": "graph",
    "service_edges": "services",
}


@dataclass(frozen=True)
class FailingReader:
    """A reader of which one method is down."""

    inner: StoreReader
    method: str

    def __getattr__(self, name: str) -> Any:
        if name == self.method:
            return raising_with_any(UnavailableError(f"{name} is down"))
        return getattr(self.inner, name)

    def session(self, constants: Bm25 = STANDARD) -> Any:
        return self


def raising_with_any(error: Exception) -> Callable[..., None]:
    def act(*args: object, **kwargs: object) -> None:
        raise error

    return act


@pytest.mark.parametrize(("method", "stage"), METHODS.items())
def test_a_store_method_that_is_down_costs_its_stage(store: MemoryStore, method: str, stage: str) -> None:
    reader = FailingReader(store.reader(), method)
    request = QueryRequest(QUESTION, **EVERYTHING)
    found = answer(request, reader, EMBEDDER, Tokenizer(), parts=PARTS)  # type: ignore[arg-type]
    without = finished(with_stage(ready_for(store), stage, lambda step: None))
    assert plain(found) == plain(without)
    assert Degradation(stage, f"{method} is down") in found.degraded


def test_vectors_that_are_down_leave_the_order_of_the_fusion(store: MemoryStore) -> None:
    """For a question that names nothing: one that does skips neighbour smoothing."""
    request = QueryRequest("how payments are tried again when the service is down")
    reader = FailingReader(store.reader(), "vectors")
    found = answer(request, reader, EMBEDDER, Tokenizer(), parts=PARTS)  # type: ignore[arg-type]
    ready = prepared(request, store.reader(), EMBEDDER, Tokenizer(), parts=PARTS)
    assert plain(found) == plain(finished(with_stage(ready, "smoothing", lambda step: None)))
    assert found.degraded == (Degradation("smoothing", "vectors is down"),)


def test_words_and_vectors_down_is_an_empty_result_that_says_so(store: MemoryStore) -> None:
    """Empty with notes, an error only with strict."""
    reader = FailingReader(store.reader(), "search_words")
    down = ActingEmbedder(act=raising(UnavailableError("no model")))
    found = ask(store, reader=reader, embedder=down)
    assert found.chunks == ()
    assert {each.stage for each in found.degraded} == {"dense", "bm25_code", "bm25_nlp", "fuse", "exact"}
    with pytest.raises(NoRecallError):
        ask(store, reader=reader, embedder=down, strict=True)
