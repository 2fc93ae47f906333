"""The query language: which parts of a typed query become filters, and which stay words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from dowse.errors import BadRequestError
from dowse.filters import Contains, Gt, In, Not, fulfils
from dowse.query.plan.operators import LONGEST_TYPED, read_operators, unknown_values
from dowse.types import QueryRequest


def read(text: str) -> tuple[str, tuple[object, ...], tuple[str, ...]]:
    request, notes = read_operators(QueryRequest(text, syntax="operators"))
    assert request.syntax == "plain"
    return request.text, request.where, notes


def phrase(text: str) -> Contains:
    return Contains("text", text)


@pytest.mark.parametrize(
    ("typed", "words", "where"),
    [
        ('"connection reset" retry', "connection reset retry", (phrase("connection reset"),)),
        ("kafka -alertmanager", "kafka", (Not((phrase("alertmanager"),)),)),
        ('kafka -"dead letter" queue', "kafka queue", (Not((phrase("dead letter"),)),)),
        ("lang:Go retry", "retry", (In("language", ("go",)),)),
        ("retry -lang:go", "retry", (Not((In("language", ("go",)),)),)),
        ("retry repo:shop service:auth", "retry", (In("repo_name", ("shop",)), In("service_name", ("auth",)))),
        ('retry author:"David Lord"', "retry", (In("author", ("David Lord",)),)),
        ("retry kind:function", "retry", (In("symbol_kind", ("function",)),)),
        ("undo kind:adr", "undo", (In("corpus_type", ("DOC_ADR",)),)),
    ],
)
def test_an_operator_leaves_the_words_and_becomes_a_clause(typed: str, words: str, where: tuple[object, ...]) -> None:
    assert read(typed) == (words, where, ())


@pytest.mark.parametrize(
    "text",
    [
        "docker build --no-cache",
        "exit code -1",
        "tar -x",
        "well-known ports",
        "std::vector",
        "foo:bar",
        "https://example.com/a",
        'printf("hello world")',
        'msg="disk full" level=error',
        "ERROR lang:go\nat line:3",
        "lang:go " + "word " * (LONGEST_TYPED // 5),
        "a - b",
    ],
)
def test_everything_else_stays_words(text: str) -> None:
    assert read(text) == (text, (), ())


def test_a_field_with_a_blank_after_its_colon_stays_words_with_a_note() -> None:
    words, where, notes = read("kind: Deployment")
    assert (words, where) == ("kind: Deployment", ())
    assert "kind:Deployment" in notes[0]


def test_plain_syntax_takes_the_text_as_it_is() -> None:
    request = QueryRequest('"a b" -c lang:go')
    assert read_operators(request) == (request, ())


def test_since_takes_an_age() -> None:
    _, (clause,), _ = read("rollback since:90d")
    assert isinstance(clause, Gt)
    age = datetime.now(UTC) - datetime.fromtimestamp(float(clause.value), UTC)
    assert abs(age - timedelta(days=90)) < timedelta(minutes=1)


@pytest.mark.parametrize(
    ("typed", "path", "passes"),
    [
        ("x path:docs/", "docs/a.md", True),
        ("x path:helpers", "src/flask/helpers.py", True),
        ("x path:flask/helpers", "src/flask/helpers.py", True),
        ("x path:flask", "src/flask/helpers.py", True),
        ("x path:'*.go'".replace("'", ""), "src/a.py", False),
        ("x path:tests", "src/a.py", False),
    ],
)
def test_a_path_is_a_glob_or_a_part_of_a_path(typed: str, path: str, passes: bool) -> None:
    _, where, _ = read(typed)
    assert fulfils({"file_path": path}.get, where) is passes  # type: ignore[arg-type]


def test_filters_alone_are_refused_and_excluded_words_alone_stay_words() -> None:
    with pytest.raises(BadRequestError, match="add some"):
        read("lang:go")
    words, where, notes = read("-retry")
    assert (words, where) == ("-retry", ())
    assert notes


def test_an_unknown_value_names_near_ones() -> None:
    where = (In("language", ("pyton",)), In("repo_name", ("shop",)))
    known = {"language": ["python", "go"], "repo_name": ["shop"]}
    assert list(unknown_values(where, known.__getitem__)) == [
        "no language 'pyton' in the index; did you mean 'python'?"
    ]
