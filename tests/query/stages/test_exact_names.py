"""Exact names over a real store: questions that spell a name go in; what comes first is checked."""

from __future__ import annotations

from typing import Any

import pytest

from dowse.filters import by_repo
from dowse.ports import StoreReader
from dowse.query.pipeline import answer
from dowse.store.memory import MemoryStore
from dowse.tokenizer import Tokenizer
from dowse.types import Defined, QueryRequest, QueryResult
from factories import PLAIN, of_chunks
from values import replace

LONG = "retry retry retry call call call backoff backoff after a failure of the payment service "


def code(name: str, text: str, **fields: Any) -> Any:
    return replace(PLAIN, symbol_name=name, text=text, repo_name="shop", **fields)


CHUNKS = (
    code("retry_call", "def retry_call(f): ...", qualified_name="net.retry_call"),
    code("retry_call", "def retry_call(f): pass", qualified_name="old.retry_call", language="go"),
    *(code(f"other_{at}", LONG + str(at)) for at in range(80)),
    code("search", "def search(self, words)", qualified_name="EntityStore.search"),
    code("search", "def search(self, vector)", qualified_name="VectorStore.search"),
)


@pytest.fixture(scope="module")
def reader() -> StoreReader:
    store = MemoryStore()
    store.put([of_chunks("a.py", CHUNKS)])
    store.publish()
    return store.reader()


def ask(reader: StoreReader, text: str, **fields: Any) -> QueryResult:
    return answer(QueryRequest(text, legs=("bm25_code", "bm25_nlp"), **fields), reader, None, Tokenizer())


@pytest.mark.parametrize(
    "text",
    [
        "retry_call",
        "`retry_call`",
        "why does retry_call give up after a failure of the payment service backoff",
        "what calls retry_call(f) in the payment service",
    ],
)
def test_a_name_asked_for_as_an_identifier_comes_first(reader: StoreReader, text: str) -> None:
    result = ask(reader, text, top_k=5)
    assert [each.symbol_name for each in result.chunks[:3]] != ["retry_call"] * 3
    assert {each.qualified_name for each in result.chunks[:2]} == {"net.retry_call", "old.retry_call"}
    assert result.chunks[0].scores[-1].stage == "exact"
    assert result.chunks[0].scores[-1].why.startswith("is named")


def test_hits_stay_sorted_by_their_final_score(reader: StoreReader) -> None:
    scores = [each.final_score for each in ask(reader, "payment failure retry_call", top_k=20).chunks]
    assert scores == sorted(scores, reverse=True)


def test_a_qualified_name_chooses_among_equals(reader: StoreReader) -> None:
    first, *rest = ask(reader, "how does EntityStore.search find things", top_k=5).chunks
    assert first.qualified_name == "EntityStore.search"
    assert "exact" not in {score.stage for each in rest for score in each.scores}


def test_a_plain_word_is_no_name_asked_for(reader: StoreReader) -> None:
    for each in ask(reader, "search words", top_k=5).chunks:
        assert "exact" not in {score.stage for score in each.scores}


def test_filters_hold_for_what_is_looked_up(reader: StoreReader) -> None:
    found = ask(reader, "backoff after a failure in retry_call", language_filter="go", top_k=5).chunks
    assert {each.qualified_name for each in found} == {"old.retry_call"}
    assert ask(reader, "retry_call", where=(by_repo("nowhere"),)).chunks == ()


def test_a_name_that_nothing_bears_changes_nothing(reader: StoreReader) -> None:
    plain = ask(reader, "backoff of missing_name")
    assert all("exact" not in {score.stage for score in each.scores} for each in plain.chunks)
    assert plain.chunks


def test_profiles_without_it_leave_the_fused_order(reader: StoreReader) -> None:
    text = "why does retry_call give up after a failure of the payment service backoff"
    found = ask(reader, text, profile="engineering", top_k=5).chunks
    assert all("exact" not in {score.stage for score in each.scores} for each in found)


@pytest.mark.parametrize(
    ("name", "defined", "language", "first"),
    [
        ("Tokens", Defined("tokens", "field", "Layout.tokens", 1, 1), "python", False),  # a field in another case
        ("path_router", Defined("path_router", "module", "path_router", 1, 1), "rust", False),  # mod path_router;
        ("Helpers", Defined("Helpers", "module", "Site.Helpers", 1, 9), "ruby", True),
        ("Tokens", Defined("Tokens", "class", "Tokens", 1, 9), "python", True),
    ],
)
def test_a_chunk_is_named_by_what_it_defines(name: str, defined: Defined, language: str, first: bool) -> None:
    store = MemoryStore()
    chunk = replace(PLAIN, text=name, corpus_type="CODE_LOGIC", language=language, defines=(defined,))
    store.put([of_chunks("a", [chunk])])
    store.publish()
    (hit,) = ask(store.reader(), name).chunks
    assert any(score.stage == "exact" for score in hit.scores) is first
