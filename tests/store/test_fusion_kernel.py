"""The compiled arithmetic of a fusion against numpy's: the same to the last digit, or left to numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dowse.errors import CorruptIndexError
from dowse.fusion_kernel import FusionKernel, Sums
from dowse.ports import Found, Table
from dowse.query.stages.fusion import ZScore, _compiled_sums, _each_once, _sums, _union
from dowse.query.stages.neighbour_smoothing import moved
from dowse.query.stages.state import Column, Fused
from dowse.types import LEGS

pytest.importorskip("dowse.store.kernels._native", reason="the native kernel was not built")
from dowse.store.kernels import _native
from dowse.store.kernels.native_kernel import NativeFusion

KERNEL: FusionKernel = NativeFusion()
WEIGHTS = np.array([0.65, 0.1, 0.25])


@pytest.mark.parametrize("count", [1, 7, 8, 9, 127, 128, 129, 300, 1001])
def test_values_are_added_in_the_order_of_numpy(count: int) -> None:
    values = np.random.default_rng(count).lognormal(0, 5, count)
    assert _native.summed(values) == values.sum()


@given(st.lists(st.integers(0, 20) | st.just(2**64 - 1), max_size=40))
def test_a_union_has_each_id_once_and_says_where(numbers: list[int]) -> None:
    every = np.array(numbers, np.uint64)
    ids, places = KERNEL.union(every)
    wanted = _each_once(every)
    assert (ids.tolist(), places.tolist()) == (wanted[0].tolist(), wanted[1].tolist())


def lists_of(seed: int, depth: int, alike: int) -> tuple[list[Found], Table]:
    """Three lists in the order of exact scores, as legs give them, and the scores, rounded to `alike` digits."""
    rng = np.random.default_rng(seed)
    ids = np.unique(rng.integers(0, 2**64, 3 * depth, np.uint64))
    scores = np.round(rng.gamma(1.0, 1.0, (3, len(ids))), alike)
    orders = [np.lexsort((ids, -row))[:depth] for row in scores]
    lists = [Found(ids[order], row[order]) for order, row in zip(orders, scores, strict=True)]
    return lists, np.ascontiguousarray(scores[:, np.unique(np.concatenate(orders))])


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 999), depth=st.sampled_from([1, 3, 60, 200]), alike=st.sampled_from([0, 1, 12]))
def test_fusion_is_that_of_numpy_to_the_last_digit(seed: int, depth: int, alike: int) -> None:
    lists, scores = lists_of(seed, depth, alike)
    union = _union(lists, KERNEL)
    assert union.ids.tolist() == _union(lists).ids.tolist()
    found, wanted = _compiled_sums(KERNEL, ZScore(), union, scores, WEIGHTS), _sums(ZScore(), union, scores, WEIGHTS)
    assert found is not None
    for own, plain in zip(found, wanted, strict=True):
        assert own.tolist() == plain.tolist()


def test_what_numpy_has_to_sort_or_leave_out_is_left_to_it() -> None:
    lists, scores = lists_of(1, 30, 12)
    union = _union(lists, KERNEL)
    assert _compiled_sums(KERNEL, ZScore(1.5), union, scores, WEIGHTS) is None
    assert _compiled_sums(None, ZScore(), union, scores, WEIGHTS) is None
    turned = scores.copy()
    turned[1, union.places[30]] = -1  # the first of the second list is its last by exact scores
    assert _compiled_sums(KERNEL, ZScore(), union, turned, WEIGHTS) is None
    for number in range(3):
        unknown = scores.copy()
        unknown[number, np.flatnonzero(union.places == union.places[30 * number])[0] % 30] = np.nan
        assert _compiled_sums(KERNEL, ZScore(), union, unknown, WEIGHTS) is None


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 999), count=st.sampled_from([6, 7, 50]), all_same=st.booleans())
def test_smoothing_is_that_of_numpy_to_the_last_digit(seed: int, count: int, all_same: bool) -> None:
    rng = np.random.default_rng(seed)
    lists, scores = lists_of(seed, 100, 12)
    if all_same:
        scores[0] = 0.5  # a leg that tells no chunk from another stays as it is
    ids = _union(lists).ids
    ranks, parts, raw = _sums(ZScore(), _union(lists), scores, WEIGHTS) if not all_same else _flat(scores)
    columns = tuple(
        Column(leg, weight, 100, *rows)
        for leg, weight, *rows in zip(LEGS, WEIGHTS.tolist(), scores, ranks, parts, strict=True)
    )
    fused = Fused(ZScore(), ids, raw, raw, columns)
    vectors = rng.normal(size=(count, 8)).astype(np.float32)
    rows = np.sort(rng.choice(len(ids), count, replace=False))
    own, plain = (moved(fused, rows, vectors, 0.15, 0.3, tables) for tables in (KERNEL, None))
    assert own.smoothing is not None
    assert plain.smoothing is not None
    assert (own.ids.tolist(), own.raw.tolist()) == (plain.ids.tolist(), plain.raw.tolist())
    assert own.smoothing.tolist() == plain.smoothing.tolist()
    assert [each.parts.tolist() for each in own.columns] == [each.parts.tolist() for each in plain.columns]
    assert columns[0].parts.tolist() == parts[0].tolist()  # what came in is as it was


def test_places_outside_of_the_tables_are_refused() -> None:
    scores, sizes, shares = np.array([[2.0, 1.0]]), np.array([2]), np.ones(1)
    for places, counted in (([0, 2], sizes), ([-1, 1], sizes), ([0, 1], np.array([3])), ([0, 1], np.array([-1]))):
        with pytest.raises(CorruptIndexError):
            KERNEL.squares(scores, np.array(places), counted, shares, 1e-9)
    for near, rows in (([[2], [0]], [0, 1]), ([[-1], [0]], [0, 1]), ([[1], [0]], [0, 2]), ([[1], [0]], [-1, 1])):
        how = (0.1, 0.1, 1e-9, 1e-9, 0.5)
        with pytest.raises(CorruptIndexError):
            KERNEL.smooth(np.array(near), np.ones((2, 1)), np.array(rows), scores[0], scores.copy(), 0, 1.0, how)
    assert KERNEL.squares(np.empty((3, 0)), sizes[:0], np.zeros(3, np.int64), np.ones(3), 1e-9) is None


def _flat(scores: Table) -> Sums:
    parts = ZScore().parts(scores, np.ones(scores.shape, np.int64), WEIGHTS)
    return np.ones(scores.shape, np.int64), parts, parts.sum(axis=0)
