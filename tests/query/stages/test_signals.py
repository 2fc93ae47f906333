"""Signals of a repository: names and kinds of files as arithmetic, and their effect on an answer."""

from __future__ import annotations

from typing import Any

import pytest

from dowse.query.pipeline import answer
from dowse.query.plan.file_kinds import ASIDE, BEHIND, kind_rule
from dowse.query.stages.signals import Asked, Signals, alike, file_match, matcher, symbol_match
from dowse.query.stages.state import Hit, Query, QueryState
from dowse.store.memory import MemoryStore
from dowse.tokenizer import Tokenizer
from dowse.types import Chunk, Defined, QueryRequest
from factories import PLAIN, of_chunks
from values import replace

TOKENIZER = Tokenizer()


def asked(text: str) -> Asked:
    return Asked(TOKENIZER.words(text))


def in_file(path: str, **fields: Any) -> Chunk:
    return replace(PLAIN, file_path=path, **({"corpus_type": "CODE_LOGIC"} | fields))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [("retry", "retry", True), ("dispatch", "dispatcher", True), ("ws", "wsgi", False), ("route", "retry", False)],
)
def test_words_are_alike_if_one_begins_the_other(one: str, other: str, expected: bool) -> None:
    assert alike(one, other) is expected
    assert alike(other, one) is expected


def test_words_of_a_name_are_its_parts() -> None:
    assert TOKENIZER.words("parseHTTPResponse2") == ["pars", "http", "respons", "2"]
    assert TOKENIZER.words("the url_for") == ["url"]


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ("connection pool", "net/pool.py", 1.25 * 0.5 * 1 / (0.25 * 1 + 0.5)),  # one of two words; the whole stem
        ("connection pool", "connection/pool.py", 1.0),  # the folder has the other word
        ("connection pool", "pool/__init__.py", 1.25 * 0.5 * 1 / (0.25 * 1 + 0.5)),  # the folder's name
        ("connection pool", "net/client.py", 0.0),
        ("web socket frames", "ws.py", 1.25 * (2 / 3) / (0.25 + 2 / 3)),  # initials of two neighbours
        ("WebSocket frames", "websocket.py", 1.25 * (2 / 3) / (0.25 + 2 / 3)),  # two neighbours in one word
        ("", "net/pool.py", 0.0),
    ],
)
def test_name_of_a_file(text: str, path: str, expected: float) -> None:
    assert file_match(asked(text), path, TOKENIZER) == pytest.approx(expected)


def test_name_of_a_symbol_is_a_harmonic_mean() -> None:
    assert symbol_match(asked("retry failed call"), TOKENIZER.words("retry_call")) == pytest.approx(
        2 * (2 / 3) / (5 / 3)
    )
    assert symbol_match(asked("how does retry call work"), TOKENIZER.words("retryCall")) == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("path", "text", "factor"),
    [
        ("src/pool.py", "connection pool", 1.0),
        ("tests/test_pool.py", "connection pool", ASIDE),
        ("src/pool_test.go", "connection pool", ASIDE),
        ("src/PoolTest.java", "connection pool", ASIDE),
        ("tests/test_pool.py", "how is the pool tested", 1.0),
        ("examples/pool.py", "connection pool", ASIDE),
        ("db/migrations/0001_pool.py", "connection pool", ASIDE),
        ("api/pool_pb2.py", "connection pool", ASIDE),
        ("src/pool/package-info.java", "connection pool", ASIDE),
        ("src/latest.py", "connection pool", 1.0),
        ("src/contest/pool.py", "connection pool", 1.0),
    ],
)
def test_kinds_of_files_rank_behind_unless_asked_for(path: str, text: str, factor: float) -> None:
    chunk = in_file(path)
    assert matcher(Query(text, 10), TOKENIZER, [chunk])(chunk).factor == factor


def test_a_definition_of_the_words_asked_has_the_value_of_the_best_hit_even_in_a_test() -> None:
    named = Defined("retry_call", "function", "retry_call", 1, 30)
    other = Hit(in_file("net/retry.py", id=f"{1:016}"), 0.8)
    piece = Hit(in_file("tests/test_net.py", id=f"{2:016}", symbol_name="retry_call"), 0.7)
    definition = Hit(in_file("tests/test_net.py", id=f"{3:016}", symbol_name="retry_call", defines=(named,)), 0.1)
    for text in ("retry call", "how does retry call work"):
        hits = Signals(TOKENIZER)(QueryState(Query(text, 10), hits=(other, piece, definition))).hits
        assert hits[0].chunk.id == definition.chunk.id
        assert [hit.value for hit in hits] == pytest.approx(
            [(0.8 + 0.3) / 1.3, (0.8 + 0.3 * file_match(asked("retry call"), "net/retry.py", TOKENIZER)) / 1.3,
             (0.7 + 0.3 * 0.9) * ASIDE / 1.3]
        )  # fmt: skip
        assert hits[0].scores[-1].why.endswith("defines it")


def test_docs_rank_behind_code_only_when_code_is_asked_for() -> None:
    code, doc = in_file("a.py"), in_file("README.md", corpus_type="DOC_README")
    of = {
        text: kind_rule(text, TOKENIZER.words(text), chunks)(doc)[0]
        for text, chunks in [
            ("entity search", (code, code, code, code, doc)),
            ("entity search too", (code, doc)),
            ("retry", (code, doc, doc)),
            ("where does checkout call payment", (code, doc, doc)),
            ("where is the readme", (code, code, doc)),
        ]
    }
    assert list(of.values()) == [BEHIND, 1.0, 1.0, BEHIND, 1.0]


@pytest.mark.parametrize(
    ("text", "factors"),
    [
        ("where does checkout call payment", [1.0, BEHIND]),
        ("where does the checkout service call the payment service", [1.0, BEHIND]),
        ("where does billing call payment", [1.0, 1.0]),  # no file of billing is known
        ("checkout calls payment", [1.0, 1.0]),
    ],
)
def test_a_call_is_in_the_files_of_the_caller(text: str, factors: list[float]) -> None:
    chunks = [in_file("src/checkoutservice/main.go"), in_file("src/paymentservice/server.js")]
    rule = kind_rule(text, TOKENIZER.words(text), chunks)
    assert [rule(chunk)[0] for chunk in chunks] == factors


def test_the_stage_explains_its_arithmetic() -> None:
    store = MemoryStore()
    text = "opens a connection and retries the call"
    store.put(
        [
            of_chunks(path, [in_file(path, text=f"{text} {path}", symbol_name=symbol)])
            for path, symbol in (("net/client.py", "get"), ("net/retry.py", "retry_call"), ("tests/test_it.py", "it"))
        ]
    )
    store.publish()
    hits = answer(QueryRequest("retry call connection"), store.reader(), None, Tokenizer()).chunks
    assert hits[0].file_path == "net/retry.py"
    assert hits[-1].file_path == "tests/test_it.py"
    (score,) = (each for each in hits[0].scores if each.stage == "signals")
    assert score.value == pytest.approx(((hits[0].fusion_score or 0) + 0.3 * 0.9 * 0.8) / 1.3)
    assert "0.3·0.72 symbol name" in score.why
    assert any("×0.3 test" in each.why for each in hits[-1].scores)


@pytest.mark.parametrize("text", ["retry_call", "urllib: retry call connection"])
def test_names_and_messages_are_asked_for_as_they_are(text: str) -> None:
    chunks = [in_file("net/retry.py", text="retry_call connection", symbol_name="retry")]
    state = QueryState(Query(text, 10, mentions=("retry_call",) if "_" in text else ()), hits=(Hit(chunks[0], 0.5),))
    assert Signals(TOKENIZER)(state) is state
