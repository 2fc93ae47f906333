"""Requests at the border, profiles and weights: bad ones name what to change, good ones settle into knobs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dowse.errors import BadRequestError
from dowse.filters import In
from dowse.query.plan.profiles import Profile, named
from dowse.query.plan.validate import validated
from dowse.query.stages.leg_weights import Alpha, ByLeg
from dowse.types import LEGS, Leg, QueryRequest

DEFAULT = named("default")
EVEN: tuple[tuple[Leg, float], ...] = (("dense", 1.0), ("bm25_code", 1.0), ("bm25_nlp", 1.0))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"text": ""}, "the query is blank"),
        ({"text": " \t\n "}, "the query is blank"),
        ({"top_k": 0}, "top_k is 0; give a number between 1 and 10,000"),
        ({"top_k": -3}, "top_k is -3"),
        ({"top_k": 10_001}, "top_k is 10001"),
        ({"top_k": 2.5}, "top_k is 2.5; give a whole number"),
        ({"top_k": True}, "top_k is True; give a whole number"),
        ({"depth": 0}, "depth is 0"),
        ({"k": -1}, "k is -1; give a number at least 0"),
        ({"missing_rank": 0}, "missing_rank is 0"),
        ({"alpha": 1.1}, "alpha is 1.1"),
        ({"alpha": -0.1}, "alpha is -0.1"),
        ({"alpha": math.nan}, "alpha is nan"),
        ({"alpha": 0.5, "weights": EVEN}, "both alpha and weights"),
        ({"weights": (("dense", -1.0), *EVEN[1:])}, "the weight of dense is -1.0"),
        ({"weights": (("dense", math.nan), *EVEN[1:])}, "the weight of dense is nan"),
        ({"weights": (("dense", math.inf), *EVEN[1:])}, "the weight of dense is inf"),
        ({"weights": (("graph", 1.0), *EVEN)}, "unknown leg 'graph'"),
        ({"weights": (("dense", 2.0), *EVEN)}, "leg dense has more than one weight"),
        ({"weights": EVEN[:1]}, "no weight is given for bm25_code, bm25_nlp"),
        ({"weights": tuple((leg, 0.0) for leg in LEGS)}, "every weight is 0"),
        ({"weights": (*EVEN[:1], ("bm25_code", 0.0)), "legs": ("bm25_code",)}, "every weight is 0"),
        ({"fusion": "borda"}, "unknown fusion 'borda'; choose from z, rrf, minmax"),
        ({"legs": ()}, "no leg is chosen; choose one or more of dense, bm25_code, bm25_nlp"),
        ({"legs": ("sparse",)}, "unknown leg 'sparse'"),
        ({"legs": ("dense", "dense")}, "named twice"),
        ({"deadline_s": 0.0}, "deadline_s is 0.0; give a number of seconds"),
        ({"deadline_s": -1.0}, "deadline_s is -1.0"),
        ({"deadline_s": math.nan}, "deadline_s is nan"),
        ({"corpus_filter": ("NOVEL",)}, "unknown corpus 'NOVEL'"),
        ({"rerank": "magic"}, "unknown reranker 'magic'; choose from none, heuristic, score, cross-encoder, llm"),
        ({"rerank": "heuristic, magic"}, "unknown reranker 'magic'"),
        ({"rerank": "llm,llm"}, "a reranker is named twice"),
        ({"rerank_weight": 1.5}, "rerank_weight is 1.5; give a number between 0 and 1"),
        ({"freshness_weight": -0.1}, "freshness_weight is -0.1"),
        ({"freshness_weight": math.nan}, "freshness_weight is nan"),
        (
            {"freshness_half_life_days": -1.0},
            "freshness_half_life_days is -1.0; give a number of days, 0 for no freshness",
        ),
        ({"freshness_half_life_days": math.inf}, "freshness_half_life_days is inf"),
        ({"min_score": 1.1}, "min_score is 1.1"),
        ({"min_similarity": -1.1}, "min_similarity is -1.1; give a cosine between -1 and 1"),
        ({"diversity": 2}, "diversity is 2"),
        ({"parents": "all"}, "unknown parent mode 'all'; choose from off, replace, attach"),
        ({"query_type": "poetic"}, "unknown query type 'poetic'; choose from factual"),
        ({"graph_hops": 3}, "graph_hops is 3; give a number between 1 and 2"),
        ({"graph_hops": 0}, "graph_hops is 0"),
        ({"graph_slots": -1}, "graph_slots is -1"),
        ({"graph_slots": 4, "top_k": 3}, "graph_slots is 4, more than the 3 hits"),
        ({"graph_slots": 11}, "graph_slots is 11, more than the 10 hits"),
        ({"graph_weight": 1.1}, "graph_weight is 1.1"),
        ({"graph_min_weight": -1}, "graph_min_weight is -1"),
    ],
)
def test_a_bad_request_is_refused_with_the_reason(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRequestError, match=message):
        validated(QueryRequest(**{"text": "retry", **fields}), DEFAULT)


@pytest.mark.parametrize(
    "fields",
    [
        {"top_k": 1},
        {"top_k": 10_000},
        {"alpha": 0.0},
        {"alpha": 1},
        {"k": 0},
        {"weights": EVEN},
        {"weights": EVEN[:1], "legs": ("dense",)},
    ],
)
def test_values_at_the_edge_are_accepted(fields: dict[str, Any]) -> None:
    assert validated(QueryRequest("retry", **fields), DEFAULT) == ()


def test_all_filters_become_one() -> None:
    request = QueryRequest("retry", repo_filter=("a", "b"), language_filter=("Go",))
    assert validated(request, DEFAULT) == (In("repo_name", ("a", "b")), In("language", ("go",)))


def test_an_unknown_profile_names_the_known_ones() -> None:
    with pytest.raises(BadRequestError, match="unknown profile 'fast'; choose from default"):
        named("fast")


class TestProfile:
    def test_the_default_is_what_was_measured(self) -> None:
        default = named("default")
        assert (default.top_k, default.fusion, default.alpha, default.exponent) == (10, "z", 0.7, 2.0)
        assert (default.hubness, default.smoothing) == (0.15, 0.3)

    @pytest.mark.parametrize(("top_k", "depth"), [(None, 100), (1, 100), (33, 100), (40, 3 * 40)])
    def test_the_pool_is_three_times_top_k_and_at_least_the_depth(self, top_k: int | None, depth: int) -> None:
        assert named("default").adjusted(QueryRequest("q", top_k=top_k)).depth == depth

    def test_the_pool_is_never_below_twenty(self) -> None:
        assert Profile("shallow", depth=5).adjusted(QueryRequest("q", top_k=2)).depth == 20

    @pytest.mark.parametrize(("top_k", "window"), [(10, 50), (80, 80)])
    def test_the_window_is_fifty_or_top_k(self, top_k: int, window: int) -> None:
        assert named("default").adjusted(QueryRequest("q", top_k=top_k)).window == window

    def test_a_value_of_the_request_wins_even_when_it_is_zero(self) -> None:
        request = QueryRequest("q", top_k=3, fusion="rrf", alpha=0.0, k=0, missing_rank=9, depth=7)
        profile = named("default").adjusted(request)
        chosen = (profile.top_k, profile.fusion, profile.alpha, profile.rank_constant, profile.missing_rank)
        assert (*chosen, profile.depth) == (3, "rrf", 0.0, 0, 9, 7)

    def test_alpha_of_the_request_replaces_weights_of_the_profile(self) -> None:
        literal = Profile("literal", weights=EVEN)
        assert literal.adjusted(QueryRequest("q")).weights == EVEN
        assert literal.adjusted(QueryRequest("q", alpha=0.2)).weights is None

    @given(st.integers(1, 10_000), st.none() | st.integers(1, 100))
    def test_adjusting_twice_changes_nothing(self, top_k: int, depth: int | None) -> None:
        request = QueryRequest("q", top_k=top_k, depth=depth)
        once = named("default").adjusted(request)
        assert once.adjusted(request) == once


ALL_FOUND = {"dense": 9, "bm25_code": 9, "bm25_nlp": 9}


class TestAlpha:
    @pytest.mark.parametrize(
        ("alpha", "found", "expected"),
        [
            (0.65, ALL_FOUND, {"dense": 0.65, "bm25_code": 0.35 / 2, "bm25_nlp": 0.35 / 2}),
            (0.65, {**ALL_FOUND, "bm25_code": 0}, {"dense": 0.65, "bm25_code": 0, "bm25_nlp": 0.35}),
            (0.65, {"dense": 9, "bm25_code": 9}, {"dense": 0.65, "bm25_code": 0.35}),
            (0.65, {"bm25_code": 9, "bm25_nlp": 9}, {"bm25_code": 1 / 2, "bm25_nlp": 1 / 2}),
            (0.65, {"dense": 9}, {"dense": 1}),
            (0.65, {**ALL_FOUND, "dense": 0}, {"dense": 0, "bm25_code": 1 / 2, "bm25_nlp": 1 / 2}),
            (0.65, {"dense": 9, "bm25_code": 0, "bm25_nlp": 0}, {"dense": 1, "bm25_code": 0, "bm25_nlp": 0}),
            (1.0, ALL_FOUND, {"dense": 1, "bm25_code": 0, "bm25_nlp": 0}),
            (0.0, ALL_FOUND, {"dense": 0, "bm25_code": 1 / 2, "bm25_nlp": 1 / 2}),
        ],
    )
    def test_weights_by_what_was_found(self, alpha: float, found: dict[Leg, int], expected: dict[Leg, float]) -> None:
        assert Alpha(alpha).by_leg(found) == pytest.approx(expected)

    def test_a_pure_channel_that_is_down_leaves_its_weight_to_the_other(self) -> None:
        assert Alpha(1.0).by_leg({"bm25_nlp": 3}) == {"bm25_nlp": 1}
        assert Alpha(0.0).by_leg({"dense": 3}) == {"dense": 1}

    def test_a_pure_channel_that_found_nothing_keeps_its_weight(self) -> None:
        words_only = Alpha(0.0).by_leg({"dense": 9, "bm25_code": 0, "bm25_nlp": 0})
        assert words_only == {"dense": 0, "bm25_code": 1 / 2, "bm25_nlp": 1 / 2}

    def test_while_vectors_are_made_the_dense_leg_speaks_for_what_has_one(self) -> None:
        found: dict[Leg, int] = {"dense": 9, "bm25_code": 9, "bm25_nlp": 9}
        half = Alpha(0.65, coverage=0.5).by_leg(found)
        assert half["dense"] == pytest.approx(0.5 * 0.65 / (0.5 * 0.65 + 0.35))
        assert sum(half.values()) == pytest.approx(1)
        assert Alpha(0.65, coverage=0.001).by_leg(found)["dense"] < 0.01
        assert Alpha(1.0, coverage=0.5).by_leg(found)["dense"] == 1

    @given(
        st.floats(0, 1),
        st.dictionaries(st.sampled_from(LEGS), st.integers(0, 3), min_size=1),
    )
    def test_weights_of_the_legs_that_answered_add_up_to_one(self, alpha: float, found: Mapping[Leg, int]) -> None:
        settled = Alpha(alpha).by_leg(found)
        assert set(settled) == set(found)
        assert all(weight >= 0 for weight in settled.values())
        assert math.fsum(settled.values()) == pytest.approx(1)


class TestByLeg:
    def test_weights_are_kept_as_given(self) -> None:
        weights = ByLeg((("dense", 2.0), ("bm25_code", 1.0), ("bm25_nlp", 0.0)))
        assert weights.by_leg({"dense": 1, "bm25_code": 0, "bm25_nlp": 1}) == dict(weights.weights)

    def test_legs_of_weight_zero_step_in_when_all_others_are_down(self) -> None:
        weights = ByLeg((("dense", 1.0), ("bm25_code", 0.0), ("bm25_nlp", 0.0)))
        assert weights.by_leg({"bm25_code": 1, "bm25_nlp": 1}) == {"bm25_code": 1, "bm25_nlp": 1}
