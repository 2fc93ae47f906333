"""Fusion formulas: ranks and scores go in, and the arithmetic on paper must come out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dowse.errors import BadRequestError
from dowse.query.stages.fusion import MinMax, ReciprocalRank, ZScore, reciprocal_rank_fusion
from dowse.query.stages.sort import order, ranked

IDS = [f"c{n}" for n in range(12)]
LISTS = st.dictionaries(
    st.sampled_from(["dense", "bm25_code", "bm25_nlp", "graph"]),
    st.lists(st.sampled_from(IDS), max_size=10),
    min_size=1,
)


def filler(name: str, count: int) -> list[str]:
    return [f"{name}{n}" for n in range(count)]


class TestReciprocalRankFusion:
    def test_three_ids_in_two_lists_have_the_sum_of_their_reciprocal_ranks(self) -> None:
        fused = reciprocal_rank_fusion({"dense": ["a", "b", "c"], "bm25_nlp": ["b", "c", "a"]})
        assert [each for each, _ in fused] == ["b", "a", "c"]
        assert [score for _, score in fused] == pytest.approx(
            [1 / (60 + 2) + 1 / (60 + 1), 1 / (60 + 1) + 1 / (60 + 3), 1 / (60 + 3) + 1 / (60 + 2)]
        )

    def test_one_list_keeps_its_order(self) -> None:
        assert [each for each, _ in reciprocal_rank_fusion({"dense": ["c", "a", "b"]})] == ["c", "a", "b"]

    def test_first_of_both_lists_is_first(self) -> None:
        assert reciprocal_rank_fusion({"x": ["b", "a", "c"], "y": ["b", "c", "a"]})[0] == ("b", 1 / 61 + 1 / 61)

    def test_each_of_three_lists_contributes(self) -> None:
        fused = dict(reciprocal_rank_fusion({"x": ["a"], "y": ["b", "a"], "z": ["c", "b", "a"]}))
        assert fused["a"] == pytest.approx(1 / 61 + 1 / 62 + 1 / 63)

    def test_an_id_of_one_word_list_only_is_kept(self) -> None:
        assert ("only", 1 / 61) in reciprocal_rank_fusion({"dense": ["a"], "bm25_code": ["only"]})

    @pytest.mark.parametrize("lists", [{}, {"dense": []}, {"dense": [], "bm25_nlp": []}])
    def test_nothing_in_gives_nothing_out(self, lists: dict[str, list[str]]) -> None:
        assert reciprocal_rank_fusion(lists) == []

    @pytest.mark.parametrize(("k", "winner"), [(60, "fifth"), (10, "first_tenth")])
    def test_first_and_tenth_beats_twice_fifth_only_for_a_small_k(self, k: int, winner: str) -> None:
        """1/61 + 1/70 < 2/65, but 1/11 + 1/20 > 2/15."""
        lists = {
            "x": ["first_tenth", *filler("x", 3), "fifth", *filler("xx", 5)],
            "y": [*filler("y", 4), "fifth", *filler("yy", 4), "first_tenth"],
        }
        scores = dict(reciprocal_rank_fusion(lists, k=k))
        assert scores["first_tenth"] == pytest.approx(1 / (k + 1) + 1 / (k + 10))
        assert scores["fifth"] == pytest.approx(1 / (k + 5) + 1 / (k + 5))
        assert max(scores, key=lambda each: scores[each]) == winner

    def test_worked_example_with_alpha_and_missing_rank(self) -> None:
        """With alpha 0.7; c1 is (2, 1), c2 (4, –), c3 (1, 2), c4 (–, 3), c5 (3, 4)."""
        fused = reciprocal_rank_fusion(
            {"dense": ["c3", "c1", "c5", "c2"], "sparse": ["c1", "c3", "c4", "c5"]},
            weights={"dense": 0.7, "sparse": 0.3},
            missing_rank=1000,
        )
        assert [each for each, _ in fused] == ["c3", "c1", "c5", "c2", "c4"]
        assert dict(fused) == pytest.approx(
            {
                "c3": 0.7 / (60 + 1) + 0.3 / (60 + 2),
                "c1": 0.7 / (60 + 2) + 0.3 / (60 + 1),
                "c5": 0.7 / (60 + 3) + 0.3 / (60 + 4),
                "c2": 0.7 / (60 + 4) + 0.3 / (60 + 1000),
                "c4": 0.7 / (60 + 1000) + 0.3 / (60 + 3),
            }
        )

    def test_a_missing_id_adds_nothing_unless_missing_rank_is_given(self) -> None:
        lists = {"x": ["a"], "y": ["b"]}
        assert dict(reciprocal_rank_fusion(lists))["a"] == 1 / (60 + 1)
        with_rank = dict(reciprocal_rank_fusion(lists, missing_rank=1000))
        assert with_rank["a"] == pytest.approx(1 / (60 + 1) + 1 / (60 + 1000))

    def test_missing_rank_can_flip_a_deep_pair_and_a_lone_first(self) -> None:
        """With alpha 0.7, (16, 58) against dense rank 1 alone."""
        lists = {
            "dense": ["lone", *filler("d", 14), "pair"],
            "sparse": [*filler("s", 57), "pair"],
        }
        weights = {"dense": 0.7, "sparse": 0.3}

        def first(missing_rank: int | None) -> str:
            scores = dict(reciprocal_rank_fusion(lists, weights, missing_rank=missing_rank))
            return max(("lone", "pair"), key=lambda each: scores[each])

        assert 0.7 / 61 < 0.7 / 76 + 0.3 / 118 < 0.7 / 61 + 0.3 / 1060
        assert (first(None), first(1000)) == ("pair", "lone")

    def test_a_repeated_id_votes_once_at_its_first_place(self) -> None:
        fused = reciprocal_rank_fusion({"dense": ["a", "b", "a", "a"]})
        assert fused == [("a", 1 / (60 + 1)), ("b", 1 / (60 + 2))]

    def test_equal_scores_are_ordered_by_id(self) -> None:
        assert [each for each, _ in reciprocal_rank_fusion({"x": ["b", "a"], "y": ["a", "b"]})] == ["a", "b"]

    @pytest.mark.parametrize(
        ("weights", "k", "missing_rank", "message"),
        [
            ({"x": 1.0}, 60, None, "give one weight to each"),
            ({"x": 1.0, "y": 1.0, "z": 1.0}, 60, None, "give one weight to each"),
            ({"x": 1.0, "y": -1.0}, 60, None, "the weight of 'y' is -1.0"),
            ({"x": 1.0, "y": math.nan}, 60, None, "the weight of 'y' is nan"),
            (None, -1, None, "k is -1"),
            (None, 60, 0, "missing_rank is 0"),
        ],
    )
    def test_bad_settings_are_refused_by_name(
        self, weights: dict[str, float] | None, k: int, missing_rank: int | None, message: str
    ) -> None:
        with pytest.raises(BadRequestError, match=message):
            reciprocal_rank_fusion({"x": ["a"], "y": ["b"]}, weights, k, missing_rank)

    @given(LISTS, st.randoms())
    def test_the_order_of_the_lists_changes_nothing(self, lists: dict[str, list[str]], random: object) -> None:
        names = list(lists)
        random.shuffle(names)  # type: ignore[attr-defined]
        assert reciprocal_rank_fusion({name: lists[name] for name in names}) == reciprocal_rank_fusion(lists)

    @given(LISTS, st.lists(st.sampled_from(IDS), max_size=10), st.none() | st.just(1000))
    def test_a_weight_of_zero_removes_a_list(
        self, lists: dict[str, list[str]], extra: list[str], missing_rank: int | None
    ) -> None:
        weights = dict.fromkeys(lists, 1.0)
        without = reciprocal_rank_fusion(lists, weights, missing_rank=missing_rank)
        with_zero = reciprocal_rank_fusion(
            {**lists, "extra": extra}, {**weights, "extra": 0.0}, missing_rank=missing_rank
        )
        assert with_zero == without

    @given(LISTS, st.sampled_from(IDS), st.data())
    def test_one_more_hit_never_lowers_an_id(self, lists: dict[str, list[str]], each: str, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(lists)))
        more = {**lists, name: [*lists[name], each]}
        before, after = ([one for one, _ in reciprocal_rank_fusion(of)] for of in (lists, more))
        assert after.index(each) <= (before.index(each) if each in before else len(before))

    @given(LISTS)
    def test_scores_fall_and_stay_within_the_attainable(self, lists: dict[str, list[str]]) -> None:
        scores = [score for _, score in reciprocal_rank_fusion(lists)]
        assert scores == sorted(scores, reverse=True)
        assert all(0 < score <= len(lists) / 61 + 1e-12 for score in scores)


def table(*rows: list[float]) -> np.ndarray:
    return np.array(rows, np.float64)


def no_ranks(scores: np.ndarray) -> np.ndarray:
    return np.zeros(scores.shape, np.int64)


class TestZScore:
    def test_z_is_taken_with_the_population_deviation_and_raised_with_its_sign(self) -> None:
        scores = table([1.0, 2.0, 6.0])  # mean 3, deviations −2 −1 3
        deviation = math.sqrt((4 + 1 + 9) / 3)
        parts = ZScore(1.5).parts(scores, no_ranks(scores), np.array([1.0]))
        expected = [-((2 / deviation) ** 1.5), -((1 / deviation) ** 1.5), (3 / deviation) ** 1.5]
        assert parts[0] == pytest.approx(expected)

    def test_weights_are_shares_of_one(self) -> None:
        scores = table([0.0, 2.0], [0.0, 4.0], [2.0, 0.0])  # z is −1 and 1, 1 and −1 in the last
        weights = np.array([1.3, 0.35, 0.35])
        parts = ZScore(1.5).parts(scores, no_ranks(scores), weights)
        assert parts[:, 1] == pytest.approx([0.65 * 1, 0.175 * 1, 0.175 * -1])

    def test_a_flat_leg_drops_out(self) -> None:
        scores = table([0.3, 0.3 + 1e-7], [0.0, 0.0], [1.0, 3.0])
        parts = ZScore(1.5).parts(scores, no_ranks(scores), np.array([0.65, 0.175, 0.175]))
        assert parts.tolist() == [[0, 0], [0, 0], [pytest.approx(-0.175), pytest.approx(0.175)]]

    def test_a_chunk_without_a_vector_is_neutral_and_does_not_move_the_mean(self) -> None:
        scores = table([0.2, math.nan, 0.6])
        parts = ZScore(1.5).parts(scores, no_ranks(scores), np.array([1.0]))
        assert parts[0] == pytest.approx([-1, 0, 1])

    def test_a_sum_is_mapped_by_the_logistic_function(self) -> None:
        unit = ZScore().unit(np.array([0.0, 1.0, -1.0]), np.array([1.0]))
        assert unit == pytest.approx([1 / 2, 1 / (1 + math.exp(-1)), 1 / (1 + math.e)])

    def test_extreme_sums_stay_in_range_without_a_warning(self) -> None:
        assert ZScore().unit(np.array([1e6, -1e6]), np.array([1.0])) == pytest.approx([1, 0])


class TestMinMax:
    def test_the_best_of_a_leg_has_one_and_the_worst_zero(self) -> None:
        scores = table([2.0, 4.0, 3.0], [0.0, 0.0, 5.0])
        parts = MinMax().parts(scores, no_ranks(scores), np.array([3.0, 1.0]))
        assert parts == pytest.approx(table([0, 0.75 * 1, 0.75 * 0.5], [0, 0, 0.25 * 1]))

    def test_a_flat_leg_and_a_missing_vector_add_nothing(self) -> None:
        scores = table([7.0, 7.0, 7.0], [math.nan, 0.1, 0.5], [math.nan] * 3)
        parts = MinMax().parts(scores, no_ranks(scores), np.array([0.5, 0.25, 0.25]))
        assert parts.tolist() == [[0, 0, 0], [0, 0, 0.25], [0, 0, 0]]


class TestReciprocalRank:
    def test_parts_are_weight_over_constant_plus_rank(self) -> None:
        ranks = np.array([[1, 2, 0], [3, 0, 1]])
        weights = np.array([0.7, 0.3])
        parts = ReciprocalRank().parts(np.zeros((2, 3)), ranks, weights)
        assert parts == pytest.approx(table([0.7 / 61, 0.7 / 62, 0], [0.3 / 63, 0, 0.3 / 61]))

    def test_missing_rank_stands_in_for_an_absent_chunk(self) -> None:
        parts = ReciprocalRank(60, 1000).parts(np.zeros((1, 2)), np.array([[1, 0]]), np.array([2.0]))
        assert parts == pytest.approx(table([2 / (60 + 1), 2 / (60 + 1000)]))

    def test_first_of_every_list_maps_to_one(self) -> None:
        """·(k + 1)/Σw."""
        weights = np.array([1.0, 0.5, 0.5])
        raw = np.array([2 / (10 + 1), 1 / (10 + 4)])
        assert ReciprocalRank(10).unit(raw, weights) == pytest.approx([1, 1 / 14 * (10 + 1) / 2])

    @given(LISTS)
    def test_it_agrees_with_the_plain_function(self, lists: dict[str, list[str]]) -> None:
        ids = sorted({each for of in lists.values() for each in of})
        firsts = [list(dict.fromkeys(of)) for of in lists.values()]
        ranks = np.array([[of.index(each) + 1 if each in of else 0 for each in ids] for of in firsts])
        parts = ReciprocalRank().parts(np.zeros(ranks.shape), ranks, np.ones(len(lists)))
        expected = dict(reciprocal_rank_fusion(lists))
        assert dict(zip(ids, parts.sum(axis=0), strict=True)) == pytest.approx(expected)


SCORES = st.lists(st.lists(st.floats(-1e6, 1e6) | st.just(math.nan), min_size=4, max_size=4), min_size=1, max_size=3)


@pytest.mark.parametrize("method", [ZScore(), MinMax(), ReciprocalRank(), ReciprocalRank(60, 1000)])
@given(SCORES, st.data())
def test_every_method_maps_anything_into_the_unit_interval(
    method: ZScore | MinMax | ReciprocalRank, rows: list[list[float]], data: st.DataObject
) -> None:
    scores = table(*rows)
    ranks = np.array([data.draw(st.permutations([0, 1, 2, 3])) for _ in rows])
    weights = np.array(data.draw(st.lists(st.floats(0.01, 10), min_size=len(rows), max_size=len(rows))))
    parts = method.parts(scores, ranks, weights)
    raw = parts.sum(axis=0)
    unit = method.unit(raw, weights)
    assert not np.isnan(parts).any()
    assert ((unit >= 0) & (unit <= 1)).all()
    best_first = unit[order(raw, np.arange(4, dtype=np.uint64))]
    assert (np.diff(best_first) <= 0).all()


def test_order_is_value_down_then_id() -> None:
    assert order(np.array([1.0, 2.0, 1.0, 2.0]), np.array([4, 9, 3, 8], np.uint64)).tolist() == [3, 1, 2, 0]


def test_nan_is_refused_by_both_forms_of_the_sort() -> None:
    with pytest.raises(ValueError, match="NaN"):
        order(np.array([1.0, math.nan]), np.array([1, 2], np.uint64))
    with pytest.raises(ValueError, match="NaN"):
        ranked([("a", math.nan)])
