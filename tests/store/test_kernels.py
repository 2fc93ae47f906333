"""One contract for the inner loops: the compiled ones against numpy's, and both against plain arithmetic."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dowse.errors import BadRequestError, CorruptIndexError
from dowse.store import kernels
from dowse.store.kernels.bm25 import term_score
from dowse.store.kernels.numpy_kernel import (
    NUMPY,
    ChunkTerms,
    Kernel,
    Norm,
    Packed,
    Run,
    ScoreAccumulator,
    WeightedTerms,
    open_kernel,
)

pytest.importorskip("dowse.store.kernels._native", reason="the native kernel was not built")
from dowse.store.kernels import _native

NATIVE = open_kernel("native")
ANY_KERNEL = pytest.mark.parametrize("kernel", [NUMPY, NATIVE], ids=["numpy", "native"])


def read_only(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """As mapped files are."""
    array.setflags(write=False)
    return array


def codes(rows: int, words: int, seed: int) -> list[NDArray[np.uint64]]:
    rng = np.random.default_rng(seed)
    return [read_only(rng.integers(0, 2**64, rows, np.uint64)) for _ in range(words)]  # type: ignore[misc]


def distances(columns: list[NDArray[np.uint64]], query: NDArray[np.uint64]) -> NDArray[np.int64]:
    rows = zip(*(column.tolist() for column in columns), strict=True)
    wanted = query.tolist()
    return np.array([sum((a ^ b).bit_count() for a, b in zip(row, wanted, strict=True)) for row in rows])


@ANY_KERNEL
@pytest.mark.parametrize("allowed", [None, "few", "most"])
@pytest.mark.parametrize("words", [1, 6, 8, 12])
def test_the_nearest_codes_are_all_within_the_distance_of_the_last(
    kernel: Kernel, allowed: str | None, words: int
) -> None:
    columns, query = codes(5000, words, 1), codes(words, 1, 2)[0]
    share = {None: 1.0, "few": 0.1, "most": 0.9}[allowed]
    chosen = np.flatnonzero(np.random.default_rng(3).random(5000) < share)
    found = kernel.nearest_codes(columns, query, 100, None if allowed is None else chosen)
    far = distances(columns, query)[chosen]
    limit = np.sort(far)[100 - 1]
    assert found.tolist() == chosen[far <= limit].tolist()


@ANY_KERNEL
def test_asked_for_more_codes_than_there_are_gives_all(kernel: Kernel) -> None:
    columns = codes(10, 2, 4)
    assert kernel.nearest_codes(columns, columns[0][:2], 50, None).tolist() == list(range(10))


@ANY_KERNEL
@pytest.mark.parametrize("count", [60, 61, 100, 500])
def test_asked_for_more_codes_than_are_allowed_gives_none_that_is_refused(kernel: Kernel, count: int) -> None:
    columns, allowed = codes(100, 2, 4), np.arange(0, 60)  # most: refused ones are told by their distance
    assert kernel.nearest_codes(columns, columns[0][:2], count, allowed).tolist() == allowed.tolist()


@ANY_KERNEL
def test_dots_are_those_of_the_rows_asked_for(kernel: Kernel) -> None:
    rng = np.random.default_rng(5)
    coarse, fine = (read_only(rng.integers(-127, 128, (40, 100)).astype(np.int8)) for _ in range(2))
    kept = Packed(coarse, fine, read_only(rng.random(40).astype(np.float32)))  # type: ignore[arg-type]
    vector = rng.normal(size=100).astype(np.float32)
    rows = np.array([3, 39, 0, *range(5, 25)])
    exact = (coarse + fine.astype(np.float64) / 254) * kept.scales[:, None].astype(np.float64)
    np.testing.assert_allclose(kernel.dots(rows, kept, vector), (exact @ vector)[rows], rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(kernel.unpacked(rows, kept), exact[rows], rtol=1e-5, atol=1e-5)


@ANY_KERNEL
@pytest.mark.parametrize("k", [1, 10, 100, 300])
@pytest.mark.parametrize("alike", [False, True], ids=["apart", "nearly alike"])
def test_the_nearest_rows_are_those_of_all_products(kernel: Kernel, k: int, alike: bool) -> None:
    """Where rows are nearly alike, the coarse half has all of them in another order, and must not decide."""
    rng = np.random.default_rng(6)
    coarse, fine = (rng.integers(-127, 128, (900, 64)).astype(np.int8) for _ in range(2))
    if alike:
        coarse[:] = coarse[0] + rng.integers(0, 2, coarse.shape).astype(np.int8)
    kept = Packed(*map(read_only, (coarse, fine, rng.uniform(0.5, 1, 900).astype(np.float32))))  # type: ignore[arg-type]
    vector, rows = rng.normal(size=64).astype(np.float32), np.flatnonzero(rng.random(900) < 0.9)
    exact = kernel.dots(rows, kept, vector)
    places, found = kernel.nearest(rows, kept, vector, k)
    np.testing.assert_array_equal(found, exact[places])
    assert np.isin(np.argsort(-exact)[:k], places).all()
    assert len(set(places.tolist())) == len(places)


@ANY_KERNEL
def test_all_that_equal_the_last_are_found_however_many_they_are(kernel: Kernel) -> None:
    count = 5000
    run = Run(np.array([1], np.uint32), np.array([count]), np.arange(count, dtype=np.uint32), np.ones(count, np.uint16))
    norm, mask = Norm(np.ones(count, np.uint32), 1.0, 0.5), np.ones(count, np.bool_)
    spans = (run, *kernel.find(run, np.array([1], np.uint32)))
    slots, scores = kernel.best([spans], np.array([2.0]), norm, mask, 10, ScoreAccumulator())
    assert sorted(slots.tolist()) == list(range(count))
    np.testing.assert_allclose(scores, 2.0 / (1 + 1.5))


@ANY_KERNEL
def test_the_best_of_many_are_found_whether_they_come_first_or_last(kernel: Kernel) -> None:
    count = 5000
    counts = np.random.default_rng(8).permutation(count).astype(np.uint16) + 1
    for said in (counts, np.sort(counts), np.sort(counts)[::-1]):
        run = Run(np.array([1], np.uint32), np.array([count]), np.arange(count, dtype=np.uint32), said.copy())
        norm, mask = Norm(np.ones(count, np.uint32), 1.0, 0.5), np.ones(count, np.bool_)
        spans = (run, *kernel.find(run, np.array([1], np.uint32)))
        slots, _ = kernel.best([spans], np.array([2.0]), norm, mask, 10, ScoreAccumulator())
        assert sorted(said[slots].tolist()) == list(range(count - 9, count + 1))


def chunk_terms(chunks: list[dict[int, int]]) -> ChunkTerms:
    entries = [sorted(chunk.items()) for chunk in chunks]
    flat = [entry for chunk in entries for entry in chunk]
    return ChunkTerms(
        np.array([term for term, _ in flat], np.uint32),
        np.array([count for _, count in flat], np.uint16),
        np.cumsum([len(chunk) for chunk in entries]).astype(np.int64),
    )


def run_of(chunks: list[dict[int, int]]) -> Run:
    terms = sorted({term for chunk in chunks for term in chunk})
    holding = [[slot for slot, chunk in enumerate(chunks) if term in chunk] for term in terms]
    counts = [chunks[slot][term] for term, slots in zip(terms, holding, strict=True) for slot in slots]
    return Run(
        np.array(terms, np.uint32),
        np.cumsum([len(slots) for slots in holding]).astype(np.int64),
        np.array([slot for slots in holding for slot in slots], np.uint32),
        np.array(counts, np.uint16),
    )


CHUNK = st.dictionaries(st.integers(0, 30), st.integers(1, 9), max_size=12)


@ANY_KERNEL
@settings(max_examples=60, deadline=None)
@given(chunks=st.lists(CHUNK, min_size=1, max_size=8), terms=st.lists(st.integers(0, 30), unique=True, max_size=6))
def test_bm25_is_the_sum_of_the_formula_over_the_terms(
    kernel: Kernel, chunks: list[dict[int, int]], terms: list[int]
) -> None:
    terms = sorted(terms)
    lengths = np.arange(len(chunks), dtype=np.uint32)
    legs = [[term for term in terms if term % 2 == leg] for leg in range(2)]
    wanted = [
        WeightedTerms(np.array(of_leg, np.uint32), np.array([1.0 + term for term in of_leg], np.float64), norm)
        for of_leg, norm in zip(legs, (Norm(7 * lengths, 0.5, 2.0), Norm(lengths, 2.0, 3.0)), strict=True)
    ]
    slots = np.arange(len(chunks))[::-1].astype(np.int64)
    found = kernel.bm25(slots, chunk_terms(chunks), wanted)
    for leg, norm_of in enumerate((lambda slot: 0.5 + 2 * 7 * slot, lambda slot: 2.0 + 3 * slot)):
        for at, slot in enumerate(slots.tolist()):
            exact = sum(
                term_score(1.0 + term, chunks[slot][term], norm_of(slot))
                for term in terms
                if term % 2 == leg and term in chunks[slot]
            )
            assert found[leg, at] == pytest.approx(exact)


@ANY_KERNEL
@settings(max_examples=60, deadline=None)
@given(
    chunks=st.lists(CHUNK, min_size=1, max_size=12),
    terms=st.lists(st.integers(0, 30), unique=True, max_size=6),
    k=st.integers(1, 5),
    refused=st.sets(st.integers(0, 11)),
)
@example(chunks=[{}], terms=[3], k=1, refused=set())
def test_the_best_are_those_of_a_sort_with_all_that_equal_the_last(
    kernel: Kernel, chunks: list[dict[int, int]], terms: list[int], k: int, refused: set[int]
) -> None:
    run, terms = run_of(chunks), sorted(terms)
    norm = Norm(np.array([slot % 3 for slot in range(len(chunks))], np.uint32), 1.0, 0.5)
    norms = [1.0 + 0.5 * (slot % 3) for slot in range(len(chunks))]
    weights = np.array([1.0 + term for term in terms])
    mask = np.array([slot not in refused for slot in range(len(chunks))])
    starts, ends = kernel.find(run, np.array(terms, np.uint32))
    assert [run.slots[start:end].tolist() for start, end in zip(starts, ends, strict=True)] == [
        [slot for slot, chunk in enumerate(chunks) if term in chunk] for term in terms
    ]
    tally = ScoreAccumulator()
    for _ in range(2):  # the second time on what the first one left behind
        slots, scores = kernel.best([(run, starts, ends)], weights, norm, mask, k, tally)
        exact = {
            slot: score
            for slot, chunk in enumerate(chunks)
            if (score := sum(term_score(1.0 + t, chunk[t], norms[slot]) for t in terms if t in chunk)) and mask[slot]
        }
        least = sorted(exact.values())[-k:][:1]
        wanted = {slot: score for slot, score in exact.items() if score >= least[0] - 1e-12}
        assert dict(zip(slots.tolist(), scores.tolist(), strict=True)) == pytest.approx(wanted)
        passing = np.flatnonzero(mask)
        assert tally.sums[passing].tolist() == pytest.approx([exact.get(slot, 0.0) for slot in passing.tolist()])


@ANY_KERNEL
def test_a_tally_has_nothing_of_the_question_before(kernel: Kernel) -> None:
    run, norm, tally = run_of([{1: 2}, {2: 1}, {1: 1, 2: 5}]), Norm(np.ones(3, np.uint32), 1.0, 0.5), ScoreAccumulator()
    mask, weight = np.ones(3, np.bool_), np.ones(1)
    for term, holding in ((1, [0, 2]), (2, [1, 2]), (1, [0, 2])):
        kernel.best([(run, *kernel.find(run, np.array([term], np.uint32)))], weight, norm, mask, 5, tally)
        assert np.flatnonzero(tally.sums[:3]).tolist() == holding
        tally.add(np.array([0]), np.array([9.0]))  # as the chunks that no run covers yet


@ANY_KERNEL
@pytest.mark.parametrize("spread", [2**32, 2**20], ids=["evenly", "all at one end"])
def test_hashes_are_found_wherever_they_stand(kernel: Kernel, spread: int) -> None:
    rng = np.random.default_rng(9)
    terms = np.unique(rng.integers(0, spread, 5000).astype(np.uint32))
    sizes = rng.integers(1, 4, len(terms))
    ends = np.cumsum(sizes)
    run = Run(terms, ends, np.zeros(ends[-1], np.uint32), np.zeros(ends[-1], np.uint16))
    hashes = np.unique(np.concatenate([terms[::7], terms[[0, -1]], rng.integers(0, 2**32, 300).astype(np.uint32)]))
    starts, stops = kernel.find(run, hashes)
    at = {int(term): (int(end - size), int(end)) for term, end, size in zip(terms, ends, sizes, strict=True)}
    wanted = [at.get(each, (0, 0)) for each in hashes.tolist()]
    assert list(zip(starts.tolist(), stops.tolist(), strict=True)) == wanted


@pytest.fixture(params=[2, 1, 0], ids=["best", "AVX2", "any"])
def processor(request: pytest.FixtureRequest) -> Iterator[int]:
    """Loops for processors up to this one."""
    _native.processor(request.param)
    yield request.param
    _native.processor()


@pytest.mark.parametrize("rows", [0, 1, 7, 15, 16, 17, 63, 1023, 1025, 5000])
def test_each_processor_finds_the_same_codes(processor: int, rows: int) -> None:
    for words in (1, 6, 7, 13):
        columns, query = codes(rows, words, rows), codes(words, 1, 2)[0]
        for allowed in (None, np.arange(0, rows, 3)):
            if rows:
                wanted = NUMPY.nearest_codes(columns, query, 1 + rows // 10, allowed).tolist()
                assert NATIVE.nearest_codes(columns, query, 1 + rows // 10, allowed).tolist() == wanted
            else:
                assert not len(NATIVE.nearest_codes(columns, query, 1, allowed))


def packed(rows: int, size: int, seed: int = 7) -> tuple[Packed, NDArray[np.float32]]:
    rng = np.random.default_rng(seed)
    coarse, fine = (rng.integers(-128, 128, (rows, size)).astype(np.int8) for _ in range(2))
    return Packed(coarse, fine, rng.random(rows, np.float32)), rng.normal(size=size).astype(np.float32)


@pytest.mark.parametrize("size", [1, 8, 15, 16, 31, 33, 100, 384])
def test_each_processor_computes_the_same_products(processor: int, size: int) -> None:
    kept, vector = packed(300, size)
    rows = np.arange(299, -1, -2)
    exact = NUMPY.dots(rows, kept, vector)
    np.testing.assert_allclose(NATIVE.dots(rows, kept, vector), exact, rtol=1e-4, atol=2e-3)
    assert NATIVE.unpacked(rows, kept).tolist() == NUMPY.unpacked(rows, kept).tolist()
    assert not len(NATIVE.dots(rows[:0], kept, vector))
    apart = np.repeat(vector, 2)[::2]
    assert NATIVE.dots(rows[::-1], kept, apart).tolist() == NATIVE.dots(rows, kept, vector)[::-1].tolist()


OUTSIDE = pytest.mark.parametrize("outside", [-1, 300, 2**31, 2**62, -(2**62)])


@OUTSIDE
@pytest.mark.parametrize("count", [3, 200], ids=["few", "many"])
def test_rows_outside_of_the_vectors_are_refused(processor: int, outside: int, count: int) -> None:
    kept, vector = packed(300, 100)
    rows = np.append(np.arange(count), outside)
    for asked in (
        lambda: NATIVE.dots(rows, kept, vector),
        lambda: NATIVE.nearest(rows, kept, vector, 10),
        lambda: NATIVE.unpacked(rows, kept),
        lambda: NATIVE.nearest_codes(codes(300, 6, 1), codes(6, 1, 2)[0], 5, rows),
    ):
        with pytest.raises(CorruptIndexError, match="dowse rebuild"):
            asked()


def test_arrays_that_do_not_fit_together_are_refused() -> None:
    kept, vector = packed(300, 100)
    short = Packed(kept.coarse, kept.fine[:299], kept.scales)
    for rows, held, asked in (
        (np.arange(3), short, vector),
        (np.arange(3), kept, vector[:99]),
        (np.arange(3), kept, vector.astype(np.float64)),
        (np.arange(3, dtype=np.int32), kept, vector),
    ):
        with pytest.raises(ValueError, match="fit together"):
            NATIVE.dots(rows, held, asked)
    columns = codes(300, 6, 1)
    with pytest.raises(ValueError, match="fit together"):
        NATIVE.nearest_codes([*columns[:5], columns[5][:299]], columns[0][:6].copy(), 5, None)


def test_scales_that_are_not_numbers_are_refused_where_they_decide() -> None:
    kept, vector = packed(300, 100)
    for damaged in (slice(0, 300), slice(0, 250)):
        kept.scales[damaged] = np.nan
        with pytest.raises(CorruptIndexError):
            NATIVE.nearest(np.arange(300), kept, vector, 100)
    kept.scales[:] = 1
    kept.scales[:5] = np.nan
    places, found = NATIVE.nearest(np.arange(300), kept, vector, 10)
    assert not np.isnan(found).any()
    assert set(np.argsort(-NATIVE.dots(np.arange(5, 300), kept, vector))[:5] + 5) <= set(places.tolist())


@OUTSIDE
def test_words_that_point_outside_are_refused_and_leave_no_sums(outside: int) -> None:
    chunks = [{1: 2}, {2: 1}, {1: 1, 2: 5}]
    run, norm, tally = run_of(chunks), Norm(np.ones(3, np.uint32), 1.0, 0.5), ScoreAccumulator()
    hashes, weights, mask = np.array([1, 2], np.uint32), np.ones(2), np.empty(0, np.bool_)
    starts, ends = NATIVE.find(run, hashes)
    wrong_slot = Run(run.terms, run.ends, np.append(run.slots[:-1], outside % 2**32 or 3).astype(np.uint32), run.counts)
    wrong_end = Run(run.terms, np.append(run.ends[:-1], outside), run.slots, run.counts)
    tries = [(wrong_slot, starts, ends)]
    if outside > 0:
        tries.append((wrong_end, *NATIVE.find(wrong_end, hashes)))
    else:
        tries.append((run, np.array([0, outside]), ends))
    for spans in tries:
        for passing in (mask, np.ones(3, np.bool_)):
            with pytest.raises(CorruptIndexError):
                NATIVE.best([spans], weights, norm, passing, 2, tally)
            NATIVE.best([], weights, norm, passing, 2, tally)
            assert not tally.sums.any()
    with pytest.raises(CorruptIndexError):
        NATIVE.sums(wrong_slot, WeightedTerms(hashes, weights, norm))
    said, legs = chunk_terms(chunks), [WeightedTerms(hashes, weights, norm)]
    with pytest.raises(CorruptIndexError):
        NATIVE.bm25(np.array([0, outside]), said, legs)
    with pytest.raises(CorruptIndexError):
        NATIVE.bm25(np.array([1, 2]), ChunkTerms(said.terms, said.counts, np.array([1, outside, 4])), legs)
    with pytest.raises(CorruptIndexError):
        NATIVE.bm25(np.array([2]), said, [WeightedTerms(hashes, weights, Norm(norm.lengths[:2], 1.0, 0.5))])


def test_counts_of_zero_are_not_found_as_with_numpy() -> None:
    """Only damage writes them; each would be noted again, past the end of the list."""
    slots = np.zeros(5000, np.uint32)
    run = Run(np.array([1], np.uint32), np.array([5000]), slots, np.zeros(5000, np.uint16))
    for k1 in (1.0, 0.0):  # 0/0 without a length norm
        norm = Norm(np.ones(3, np.uint32), k1, 0.0)
        spans = (run, np.array([0]), np.array([5000]))
        with np.errstate(invalid="ignore"):
            slots_found, _ = NATIVE.best([spans], np.ones(1), norm, np.empty(0, np.bool_), 1, ScoreAccumulator())
        assert len(slots_found) <= 1


@settings(max_examples=80, deadline=None)
@given(data=st.data(), k=st.integers(1, 40), rows=st.integers(1, 400))
def test_the_best_of_random_runs_are_those_of_numpy_to_the_last_digit(data: st.DataObject, k: int, rows: int) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    terms = [np.flatnonzero(rng.random(rows) < share).astype(np.uint32) for share in (0.9, 0.3, 0.05)]
    slots = np.concatenate(terms)
    counts = rng.integers(1, 4, len(slots)).astype(np.uint16)
    run = Run(np.array([3, 5, 2**32 - 1], np.uint32), np.cumsum([len(each) for each in terms]), slots, counts)
    norm = Norm(rng.integers(0, 9, rows).astype(np.uint32), 0.3, 0.17)
    weights = rng.uniform(0.1, 9, 3)
    mask = data.draw(st.sampled_from([np.empty(0, np.bool_), rng.random(rows) < 0.5]))
    found = []
    for kernel in (NUMPY, NATIVE):
        spans = (run, *kernel.find(run, run.terms))
        best, scores = kernel.best([spans], weights, norm, mask, k, ScoreAccumulator())
        found.append(sorted(zip(best.tolist(), scores.tolist(), strict=True)))
        found[-1] += kernel.sums(run, WeightedTerms(run.terms, weights, norm)).tolist()
    assert found[0] == found[1]


def test_ids_are_found_among_known_ones_and_others_are_counted() -> None:
    rng = np.random.default_rng(3)
    known = np.unique(rng.integers(0, 2**64, 50, np.uint64))
    for wanted in (known[::-1].copy(), rng.integers(0, 2**64, 20, np.uint64), known[:0]):
        for held in (known, known[:0]):
            plain, native = (each.slots_of(held, np.arange(len(held)), wanted) for each in (NUMPY, NATIVE))
            assert (plain[0].tolist(), plain[1]) == (native[0].tolist(), native[1])


def test_auto_is_the_compiled_kernel_and_fast_its_old_name() -> None:
    assert {type(open_kernel(name)).__name__ for name in ("auto", "native", "fast")} == {"NativeKernel"}
    assert open_kernel("numpy") is NUMPY


def test_an_unknown_kernel_is_refused_with_the_choices() -> None:
    with pytest.raises(BadRequestError, match="unknown kernel 'simd'; choose from auto, numpy, native"):
        open_kernel("simd")


def test_without_the_compiled_module_auto_is_numpy_and_native_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "dowse.store.kernels._native", None)
    monkeypatch.delattr(kernels, "_native", raising=False)
    monkeypatch.delitem(sys.modules, "dowse.store.kernels.native_kernel", raising=False)
    assert open_kernel("auto") is NUMPY
    with pytest.raises(BadRequestError, match="install a C compiler and Python's headers"):
        open_kernel("native")
