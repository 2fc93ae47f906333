"""A whole query with a language model that behaves or does not: deadlines hold, and a failure costs only its part."""

from __future__ import annotations

import time
from typing import Any

import pytest

from dowse.models.llm import HttpLLM
from dowse.query.pipeline import Parts, answer
from dowse.store.memory import MemoryStore
from dowse.tokenizer import Tokenizer
from dowse.types import QueryRequest, QueryResult
from factories import document
from fake_llm import (
    FakeEndpoint,
    Reply,
    answers,
    cut_off,
    fake_llm,
    never_ending,
    never_ending_head,
    says,
    scores_by,
    slow,
)

QUERY = "how do we retry payments"
TEXTS = (
    "We retry payments three times with backoff.",
    "Payments are booked at night.",
    "To retry a booking, press the button; this is how.",
    "A second attempt at charging the card follows after a pause.",
)


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy stands between the tests and their own machine."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    made = MemoryStore()
    made.put([document(f"{n}.md", text) for n, text in enumerate(TEXTS)])
    made.publish()
    return made


def ask(store: MemoryStore, endpoint: FakeEndpoint | None, **fields: Any) -> QueryResult:
    parts = Parts(llm=None if endpoint is None else HttpLLM(endpoint.url, "small"))
    return answer(QueryRequest(QUERY, **fields), store.reader(), None, Tokenizer(), parts=parts)


def paths(result: QueryResult) -> list[str]:
    return [chunk.source_uri for chunk in result.chunks]


def test_a_variant_finds_what_the_question_does_not(store: MemoryStore) -> None:
    with fake_llm(says({"variants": ["second attempt at charging a card"]})) as endpoint:
        found = ask(store, endpoint, expand=True)
    plain = ask(store, None, expand=False)
    assert "docs/3.md" in set(paths(found)) - set(paths(plain))
    assert found.expanded_queries == (QUERY, "second attempt at charging a card")
    assert not [each for each in found.degraded if each.stage == "expand"]


def test_the_model_reorders_what_was_found(store: MemoryStore) -> None:
    plain = ask(store, None, rerank=False)
    with fake_llm(scores_by(lambda n: 10 if n == len(plain.chunks) else 0)) as endpoint:
        found = ask(store, endpoint, rerank="llm", boost=False, freshness_weight=0.0)
    assert paths(found)[0] == paths(plain)[-1]
    assert found.chunks[0].rerank_score == 1.0


@pytest.mark.parametrize(
    "reply",
    [
        slow,
        never_ending,
        never_ending_head,
        cut_off,
        answers(429, b"", Retry_After="1"),
        answers(500, b"broken"),
        answers(401, b"no key"),
        says("I would rather not."),
        says({"scores": "all of them", "variants": "many"}),
        says('{"variants": ["a', "length"),
    ],
)
@pytest.mark.parametrize("fields", [{"expand": True}, {"rerank": "llm"}, {"expand": True, "rerank": "llm"}], ids=repr)
def test_a_model_that_fails_leaves_the_answer_without_it_in_time(
    store: MemoryStore, reply: Reply, fields: dict[str, Any]
) -> None:
    without = ask(store, None, expand=False, rerank=False)
    with fake_llm(reply) as endpoint:
        started_s = time.monotonic()
        found = ask(store, endpoint, **({"expand": False, "rerank": False} | fields), deadline_s=0.6)
        assert time.monotonic() - started_s < 0.6 + 0.5
    assert paths(found) == paths(without)
    assert {each.stage for each in found.degraded} >= {"expand" if name == "expand" else "llm" for name in fields}


def test_without_a_model_the_answer_says_what_to_set(store: MemoryStore) -> None:
    found = ask(store, None, expand=True)
    (note,) = (each for each in found.degraded if each.stage == "expand")
    assert "DOWSE_LLM_BASE_URL" in note.reason
