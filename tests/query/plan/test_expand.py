"""Other wordings of a question, from a real local server that answers in every shape, late or not at all."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dowse.errors import UnavailableError
from dowse.models.llm import HttpLLM
from dowse.query.plan.classify import plan
from dowse.query.plan.expand import MOST_VARIANTS, consult, type_of, variants_of
from dowse.types import QueryType
from fake_llm import FakeEndpoint, Reply, answers, fake_llm, never_ending, says, slow

QUERY = "how do we retry payments?"


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy stands between the tests and their own machine."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def llm_at(endpoint: FakeEndpoint) -> HttpLLM:
    return HttpLLM(endpoint.url, "small", sleep=lambda _: None)


@pytest.mark.parametrize(
    "reply",
    [
        {"variants": ["one", "two"]},
        {"queries": ["one", "two"]},
        ["one", "two"],
        {"expansions": ["one", "two"]},
        {"variants": [{"query": "one"}, {"text": "two"}]},
        {"type": "factual", "notes": [], "alternatives": ["one", "two"]},
    ],
    ids=repr,
)
def test_any_shape_with_a_list_of_strings_is_read(reply: Any) -> None:
    assert variants_of(reply, QUERY, 3) == ("one", "two")


@pytest.mark.parametrize(
    "reply", [{"variants": "one two"}, "one", None, 3, {}, [], {"variants": None}, [1, None, True]], ids=repr
)
def test_what_is_no_list_of_strings_gives_none(reply: Any) -> None:
    assert variants_of(reply, QUERY, 3) == ()


def test_at_most_three_distinct_ones_none_of_which_is_the_original() -> None:
    reply = {"variants": ["HOW do we  retry payments", "one", "One?", " ", "x" * 301, "two", 3, "three", "four"]}
    assert variants_of(reply, QUERY, MOST_VARIANTS) == ("one", "two", "three")


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
        max_leaves=8,
    )
)
def test_any_reply_gives_at_most_three_distinct_wordings(reply: Any) -> None:
    found = variants_of(reply, QUERY, MOST_VARIANTS)
    assert len({each.casefold() for each in found}) == len(found) <= MOST_VARIANTS
    assert all(each.strip() for each in found)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ({"type": "comparison"}, QueryType.COMPARISON),
        ({"type": " Metadata "}, QueryType.METADATA),
        ({"query_type": "factual"}, QueryType.FACTUAL),
        ({"type": None}, None),
        ({"type": ["factual"]}, None),
        ({"type": "other"}, None),
        (["factual"], None),
        (None, None),
    ],
)
def test_a_type_is_one_of_the_four_or_none(reply: Any, expected: QueryType | None) -> None:
    assert type_of(reply) is expected


def test_type_and_variants_come_from_one_call() -> None:
    with fake_llm(says({"type": "comparison", "variants": ["one", "two", "three"]})) as endpoint:
        found = plan(QUERY, llm=llm_at(endpoint), expand=3, classify_by_llm=True)
    assert len(endpoint.requests) == 1
    assert (found.query_type, found.answer_style, found.decided_by) == (QueryType.COMPARISON, "structured", "llm")
    assert found.variants == ("one", "two", "three")
    assert found.note == ""


def test_an_explicit_type_is_not_asked_for() -> None:
    with fake_llm(says({"type": "comparison", "variants": ["one"]})) as endpoint:
        found = plan(QUERY, llm=llm_at(endpoint), expand=1, classify_by_llm=True, query_type=QueryType.FACTUAL)
    assert found.query_type is QueryType.FACTUAL
    assert "type" not in endpoint.requests[0]["response_format"]["json_schema"]["schema"]["properties"]


def test_without_a_wish_the_model_is_not_asked() -> None:
    with fake_llm(says({})) as endpoint:
        assert plan(QUERY, llm=llm_at(endpoint)).variants == ()
    assert endpoint.requests == []


def test_unusable_variants_leave_the_original_alone_and_say_so() -> None:
    with fake_llm(says({"variants": []})) as endpoint:
        found = plan(QUERY, llm=llm_at(endpoint), expand=3)
    assert found.variants == ()
    assert "returned no other wording" in found.note


def test_an_unknown_type_leaves_it_to_the_rules_and_says_so() -> None:
    with fake_llm(says({"type": "poem", "variants": ["one"]})) as endpoint:
        found = plan(QUERY, llm=llm_at(endpoint), expand=3, classify_by_llm=True)
    assert (found.query_type, found.decided_by) == (QueryType.CONCEPTUAL, "rules")
    assert found.variants == ("one",)
    assert "the rules decided" in found.note


@pytest.mark.parametrize("reply", [slow, never_ending, answers(500, b""), answers(401, b""), says("I am sorry.")])
def test_a_model_that_fails_raises_what_degrades_and_in_time(reply: Reply) -> None:
    with fake_llm(reply) as endpoint:
        started_s = time.monotonic()
        with pytest.raises(UnavailableError):
            plan(QUERY, llm=llm_at(endpoint), expand=3, timeout_s=0.3)
        assert time.monotonic() - started_s < 0.3 + 0.5


def test_the_prompt_has_single_braces_and_names_the_axes() -> None:
    with fake_llm(says({"type": "factual", "variants": ["one"]})) as endpoint:
        consult(llm_at(endpoint), "a <b> question", variants=3, classify=True, timeout_s=5.0)
    prompt = endpoint.prompts[0]
    assert "{{" not in prompt
    assert "}}" not in prompt
    for axis in ("synonyms", "more specific", "more general", "factual:", "conceptual:", "comparison:", "metadata:"):
        assert axis in prompt
    assert "<question>a &lt;b&gt; question</question>" in prompt
