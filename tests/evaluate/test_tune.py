"""Advice is given only for a gain that holds where it was not chosen."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

from beir_folders import GRADES, write_collection
from dowse.errors import BadRequestError
from dowse.evaluate.collection import opened
from dowse.evaluate.datasets import JudgedQuery, load
from dowse.evaluate.pools import CandidatePool, Knobs, figures, pools_of
from dowse.evaluate.run import DEFAULT, QueryRunner
from dowse.evaluate.tune import (
    ALPHAS,
    BS,
    K1S,
    Candidates,
    Tuned,
    advice_lines,
    advice_object,
    advise,
    advise_stages,
    checked_name,
    choice_object,
    constants,
    grid,
    profile_text,
    save_profile,
    scaled,
    stage_settings,
)
from dowse.models.embed_hash import HashEmbedder
from dowse.ports import STANDARD, Bm25
from dowse.query.plan.profiles import named
from dowse.query.stages.leg_weights import Alpha, ByLeg
from dowse.query.user_profiles import with_own
from values import replace

PRODUCT = Knobs.of(named("default"))


def pools(name: str, count: int, *, dense_right: bool) -> list[CandidatePool]:
    """Questions of two candidates; dense likes the first, words the second; the right one is as told."""
    return [
        CandidatePool(
            JudgedQuery(f"{name}{number}", "words"),
            ("dense", "bm25_code", "bm25_nlp"),
            np.array([1, 2], np.uint64),
            ("a", "b"),
            np.array([[0.9, 0.1], [1.0, 5.0], [1.0, 5.0]]),
            np.array([[1, 2], [2, 1], [2, 1]]),
            {"a" if dense_right else "b": 1.0},
        )
        for number in range(count)
    ]


def whatever_constants(found: list[CandidatePool]) -> Candidates:
    return dict.fromkeys(constants(STANDARD), found)


def test_a_pool_gives_the_figure_of_the_product(tmp_path: Path) -> None:
    dataset = load(write_collection(tmp_path / "garden"))
    with opened(dataset, tmp_path / "cache", HashEmbedder()) as found:
        runner = QueryRunner(found)
        asked = runner.run(DEFAULT).figures()
        tried = figures(pools_of(runner, "default"), PRODUCT)
    assert len(tried) == len(GRADES)
    assert tried == pytest.approx(asked)


def test_a_pool_with_other_constants_gives_the_figure_of_a_profile_that_has_them(tmp_path: Path) -> None:
    documents = {
        "long": ("", "lettuce " + "and many other things grow in the beds " * 30),
        "short": ("", "cabbage lettuce"),
        "often": ("", "lettuce lettuce lettuce lettuce and many other things grow here"),
    }
    questions, grades = {"q": "lettuce"}, {"q": {"often": 1.0}}
    dataset = load(write_collection(tmp_path / "garden", documents, questions, grades))
    flat = Bm25(k1=0.0, b=0.0)  # how often and in how long a text: all the same
    with opened(dataset, tmp_path / "cache", None) as found:
        runner = QueryRunner(found)
        for bm25 in (STANDARD, flat):
            way = replace(DEFAULT, knobs=(("k1", bm25.k1), ("b", bm25.b)))
            tried = figures(pools_of(runner, "default", bm25), replace(PRODUCT, bm25=bm25))
            assert tried == pytest.approx(runner.run(way).figures())
        (plain,), (alike,) = (pools_of(runner, "default", bm25) for bm25 in (STANDARD, flat))
    assert len(set(alike.scores[-1].tolist())) == 1 < len(set(plain.scores[-1].tolist()))


def test_constants_of_bm25_are_tried_with_every_weight_of_the_dense_leg() -> None:
    tried = grid(PRODUCT, dense=True)
    assert len(constants(STANDARD)) == len(K1S) * len(BS)
    assert constants(STANDARD)[0] == STANDARD
    turned = [knobs for knobs in tried if knobs.bm25 != STANDARD]
    assert len(turned) == len(set(turned)) == (len(K1S) * len(BS) - 1) * len(ALPHAS)
    assert {replace(knobs, alpha=PRODUCT.alpha, bm25=STANDARD) for knobs in turned} == {PRODUCT}


def test_constants_that_help_are_advised_and_written() -> None:
    better = Bm25(1.8, 0.5)
    candidates = {
        name: {**whatever_constants(pools(name, 20, dense_right=False)), better: pools(name, 20, dense_right=True)}
        for name in ("one", "two")
    }
    tried = [PRODUCT, replace(PRODUCT, bm25=better)]
    advice = advise(candidates, tried)
    assert advice.chosen.bm25 == better
    assert any("k1 1.8, b 0.5" in line for line in advice_lines(advice))
    assert choice_object(advice.chosen).items() >= {"k1": 1.8, "b": 0.5}.items()
    profile = named("ours", with_own(tomllib.loads(profile_text("ours", Tuned(advice.chosen)))["profiles"]))
    assert (profile.k1, profile.b) == (1.8, 0.5)


def test_the_default_is_kept_when_nothing_is_better() -> None:
    advice = advise({"one": whatever_constants(pools("a", 20, dense_right=True))}, grid(PRODUCT, dense=True))
    assert advice.keep
    assert advice.default_mean == advice.best_mean == 1
    assert "keep the default: no other setting is better" in list(advice_lines(advice))


def test_a_gain_that_holds_is_advised() -> None:
    collections = {name: whatever_constants(pools(name, 20, dense_right=False)) for name in ("one", "two")}
    advice = advise(collections, grid(PRODUCT, dense=True))
    assert not advice.keep
    assert advice.chosen.alpha < 0.5
    assert advice.held_out.low > 0
    assert [fold.name for fold in advice.folds] == ["one", "two"]
    assert advice_object(advice)["keep_default"] is False


def test_what_helps_one_collection_and_harms_another_is_not_advised() -> None:
    collections = {
        "words": whatever_constants(pools("a", 30, dense_right=False)),
        "meaning": whatever_constants(pools("b", 20, dense_right=True)),
    }
    advice = advise(collections, grid(PRODUCT, dense=True))
    assert advice.keep
    assert any(line.startswith("keep the default:") for line in advice_lines(advice))


def test_noise_is_not_advised() -> None:
    mixed = [*pools("a", 15, dense_right=True), *pools("b", 16, dense_right=False)]
    advice = advise({"one": whatever_constants(mixed)}, grid(PRODUCT, dense=True))
    assert advice.best != PRODUCT
    assert advice.keep


def test_advice_is_the_same_again() -> None:
    mixed = whatever_constants([*pools("a", 15, dense_right=True), *pools("b", 16, dense_right=False)])
    tried = grid(PRODUCT, dense=True)
    assert advise({"one": mixed}, tried) == advise({"one": mixed}, tried)


def test_too_few_questions_are_told_with_the_fix() -> None:
    with pytest.raises(BadRequestError, match=r"one has 3 judged queries; tuning needs at least 10.*dowse judge"):
        advise({"one": whatever_constants(pools("a", 3, dense_right=True))}, grid(PRODUCT, dense=True))


def test_without_vectors_the_weight_of_the_dense_leg_is_not_turned() -> None:
    assert {knobs.alpha for knobs in grid(PRODUCT, dense=False)} == {PRODUCT.alpha}
    assert grid(PRODUCT, dense=True)[0] == PRODUCT


def test_weights_add_up_to_one() -> None:
    knobs = Knobs(alpha=0.6, prose_share=0.75)
    assert dict(knobs.leg_weights) == pytest.approx({"dense": 0.6, "bm25_code": 0.4 * 0.25, "bm25_nlp": 0.4 * 0.75})


def test_a_profile_replaces_the_one_of_its_name_and_keeps_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "dowse.toml"
    file.write_text('embedder = "none"  # ours\n\n[profiles.ours]\nalpha = 0.1\n\n[profiles.other]\nalpha = 0.2\n')
    save_profile(file, "ours", Tuned(Knobs(0.7, 0.5, 2.0, 60)))
    found = tomllib.loads(file.read_text())
    assert set(found["profiles"]) == {"other", "ours"}
    assert found["profiles"]["other"] == {"alpha": 0.2}
    assert found["profiles"]["ours"]["alpha"] == 0.7
    assert "# ours" in file.read_text()


def test_unequal_word_legs_are_written_as_weights() -> None:
    found = tomllib.loads(profile_text("ours", Tuned(Knobs(0.5, 0.75))))["profiles"]["ours"]
    assert found["weights"] == {"dense": 0.5, "bm25_code": 0.125, "bm25_nlp": 0.375}


@pytest.mark.parametrize("knobs", [Knobs(0.7, 0.5, 2.0, 60), Knobs(0.5, 0.75, 1.0, 200, 0.15, 0.3)])
def test_a_written_profile_turns_the_same_knobs_in_the_product(knobs: Knobs) -> None:
    tables = tomllib.loads(profile_text("ours", Tuned(knobs)))["profiles"]
    found = named("ours", with_own(tables))
    weights = Alpha(found.alpha) if found.weights is None else ByLeg(found.weights)
    brought = {"dense": 9, "bm25_code": 9, "bm25_nlp": 9}
    assert weights.by_leg(brought) == pytest.approx(dict(knobs.leg_weights))  # type: ignore[arg-type]
    assert (found.exponent, found.depth, found.fusion) == (knobs.exponent, knobs.depth, "z")
    assert (found.hubness, found.smoothing) == (knobs.hubness, knobs.smoothing)


@pytest.mark.parametrize("name", ["", "Ours", "a b", "default", "x.y", "1st"])
def test_a_name_that_cannot_be_used_is_refused(name: str) -> None:
    with pytest.raises(BadRequestError):
        checked_name(name)


def test_a_broken_settings_file_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "dowse.toml"
    file.write_text("not = = toml")
    with pytest.raises(BadRequestError, match="not valid TOML"):
        save_profile(file, "ours", Tuned(PRODUCT))
    assert file.read_text() == "not = = toml"


def test_stages_are_turned_one_at_a_time_and_only_by_what_a_profile_can_keep() -> None:
    default = named("default")
    tried = stage_settings(default, cross_encoder=False)
    assert tried[0].knobs == ()
    assert [way.name for way in tried[1:]] == [
        "rerank by heuristic", "boosts off", "boosts halved", "boosts doubled", "freshness off", "exact names off",
    ]  # fmt: skip
    chains = [dict(way.knobs).get("rerank") for way in stage_settings(default, cross_encoder=True)]
    assert [each for each in chains if each is not None] == [(), ("heuristic",), ("heuristic", "cross-encoder")]
    for way in tried:
        (turned,) = with_own(tomllib.loads(profile_text("ours", Tuned(PRODUCT, way.knobs)))["profiles"])[-1:]
        for field, value in way.knobs:
            assert getattr(turned, field) == value


def test_a_boost_is_halved_above_one() -> None:
    rule = named("default").boost_rules[0]
    assert scaled([rule], 0.5)[0].factor == pytest.approx(1 + 0.5 * (rule.factor - 1))
    assert scaled([rule], 0.5)[0].words == rule.words


def test_stages_that_change_nothing_are_kept_as_they_are(tmp_path: Path) -> None:
    grades = {f"q{n}": {"prune": 1.0} for n in range(12)}
    folder = write_collection(tmp_path / "garden", questions=dict.fromkeys(grades, "prune apple trees"), grades=grades)
    with opened(load(folder), tmp_path / "cache", HashEmbedder()) as found:
        advice = advise_stages([QueryRunner(found)], named("default"))
    assert advice.keep
    assert advice.chosen.name == "as it is"
    assert advice.held_out.nothing
