"""Streams over a real store: the order of events, and that the last one is what `query` gives."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from dowse.errors import UnavailableError
from dowse.ports import Candidate
from dowse.query.assemble import Parts
from dowse.query.pipeline import PreparedQuery, finished, prepared
from dowse.query.stream import Event, stream
from dowse.reports import QueryMetadata
from dowse.types import QueryRequest, QueryResult
from small_store import SmallStore, small_store
from values import replace

QUESTION = "failed calls retry with backoff"


@dataclass(frozen=True)
class Backwards:
    """Likes best what came last."""

    model: str = "backwards"

    def score(
        self, query: str, candidates: Sequence[Candidate], *, timeout_s: float | None = None
    ) -> Sequence[float | None]:
        return [at / len(candidates) for at in range(len(candidates))]


@dataclass(frozen=True)
class Down:
    model: str = "down"

    def score(
        self, query: str, candidates: Sequence[Candidate], *, timeout_s: float | None = None
    ) -> Sequence[float | None]:
        raise UnavailableError("the reranker is down")


def ready(at: SmallStore, request: QueryRequest, parts: Parts | None = None) -> PreparedQuery:
    return prepared(request, at.reader, at.embedder, at.tokenizer, parts=parts)


def timeless(result: QueryResult) -> QueryResult:
    """Without what a clock says."""
    metadata = result.query_metadata
    bare = replace(metadata, total_ms=0.0, stages=tuple((stage, 0.0) for stage, _ in metadata.stages))
    return replace(result, query_metadata=bare)


def ids(event: Event) -> list[str]:
    return [chunk.id for chunk in event.result.chunks]


def test_first_hits_come_before_the_reranked_order_and_done_is_last() -> None:
    """Fused hits are streamed first, reranked ones after them."""
    request = QueryRequest(QUESTION, top_k=4, rerank="cross-encoder", rerank_weight=1.0)
    events = list(stream(ready(small_store(), request, Parts(cross_encoder=Backwards()))))
    assert (events[0].kind, events[-1].kind) == ("first", "done")
    assert all(event.kind == "order" for event in events[1:-1])
    reranked = next(event for event in events if event.stage == "cross-encoder")
    assert ids(reranked) != ids(events[0])
    assert ids(events[-1]) == ids(reranked)


@given(st.sampled_from([QUESTION, "locks", "the", "zebra", "heartbeat leases?"]), st.integers(1, 9), st.booleans())
def test_the_last_event_is_what_query_gives(text: str, top_k: int, explain: bool) -> None:
    at = small_store()
    request = QueryRequest(text, top_k=top_k, explain=explain)
    *_, last = stream(ready(at, request))
    assert timeless(last.result) == timeless(finished(ready(at, request), None))


def test_an_executor_changes_nothing() -> None:
    at, request = small_store(), QueryRequest(QUESTION)
    with ThreadPoolExecutor(3) as executor:
        beside = [(event.kind, event.stage, timeless(event.result)) for event in stream(ready(at, request), executor)]
    assert beside == [(event.kind, event.stage, timeless(event.result)) for event in stream(ready(at, request))]


def test_a_stage_that_changes_nothing_shown_makes_no_event() -> None:
    *changes, _ = stream(ready(small_store(), QueryRequest(QUESTION, boost=True, freshness_weight=0.5)))
    shown = [[(chunk.id, chunk.final_score) for chunk in event.result.chunks] for event in changes]
    assert len(shown) == 1  # neither the words of the question nor the documents give those stages anything to do


def test_nothing_found_is_one_event() -> None:
    events = list(stream(ready(small_store(vectors=False), QueryRequest("zebra"))))
    assert [event.kind for event in events] == ["done"]
    assert events[0].result.chunks == ()
    assert events[0].result.nothing_found


def test_a_stage_that_is_down_is_told_in_the_last_event() -> None:
    request = QueryRequest(QUESTION, rerank="cross-encoder")
    *_, last = stream(ready(small_store(), request, Parts(cross_encoder=Down())))
    assert ("cross-encoder", "the reranker is down") in [(each.stage, each.reason) for each in last.result.degraded]


def test_a_listener_who_leaves_stops_the_work() -> None:
    asked: list[str] = []

    @dataclass(frozen=True)
    class Counting(Backwards):
        def score(
            self, query: str, candidates: Sequence[Candidate], *, timeout_s: float | None = None
        ) -> Sequence[float | None]:
            asked.append(query)
            return super().score(query, candidates)

    events = stream(
        ready(small_store(), QueryRequest(QUESTION, rerank="cross-encoder"), Parts(cross_encoder=Counting()))
    )
    next(events)
    events.close()  # type: ignore[attr-defined]
    assert asked == []


def test_metadata_has_the_timings_of_every_stage_so_far() -> None:
    events = list(stream(ready(small_store(), QueryRequest(QUESTION))))
    first, last = events[0].result.query_metadata, events[-1].result.query_metadata
    assert isinstance(first, QueryMetadata)
    assert [stage for stage, _ in last.stages][: len(first.stages)] == [stage for stage, _ in first.stages]
    assert "hydrate" in dict(first.stages)
