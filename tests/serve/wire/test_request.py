"""A question means the same in a body and in a URL; what does not fit is told by the name of its field."""

import json
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dowse.config import Config
from dowse.errors import BadRequestError
from dowse.filters import Eq, Glob, Gt, In, Not, Or
from dowse.serve.http.openapi import request_parameters, request_schema
from dowse.serve.wire.request import parse_json, parse_url
from dowse.types import QueryRequest

TEXTS = st.lists(st.text(max_size=8), max_size=3)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "text": st.text(min_size=1),
    "top_k": st.integers(1, 10_000),
    "profile": st.sampled_from(["default", "graph"]),
    "corpus_filter": TEXTS,
    "author_filter": TEXTS,
    "created_after": st.datetimes(timezones=st.just(UTC)).map(datetime.isoformat),
    "meta_filter": st.dictionaries(st.text(st.characters(exclude_characters="="), min_size=1), st.text(), max_size=3),
    "weights": st.fixed_dictionaries({leg: st.floats(0, 9) for leg in ("dense", "bm25_code", "bm25_nlp")}),
    "legs": st.lists(st.sampled_from(["dense", "bm25_code", "bm25_nlp"]), min_size=1, unique=True),
    "fusion": st.sampled_from(["z", "rrf", "minmax"]),
    "alpha": st.floats(0, 1),
    "rerank": st.sampled_from([True, False, "heuristic", "none"]),
    "mmr": st.booleans(),
    "explain": st.booleans(),
    "query_type": st.sampled_from(["factual", "comparison"]),
    "deadline_s": st.floats(0.1, 10),
}


def as_parameters(row: dict[str, Any]) -> list[tuple[str, str]]:
    found = []
    for name, value in row.items():
        several = value if isinstance(value, list) else [value]
        if isinstance(value, dict):
            several = [f"{key}={each}" for key, each in value.items()]
        found += [(name, each if isinstance(each, str) else json.dumps(each)) for each in several]
    return found


@given(st.fixed_dictionaries({"text": VALUES["text"]}, optional={k: v for k, v in VALUES.items() if k != "text"}))
def test_a_body_and_a_url_mean_the_same_but_for_the_syntax(row: dict[str, Any]) -> None:
    row = {"syntax": "operators"} | row  # people type URLs, applications send what their users wrote
    in_body, _ = parse_json(json.dumps(row).encode(), Config())
    in_url, _ = parse_url(as_parameters(row), Config())
    assert in_body == in_url
    assert in_body.request.text == row["text"]


def test_every_field_of_a_request_can_be_asked_for() -> None:
    names = {each.name for each in fields(QueryRequest)}
    assert names | {"facets", "cursor"} == set(request_schema()["properties"])
    assert (names - {"where", "text"}) | {"q", "facets", "cursor"} == {row["name"] for row in request_parameters()}


def test_what_is_not_given_is_what_the_settings_say() -> None:
    asked, _ = parse_json(b'{"text": "x"}', Config(top_k=3, profile="graph"))
    assert asked.request == QueryRequest("x", top_k=3, profile="graph")
    assert (asked.cursor, asked.facets) == (None, False)


def test_short_names_mean_the_long_ones() -> None:
    for row in ({"q": "x", "limit": 2}, {"query": "x", "top_k": 2}, {"text": "x", "limit": 2}):
        assert parse_json(json.dumps(row).encode(), Config())[0].request == QueryRequest("x", top_k=2)


def test_clauses_become_a_filter() -> None:
    where = [
        {"op": "glob", "field": "file_path", "patterns": ["*.py"]},
        {"op": "gt", "field": "timestamp", "value": 3},
        {"op": "in", "field": "language", "values": ["go", "rust"]},
        {"op": "or", "filters": [[{"op": "eq", "field": "author", "value": "a"}], []]},
        {"op": "not", "where": [{"op": "eq", "field": "author", "value": "b"}]},
    ]
    asked, _ = parse_json(json.dumps({"text": "x", "where": where}).encode(), Config())
    plain = (Glob("file_path", ("*.py",)), Gt("timestamp", 3), In("language", ("go", "rust")))
    assert asked.request.where == (*plain, Or(((Eq("author", "a"),), ())), Not((Eq("author", "b"),)))


def test_clauses_nest_to_a_limit() -> None:
    row: dict[str, Any] = {"op": "eq", "field": "author", "value": "a"}
    for _ in range(17):
        row = {"op": "not", "where": [row]}
    with pytest.raises(BadRequestError, match="more than 16 levels"):
        parse_json(json.dumps({"text": "x", "where": [row]}).encode(), Config())


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"text": "x", "topk": 1}, "did you mean 'top_k'"),
        ({"text": 1}, "text:"),
        ({"text": "x", "top_k": "1"}, "top_k:"),
        ({"text": "x", "top_k": 1.5}, "top_k:"),
        ({"text": "x", "explain": "yes"}, "explain:"),
        ({"text": "x", "created_after": "soon"}, "created_after:"),
        ({"text": "x", "weights": {"sparse": 1}}, "weights:"),
        ({"text": "x", "where": {"op": "eq"}}, "where:"),
        ({"text": "x", "where": [{"op": "eq", "field": "a", "value": "b", "boost": 2}]}, "boost"),
        ({"text": "x", "where": [{"op": "not", "where": {}}]}, "list of clauses"),
        ({"text": "x", "where": [{"op": "or", "filters": {}}]}, "or needs 'filters'"),
        ({"text": "x", "where": [{"op": "or", "where": []}]}, "or needs 'filters'"),
        ({"top_k": 1}, "missing query"),
    ],
)
def test_what_does_not_fit_is_told_by_its_name(row: dict[str, Any], told: str) -> None:
    with pytest.raises(BadRequestError, match=told):
        parse_json(json.dumps(row).encode(), Config())


@pytest.mark.parametrize("pair", [("where", "[]"), ("top_k", "many"), ("meta_filter", "team"), ("mmr", "perhaps")])
def test_what_a_url_cannot_say_is_told(pair: tuple[str, str]) -> None:
    with pytest.raises(BadRequestError, match=pair[0]):
        parse_url([("q", "x"), pair], Config())


@pytest.mark.parametrize("field", ["created_after", "created_before"])
def test_a_time_is_iso_text_or_seconds_or_null(field: str) -> None:
    def parsed(value: Any) -> Any:
        return getattr(parse_json(json.dumps({"text": "retry", field: value}).encode(), Config())[0].request, field)

    assert parsed("2026-01-02T03:04:05+00:00") == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert parsed(1_700_000_000) == 1_700_000_000.0
    assert getattr(parse_url([("q", "retry"), (field, "1700000000")], Config())[0].request, field) == 1_700_000_000.0
    assert parsed(None) is None
    for wrong in ("yesterday", [], True, {"after": 1}):
        with pytest.raises(BadRequestError, match=field):
            parsed(wrong)
