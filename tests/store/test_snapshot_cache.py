"""A filter's few chunks: scored from what each says, or from their words turned around, to the same digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dowse.store.kernels.bm25 import term_score
from dowse.store.kernels.numpy_kernel import NUMPY, Kernel, Norm, Packed, open_kernel
from dowse.store.segments.forward import ForwardReader, LegTerms
from dowse.store.segments.vectors import VectorCopy
from dowse.store.snapshot_cache import _OFTEN, _VECTORS_AFTER, FilterVectors, MemoryBudget, SmallFilterSet

pytest.importorskip("numba", reason="the extra `fast` is not installed")
ANY_KERNEL = pytest.mark.parametrize("kernel", [NUMPY, open_kernel("fast")], ids=["numpy", "fast"])
CHUNK = st.dictionaries(st.integers(0, 30) | st.just(2**32 - 1), st.integers(1, 9), max_size=12)


class Part:
    """The files of a forward index, in memory."""

    def __init__(self, chunks: list[dict[int, int]]) -> None:
        entries = [sorted(chunk.items()) for chunk in chunks]
        flat = [entry for chunk in entries for entry in chunk]
        self._files: dict[str, NDArray[Any]] = {
            "terms": np.array([term for term, _ in flat], np.uint32),
            "counts": np.array([count for _, count in flat], np.uint16),
            "ends": np.cumsum([len(chunk) for chunk in entries]).astype(np.int64),
            "lengths": np.array([[7 * at, at] for at in range(len(chunks))], np.uint32).reshape(-1, 2),
        }

    def array(self, name: str, dtype: str, columns: int | None = None) -> NDArray[Any]:
        return self._files[name]

    unchecked = array

    def unread(self, names: tuple[str, ...]) -> bool:
        return False


def forward_index(chunks: list[dict[int, int]], kernel: Kernel) -> ForwardReader:
    return ForwardReader(Part(chunks), kernel)  # type: ignore[arg-type]  # all that it needs of one


@ANY_KERNEL
@settings(max_examples=60, deadline=None)
@given(
    chunks=st.lists(CHUNK, min_size=1, max_size=8),
    terms=st.sets(st.integers(0, 31), min_size=1, max_size=6),
    chosen=st.sets(st.integers(0, 7)),
)
def test_words_turned_around_score_as_they_did(
    kernel: Kernel, chunks: list[dict[int, int]], terms: set[int], chosen: set[int]
) -> None:
    slots = np.array([slot for slot in sorted(chosen) if slot < len(chunks)], np.int64)
    forward = forward_index(chunks, kernel)
    few = SmallFilterSet(slots, forward, kernel)
    asked = LegTerms(np.array(sorted(terms), np.uint32), np.array([1.0 + term for term in sorted(terms)]))
    norm = Norm(forward.lengths.by_leg[0], 0.5, 2.0)
    scores = [few.score("bm25_code", asked, norm).tolist() for _ in range(_OFTEN + 2)]
    assert few._turned is not None
    assert scores == [scores[0]] * len(scores)
    exact = [
        sum(term_score(1.0 + term, chunks[slot][term], 0.5 + 2 * 7 * slot) for term in terms if term in chunks[slot])
        for slot in slots.tolist()
    ]
    assert scores[-1] == pytest.approx(exact)


@ANY_KERNEL
def test_turned_around_each_term_has_the_places_that_hold_it(kernel: Kernel) -> None:
    run = forward_index([{5: 1}, {2: 3, 5: 4}, {}, {2: 6, 9: 7}], kernel).turned(np.array([1, 2, 3]))
    assert (run.terms.tolist(), run.ends.tolist()) == ([2, 5, 9], [2, 3, 4])
    assert (run.slots.tolist(), run.counts.tolist()) == ([0, 2, 0, 2], [3, 6, 4, 7])


def test_a_filter_that_is_asked_seldom_turns_nothing() -> None:
    forward = forward_index([{5: 1}], NUMPY)
    few, asked = SmallFilterSet(np.array([0]), forward, NUMPY), LegTerms(np.array([5], np.uint32), np.ones(1))
    for _ in range(_OFTEN):
        few.score("bm25_nlp", asked, Norm(forward.lengths.by_leg[1], 1.0, 1.0))
    assert few._turned is None


def test_places_are_those_of_slots_in_the_set_and_of_no_other() -> None:
    small = SmallFilterSet(np.array([2, 5, 9]), forward_index([{}] * 10, NUMPY), NUMPY)
    places = small.places(np.array([9, 2]))
    assert places is not None
    assert places.tolist() == [2, 0]
    assert small.places(np.array([9, 3])) is None
    assert small.places(np.array([10])) is None


class Reader:
    """Notes what is copied."""

    code_bytes, row_bytes = 8, 100

    def __init__(self) -> None:
        self.copied: list[str] = []

    def copy_codes(self, rows: NDArray[np.int64]) -> VectorCopy:
        self.copied.append("codes")
        return VectorCopy((), None)

    def copy_rows(self, rows: NDArray[np.int64]) -> Packed:
        self.copied.append("vectors")
        return Packed(np.empty((0, 0), np.int8), np.empty((0, 0), np.int8), np.empty(0, np.float32))


@pytest.mark.parametrize(
    ("budget_bytes", "copied"), [(10 * 8 - 1, []), (10 * 108 - 1, ["codes"]), (10 * 108, ["codes", "vectors"])]
)
def test_vectors_are_copied_when_a_filter_repeats_and_the_budget_allows_it(
    budget_bytes: int, copied: list[str]
) -> None:
    reader, budget = Reader(), MemoryBudget(budget_bytes)
    beside = FilterVectors(reader, np.arange(10), budget)  # type: ignore[arg-type]
    assert beside.layers() is None
    for _ in range(_VECTORS_AFTER - 1):
        beside.layers()
    assert reader.copied == copied[:1]
    for _ in range(3):
        beside.layers()
    assert reader.copied == copied
    other = FilterVectors(reader, np.arange(10), budget)  # type: ignore[arg-type]
    for _ in range(_VECTORS_AFTER + 1):
        other.layers()
    assert reader.copied == (copied if copied != ["codes"] else ["codes", "codes"])


def test_a_budget_that_is_reset_has_all_of_it_again() -> None:
    budget = MemoryBudget(100)
    assert [budget.take(60), budget.take(60), budget.take(40)] == [True, False, True]
    budget.reset()
    assert budget.take(100)
