"""Metrics are plain arithmetic, and agree with ir-measures where that is installed."""

from __future__ import annotations

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dowse.evaluate.metrics import (
    METRICS,
    average_precision,
    ndcg,
    precision,
    recall,
    reciprocal_rank,
    scored,
)

GRADES = {"a": 2.0, "b": 1.0, "c": 0.0}
LETTERS = st.permutations(list("abcdefghijklmno"))
GRADED = st.dictionaries(st.sampled_from("abcdefghijklmnop"), st.sampled_from([0.0, 1.0, 2.0, 3.0]), max_size=10)


def test_ndcg_discounts_linear_gain_by_the_logarithm_of_the_rank() -> None:
    ideal = 2 / log2(1 + 1) + 1 / log2(2 + 1)
    assert ndcg(["x", "a", "b"], GRADES, 10) == pytest.approx((2 / log2(2 + 1) + 1 / log2(3 + 1)) / ideal)


def test_ndcg_looks_no_further_than_k() -> None:
    ideal = 2 / log2(1 + 1)
    assert ndcg(["b", "a"], GRADES, 1) == pytest.approx(1 / log2(1 + 1) / ideal)


def test_ndcg_takes_a_grade_below_zero_for_zero() -> None:
    assert ndcg(["bad", "a"], {"a": 1.0, "bad": -2.0}, 10) == pytest.approx((1 / log2(2 + 1)) / (1 / log2(1 + 1)))


def test_reciprocal_rank_is_that_of_the_first_right_hit() -> None:
    assert reciprocal_rank(["c", "x", "b", "a"], GRADES, 10) == 1 / 3


def test_reciprocal_rank_is_nothing_below_k() -> None:
    assert reciprocal_rank(["x"] * 10 + ["a"], GRADES, 10) == 0


def test_average_precision_divides_by_all_that_is_right() -> None:
    grades = {"a": 1.0, "b": 1.0, "missed": 1.0}
    assert average_precision(["a", "x", "b"], grades, 100) == pytest.approx((1 / 1 + 2 / 3) / 3)


def test_recall_is_the_share_of_the_right_that_was_found() -> None:
    assert recall(["b", "x"], GRADES, 10) == 1 / 2


def test_precision_counts_empty_places_as_wrong() -> None:
    assert precision(["a", "b"], GRADES, 10) == 2 / 10


def test_nothing_right_scores_nothing() -> None:
    assert set(scored(["a"], {"a": 0.0}).values()) == {0.0}


def test_nothing_found_scores_nothing() -> None:
    assert set(scored([], GRADES).values()) == {0.0}


@given(LETTERS, GRADED)
def test_every_metric_lies_between_zero_and_one(ranking: list[str], grades: dict[str, float]) -> None:
    assert all(0 <= value <= 1 + 1e-12 for value in scored(ranking, grades).values())


@given(GRADED.filter(lambda grades: any(grade > 0 for grade in grades.values())))
def test_the_ideal_order_scores_one(grades: dict[str, float]) -> None:
    best = sorted(grades, key=lambda each: -grades[each])
    assert ndcg(best, grades, 10) == pytest.approx(1)


@given(LETTERS, GRADED)
def test_moving_a_right_hit_up_never_lowers_ndcg(ranking: list[str], grades: dict[str, float]) -> None:
    for at in range(1, 10):
        if grades.get(ranking[at], 0) >= grades.get(ranking[at - 1], 0):
            swapped = [*ranking[: at - 1], ranking[at], ranking[at - 1], *ranking[at + 1 :]]
            assert ndcg(swapped, grades, 10) >= ndcg(ranking, grades, 10) - 1e-12


@given(LETTERS, GRADED.filter(lambda grades: any(grade > 0 for grade in grades.values())))
def test_metrics_agree_with_ir_measures(ranking: list[str], grades: dict[str, float]) -> None:
    measures = pytest.importorskip("ir_measures")
    theirs = {
        measures.nDCG @ 10: "ndcg@10",
        measures.RR @ 10: "mrr@10",
        measures.AP @ 100: "map",
        measures.R @ 10: "recall@10",
        measures.R @ 100: "recall@100",
        measures.P @ 1: "p@1",
    }
    qrels = {"q": {document: int(grade) for document, grade in grades.items()}}
    run = {"q": {document: float(len(ranking) - place) for place, document in enumerate(ranking)}}
    found = measures.calc_aggregate(list(theirs), qrels, run)
    ours = scored(ranking, grades)
    assert set(theirs.values()) == set(METRICS)
    assert {theirs[each]: value for each, value in found.items()} == pytest.approx(ours, abs=1e-4)
