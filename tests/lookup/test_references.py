"""References are the lines that hold a name as a whole word, each once, by path and line."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dowse.errors import BadRequestError
from dowse.filters import by_language
from dowse.lookup.references import References, references
from dowse.types import Document
from factories import PLAIN, document, of_chunks
from small_store import small_store
from values import replace


def found(name: str, *documents: Document, **options: object) -> References:
    place = small_store(documents, vectors=False)
    return references(name, place.reader, place.tokenizer, **options)  # type: ignore[arg-type]


def lines(*numbers: tuple[str, int, str]) -> Document:
    """A file whose chunks start at these lines."""
    chunks = [
        replace(PLAIN, text=text, start_line=start, end_line=start + text.count("\n")) for _, start, text in numbers
    ]
    return of_chunks(numbers[0][0], chunks)


def places(result: References) -> list[tuple[str, int | None]]:
    return [(each.chunk.source_uri, each.line) for each in result.found]


def test_a_line_counts_from_where_its_chunk_starts() -> None:
    result = found("retryBudget", lines(("a.go", 10, "x := 1\nuse(retryBudget)\n"), ("a.go", 40, "retryBudget = 2")))
    assert places(result) == [("docs/a.go", 10 + 1), ("docs/a.go", 40)]


def test_part_of_a_longer_name_is_no_reference() -> None:
    result = found("retry", lines(("a.go", 1, "retryBudget\nretry()\nmy_retry\n$retry\nretry$\nre.retry")))
    assert [each.line for each in result.found] == [2, 6]


def test_case_counts() -> None:
    assert [each.text for each in found("Retry", lines(("a.go", 1, "retry\nRetry\nRETRY"))).found] == ["Retry"]


def test_where_chunks_overlap_a_line_counts_once() -> None:
    result = found("needle", lines(("a.txt", 1, "one\nneedle"), ("a.txt", 2, "needle\nthree")))
    assert places(result) == [("docs/a.txt", 2)]


def test_the_definition_is_marked_where_the_symbol_says_its_own_name_first() -> None:
    chunk = replace(PLAIN, text="// doc\nfunc Retry() {\n  Retry()\n}", start_line=1, symbol_name="Retry")
    result = found("Retry", of_chunks("a.go", [chunk]), document("b.go", "Retry()"))
    assert [(each.line, each.definition) for each in result.found] == [(2, True), (3, False), (None, False)]


def test_a_member_is_looked_for_where_its_owner_is_named() -> None:
    ours = lines(("a.ts", 1, "const store = new BookingStore()\nstore.create()"))
    others = lines(("b.ts", 1, "list.create()"))
    assert places(found("BookingStore.create", ours, others)) == [("docs/a.ts", 2)]
    assert len(found("create", ours, others).found) == 2


@pytest.mark.parametrize("name", ["Owner::make", "Owner->make", "Owner#make", "Owner.make()", " make "])
def test_a_name_may_be_spelt_as_in_any_language(name: str) -> None:
    assert len(found(name, document("a.rb", "Owner and make")).found) == 1


def test_a_filter_holds() -> None:
    go = of_chunks("a.go", [replace(PLAIN, text="needle", language="go")])
    python = of_chunks("a.py", [replace(PLAIN, text="needle", language="python")])
    assert places(found("needle", go, python, where=(by_language("go"),))) == [("docs/a.go", None)]


@pytest.mark.parametrize("name", ["", "  ", "...", "()", "::"])
def test_what_is_no_name_is_refused_with_an_example(name: str) -> None:
    with pytest.raises(BadRequestError, match="such as retryBudget"):
        found(name, document("a.go", "x"))


_WORDS = st.sampled_from(["retry", "retryBudget", "Retry", "retry_2", "budget", "a.retry", "x"])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(_WORDS, min_size=1, max_size=5).map(" ".join), min_size=1, max_size=12), st.integers(1, 900))
def test_every_line_that_holds_the_word_is_found_and_no_other(texts: list[str], start: int) -> None:
    result = found("retry", lines(("a.go", start, "\n".join(texts))))
    word = re.compile(r"(?<![\w$])retry(?![\w$])")
    assert [each.line for each in result.found] == [
        start + offset for offset, text in enumerate(texts) if word.search(text)
    ]
