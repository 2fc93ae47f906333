"""Session of one query: a scoring that reuses what the searches found gives the digits of one that does not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from threading import Thread
from typing import Any

import numpy as np
import pytest

from dowse.filters import Filter, Glob, by_path
from dowse.ports import Bm25, Ids
from dowse.store.embedded import EmbeddedStore
from dowse.store.kernels.numpy_kernel import NUMPY, Kernel, open_kernel
from dowse.store.snapshot import _FORWARD_ROWS, Snapshot
from dowse.types import Leg
from factories import document

pytest.importorskip("dowse.store.kernels._native", reason="the native kernel was not built")
LEG: Leg = "bm25_code"
CHUNKS = 2 * _FORWARD_ROWS + 600
FILTERS: dict[str, Filter] = {
    "none": (),
    "large": (Glob("file_path", ("a*",)),),
    "small": (Glob("file_path", ("a1*",)),),
}
DIMENSION = 8


@pytest.fixture(scope="module", params=[NUMPY, open_kernel("native")], ids=["numpy", "native"])
def kernel(request: pytest.FixtureRequest) -> Kernel:
    return request.param


@pytest.fixture(scope="module")
def snapshot(kernel: Kernel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    with closing(EmbeddedStore(tmp_path_factory.mktemp("session") / "index", kernel=kernel)) as store:
        with closing(store.writer()) as writer:
            names = [f"{'ab'[n % 8 == 0]}{n}.md" for n in range(CHUNKS)]
            writer.put([document(name, f"alpha beta{n % 40} gamma{n % 7}") for n, name in enumerate(names)])
            writer.publish()
            writer.use_model("rows", DIMENSION)
            rng = np.random.default_rng(7)
            while waiting := writer.pending(1000):
                rows = rng.standard_normal((len(waiting), DIMENSION)).astype(np.float32)
                rows /= np.linalg.norm(rows, axis=1, keepdims=True)
                writer.put_vectors([each.content_hash for each in waiting], rows)
        yield store.reader()


def unseen(snapshot: Snapshot) -> Ids:
    return np.append(snapshot.ids[5:25], np.uint64(1))  # the last one does not exist


@pytest.mark.parametrize("where", FILTERS.values(), ids=FILTERS)
def test_scores_after_a_search_are_those_without_one(snapshot: Snapshot, where: Filter) -> None:
    session, terms = snapshot.session(), ["gamma3", "beta5", "nowhere"]
    found = session.search_words(LEG, terms, 30, where)
    near = session.search_vectors(np.eye(DIMENSION, dtype=np.float32)[0], 30, where)
    ids = np.unique(np.concatenate([found.ids, near.ids]))
    for chosen in (found.ids, ids, ids, unseen(snapshot)):  # the second time without the sums of the search
        assert session.score_words({LEG: terms}, chosen)[LEG].tolist() == pytest.approx(
            snapshot.score_words({LEG: terms}, chosen)[LEG].tolist(), rel=1e-12
        )
        vector = np.eye(DIMENSION, dtype=np.float32)[0]
        np.testing.assert_array_equal(session.score_vectors(vector, chosen), snapshot.score_vectors(vector, chosen))
        np.testing.assert_array_equal(session.vectors(chosen)[0], snapshot.vectors(chosen)[0])
        assert session.passing(chosen, where).tolist() == snapshot.passing(chosen, where).tolist()
    assert session.score_words({LEG: terms}, found.ids)[LEG].tolist() == pytest.approx(found.scores.tolist())


def test_chunks_are_the_same_whether_a_search_found_them_or_not(snapshot: Snapshot) -> None:
    session = snapshot.session()
    found = [f"{each:016x}" for each in session.search_words(LEG, ["gamma3"], 9, ()).ids.tolist()]
    assert session.get(found) == snapshot.get(found)
    assert list(session.get(found)) == found
    mixed = [*found, f"{int(snapshot.ids[0]):016x}", "0" * 16]
    assert session.get(mixed) == snapshot.get(mixed)
    assert session.get([]) == {}


def test_two_queries_at_once_do_not_mix_their_sums(snapshot: Snapshot) -> None:
    one, two = snapshot.session(), snapshot.session()
    first, second = one.search_words(LEG, ["gamma3"], 9, ()), two.search_words(LEG, ["gamma4"], 9, ())
    assert one.score_words({LEG: ["gamma3"]}, first.ids)[LEG].tolist() == pytest.approx(first.scores.tolist())
    assert two.score_words({LEG: ["gamma4"]}, second.ids)[LEG].tolist() == pytest.approx(second.scores.tolist())
    assert two.score_words({LEG: ["gamma4"]}, first.ids)[LEG].tolist() == [0.0] * 9


def test_two_filters_at_once_do_not_mix_their_sums(snapshot: Snapshot) -> None:
    sessions = [(snapshot.session(), where) for where in FILTERS.values()]
    found = [session.search_words(LEG, ["gamma3"], 9, where) for session, where in sessions]
    for (session, where), own in zip(sessions, found, strict=True):
        assert session.passing(own.ids, where).all()
        assert session.score_words({LEG: ["gamma3"]}, own.ids)[LEG].tolist() == pytest.approx(own.scores.tolist())


def test_a_search_in_another_thread_leaves_its_sums_to_the_session(snapshot: Snapshot) -> None:
    session, found = snapshot.session(), []
    thread = Thread(target=lambda: found.append(session.search_words(LEG, ["gamma3"], 9, ())))
    thread.start()
    thread.join()
    free = len(snapshot.free_sums)
    assert session.score_words({LEG: ["gamma3"]}, found[0].ids)[LEG].tolist() == pytest.approx(found[0].scores.tolist())
    assert len(snapshot.free_sums) == free + 1  # it was read, and is there for the next query


def test_a_search_that_is_interrupted_leaves_nothing_for_the_next(
    kernel: Kernel, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted:
        find = staticmethod(kernel.find)

        def best(self, runs: Any, weights: Any, norm: Any, mask: Any, k: int, sums: Any) -> None:
            kernel.best(runs, weights, norm, mask, k, sums)
            sums.sums += 1.0  # as if it had added up some, and had not noted where
            raise KeyboardInterrupt

    before = snapshot.search_words(LEG, ["gamma3"], 9, ())
    with monkeypatch.context() as patch:
        patch.setattr(snapshot._frequencies, "kernel", Interrupted())
        patch.setattr(snapshot, "_indexes", {})
        with pytest.raises(KeyboardInterrupt):
            snapshot.search_words(LEG, ["beta5"], 9, ())
    after = snapshot.search_words(LEG, ["gamma3"], 9, ())
    assert (before.ids.tolist(), before.scores.tolist()) == (after.ids.tolist(), after.scores.tolist())


def test_sessions_with_other_constants_share_the_selections_of_filters(snapshot: Snapshot) -> None:
    session = snapshot.session(Bm25(0.9, 0.4))
    for n in range(40):  # more filters than are remembered
        session.search_words(LEG, ["alpha"], 5, (by_path(f"a{n}.md"),))
    assert len(snapshot._selections) <= 16
    constants = [Bm25(1.0 + n / 10, 0.5) for n in range(9)]
    scores = [snapshot.session(each).search_words(LEG, ["alpha"], 1, ()).scores[0] for each in constants]
    assert len(set(scores)) == len(constants)
    assert len(snapshot._indexes) <= 4
