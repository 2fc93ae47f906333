"""The flat cascade against an exact scan: recall, filters, growth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dowse.ports import Matrix, Vector
from dowse.store.kernels.numpy_kernel import NUMPY, Kernel, open_kernel
from dowse.store.segments import vectors as store_vectors
from dowse.store.segments.arrays import PartReader, PartWriter
from dowse.store.segments.vectors import (
    EXACT_ROWS,
    VectorCopy,
    VectorReader,
    VectorSegmentWriter,
    rounding_error,
    sign_codes,
    survivors,
)

ROWS = 30_000
QUERIES = 40
CODED = 100  # dimensions; two words of 64 bits
K = 10


def clustered(rows: int, dimension: int, seed: int) -> Matrix:
    """Unit vectors around a few hundred centres, all off to one side, as text embeddings are."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(300, dimension)) + 0.5 * rng.normal(size=dimension)
    drawn = centres[rng.integers(0, len(centres), rows)] + 0.9 * rng.normal(size=(rows, dimension))
    return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True), np.float32)


def stored(folder: Path, vectors: Matrix, batch: int = 10_000) -> VectorReader:
    part = PartWriter(folder)
    writer = VectorSegmentWriter(part, vectors.shape[1])
    for start in range(0, len(vectors), batch):
        piece = vectors[start : start + batch]
        writer.append(np.arange(start, start + len(piece)), piece)
        writer.publish(1)
    part.close()
    return VectorReader(PartReader(folder), vectors.shape[1])


def best(
    reader: VectorReader, query: Vector, k: int, allowed: NDArray[np.int64] | None, beside: VectorCopy | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """A search gives at least these."""
    rows, cosines = reader.search(query, k, allowed, beside)
    order = np.argsort(-cosines, kind="stable")[:k]
    return rows[order], cosines[order]


def exact(vectors: Matrix, query: Vector, k: int, allowed: NDArray[np.int64]) -> list[int]:
    cosines = vectors[allowed] @ query
    return [int(each) for each in allowed[np.argsort(-cosines, kind="stable")[:k]]]


def _mean(folder: Path) -> Vector:
    """What the published codes are taken around."""
    part = PartReader(folder)
    found: Vector = part.array(f"mean-{int(part.state.facts['epoch'])}", "<f4")
    return found


def _codes(folder: Path, epoch: int) -> NDArray[np.uint64]:
    """Published sign codes of CODED dimensions, one row a vector."""
    return np.stack([PartReader(folder).array(f"signs-{epoch}-{word}", "<u8") for word in range(2)], axis=1)


@pytest.fixture(scope="module", params=[64, 200, 384])
def collection(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Matrix, VectorReader]:
    vectors = clustered(ROWS + QUERIES, request.param, seed=request.param)
    return vectors, stored(tmp_path_factory.mktemp("vectors"), vectors[:ROWS])


@pytest.mark.parametrize("share", [1.0, 0.5, 0.2, 0.02, 0.001])
def test_recall_is_above_99_percent_at_any_selectivity(collection: tuple[Matrix, VectorReader], share: float) -> None:
    vectors, reader = collection
    allowed = np.flatnonzero(np.random.default_rng(1).random(ROWS) < share) if share < 1 else None
    rows = np.arange(ROWS) if allowed is None else allowed
    found = 0
    for query in vectors[ROWS:]:
        own, cosines = best(reader, query, K, allowed)
        assert len(set(own.tolist())) == min(K, len(rows))
        assert (np.diff(cosines) <= 0).all()
        np.testing.assert_allclose(cosines, vectors[own] @ query, atol=2e-5)
        found += len(set(own.tolist()) & set(exact(vectors, query, K, rows)))
    assert found / (QUERIES * K) >= 0.99


@pytest.mark.parametrize("k", [1, 100, 1000])
@pytest.mark.parametrize("matching", [0, 1, 7, 5000])
def test_there_are_always_as_many_as_match(collection: tuple[Matrix, VectorReader], k: int, matching: int) -> None:
    vectors, reader = collection
    allowed = np.random.default_rng(2).choice(ROWS, matching, replace=False)
    rows, _ = best(reader, vectors[ROWS], k, np.sort(allowed))
    assert len(rows) == min(k, matching)
    assert np.isin(rows, allowed).all()


def test_a_copy_of_a_row_is_found_first(collection: tuple[Matrix, VectorReader]) -> None:
    vectors, reader = collection
    for row in range(0, ROWS, ROWS // 20):
        assert best(reader, vectors[row], 1, None)[0].tolist() == [row]


def test_scores_that_a_search_left_behind_are_those_of_the_rows(collection: tuple[Matrix, VectorReader]) -> None:
    vectors, reader = collection
    query, other, allowed = vectors[3].copy(), vectors[4].copy(), np.arange(5, 900, 3)
    few, all_kinds = allowed[[7, 2, 90]], np.array([5, 6, 899, 3])
    plain = {id(each): (reader.score(each, few), reader.score(each, all_kinds)) for each in (query, other)}
    reader.search(query, 200, allowed)
    for each in (query, other):
        assert reader.score(each, few).tolist() == plain[id(each)][0].tolist()
        assert reader.score(each, all_kinds).tolist() == plain[id(each)][1].tolist()
    assert not len(reader.search(query, 10, np.empty(0, np.int64))[0])
    assert reader.score(query, few).tolist() == plain[id(query)][0].tolist()


@pytest.mark.parametrize("kernel", [NUMPY, open_kernel("native")], ids=["numpy", "native"])
@pytest.mark.parametrize("step", [3, 40], ids=["by codes", "one and all"])
def test_vectors_side_by_side_are_searched_to_the_same_digits(tmp_path: Path, kernel: Kernel, step: int) -> None:
    vectors = clustered(4 * EXACT_ROWS + 100, CODED, seed=8)
    stored(tmp_path, vectors, batch=4 * EXACT_ROWS)  # the last hundred wait for their codes
    reader = VectorReader(PartReader(tmp_path), CODED, kernel)
    allowed = np.arange(5, len(vectors), step)
    codes = reader.copy_codes(allowed)
    assert len(codes.signs[0]) == np.searchsorted(allowed, 4 * EXACT_ROWS)
    query, some = vectors[3], (allowed[::7], np.array([5, 6, 7]))
    scores = [reader.score(query, rows).tolist() for rows in some]
    for k in (10, 100):
        plain = best(reader, query.copy(), k, allowed)
        for beside in (codes, VectorCopy(codes.signs, reader.copy_rows(allowed))):
            for found, wanted in zip(best(reader, query, k, allowed, beside), plain, strict=True):
                assert found.tolist() == wanted.tolist()
            assert [reader.score(query, rows).tolist() for rows in some] == scores


def test_survivors_are_those_that_were_measured() -> None:
    assert survivors(100_000, 10) == 35 * 316  # ⌊√100,000⌋ = 316
    assert survivors(1_000_000, 10) == 35 * 1000
    assert survivors(5_000, 10) == 35 * 70  # ⌊√5,000⌋ = 70
    assert survivors(500, 10) == 1000
    assert survivors(1_000_000, 4_000) == 10 * 4_000


def test_rows_are_coded_from_the_first_thousands_on(tmp_path: Path) -> None:
    vectors = clustered(EXACT_ROWS, CODED, seed=3)
    few = stored(tmp_path / "few", vectors[: EXACT_ROWS - 1])
    many = stored(tmp_path / "many", vectors)
    assert best(few, vectors[0], 1, None)[0].tolist() == best(many, vectors[0], 1, None)[0].tolist() == [0]
    assert (_codes(tmp_path / "few", 1).size, len(_codes(tmp_path / "many", 1))) == (0, EXACT_ROWS)


def test_the_mean_is_taken_anew_when_there_are_eight_times_the_rows(tmp_path: Path) -> None:
    vectors = clustered(8 * EXACT_ROWS, CODED, seed=4)
    part = PartWriter(tmp_path)
    writer = VectorSegmentWriter(part, CODED)
    means = []
    for start in range(0, len(vectors), EXACT_ROWS):
        writer.append(np.arange(start, start + EXACT_ROWS), vectors[start : start + EXACT_ROWS])
        writer.publish(1)
        means.append(_mean(tmp_path))
    np.testing.assert_allclose(means[0], vectors[:EXACT_ROWS].mean(axis=0), atol=1e-6)
    for mean in means[1:7]:
        np.testing.assert_array_equal(mean, means[0])
    np.testing.assert_allclose(means[7], vectors.mean(axis=0), atol=1e-6)
    kept = VectorReader(PartReader(tmp_path), CODED).get(np.arange(len(vectors)))
    np.testing.assert_array_equal(_codes(tmp_path, 2), sign_codes(kept, means[7]))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["state.jsonl", "slots", "coarse", "fine", "scales", "mean-2", "signs-2-0", "signs-2-1"]
    )
    assert list(PartReader(tmp_path).damaged()) == []


@pytest.mark.parametrize("kernel", [NUMPY, open_kernel("native")], ids=["numpy", "native"])
def test_the_last_rows_are_found_before_they_are_coded(tmp_path: Path, kernel: Kernel) -> None:
    late = 130
    vectors = clustered(2 * EXACT_ROWS + late, CODED, seed=6)
    stored(tmp_path, vectors[:-late])
    part = PartWriter(tmp_path)
    writer = VectorSegmentWriter(part, CODED)
    for row in range(len(vectors) - late, len(vectors)):
        writer.append(np.array([row]), vectors[row : row + 1])
        writer.publish(1)
        if row < len(vectors) - 2:
            writer.code_rest()  # they are too few for it
    assert len(_codes(tmp_path, 1)) == 2 * EXACT_ROWS
    waiting = VectorReader(PartReader(tmp_path), CODED, kernel)
    writer.code_rest()
    writer.code_rest()  # there is nothing left to do
    assert len(PartReader(tmp_path).state.files) == len(part.state.files)
    settled = VectorReader(PartReader(tmp_path), CODED, kernel)
    kept = settled.get(np.arange(len(vectors)))
    np.testing.assert_array_equal(_codes(tmp_path, 1), sign_codes(kept, _mean(tmp_path)))
    odd = np.arange(1, len(vectors), 2)  # more than need no codes
    for row in range(len(vectors) - late, len(vectors)):
        assert best(waiting, vectors[row], 1, None)[0].tolist() == [row]
        assert best(settled, vectors[row], 1, None)[0].tolist() == [row]
        found = best(waiting, vectors[row], K, odd)[0].tolist()
        assert (row in found) == (row % 2 == 1)
        assert set(found) <= set(odd.tolist())
    part.close()


def test_many_rows_are_coded_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_vectors, "_UNCODED_ROWS", 7)
    vectors = clustered(EXACT_ROWS + 30, CODED, seed=7)
    stored(tmp_path, vectors[:EXACT_ROWS])
    coded = []
    part = PartWriter(tmp_path)
    writer = VectorSegmentWriter(part, CODED)
    for row in range(EXACT_ROWS, len(vectors), 3):
        writer.append(np.arange(row, row + 3), vectors[row : row + 3])
        writer.publish(1)
        coded.append(len(_codes(tmp_path, 1)) - EXACT_ROWS)
    assert coded == [0, 0, 9, 9, 9, 18, 18, 18, 27, 27]
    part.close()


def test_a_writer_that_comes_later_codes_around_the_same_mean(tmp_path: Path) -> None:
    vectors = clustered(2 * EXACT_ROWS, CODED, seed=5)
    stored(tmp_path, vectors[:EXACT_ROWS])
    part = PartWriter(tmp_path)
    writer = VectorSegmentWriter(part, CODED)
    writer.append(np.arange(EXACT_ROWS, 2 * EXACT_ROWS), vectors[EXACT_ROWS:])
    writer.publish(2)
    part.close()
    kept = VectorReader(PartReader(tmp_path), CODED).get(np.arange(len(vectors)))
    np.testing.assert_array_equal(_codes(tmp_path, 1), sign_codes(kept, _mean(tmp_path)))
    np.testing.assert_allclose(_mean(tmp_path), vectors[:EXACT_ROWS].mean(axis=0), atol=1e-6)


def test_codes_have_one_bit_a_dimension_padded_to_words() -> None:
    vectors = np.array([[1.0] + [-1.0] * 69], np.float32)
    codes = sign_codes(vectors, np.zeros(70, np.float32))
    assert codes.shape == (1, 2)
    assert int(np.bitwise_count(codes).sum()) == 1


@settings(max_examples=25)
@given(rows=st.integers(1, 40), dimension=st.sampled_from([3, 8, 65, 384]), seed=st.integers(0, 99))
def test_a_vector_is_kept_in_16_bits(
    tmp_path_factory: pytest.TempPathFactory, rows: int, dimension: int, seed: int
) -> None:
    vectors = clustered(rows, dimension, seed)
    kept = stored(tmp_path_factory.mktemp("kept"), vectors).get(np.arange(rows))
    for own, true in zip(kept, vectors, strict=True):
        assert np.abs(own - true).max() <= rounding_error(true) < 4e-5
    assert np.abs(np.linalg.norm(kept, axis=1) - 1).max() < 4e-5


@settings(max_examples=25)
@given(rows=st.integers(1, 300), k=st.integers(1, 400), dimension=st.sampled_from([3, 8, 65]), seed=st.integers(0, 99))
def test_few_rows_are_searched_exactly(
    tmp_path_factory: pytest.TempPathFactory, rows: int, k: int, dimension: int, seed: int
) -> None:
    vectors = clustered(rows + 1, dimension, seed)
    reader = stored(tmp_path_factory.mktemp("few"), vectors[:rows], batch=rows // 2 + 1)
    own, cosines = best(reader, vectors[rows], k, None)
    wanted = np.sort(vectors[:rows].astype(np.float64) @ vectors[rows])[::-1][:k]
    assert len(set(own.tolist())) == min(k, rows)
    np.testing.assert_allclose(cosines, wanted, atol=4e-5)
