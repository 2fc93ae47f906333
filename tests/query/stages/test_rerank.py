"""Rerankers and their stage: candidates and hits go in; who comes first, with which number and why, is checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.reranker import RerankerContract, candidate
from dowse.errors import ModelUnavailableError
from dowse.ports import Candidate, Reranker
from dowse.query.stages.rerank import Rerank, ScoreReranker, blended, reranked
from dowse.query.stages.rerank_heuristic import Additive, HeuristicReranker, name_of
from dowse.query.stages.state import Hit, Query, QueryState
from dowse.types import Chunk, Degradation
from values import replace

BODY = "keeps entities in a table and finds them again by name or by words"  # no stub
assert len(BODY) >= 50


def named(name: str, value: float = 0.5, at: int = 0, text: str = BODY, **fields: Any) -> Candidate:
    return candidate(text, value, at, symbol_name=name, **fields)


def boost(query: str, each: Candidate, reranker: HeuristicReranker | None = None) -> float:
    """What the additive formula adds."""
    reranker = reranker or HeuristicReranker()
    return reranker.formula(each.value, reranker.facts(query, [each.chunk])[0]) - each.value


class TestHeuristic(RerankerContract):
    @pytest.fixture
    def reranker(self) -> Reranker:
        return HeuristicReranker()


class TestScore(RerankerContract):
    @pytest.fixture
    def reranker(self) -> Reranker:
        return ScoreReranker()


# The heuristic, row by row.


@pytest.mark.parametrize(
    ("query", "each", "expected"),
    [
        ("EntityStore", named("EntityStore"), 2.0 + 2 * 0.5),  # exact, and both its terms
        ("entitystore", named("EntityStore"), 2.0 + 0.5),  # case does not matter; it is one term, and the whole name
        ("entity cache", named("EntityStore"), 0.5),  # one of two terms
        ("entity store cache", named("EntityStore"), 2 * 0.5),
        ("database connection", named("Pool", summary="Opens a database connection."), 0.3 * 2 / 2),
        ("database lock", named("Pool", summary="Opens a database connection."), 0.3 * 1 / 2),
        ("anything", named("Pool", text="x" * 49), -0.3),
        ("anything", named("Pool", text="x" * 50), 0.0),
        ("anything", named("Pool", text=""), -0.3),  # an empty one is a stub, too
        ("anything", named("Pool", connection_count=6), 0.2),
        ("anything", named("Pool", connection_count=5), 0.0),
        ("store", named("StoreStub", text="pass"), -0.3),  # a stub gains nothing from its name …
        ("StoreStub", named("StoreStub", text="pass"), 2.0 + 2 * 0.5 - 0.3),  # … unless it is the one asked for
        ("how is it", named("HowIsIt"), 0.0),  # no terms, no division by zero
        ("set the value", named("asset"), 0.0),  # "set" is not in "asset"
        ("where is search?", named("search"), 0.5),  # punctuation is no part of a term
        ("  EntityStore \n", named("EntityStore"), 2.0 + 2 * 0.5),  # stripped before the exact test
        ("where is `EntityStore.search` used", named("search", qualified_name="EntityStore.search"), 2.0 + 0.5),
        ("what calls open_index()", named("open_index"), 2.0 + 2 * 0.5),
        ("retries payments", named("retry_payment"), 2 * 0.5),  # inflections meet in their stems
    ],
)
def test_heuristic_boost_is_the_sum_of_its_rows(query: str, each: Candidate, expected: float) -> None:
    assert boost(query, each) == pytest.approx(expected)


def test_a_heading_is_the_name_of_prose() -> None:
    chunk = Chunk("0" * 16, "d", BODY, "DOC_RUNBOOK", "a.md", section_path="## Deploy > ## Rollback")
    assert name_of(chunk) == "Rollback"
    assert boost("rollback", Candidate(chunk, 0.5)) == pytest.approx(2.0 + 0.5)


def test_values_are_divided_by_the_largest_when_it_is_above_one() -> None:
    given_ = [named("EntityStore", 0.4, 0), named("other", 0.9, 1)]
    top = 0.4 + 2.0 + 2 * 0.5
    assert HeuristicReranker().score("EntityStore", given_) == pytest.approx([1.0, 0.9 / top])


def test_values_below_one_stay_as_they_are() -> None:
    assert HeuristicReranker().score("zzz", [named("a", 0.4), named("b", 0.2, 1)]) == pytest.approx([0.4, 0.2])


WORDS = st.sampled_from(["entity", "store", "search", "index", "query", "open", "close", "read"])


@given(
    name=st.lists(WORDS, min_size=1, max_size=3, unique=True),
    others=st.lists(st.tuples(st.lists(WORDS, min_size=1, max_size=6), st.floats(0, 1), st.booleans()), max_size=8),
    value=st.floats(0, 1),
    stub=st.booleans(),
    extra=st.lists(WORDS, max_size=6),
)
def test_an_exact_name_is_always_first(
    name: list[str], others: list[Any], value: float, stub: bool, extra: list[str]
) -> None:
    """For both formulas, however many of the question's terms the others bear in theirs."""
    wanted = "_".join(name)
    query = f"`{wanted}` {' '.join(extra)}"
    rivals = [
        named("_".join([*words, "x"]), own, at, connection_count=9 * busy, summary=" ".join(words))
        for at, (words, own, busy) in enumerate(others, start=1)
    ]
    exact = named(wanted, value, 0, text="pass" if stub else BODY)
    ranked = HeuristicReranker().rerank(query, [*rivals, exact])
    assert ranked[0].chunk.symbol_name == wanted


def test_exact_name_is_first_among_fused_scores() -> None:
    rows = [named("types", 0.9, 0), named("AppContext", 0.8, 1), named("EntityStore", 0.1, 2)]
    assert HeuristicReranker().rerank("EntityStore", rows)[0].chunk.symbol_name == "EntityStore"


def test_reasons_name_the_parts() -> None:
    judgement = HeuristicReranker(Additive()).judge("EntityStore", [named("EntityStore")])[0]
    assert judgement.why() == "+2 exact name, +1 2 of 2 terms in the name"


# The score reranker.


def test_score_reranker_drops_sorts_and_trims() -> None:
    """On [0, 1] a minimum of 0.1 keeps good hits; on raw RRF it drops all."""
    rows = [named("a", 0.05, 0), named("b", 0.4, 1), named("c", 0.9, 2)]
    assert [each.value for each in ScoreReranker(0.1).rerank("q", rows)] == [0.9, 0.4]
    assert [each.value for each in ScoreReranker(0.1).rerank("q", rows, top_k=1)] == [0.9]


# The stage.


@dataclass(frozen=True)
class Judge:
    """Says what it is told to say, by text."""

    says: tuple[tuple[str, float | None], ...]
    model: str = "judge"

    def score(
        self, query: str, candidates: Sequence[Candidate], *, timeout_s: float | None = None
    ) -> Sequence[float | None]:
        return [dict(self.says)[each.chunk.text] for each in candidates]


def hits(**values: float) -> tuple[Hit, ...]:
    return tuple(
        Hit(Chunk(f"{at:016x}", "d", text, "DOC_PAGE", "a"), value, at)
        for at, (text, value) in enumerate(values.items())
    )


def order(state: QueryState) -> list[str]:
    return [hit.chunk.text for hit in state.hits]


def reranking(says: dict[str, float | None], state: QueryState, **knobs: Any) -> QueryState:
    return Rerank(Judge(tuple(says.items())), "judge", **knobs)(state)


def state_of(*given_: Hit) -> QueryState:
    return QueryState(Query("q", 10), hits=given_)


def test_blend_is_seven_tenths_of_the_reranker() -> None:
    """8 of 1–10 and 0.015 give 0.549; 10 and 0.5 give 0.85; weight 1 replaces."""
    assert blended((8 - 1) / 9, 0.015) == pytest.approx(0.549, abs=1e-3)
    assert blended(1.0, 0.5) == pytest.approx(0.85)
    assert blended(0.2, 0.9, weight=1.0) == 0.2


def test_stage_blends_reorders_and_keeps_all() -> None:
    after = reranking({"a": 0.1, "b": 0.9}, state_of(*hits(a=0.8, b=0.6)))
    assert [(hit.chunk.text, hit.value, hit.rerank) for hit in after.hits] == [
        ("b", pytest.approx(0.7 * 0.9 + 0.3 * 0.6), 0.9),
        ("a", pytest.approx(0.7 * 0.1 + 0.3 * 0.8), 0.1),
    ]
    assert after.hits[0].scores[-1].why == "0.7·0.90 + 0.3·0.60"
    assert (after.hits[0].scores[-1].rank, after.hits[1].scores[-1].rank) == (1, 2)


def test_what_lies_beyond_the_window_stays_behind_it() -> None:
    after = reranking({"a": 0.0, "b": 0.1}, state_of(*hits(a=0.9, b=0.8, c=0.7, d=0.6)), window=2, weight=1.0)
    assert order(after) == ["b", "a", "c", "d"]
    assert [hit.value for hit in after.hits] == [0.1, 0.0, 0.0, 0.0]
    assert after.degraded == ()


def test_time_that_ran_out_leaves_the_rest_in_their_order_behind() -> None:
    says = {"a": 0.2, "b": 0.9, "c": None, "d": None}
    after = reranking(says, state_of(*hits(a=0.9, b=0.8, c=0.7, d=0.6)))
    assert order(after) == ["b", "a", "c", "d"]
    assert after.degraded == (Degradation("judge", "scored 2 of 4"),)


def test_a_gap_among_judgements_keeps_the_value_it_had() -> None:
    """Never another scale, never a default score."""
    after = reranking({"a": 0.5, "b": None, "c": 0.1}, state_of(*hits(a=0.9, b=0.6, c=0.5)))
    assert {hit.chunk.text: hit.value for hit in after.hits} == {
        "a": pytest.approx(0.7 * 0.5 + 0.3 * 0.9),
        "b": 0.6,
        "c": pytest.approx(0.7 * 0.1 + 0.3 * 0.5),
    }
    assert after.degraded == (Degradation("judge", "scored 2 of 3"),)


@pytest.mark.parametrize("nonsense", [math.nan, math.inf, -0.1, 1.1])
def test_nonsense_is_as_good_as_no_answer(nonsense: float) -> None:
    with pytest.raises(ModelUnavailableError, match="not between 0 and 1"):
        reranking({"a": nonsense}, state_of(*hits(a=0.5)))


def test_no_judgement_at_all_is_no_answer() -> None:
    with pytest.raises(ModelUnavailableError, match="scored none of 2 candidates in time"):
        reranking({"a": None, "b": None}, state_of(*hits(a=0.5, b=0.4)))


def test_a_wrong_number_of_scores_is_no_answer() -> None:
    @dataclass(frozen=True)
    class Short(Judge):
        def score(self, query: str, candidates: Sequence[Candidate], *, timeout_s: float | None = None) -> list[float]:
            return [0.5]

    with pytest.raises(ModelUnavailableError, match="returned 1 scores for 2 candidates"):
        Rerank(Short(()), "short")(state_of(*hits(a=0.5, b=0.4)))


def test_no_hits_need_no_reranker() -> None:
    empty = state_of()
    assert reranking({}, empty) is empty


def test_a_parent_is_judged_by_the_child_that_was_found() -> None:
    """The parent may be longer than the model's window."""
    child, parent = hits(a=0.5)[0].chunk, hits(b=0.5)[0].chunk
    after = reranking({"a": 1.0}, state_of(Hit(parent, 0.5, child=child)), weight=1.0)
    assert (after.hits[0].chunk, after.hits[0].value) == (parent, 1.0)


def test_reasons_replace_the_formula_where_a_reranker_has_them() -> None:
    each = named("EntityStore")
    state = replace(state_of(Hit(each.chunk, 0.5)), query=Query("EntityStore", 10))
    after = Rerank(HeuristicReranker(), "heuristic", weight=1.0)(state)
    assert after.hits[0].scores[-1].why.startswith("+2 exact name")


@given(
    st.lists(st.tuples(st.floats(0, 1), st.none() | st.floats(0, 1)), min_size=1, max_size=12).filter(
        lambda rows: any(score is not None for _, score in rows)
    ),
    st.floats(0, 1),
    st.integers(1, 15),
)
def test_reranking_keeps_the_set_sorted_and_in_range(
    rows: list[tuple[float, float | None]], weight: float, window: int
) -> None:
    """Style rule 27, and requirements 9: sorted by value, in [0,1], the input unchanged."""
    rows.sort(key=lambda row: -row[0])
    before = state_of(*hits(**{f"t{at}": value for at, (value, _) in enumerate(rows)}))
    says = {f"t{at}": score for at, (_, score) in enumerate(rows)}
    if all(score is None for _, score in rows[:window]):
        return
    after = reranking(says, before, weight=weight, window=window)
    assert sorted(order(after)) == sorted(order(before))
    values = [hit.value for hit in after.hits]
    assert values == sorted(values, reverse=True)
    assert all(0 <= value <= 1 for value in values)


def test_reranked_sorts_trims_and_puts_the_unjudged_last() -> None:
    rows = [candidate("a", 0.9, 0), candidate("b", 0.8, 1), candidate("c", 0.7, 2)]
    judge = Judge((("a", 0.2), ("b", None), ("c", 0.6)))
    scores = judge.score("q", rows)
    assert [(each.text, each.original_score, each.reranked_score) for each in reranked(rows, scores)] == [
        ("c", 0.7, 0.6),
        ("a", 0.9, 0.2),
        ("b", 0.8, 0.2),
    ]
    assert len(reranked(rows, scores, top_k=2)) == 2
