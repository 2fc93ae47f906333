"""Neighbour smoothing: sums move towards those of the nearest chunks, hubs lose cosine, nothing else changes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from dowse.ports import Ids, Mask, Matrix
from dowse.query.stages.fusion import Method, MinMax, ReciprocalRank, ZScore
from dowse.query.stages.neighbour_smoothing import FIRST, MOST, NEAREST, NeighbourSmoothing, applies, moved
from dowse.query.stages.state import Column, Fused, Query, QueryState
from dowse.types import LEGS, Leg

WEIGHTS = {"dense": 0.65, "bm25_code": 0.175, "bm25_nlp": 0.175}
CROWD, PULL = 0.15, 0.3


def fused_of(scores: dict[Leg, list[float]], method: Method | None = None, first_id: int = 1) -> Fused:
    """Ids count up from `first_id`, in the order of the scores; best first."""
    method = method or ZScore(2.0)
    table = np.array(list(scores.values()), np.float64)
    ranks = np.argsort(np.argsort(-table, axis=1), axis=1) + 1
    weights = np.array([WEIGHTS[leg] for leg in scores])
    parts = method.parts(table, ranks, weights)
    raw = parts.sum(axis=0)
    best = np.argsort(-raw, kind="stable")
    columns = tuple(
        Column(leg, WEIGHTS[leg], table.shape[1], table[at, best], ranks[at, best], parts[at, best])
        for at, leg in enumerate(scores)
    )
    ids = np.arange(first_id, first_id + table.shape[1], dtype=np.uint64)
    return Fused(method, ids[best], raw[best], method.unit(raw[best], weights), columns)


def random_case(seed: int, count: int, dimension: int = 8) -> tuple[Fused, Matrix]:
    """And the vectors, in the fused order."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(count, dimension)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    question = vectors[0] + rng.normal(size=dimension)
    words = np.maximum(rng.normal(size=(2, count)), 0).tolist()
    fused = fused_of({"dense": (vectors @ question).tolist(), "bm25_code": words[0], "bm25_nlp": words[1]})
    return fused, vectors[fused.ids.astype(np.int64) - 1]


def plainly_moved(fused: Fused, vectors: Matrix, hubness: float, smoothing: float) -> dict[int, float]:
    """The same in loops: the new sum of every chunk, by id."""
    count = len(fused.ids)
    cosines = [[float(np.dot(a, b)) for b in vectors] for a in vectors]
    near = [
        sorted((j for j in range(count) if j != i), key=lambda j, i=i: (-cosines[i][j], j))[:5] for i in range(count)
    ]
    crowded = [sum(cosines[i][j] for j in near[i]) / 5 for i in range(count)]
    mean_crowd = sum(crowded) / count
    dense = fused.columns[0].scores.tolist()
    mean = sum(dense) / count
    deviation = math.sqrt(sum((each - mean) ** 2 for each in dense) / count)
    sums = []
    for i in range(count):
        z = (dense[i] - hubness * (crowded[i] - mean_crowd) - mean) / deviation
        words = sum(float(column.parts[i]) for column in fused.columns[1:])
        sums.append(0.65 * math.copysign(z * z, z) + words)
    found = {}
    for i in range(count):
        shares = [max(cosines[i][j], 1e-9) for j in near[i]]
        neighbours = sum(share * sums[j] for share, j in zip(shares, near[i], strict=True)) / sum(shares)
        found[int(fused.ids[i])] = sums[i] + min(max(smoothing * (neighbours - sums[i]), -0.5), 0.5)
    return found


@given(st.integers(0, 10_000), st.integers(NEAREST + 1, FIRST))
def test_the_sums_are_those_of_the_plain_formula(seed: int, count: int) -> None:
    fused, vectors = random_case(seed, count)
    found = moved(fused, np.arange(count), vectors, CROWD, PULL)
    expected = plainly_moved(fused, vectors, CROWD, PULL)
    assert dict(zip(found.ids.tolist(), found.raw.tolist(), strict=True)) == pytest.approx(expected, abs=1e-5)


@given(st.integers(0, 10_000), st.integers(NEAREST + 1, 80))
def test_the_same_chunks_come_out_sorted_and_every_row_keeps_its_own_scores(seed: int, count: int) -> None:
    fused, vectors = random_case(seed, count)
    rows = np.arange(min(count, FIRST))
    found = moved(fused, rows, vectors[rows], CROWD, PULL)
    assert sorted(found.ids.tolist()) == sorted(fused.ids.tolist())
    assert found.raw.tolist() == sorted(found.raw.tolist(), reverse=True)
    assert found.values == pytest.approx(1 / (1 + np.exp(-found.raw)))
    assert found.smoothing is not None
    assert np.abs(found.smoothing).max() <= MOST
    assert np.sum([column.parts for column in found.columns], axis=0) + found.smoothing == pytest.approx(found.raw)
    for before, after in zip(fused.columns, found.columns, strict=True):
        old = dict(zip(fused.ids.tolist(), before.scores.tolist(), strict=True))
        assert dict(zip(found.ids.tolist(), after.scores.tolist(), strict=True)) == old


def test_a_chunk_among_good_ones_rises_and_one_among_bad_ones_sinks() -> None:
    """Two clusters of six; one chunk of each has the same scores, and its cluster decides."""
    east, north = np.eye(2, dtype=np.float32)
    vectors = np.array([east] * 6 + [north] * 6)
    cosines = [0.9] * 5 + [0.5] + [0.1] * 5 + [0.5]
    fused = fused_of({"dense": cosines, "bm25_code": [0.0] * 12, "bm25_nlp": [1.0, 0.0] * 6})
    found = moved(fused, np.arange(12), vectors[fused.ids.astype(np.int64) - 1], 0.0, PULL)
    places = found.ids.tolist()
    assert fused.ids.tolist().index(6) - fused.ids.tolist().index(12) in (-1, 1)
    assert places.index(6) < 6 <= places.index(12)


def test_what_stands_out_keeps_its_lead() -> None:
    """A name in one chunk of fifty: far above all others, alone among bad neighbours."""
    vectors = np.ones((50, 4), np.float32) / 2
    rising = [0.5 + at / 1000 for at in range(50)]
    fused = fused_of({"dense": rising, "bm25_code": [9.0] + [0.0] * 49, "bm25_nlp": [9.0] + [0.0] * 49})
    found = moved(fused, np.arange(50), vectors, CROWD, PULL)
    assert found.ids[0] == fused.ids[0] == 1
    assert found.raw[0] == pytest.approx(fused.raw[0] - MOST, abs=0.05)


@dataclass(frozen=True)
class Vectors:
    """A store that has vectors for some ids, and nothing else."""

    by_id: dict[int, Any]

    def vectors(self, ids: Ids) -> tuple[Matrix, Mask]:
        rows = [self.by_id.get(each) for each in ids.tolist()]
        zero = np.zeros(8, np.float32)
        return np.array([zero if row is None else row for row in rows]), np.array([row is not None for row in rows])


def run(fused: Fused, vectors: dict[int, Any]) -> Fused | None:
    stage = NeighbourSmoothing(Vectors(vectors), CROWD, PULL)
    return stage(QueryState(Query("q", 10), fused=fused)).fused


def test_only_the_first_fifty_are_looked_at() -> None:
    fused, vectors = random_case(3, 80)
    known = dict(zip(fused.ids.tolist(), vectors, strict=True))
    found = run(fused, known)
    assert found is not None
    assert found.smoothing is not None
    rest = set(fused.ids[FIRST:].tolist())
    assert [each for each in found.smoothing[[i for i, each in enumerate(found.ids.tolist()) if each in rest]]] == [
        0.0
    ] * 30


def test_a_chunk_without_a_vector_is_not_moved() -> None:
    fused, vectors = random_case(4, 20)
    known = dict(zip(fused.ids.tolist(), vectors, strict=True))
    lost = int(fused.ids[3])
    del known[lost]
    found = run(fused, known)
    assert found is not None
    assert found.raw[found.ids.tolist().index(lost)] == fused.raw[3]


def test_five_neighbours_or_fewer_are_not_smoothed() -> None:
    fused, vectors = random_case(5, NEAREST)
    assert run(fused, dict(zip(fused.ids.tolist(), vectors, strict=True))) is fused


@pytest.mark.parametrize("legs", [("dense",), ("bm25_code", "bm25_nlp"), ("bm25_nlp",)])
def test_a_channel_that_is_asked_alone_answers_as_it_is(legs: tuple[Leg, ...]) -> None:
    whole, _ = random_case(6, 20)
    alone = structs.replace(whole, columns=tuple(column for column in whole.columns if column.leg in legs))
    assert not applies(alone)
    assert applies(whole)
    assert set(LEGS) == {column.leg for column in whole.columns}


@pytest.mark.parametrize("method", [ReciprocalRank(), MinMax()])
def test_other_fusions_are_left_alone(method: Method) -> None:
    whole, _ = random_case(7, 20)
    assert not applies(structs.replace(whole, method=method))


def test_vectors_that_say_nothing_change_nothing_of_the_dense_part() -> None:
    """All cosines equal: no deviation, so hubness cannot be measured."""
    vectors = np.ones((12, 4), np.float32) / 2
    fused = fused_of({"dense": [0.5] * 12, "bm25_code": list(range(12)), "bm25_nlp": [0.0] * 12})
    found = moved(fused, np.arange(12), vectors, CROWD, PULL)
    assert found.columns[0].parts.tolist() == [0.0] * 12


def test_a_question_that_names_a_thing_gets_the_thing_and_not_what_resembles_it() -> None:
    fused, vectors = random_case(8, 20)
    known = dict(zip(fused.ids.tolist(), vectors, strict=True))
    named = QueryState(Query("retry.max_attempts", 10, mentions=("retry.max_attempts",)), fused=fused)
    assert NeighbourSmoothing(Vectors(known), CROWD, PULL)(named) is named
