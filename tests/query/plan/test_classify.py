"""What a question wants and names: rules over our own questions, each of which was asked by hand."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dowse.query.plan import mentions
from dowse.query.plan import metadata_questions as questions
from dowse.query.plan.classify import BY_TYPE, STYLES, classify, plan
from dowse.query.plan.metadata_questions import MetadataQuestion, metadata_question
from dowse.types import QueryType

FACTUAL, CONCEPTUAL = QueryType.FACTUAL, QueryType.CONCEPTUAL
COMPARISON, METADATA = QueryType.COMPARISON, QueryType.METADATA

QUESTIONS = [
    ("which port does auth-service listen on", FACTUAL),
    ("retry budget ratio", FACTUAL),
    ("what is the timeout of the quote engine", FACTUAL),
    ("GetUser function", FACTUAL),
    ("WF-5031", FACTUAL),
    ("how many parcels fit into one route", FACTUAL),
    ("how much memory does the planner need", FACTUAL),
    ("how long is an idempotency key valid", FACTUAL),
    ("how often are certificates renewed", FACTUAL),
    ("where is the webhook signature checked", FACTUAL),
    ("who calls payment-service", FACTUAL),
    ("who is on call this week", FACTUAL),
    ("when does the nightly job start", FACTUAL),
    ("definition of cut-off time", FACTUAL),
    ("set the title of the window", FACTUAL),
    ("environment variables of tracking-hub", FACTUAL),
    ("default value of maxRetries", FACTUAL),
    ("redis: connection pool timeout", FACTUAL),
    ("showcase page", FACTUAL),
    ("somehow broken build", FACTUAL),
    ("`compare` function", FACTUAL),
    ('who reads the "pros and cons" channel', FACTUAL),
    ("explain_plan output", FACTUAL),
    ("how does entity search work", CONCEPTUAL),
    ("how do we retry payments?", CONCEPTUAL),
    ("How does auth work", CONCEPTUAL),
    ("why did the planner stop", CONCEPTUAL),
    ("why is the cache cold after a deploy", CONCEPTUAL),
    ("explain retry budgets", CONCEPTUAL),
    ("describe the booking flow", CONCEPTUAL),
    ("overview of the ingestion path", CONCEPTUAL),
    ("what happens when redis is unreachable", CONCEPTUAL),
    ("tell me about metastable failures", CONCEPTUAL),
    ("walk me through a shipment", CONCEPTUAL),
    ("rationale of the outbox table", CONCEPTUAL),
    ("the idea behind idempotency keys", CONCEPTUAL),
    ("how to roll back a release", CONCEPTUAL),
    ("how to drain a node, and how long does it take", CONCEPTUAL),
    ("purpose of the rate-cache", CONCEPTUAL),
    ("compare kafka and rabbitmq", COMPARISON),
    ("kafka vs rabbitmq", COMPARISON),
    ("kafka vs. rabbitmq for events", COMPARISON),
    ("token bucket versus leaky bucket", COMPARISON),
    ("difference between a saga and a transaction", COMPARISON),
    ("what are the differences of staging and production", COMPARISON),
    ("is gRPC faster than REST here", COMPARISON),
    ("pros and cons of two-opt", COMPARISON),
    ("how does the outbox differ from change data capture", COMPARISON),
    ("which is cheaper, spot or reserved nodes", COMPARISON),
    ("why do we use postgres instead of mysql", COMPARISON),
    ("trade-offs of eventual consistency", COMPARISON),
    ("advantages of adaptive budgets over fixed ones", COMPARISON),
    ("contrast the two planners", COMPARISON),
    ("which papers compare retries and hedging", COMPARISON),
    ("who wrote the adaptive retry budgets paper?", METADATA),
    ('Who wrote "Kafka versus RabbitMQ"?', METADATA),
    ("who is the author of docs/glossary.md", METADATA),
    ("by whom was the onboarding guide written", METADATA),
    ("authors of Adaptive Retry Budgets for Small Service Graphs", METADATA),
    ("when was the deploy runbook last changed", METADATA),
    ("when did docs/architecture.md last change?", METADATA),
    ("last update of README.md", METADATA),
    ("when was the retry paper published?", METADATA),
    ("in which year was Adaptive Retry Budgets published", METADATA),
    ("publication date of the retry paper", METADATA),
    ("which papers by Marchetti", METADATA),
    ("papers by Yuki Tannahill", METADATA),
    ("What papers has Teun Marchetti published?", METADATA),
    ("what did Odalys Brandt write", METADATA),
    ("what is the title of docs/adr/0004.md", METADATA),
    ("what's the DOI of the paper on retry budgets", METADATA),
    ("doi of Adaptive Retry Budgets", METADATA),
]


def test_the_rules_are_tested_on_at_least_sixty_questions() -> None:
    assert len({text for text, _ in QUESTIONS}) == len(QUESTIONS) >= 60


@pytest.mark.parametrize(("text", "expected"), QUESTIONS, ids=[text for text, _ in QUESTIONS])
def test_rules_tell_what_a_question_wants(text: str, expected: QueryType) -> None:
    assert classify(text) is expected


@given(st.text(max_size=400))
def test_any_text_has_a_plan(text: str) -> None:
    found = plan(text)
    assert found.query_type is classify(text)
    assert all(text[each.start : each.end].find(each.text) >= 0 for each in found.mentions)


@pytest.mark.parametrize(
    "text", ["a." * 50_000, "who wrote " + "a " * 50_000, "`" * 50_000, "Aa" * 50_000, "/a" * 50_000]
)
def test_a_pasted_log_is_planned_quickly(text: str) -> None:
    started_s = time.process_time()
    plan(text)
    assert time.process_time() - started_s < 1.0


def test_parameters_by_type() -> None:
    assert BY_TYPE == ((FACTUAL, 0.5, 5), (CONCEPTUAL, 0.8, 10), (COMPARISON, 0.7, 15), (METADATA, 0.5, 5))


def test_the_type_decides_the_style_of_an_answer() -> None:
    assert {kind: plan("anything", query_type=kind).answer_style for kind in QueryType} == {
        FACTUAL: "concise",
        CONCEPTUAL: "detailed",
        COMPARISON: "structured",
        METADATA: "direct",
    }
    assert set(STYLES) == set(QueryType)


def test_an_explicit_type_wins_over_the_rules() -> None:
    found = plan("why is that", query_type=COMPARISON)
    assert (found.query_type, found.decided_by) == (COMPARISON, "request")


# --- what it names ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("what does `EntityStore.search` return", "code", "EntityStore.search"),
        ("where is `retry()` called", "code", "retry"),
        ("GetUser function", "camel", "GetUser"),
        ("parseHTTPResponse2", "camel", "parseHTTPResponse2"),
        ("HTTPServer start-up", "camel", "HTTPServer"),
        ("where is user_id set", "snake", "user_id"),
        ("QUOTE_EXPIRED", "snake", "QUOTE_EXPIRED"),
        ("what does __init__ do", "snake", "__init__"),
        ("requests.get timeout", "dotted", "requests.get"),
        ("std::vector::push_back cost", "dotted", "std::vector::push_back"),
        ("retry() gives up", "call", "retry"),
        ("ThreadPoolExecutor(max_workers=3)", "call", "ThreadPoolExecutor"),
        ("config.py:12", "place", "config.py"),
        ("src/app/main.go:10-20 panics", "place", "src/app/main.go"),
        ("where is values-production.yaml used", "file", "values-production.yaml"),
        ("what is in docs/runbooks/deploy", "file", "docs/runbooks/deploy"),
        ("WF-5031 after a deploy", "error", "WF-5031"),
        ("TS2345 in the build", "error", "TS2345"),
        ("connect ECONNREFUSED", "error", "ECONNREFUSED"),
        ("fails with 0x80070005", "error", "0x80070005"),
        ('log says "pool exhausted" at night', "phrase", None),
        ("who uses 'maxRetries'", "phrase", "maxRetries"),
    ],
)
def test_code_in_a_question_is_recognised(text: str, kind: str, name: str | None) -> None:
    found = plan(text)
    assert [each.kind for each in found.mentions] == [kind]
    assert found.names == ((name,) if name else ())


@pytest.mark.parametrize(
    "text",
    [
        "which service(s) fail",
        "our APIs and URLs",
        "GitHub actions and JavaScript",
        "UTF-16 and SHA-256, see RFC-7231",
        "and/or client/server",
        "e.g. this, i.e. that",
        "don't do that, it's the user's",
        "mail user.name@example.com",
        "version 1.2.3 of the 42nd release",
        "auth-service 503",
    ],
)
def test_ordinary_writing_names_nothing(text: str) -> None:
    assert plan(text).mentions == ()


def test_a_name_that_is_repeated_comes_once_and_in_order() -> None:
    assert plan("does `b_b` call a_a, or a_a call b_b?").names == ("b_b", "a_a")


# --- which field of which document ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("who wrote the adaptive retry paper?", MetadataQuestion("author", "adaptive retry paper", "paper")),
        ('who is the author of "On Retries"', MetadataQuestion("author", "On Retries")),
        ("when was docs/deploy.md last changed", MetadataQuestion("changed", "docs/deploy.md")),
        ("what is the title of the paper 10.1/x", MetadataQuestion("title", "10.1/x", "paper")),
        ("what's the DOI of the paper on retry budgets?", MetadataQuestion("doi", "retry budgets", "paper")),
        ("runbooks by Sam", MetadataQuestion("works", "Sam", "runbook")),
        ("when was the paper published", MetadataQuestion("published", "paper")),
    ],
)
def test_a_metadata_question_names_a_field_and_a_subject(text: str, expected: MetadataQuestion) -> None:
    assert metadata_question(text) == expected


@pytest.mark.parametrize(
    "text",
    ["all documents from the last incident", "messages from kafka", "who calls the author service", "title", "authors"],
)
def test_other_questions_are_none_of_them(text: str) -> None:
    assert metadata_question(text) is None


_MARKS = ["`", '"', "“", "”", "«", "»", "'", "/", "(", ")", ":", "->", "#", ".", "_", "-", " ", "\n"]
_PIECES = [*_MARKS, "0x1F", "7", "42", "E", "s", "ECONN", "EPERM", "foo", "Bar", "py", "HTTP", "a", "Z"]


@given(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join))
def test_a_pattern_that_is_passed_over_could_not_match(text: str) -> None:
    for _, marks, pattern in mentions._PATTERNS:
        for match in pattern.finditer(text):
            assert not set(match[0]).isdisjoint(marks)


def test_words_that_no_rule_about_metadata_knows_end_the_search() -> None:
    known = frozenset(word for words in questions._WORDS_OF.values() for word in words)
    assert known == questions._ANY_WORD
