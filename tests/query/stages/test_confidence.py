"""Confidence over a real store: what raises it, what it is worth, and when nothing is said to be found."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dowse.identity import id_number
from dowse.query.pipeline import run
from dowse.query.stages.confidence import FITS, NAMED, NO_ANSWER, WORDS, Confidence, Fit, Judge, judged
from dowse.query.stages.state import QueryState
from dowse.types import QueryRequest
from factories import PLAIN, document
from small_store import SmallStore, small_store, texts
from values import replace

QUESTION = "failed calls retry with backoff"
GRANITE = FITS[0][1]


def state_of(at: SmallStore, text: str, **fields: object) -> QueryState:
    ready = at.prepare(replace(QueryRequest(text), **fields))  # type: ignore[arg-type]
    return run(ready.waves, ready.state, None, ready.deadline).state


def sure(at: SmallStore, text: str, model: str | None = None) -> Confidence:
    found = judged(state_of(at, text), at.reader, model)
    assert found is not None
    return found


def logistic(x: float) -> float:
    return 1 / (1 + exp(-x))


def test_chance_of_an_answer_is_the_fitted_formula() -> None:
    """Words alone: x = 8.01·√(BM25/attainable) + 1.94·agreement − 5.33, over the first five hits."""
    at = small_store(texts("retry calls", "heartbeat", "retry"), vectors=False)
    state = state_of(at, "retry calls")
    terms = dict(state.query.terms)
    ids = np.array([id_number(hit.chunk.id) for hit in state.hits], np.uint64)
    attainable, scores = at.reader.attainable_words(terms), at.reader.score_words(terms, ids)
    share = max(float(scores[leg].max()) / attainable[leg] for leg in terms)
    agreement = 2 / 10  # both word legs found the same two chunks
    expected = logistic(8.01 * sqrt(share) + 1.94 * agreement - 5.33)
    assert sure(at, "retry calls").value == pytest.approx(expected)


def test_chance_with_vectors_takes_cosine_and_size() -> None:
    chance = GRANITE.answer(0.8, 0.5, 0.3, log(1000))
    assert chance == pytest.approx(logistic(13 * 0.8 + 6 * 0.5 - 0.8 * log(1000) - 6))


def test_chance_of_a_hit_falls_with_its_rank() -> None:
    for rank in (1, 2, 10):
        expected = logistic(13 * 0.8 + 2 * 0.5 - 0.9 * log(1000) - 1.1 * log(rank) - 4.25)
        assert GRANITE.hit(0.8, 0.5, 0.3, log(1000), rank) == pytest.approx(expected)


def test_no_hit_is_surer_than_the_answer() -> None:
    at = small_store(texts("retry calls", "heartbeat", "retry"), vectors=False)
    for text in ("retry calls", "retry zebra quagga okapi gnu eland kudu oryx impala"):
        found = sure(at, text)
        assert max(found.of_hits.values()) <= found.value * (NO_ANSWER if found.nothing_found else 1)


def test_size_stays_within_what_was_fitted() -> None:
    assert GRANITE.size(10) == log(499)
    assert GRANITE.size(1000) == log(1000)
    assert GRANITE.size(10_000_000) == log(6267)


@pytest.mark.parametrize("fit", [*(each for _, each in FITS), WORDS])
@given(cosine=st.floats(0, 1), coverage=st.floats(0, 1), more=st.floats(0, 1), chunks=st.integers(0, 10**9))
def test_nearer_and_better_covered_is_never_less_sure(
    fit: Fit, cosine: float, coverage: float, more: float, chunks: int
) -> None:
    size = fit.size(chunks)
    for chance in (fit.answer, fit.hit):
        low = chance(cosine, coverage, 0.0, size)
        assert 0 <= low <= 1
        assert chance(min(cosine + more, 1), coverage, 0.0, size) >= low
        assert chance(cosine, min(coverage + more, 1), 0.0, size) >= low


def test_gibberish_finds_nothing_and_a_good_question_something() -> None:
    """Gibberish gives nothing_found instead of five hits with low scores."""
    at = small_store(
        texts(*(f"{text} alpha" for text in ("queue", "lock", "retry failed calls", "lease", "pager", "helm")))
    )
    nonsense = sure(at, "xqzv blorpt alpha gnarf zwib trolk")
    assert nonsense.nothing_found
    good = sure(at, "retry failed calls")
    assert not good.nothing_found
    assert good.value > 4 * nonsense.value


def test_hits_stay_when_nothing_is_found() -> None:
    """Hits are never empty: they are the nearest misses, and marked so."""
    at = small_store(texts("queue alpha", "lock alpha", "lease beta", "helm beta", "pager gamma"))
    state = state_of(at, "xqzv blorpt alpha gnarf zwib trolk")
    assert state.hits
    assert state.confidence is not None
    assert state.confidence.nothing_found


def test_words_that_no_chunk_holds_lower_the_chance() -> None:
    at = small_store(vectors=False)
    assert sure(at, "retry backoff").value > sure(at, "retry backoff zebra quagga okapi").value


def test_chances_compare_between_corpora_where_fused_values_do_not() -> None:
    right = small_store(texts("retry failed calls with backoff", "queue", "lock"), vectors=False)
    wrong = small_store(texts("failed tulips", "violin", "chess"), vectors=False)
    found, missed = state_of(right, QUESTION), state_of(wrong, QUESTION)
    assert missed.hits[0].value >= found.hits[0].value  # alone in its list, the miss looks no worse
    assert sure(right, QUESTION).value > 4 * sure(wrong, QUESTION).value
    assert sure(wrong, QUESTION).nothing_found
    assert not sure(right, QUESTION).nothing_found


def test_exact_name_is_never_nothing() -> None:
    like = replace(PLAIN, symbol_name="fetch_rates", qualified_name="api.fetch_rates")
    at = small_store([document("a.py", "def fetch_rates", like=like), *texts()], vectors=False)
    rest = "zebra quagga okapi gnu eland kudu oryx impala"
    state = state_of(at, f"`fetch_rates` {rest}")
    assert state.confidence is not None
    assert not state.confidence.nothing_found
    assert state.confidence.value == state.confidence.of_hits[state.hits[0].chunk.id] == NAMED
    assert sure(at, f"heartbeat {rest}").nothing_found


def test_model_that_was_not_fitted_is_judged_by_words() -> None:
    at = small_store()
    state = state_of(at, QUESTION)
    assert judged(state, at.reader, "some-other-model") == judged(state, at.reader, None)


def test_chunk_without_a_vector_is_judged_by_words() -> None:
    at = small_store(vectors=False)
    assert sure(at, QUESTION, FITS[0][0]) == sure(at, QUESTION, None)


def test_every_shown_hit_has_a_chance_under_the_id_it_is_shown_by() -> None:
    at = small_store()
    state = state_of(at, QUESTION, top_k=3)
    found = judged(state, at.reader, None)
    assert found is not None
    assert list(found.of_hits) == [hit.chunk.id for hit in state.hits[:3]]
    assert all(0 <= chance <= 1 for chance in found.of_hits.values())


def test_nothing_shown_is_not_judged() -> None:
    at = small_store(vectors=False)
    assert judged(state_of(at, "zebra"), at.reader, None) is None


def test_judge_changes_no_hit() -> None:
    at = small_store()
    before = replace(state_of(at, QUESTION), confidence=None)
    after = Judge(at.reader, None)(before)
    assert after.hits == before.hits
    assert after.confidence is not None


@given(st.lists(st.sampled_from(["retry", "queue", "zebra", "the", "backoff"]), min_size=1, max_size=6))
def test_chances_are_numbers_between_0_and_1(words: Sequence[str]) -> None:
    at = small_store()
    found = judged(state_of(at, " ".join(words)), at.reader, FITS[0][0])
    if found is not None:
        assert 0 <= found.value <= 1
        assert not any(np.isnan(each) for each in found.of_hits.values())
