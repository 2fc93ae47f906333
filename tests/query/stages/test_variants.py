"""A question in several wordings: the lists of all variants go in; flat and nested fusion are checked as arithmetic."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from dowse.query.assemble import Assembly, Parts
from dowse.query.explain.why import Historian
from dowse.query.plan.profiles import Profile, named
from dowse.query.stages.fusion_nested import cross_query_rank_fusion
from dowse.query.stages.legs import Dense, Hydrate, Prepare, Words
from dowse.query.stages.state import Fused, Query, QueryState, Variant
from dowse.store.memory import MemoryStore
from dowse.tokenizer import Tokenizer
from shop_store import TrigramEmbedder, shop_store
from values import replace

QUESTION, OTHER = "retries of payments", "charging a card again"


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return shop_store()


def searched(store: MemoryStore, *variants: Variant) -> QueryState:
    reader = store.reader()
    state = Prepare(Tokenizer())(QueryState(Query(QUESTION, 10, variants=variants)))
    for leg in (Dense(reader, TrigramEmbedder(), 8), Words(reader, "bm25_code", 8), Words(reader, "bm25_nlp", 8)):
        state = leg(state)
    return state


def fused(store: MemoryStore, profile: Profile, *variants: Variant) -> Fused:
    state = Assembly(profile, store.reader(), Tokenizer()).fuse()(searched(store, *variants))
    assert state.fused is not None
    return state.fused


FLAT = replace(named("engineering"), name="flat")
NESTED = replace(named("papers"), name="nested")


def test_every_leg_searches_for_every_wording(store: MemoryStore) -> None:
    lists = searched(store, Variant(OTHER, 0.8)).lists
    assert [(each.leg, each.variant) for each in lists] == [
        (leg, variant) for leg in ("dense", "bm25_code", "bm25_nlp") for variant in (0, 1)
    ]


def test_flat_fusion_is_one_sum_over_wordings_and_legs(store: MemoryStore) -> None:
    """Σ over variant × leg of weight/(60 + rank), the original at 1.0; in [0,1] by ·61/Σ weights."""
    found = fused(store, FLAT, Variant(OTHER, 0.8))
    assert [(column.variant, column.weight) for column in found.columns] == [(0, 1.0)] * 3 + [(1, 0.8)] * 3
    for row in range(len(found.ids)):
        votes = sum(
            column.weight / (60 + int(column.ranks[row])) for column in found.columns if int(column.ranks[row]) > 0
        )
        assert found.raw[row] == pytest.approx(votes)
        assert found.values[row] == pytest.approx(votes * (60 + 1) / (3 * 1.0 + 3 * 0.8))


def test_a_variant_of_no_weight_changes_no_order(store: MemoryStore) -> None:
    plain = fused(store, FLAT).ids.tolist()
    light = fused(store, FLAT, Variant(OTHER, 0.0)).ids.tolist()
    assert [each for each in light if each in plain] == plain


def test_nested_fusion_is_the_mean_vote_of_the_queries(store: MemoryStore) -> None:
    """1/N · Σ 1/(60 + rank in that query's own fused list), 1000 where it is missing."""
    found = fused(store, NESTED, Variant(OTHER, 0.8))
    alone = [fused(store, NESTED).ids.tolist()]
    state = searched(store, Variant(OTHER, 0.8))
    own = replace(
        state,
        query=structs.replace(state.query, variants=()),
        lists=tuple(structs.replace(each, variant=0) for each in state.lists if each.variant == 1),
    )
    second = Assembly(NESTED, store.reader(), Tokenizer()).fuse()(own).fused
    assert second is not None
    alone.append(second.ids.tolist())
    wanted = cross_query_rank_fusion(alone, k=60, missing_rank=1000)
    assert found.ids.tolist() == [each for each, _ in wanted]
    assert found.raw.tolist() == pytest.approx([vote for _, vote in wanted])
    assert found.values.tolist() == pytest.approx([min(1.0, vote * (60 + 1)) for _, vote in wanted])


def test_one_query_is_passed_through(store: MemoryStore) -> None:
    nested = fused(store, NESTED)
    assert nested.ids.tolist() == fused(store, replace(NESTED, merge="flat")).ids.tolist()
    assert nested.queries == ()


def test_mean_vote_by_hand() -> None:
    """b is first and second, a first only, c second only; N counts the lists that are given."""
    found = dict(cross_query_rank_fusion([["a", "b"], ["b", "c"]]))
    assert found == pytest.approx(
        {
            "a": (1 / 61 + 1 / 1060) / 2,
            "b": (1 / 62 + 1 / 61) / 2,
            "c": (1 / 1060 + 1 / 62) / 2,
        }
    )
    assert [each for each, _ in cross_query_rank_fusion([["a", "b"], ["b", "c"]])] == ["b", "a", "c"]


def test_a_repeated_id_keeps_its_first_place() -> None:
    assert cross_query_rank_fusion([["a", "b", "a"]]) == cross_query_rank_fusion([["a", "b"]])


@given(st.lists(st.permutations(list("abcdef")), min_size=1, max_size=4), st.data())
def test_the_order_of_queries_does_not_matter(lists: list[list[str]], data: Any) -> None:
    shuffled = data.draw(st.permutations(lists))
    assert cross_query_rank_fusion(lists) == cross_query_rank_fusion(shuffled)


def test_history_names_the_wording_and_b_64_flat_fields_are_the_questions_own(store: MemoryStore) -> None:
    found = fused(store, FLAT, Variant(OTHER, 0.8))
    stages = [score.stage for score in Historian(found, len(found.ids))(0, {})]
    assert stages == ["dense", "bm25_code", "bm25_nlp", "dense~1", "bm25_code~1", "bm25_nlp~1", "fuse"]
    assert any(" 0.8/(60+" in Historian(found, len(found.ids))(row, {})[-1].why for row in range(len(found.ids)))
    nested = fused(store, NESTED, Variant(OTHER, 0.8))
    assert Historian(nested, len(nested.ids))(0, {})[-1].why.startswith("mean over 2 queries: (1/(60+")


def test_hydration_and_the_rest_work_on_nested_lists(store: MemoryStore) -> None:
    state = searched(store, Variant(OTHER, 0.8))
    state = Assembly(NESTED, store.reader(), Tokenizer(), Parts()).fuse()(state)
    hits = Hydrate(store.reader(), 5)(state).hits
    assert len(hits) == 5
    assert [hit.value for hit in hits] == sorted((hit.value for hit in hits), reverse=True)
