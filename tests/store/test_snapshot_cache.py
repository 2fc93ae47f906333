"""A filter's few chunks: scored from what each says, or from their words turned around, to the same digits."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dowse.filters import by_path
from dowse.ports import Bm25
from dowse.store.embedded import EmbeddedStore
from dowse.store.kernels.bm25 import term_score
from dowse.store.kernels.numpy_kernel import NUMPY, Kernel, Norm, Packed, open_kernel
from dowse.store.segments.forward import Asked, ForwardReader
from dowse.store.segments.vectors import Layers
from dowse.store.snapshot_cache import _OFTEN, _VECTORS_AFTER, Beside, Few, Question, Room, Tallies, counted, known
from factories import document

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
    few = Few(slots, forward, kernel)
    asked = Asked(np.array(sorted(terms), np.uint32), np.array([1.0 + term for term in sorted(terms)]))
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
    few, asked = Few(np.array([0]), forward, NUMPY), Asked(np.array([5], np.uint32), np.ones(1))
    for _ in range(_OFTEN):
        few.score("bm25_nlp", asked, Norm(forward.lengths.by_leg[1], 1.0, 1.0))
    assert few._turned is None


def test_scores_of_few_chunks_are_known_for_any_of_them_and_for_no_other() -> None:
    few = Few(np.array([2, 5, 9]), forward_index([{}] * 10, NUMPY), NUMPY)
    nothing = Asked(np.empty(0, np.uint32), np.empty(0))
    code, prose, later = (Question(nothing, [], 0.0) for _ in range(3))
    code.few, prose.few = (few, np.array([0.2, 0.5, 0.9])), (few, np.array([2.0, 5.0, 9.0]))
    found = known({"bm25_code": code, "bm25_nlp": prose}, np.array([9, 2]))
    assert {leg: scores.tolist() for leg, scores in found.items()} == {"bm25_code": [0.9, 0.2], "bm25_nlp": [9.0, 2.0]}
    assert known({"bm25_code": code}, np.array([9, 3])) == {}
    assert known({"bm25_code": code}, np.array([10])) == {}
    assert known({"bm25_code": later}, np.array([9])) == {}


class Reader:
    """Notes what is copied."""

    code_bytes, row_bytes = 8, 100

    def __init__(self) -> None:
        self.copied: list[str] = []

    def codes_beside(self, rows: NDArray[np.int64]) -> Layers:
        self.copied.append("codes")
        return Layers((), None)

    def beside(self, rows: NDArray[np.int64]) -> Packed:
        self.copied.append("vectors")
        return Packed(np.empty((0, 0), np.int8), np.empty((0, 0), np.int8), np.empty(0, np.float32))


@pytest.mark.parametrize(
    ("room_bytes", "copied"), [(10 * 8 - 1, []), (10 * 108 - 1, ["codes"]), (10 * 108, ["codes", "vectors"])]
)
def test_vectors_are_copied_when_a_filter_comes_again_and_there_is_room(room_bytes: int, copied: list[str]) -> None:
    reader, room = Reader(), Room(room_bytes)
    beside = Beside(reader, np.arange(10), room)  # type: ignore[arg-type]
    assert beside.layers() is None
    for _ in range(_VECTORS_AFTER - 1):
        beside.layers()
    assert reader.copied == copied[:1]
    for _ in range(3):
        beside.layers()
    assert reader.copied == copied
    other = Beside(reader, np.arange(10), room)  # type: ignore[arg-type]
    for _ in range(_VECTORS_AFTER + 1):
        other.layers()
    assert reader.copied == (copied if copied != ["codes"] else ["codes", "codes"])


def test_a_leg_remembers_the_last_question_alone_and_only_what_passed() -> None:
    tallies, nothing = Tallies(), Asked(np.empty(0, np.uint32), np.empty(0))
    first, second = Question(nothing, [], 0.0), Question(nothing, [], 0.0)
    mask = np.array([True, False, True])
    for question in (first, second):
        tally = tallies.begin("bm25_code")
        tally.grow(3)
        tally.add(np.array([0, 2]), np.array([1.5, 2.5]))
        tallies.keep("bm25_code", tally, question, mask)
    assert {leg: each.tolist() for leg, each in tallies.known({"bm25_code": second}, np.array([2, 0])).items()} == {
        "bm25_code": [2.5, 1.5]
    }
    assert tallies.known({"bm25_code": second}, np.array([1, 2])) == {}
    assert tallies.known({"bm25_code": first, "bm25_nlp": second}, np.array([2])) == {}
    tallies.keep("bm25_nlp", tallies.begin("bm25_nlp"), first, mask[:0])  # all pass
    assert tallies.known({"bm25_nlp": first}, np.empty(0, np.int64))["bm25_nlp"].tolist() == []


@ANY_KERNEL
def test_a_search_that_is_interrupted_leaves_nothing_for_the_next(kernel: Kernel, tmp_path: Path) -> None:
    with closing(EmbeddedStore(tmp_path / "index", kernel=kernel)) as store:
        with closing(store.writer()) as writer:
            writer.put([document(f"{n}.md", f"alpha beta{n} gamma{n % 7}") for n in range(600)])  # a run, not a tail
        reader = store.reader()

        def ask(term: str) -> list[tuple[int, float]]:
            found = reader.search_words("bm25_code", [term], 9, ())
            return list(zip(found.ids.tolist(), found.scores.tolist(), strict=True))

        class Interrupted:
            def best(self, runs: Any, weights: Any, norm: Any, mask: Any, k: int, tally: Any) -> None:
                kernel.best(runs, weights, norm, mask, k, tally)
                tally.sums += 1.0  # as if it had added up some, and had not noted where
                raise KeyboardInterrupt

        before = ask("gamma3")
        reader._kernel = Interrupted()  # type: ignore[assignment]
        with pytest.raises(KeyboardInterrupt):
            ask("beta5")
        reader._kernel = kernel
        assert len(before) == 9
        assert ask("gamma3") == before


def test_views_with_other_constants_share_the_room_for_copies(tmp_path: Path) -> None:
    with closing(EmbeddedStore(tmp_path / "index")) as store:
        with closing(store.writer()) as writer:
            writer.put([document(f"{n}.md", "alpha") for n in range(40)])
        reader = store.reader()
        view = reader.with_bm25(Bm25(0.9, 0.4))
        for n in range(40):  # more filters than are remembered
            view.search_words("bm25_code", ["alpha"], 5, (by_path(f"{n}.md"),))
        assert view._room is reader._room


def test_room_that_is_emptied_has_all_of_it_again() -> None:
    room = Room(100)
    assert [room.has(60), room.has(60), room.has(40)] == [True, False, True]
    room.empty()
    assert room.has(100)


@given(st.lists(st.sampled_from("abcd")))
def test_terms_are_counted_in_the_order_they_are_first_said(terms: list[str]) -> None:
    assert list(counted(terms).items()) == list(Counter(terms).items())
