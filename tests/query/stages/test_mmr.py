"""MMR: scores and vectors go in; the greedy order, its arithmetic and its invariants are checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dowse.errors import BadRequestError
from dowse.ports import StoreReader
from dowse.query.stages.mmr import Diversify, apply_mmr, marginal_order
from dowse.query.stages.state import Hit, Query, QueryState
from dowse.store.memory import MemoryStore
from factories import PLAIN, of_chunks
from values import replace

EAST, NORTH, NORTH_EAST = [1.0, 0.0], [0.0, 1.0], [2**-0.5, 2**-0.5]


def rows(*vectors: list[float]) -> Any:
    return np.array(vectors, np.float32)


def test_the_marginal_score_is_relevance_less_likeness() -> None:
    """s − d·max cos(selected)."""
    given = rows(EAST, NORTH_EAST, NORTH, EAST)
    picks = marginal_order([0.9, 0.8, 0.7, 0.0], given, diversity=0.3, top_k=3)
    # First .9; then .8 − .3·cos 45° = .588 against .7 − .3·0 = .7; last .8 − .3·max(cos 45°, cos 45°).
    assert [at for at, _ in picks] == [0, 2, 1]
    assert [value for _, value in picks] == pytest.approx([0.9, 0.7, 0.8 - 0.3 * 2**-0.5])
    assert apply_mmr([0.9, 0.8, 0.7, 0.0], given, top_k=3) == [(0, 0.9), (2, 0.7), (1, 0.8)]


def test_the_same_passage_twice_is_pushed_back() -> None:
    picks = apply_mmr([0.9, 0.89, 0.65], rows(EAST, EAST, NORTH), top_k=2)
    assert [at for at, _ in picks] == [0, 2]  # .89 − .3 = .59 < .65


def test_no_diversity_is_the_order_of_relevance() -> None:
    picks = apply_mmr([0.2, 0.9, 0.5], rows(EAST, EAST, EAST), diversity=0.0, top_k=2)
    assert picks == [(1, 0.9), (2, 0.5)]


def test_a_list_of_at_most_top_k_stays_as_it_is() -> None:
    assert apply_mmr([0.1, 0.9, 0.8], rows(EAST, NORTH, NORTH), top_k=3) == [(0, 0.1), (1, 0.9), (2, 0.8)]


def test_equals_keep_the_order_given() -> None:
    assert [at for at, _ in apply_mmr([0.5, 0.5, 0.5], rows(EAST, EAST, EAST), top_k=3)] == [0, 1, 2]


def test_words_speak_for_a_missing_vector() -> None:
    """A zero vector is no NaN; likeness is shared words over the larger number of words."""
    texts = ["retry the call", "retry the call", "lock the door now", "x"]
    nothing = [0.0, 0.0]
    picks = marginal_order([0.9, 0.8, 0.7, 0.0], rows(EAST, nothing, nothing, nothing), 0.5, 3, texts)
    assert [at for at, _ in picks] == [0, 2, 1]
    assert picks[1][1] == pytest.approx(0.7 - 0.5 * 1 / 4)  # "the" of max(3, 4) words
    assert picks[2][1] == pytest.approx(0.8 - 0.5 * 3 / 3)


def test_orders_as_the_textbook_form_does() -> None:
    """λ·s − (1 − λ)·max cos with λ = 1/(1 + d) picks the same."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        scores = rng.random(12).tolist()
        vectors = np.abs(rng.normal(size=(12, 4))).astype(np.float32)
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        weight = 1 / (1 + 0.3)
        chosen: list[int] = []
        while len(chosen) < 6:
            best = max(
                (at for at in range(12) if at not in chosen),
                key=lambda at: (
                    weight * scores[at] - (1 - weight) * max([0.0, *(float(unit[at] @ unit[c]) for c in chosen)])
                ),
            )
            chosen.append(best)
        assert [at for at, _ in apply_mmr(scores, vectors, 0.3, 6)] == chosen


@pytest.mark.parametrize(
    ("scores", "diversity", "message"),
    [
        ([0.5], 1.1, "diversity is 1.1"),
        ([0.5], float("nan"), "diversity is nan"),
        ([float("nan")], 0.3, "score is NaN"),
    ],
)
def test_bad_input_is_refused(scores: list[float], diversity: float, message: str) -> None:
    with pytest.raises(BadRequestError, match=message):
        apply_mmr(scores, rows(EAST), diversity)


def test_a_vector_too_few_is_refused() -> None:
    with pytest.raises(BadRequestError, match="2 scores and 1 vectors"):
        apply_mmr([0.5, 0.4], rows(EAST))


def test_nothing_gives_nothing() -> None:
    assert apply_mmr([], np.empty((0, 2), np.float32)) == []


# The stage over a real store.

TEXTS = ("retry the payment", "retry the payments", "lock the door", "no vector at all")


def reader_and_hits(values: tuple[float, ...]) -> tuple[StoreReader, tuple[Hit, ...]]:
    document = of_chunks("a.md", [replace(PLAIN, text=text) for text in TEXTS])
    store = MemoryStore()
    store.put([document])
    store.publish()
    store.use_model("m", 2)
    hashes = [chunk.content_hash for chunk in document.chunks[:3]]
    store.put_vectors(hashes, rows(EAST, EAST, NORTH))
    chunks = document.chunks
    return store.reader(), tuple(
        Hit(chunk, value, at) for at, (chunk, value) in enumerate(zip(chunks, values, strict=True))
    )


def test_stage_shows_different_hits_first_and_keeps_all() -> None:
    reader, hits = reader_and_hits((0.9, 0.85, 0.7, 0.1))
    after = Diversify(reader)(QueryState(Query("q", 2), hits=hits)).hits
    assert [hit.chunk.text for hit in after] == [TEXTS[0], TEXTS[2], TEXTS[1], TEXTS[3]]
    assert [hit.value for hit in after] == [0.9, 0.7, 0.85, 0.1]  # MMR selects and leaves scores alone
    assert after[1].scores[-1].value == pytest.approx(0.7)
    assert after[1].scores[-1].why == "0.70 − 0.3·0.00 for similarity to an earlier hit"


@given(st.lists(st.floats(0, 1.3), min_size=4, max_size=4), st.floats(0, 1), st.integers(1, 6))
def test_stage_keeps_the_set_and_the_scores(values: list[float], diversity: float, k: int) -> None:
    reader, hits = reader_and_hits(tuple(sorted(values, reverse=True)))
    after = Diversify(reader, diversity)(QueryState(Query("q", k), hits=hits)).hits
    assert sorted(hit.chunk.id for hit in after) == sorted(hit.chunk.id for hit in hits)
    assert {hit.chunk.id: hit.value for hit in after} == {hit.chunk.id: hit.value for hit in hits}
    assert k < len(hits) or after == hits
