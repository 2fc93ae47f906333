"""Freshness, corpus boost and thresholds: hits go in, and the arithmetic of what comes out is checked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dowse.query.stages.freshness_and_boost import BOOST_RULES, BoostRule, CorpusBoost, Freshness, Threshold
from dowse.query.stages.fusion import ZScore
from dowse.query.stages.state import Column, Fused, Hit, Query, QueryState
from dowse.types import Chunk, Leg
from values import replace

NOW = datetime(2026, 11, 1, tzinfo=UTC)
FRESHNESS = Freshness(lambda: NOW)


def hit(kind: str, value: float, days_old: float | None = None, at: int = 0, row: int | None = None) -> Hit:
    moment = None if days_old is None else NOW - timedelta(days=days_old)
    return Hit(Chunk(f"{at:016x}", "d", "text", kind, "a", timestamp=moment), value, row)


def after(stage: Any, *hits: Hit, text: str = "q") -> list[Hit]:
    return list(stage(QueryState(Query(text, 10), hits=hits)).hits)


def values(stage: Any, *hits: Hit, text: str = "q") -> list[float]:
    """In the order of the ids, not of the ranking."""
    return [each.value for each in sorted(after(stage, *hits, text=text), key=lambda each: each.chunk.id)]


# Freshness


def test_a_day_old_conversation_beats_a_year_old_one() -> None:
    old, new = hit("CONVO_SLACK", 0.5, 365, 0), hit("CONVO_SLACK", 0.5, 1, 1)
    assert [each.chunk.id for each in after(FRESHNESS, old, new)] == [new.chunk.id, old.chunk.id]


def test_other_kinds_do_not_age() -> None:
    convo, code = hit("CONVO_SLACK", 0.5, 10, 0), hit("CODE_LOGIC", 0.7, 3650, 1)
    assert values(FRESHNESS, convo, code)[1] == 0.7


def test_after_a_half_life_half_is_left() -> None:
    assert FRESHNESS.decay(NOW - timedelta(days=90), NOW) == pytest.approx(1 / 2)
    assert FRESHNESS.decay(NOW - timedelta(days=180), NOW) == pytest.approx(1 / 4)
    assert values(FRESHNESS, hit("CONVO_SLACK", 0.8, 90)) == pytest.approx([0.9 * 0.8 + 0.1 * 1 / 2])


def test_a_missing_moment_does_not_age() -> None:
    state = QueryState(Query("q", 10), hits=(hit("CONVO_SLACK", 0.6),))
    assert FRESHNESS(state) is state


def test_the_future_counts_as_now() -> None:
    """Decay 1.0 is the maximum."""
    assert values(FRESHNESS, hit("CONVO_SLACK", 0.8, -30)) == pytest.approx([0.9 * 0.8 + 0.1 * 1.0])


def test_a_naive_moment_is_utc() -> None:
    """One naive timestamp must not end a query."""
    naive = replace(hit("CONVO_SLACK", 0.8).chunk, timestamp=datetime(2026, 11, 1))
    assert values(FRESHNESS, Hit(naive, 0.8)) == pytest.approx([0.9 * 0.8 + 0.1])


def test_what_does_not_age_keeps_its_order() -> None:
    rows = [hit("CODE_LOGIC", 0.9 - at / 10, 5, at) for at in range(4)]
    assert [each.chunk.id for each in after(FRESHNESS, *rows, hit("CONVO_SLACK", 0.0, 900, 9))][:4] == [
        each.chunk.id for each in rows
    ]


def test_a_weak_fresh_conversation_does_not_beat_the_best_document() -> None:
    """On raw RRF (.016) any talk younger than 114 days won; on [0,1] the weight is what it says."""
    best, talk = hit("DOC_PAGE", 1.0, None, 0), hit("CONVO_SLACK", 61 / 120, 0, 1)
    assert after(FRESHNESS, best, talk)[0].chunk.id == best.chunk.id


def test_boost_only_lifts_and_never_lowers() -> None:
    """s + w·decay·(1 − s)."""
    stage = replace(FRESHNESS, boost_only=True)
    assert values(stage, hit("CONVO_SLACK", 0.8, 90)) == pytest.approx([0.8 + 0.1 * 1 / 2 * (1 - 0.8)])


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(-100, 5000)), min_size=1, max_size=8), st.floats(0, 1), st.booleans()
)
def test_freshness_stays_in_range_and_keeps_the_set(
    rows: list[tuple[float, float]], weight: float, boost_only: bool
) -> None:
    stage = Freshness(lambda: NOW, weight=weight, boost_only=boost_only)
    found = after(stage, *(hit("CONVO_SLACK", value, age, at) for at, (value, age) in enumerate(rows)))
    assert len({each.chunk.id for each in found}) == len(rows)
    assert all(0 <= each.value <= 1 for each in found)
    assert [each.value for each in found] == sorted((each.value for each in found), reverse=True)


# Boost


@pytest.mark.parametrize(
    ("text", "kind", "factor"),
    [
        ("k8s deployment", "CODE_DEPLOY", 1.3),
        ("k8s deployment", "DOC_RUNBOOK", 1.3),
        ("incident response", "CONVO_SLACK", 1.3),
        ("how to roll back", "DOC_README", 1.2),
        ("how does auth work", "DOC_RUNBOOK", 1.0),
        ("k8s deployment", "CODE_LOGIC", 1.0),
        ("Which PODS crash?", "CODE_DEPLOY", 1.3),
        ("is the site down?", "CONVO_SLACK", 1.3),
        ("kubernetes", "CODE_DEPLOY", 1.3),
    ],
)
def test_a_matching_kind_is_multiplied(text: str, kind: str, factor: float) -> None:
    assert values(CorpusBoost(), hit(kind, 0.5), text=text) == pytest.approx([0.5 * factor])


@pytest.mark.parametrize(
    "text",
    [
        "podcast", "tripod", "download", "breakdown", "dropdown menu", "broker", "overwhelming", "Wilhelm",
        "coincidentally", "footsteps", "guideline", "show tokens", "how tomorrow", "undeployable", "alertness",
    ],
)  # fmt: skip
def test_parts_of_words_set_nothing_off(text: str) -> None:
    state = QueryState(Query(text, 10), hits=(hit("DOC_RUNBOOK", 0.5),))
    assert CorpusBoost()(state) is state


def test_all_words_of_the_rules_are_recognised_in_any_case() -> None:
    for rule in BOOST_RULES:
        for word in rule.words:
            assert [found for found, _ in CorpusBoost((rule,)).matching(f"please, {word.upper()}!")] == [rule]


def test_stacked_factors_are_capped() -> None:
    text = "steps after a failed deploy incident"
    assert values(CorpusBoost(), hit("DOC_RUNBOOK", 0.4), text=text) == pytest.approx([0.4 * 1.5])
    assert values(CorpusBoost(cap=None), hit("DOC_RUNBOOK", 0.4), text=text) == pytest.approx([0.4 * 1.3 * 1.3 * 1.2])


def test_a_boost_never_lowers() -> None:
    assert values(CorpusBoost(), hit("DOC_RUNBOOK", 0.0), text="deploy") == [0.0]


def test_a_boost_may_lift_over_another_kind() -> None:
    page, runbook = hit("DOC_PAGE", 0.55, None, 0), hit("DOC_RUNBOOK", 0.5, None, 1)
    assert [each.chunk.id for each in after(CorpusBoost(), page, runbook, text="deploy")] == [
        runbook.chunk.id,
        page.chunk.id,
    ]


def test_users_have_rules_of_their_own() -> None:
    rule = BoostRule(("blast radius",), ("DOC_ADR",), 1.1)
    assert values(CorpusBoost((rule,)), hit("DOC_ADR", 0.5), text="the blast radius of it") == pytest.approx([0.55])


# Thresholds


def test_hits_below_the_minimum_are_dropped() -> None:
    kept = after(Threshold(0.5), hit("DOC_PAGE", 0.5, at=0), hit("DOC_PAGE", 0.49, at=1))
    assert [each.value for each in kept] == [0.5]


def test_a_minimum_similarity_never_drops_what_words_found() -> None:
    legs: tuple[tuple[Leg, list[float]], ...] = (("dense", [0.9, 0.2, 0.2, np.nan]), ("bm25_nlp", [0.0, 0.0, 3.0, 0.0]))
    columns = tuple(Column(leg, 1.0, 3, np.array(scores), np.zeros(4, np.int64), np.zeros(4)) for leg, scores in legs)
    fused = Fused(ZScore(), np.arange(4, dtype=np.uint64), np.zeros(4), np.full(4, 0.5), columns)
    state = QueryState(Query("q", 10), fused=fused, hits=tuple(hit("DOC_PAGE", 0.5, at=at, row=at) for at in range(4)))
    kept = Threshold(min_similarity=0.3)(state).hits
    assert [each.row for each in kept] == [0, 2, 3]  # 1: a soft vector and no word; 3 has no vector to judge by
