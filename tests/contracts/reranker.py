"""What every reranker must do: inherit, give a `reranker` fixture, and the whole suite runs against it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dowse.ports import Candidate, Reranker
from dowse.types import Chunk

TEXTS = (
    "w1 w2 w3 the store keeps entities and finds them again by name, by words and by meaning",
    "w4 w5",
    "",
    "w6 " * 300,
    "w7 w8 a database connection is opened once and shared between the threads of a process",
)


def candidate(text: str, value: float = 0.5, at: int = 0, **fields: object) -> Candidate:
    chunk = Chunk(f"{at:016x}", "doc", text, "CODE_LOGIC", "src/a.py", content_hash=f"{at}", **fields)  # type: ignore[arg-type]
    return Candidate(chunk, value)


def candidates(values: Sequence[float] = (0.9, 0.7, 0.5, 0.3, 0.1)) -> list[Candidate]:
    return [candidate(text, value, at) for at, (text, value) in enumerate(zip(TEXTS, values, strict=True))]


class RerankerContract:
    """Subclasses give the fixture `reranker`."""

    def test_names_itself(self, reranker: Reranker) -> None:
        assert reranker.model

    def test_gives_one_number_in_0_to_1_a_candidate(self, reranker: Reranker) -> None:
        scores = reranker.score("w1 w2", candidates())
        assert len(scores) == len(TEXTS)
        assert all(score is not None and 0 <= score <= 1 for score in scores)

    def test_no_candidates_give_no_scores(self, reranker: Reranker) -> None:
        assert list(reranker.score("w1", [])) == []

    def test_is_deterministic(self, reranker: Reranker) -> None:
        assert list(reranker.score("w1 w2", candidates())) == list(reranker.score("w1 w2", candidates()))

    def test_does_not_change_its_arguments(self, reranker: Reranker) -> None:
        given = candidates()
        reranker.score("w1 w2", given)
        assert given == candidates()

    def test_the_order_of_candidates_does_not_matter(self, reranker: Reranker) -> None:
        forward = reranker.score("w1 w2", candidates())
        backward = reranker.score("w1 w2", candidates()[::-1])
        assert list(forward) == pytest.approx(list(backward)[::-1])

    @pytest.mark.parametrize("query", ["how is it", "?!", "`", "w1 " * 500, "\ud800", "𝒳 ß İ"])
    def test_strange_questions_are_judged_too(self, reranker: Reranker, query: str) -> None:
        assert len(reranker.score(query, candidates())) == len(TEXTS)
