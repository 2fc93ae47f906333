"""Reading matter for a language model: what fits, what is cited, and that nothing is said twice."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dowse.errors import BadRequestError
from dowse.filters import Filter, by_repo
from dowse.query.context import Context, assembled, estimated_tokens
from dowse.query.pipeline import finished
from dowse.types import Chunk, Document, QueryRequest, QueryResult
from factories import PLAIN, of_chunks
from small_store import SmallStore, small_store, texts
from values import replace

QUESTION = "failed calls retry with backoff"


def sectioned(*, repo: str = "open") -> Document:
    """Two sections, the first of two chunks about retries; its parent has no repository of its own unless given."""
    first, second = "retry a failed call with backoff", "backoff and jitter of a failed retry"
    whole = replace(PLAIN, level="section", text=f"{first}\nand between them\n{second}", start_line=1, end_line=3,
                    section_path="Retries", repo_name=repo)  # fmt: skip
    made = of_chunks("guide.md", [whole])
    parent = made.chunks[0].id
    parts = [
        replace(PLAIN, text=text, parent_id=parent, start_line=line, end_line=line, repo_name="open")
        for text, line in ((first, 1), (second, 3))
    ]
    other = replace(PLAIN, text="leases are renewed", start_line=9, end_line=9, repo_name="open")
    return of_chunks("guide.md", [whole, *parts, other])


def asked(at: SmallStore, text: str = QUESTION, top_k: int = 10) -> QueryResult:
    return finished(at.prepare(QueryRequest(text, top_k=top_k, parents="off")), None)


def context(at: SmallStore, budget_tokens: int, where: Filter = (), text: str = QUESTION) -> Context:
    return assembled(asked(at, text), at.reader, budget_tokens, where)


def names(found: Context) -> list[str]:
    return [passage.citation for passage in found.passages]


def test_passages_are_numbered_cited_and_in_the_order_of_the_hits() -> None:
    at = small_store(texts())
    found = context(at, 1000)
    hits = asked(at)
    assert [passage.number for passage in found.passages] == list(range(1, len(hits.chunks) + 1))
    assert names(found) == [chunk.source_uri for chunk in hits.chunks]
    assert found.text.startswith(f"[1] {hits.chunks[0].source_uri}\n{hits.chunks[0].text}")


@given(st.integers(50, 400), st.lists(st.text(min_size=1, max_size=400), min_size=1, max_size=8, unique=True))
def test_the_text_never_exceeds_the_budget(budget_tokens: int, given_texts: list[str]) -> None:
    at = small_store(texts(*(f"retry {text}" for text in given_texts)))
    found = context(at, budget_tokens, text="retry")
    assert estimated_tokens(found.text) <= found.tokens <= budget_tokens
    assert len({passage.text for passage in found.passages}) == len(found.passages)
    shown = len(asked(at, "retry").chunks)
    cited = {each for passage in found.passages for each in passage.chunk_ids}
    assert len(cited) + found.left_out == shown


def test_what_does_not_fit_makes_room_for_what_does() -> None:
    at = small_store(texts("retry backoff failed calls " + "word " * 300, "retry a little"))
    found = context(at, 60)
    assert [passage.text for passage in found.passages] == ["retry a little"]
    assert found.left_out == 1


def test_section_takes_the_place_of_two_hits_that_it_holds() -> None:
    found = context(small_store([sectioned()]), 1000)
    retries = next(passage for passage in found.passages if passage.title == "Retries")
    assert retries.citation == "docs/guide.md:1-3"
    assert len(retries.chunk_ids) == 2
    assert found.text.count("retry a failed call with backoff") == 1
    assert "and between them" in found.text


def test_section_that_does_not_fit_leaves_its_parts() -> None:
    document = sectioned()
    long = replace(document.chunks[0], text=document.chunks[0].text + " more" * 500)
    whole = replace(document, chunks=(long, *document.chunks[1:]))
    found = context(small_store([whole]), 100)
    assert {"docs/guide.md:1-1", "docs/guide.md:3-3"} <= set(names(found))
    assert "more" not in found.text


def test_section_outside_the_filter_is_not_read() -> None:
    """Parents must not leak chunks outside the filter."""
    found = context(small_store([sectioned(repo="secret")]), 1000, (by_repo("open"),))
    assert "and between them" not in found.text
    assert len(found.passages) == 3


def test_the_same_words_in_two_files_are_read_once() -> None:
    at = small_store(texts("retry failed calls", "retry failed calls", "retry failed calls twice"))
    found = context(at, 1000)
    assert [passage.text for passage in found.passages] == ["retry failed calls twice"]
    assert len(found.passages[0].chunk_ids) == 3


def test_lines_inside_others_are_not_read_again() -> None:
    chunks: Sequence[Chunk] = [
        replace(PLAIN, text="retry failed calls with backoff\nand more", start_line=1, end_line=2),
        replace(PLAIN, text="backoff more", start_line=2, end_line=2),
    ]
    found = context(small_store([of_chunks("a.md", chunks)]), 1000)
    assert names(found) == ["docs/a.md:1-2"]


def test_another_way_of_counting_is_honoured() -> None:
    at = small_store(texts("retry one two three"))
    assert not assembled(asked(at), at.reader, 50, count=lambda text: 51).passages
    assert assembled(asked(at), at.reader, 50, count=lambda text: 1).tokens == 1


def test_a_budget_that_holds_nothing_is_refused() -> None:
    with pytest.raises(BadRequestError, match="budget_tokens is 3"):
        context(small_store(), 3)


def test_estimate_is_a_token_for_four_letters_a_digit_a_sign_and_a_line() -> None:
    assert estimated_tokens("abcd abcde") == 1 + 2
    assert estimated_tokens("x=12;\n") == 1 + 1 + 2 + 1 + 1
    assert estimated_tokens("") == 0
