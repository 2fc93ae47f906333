"""What a store keeps open between its writers, and the lines that say what is published."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from dowse.errors import CorruptIndexError, StorageError
from dowse.store.embedded import EmbeddedStore
from dowse.store.segments import state
from dowse.store.segments.arrays import PartReader, PartWriter
from dowse.store.segments.state import STATE, PartState, StateFile, read_state, state_line
from dowse.store.verify import verify
from factories import document, vectors

DIMENSION = 16


def update(store: EmbeddedStore, name: str, *texts: str) -> None:
    """One file, with vectors, by a writer of its own."""
    writer = store.writer()
    writer.put([document(name, *texts)])
    writer.publish()
    writer.use_model("test-model", DIMENSION)
    hashes = [each.content_hash for each in writer.pending(100)]
    writer.put_vectors(hashes, vectors(hashes, DIMENSION))
    writer.close()


def found(store: EmbeddedStore, word: str) -> int:
    return len(store.reader().search_words("bm25_code", [word], 99, ()).ids)


def near(store: EmbeddedStore) -> int:
    return len(store.reader().search_vectors(vectors(["ab" * 16], DIMENSION)[0], 99, ()).ids)


def check(stores: Sequence[EmbeddedStore], chunks: int) -> None:
    for store in stores:
        assert (store.reader().stats.chunks, store.reader().stats.vectors, near(store)) == (chunks, chunks, chunks)
        assert [each for each in verify(store, deep=True) if each.state != "ok" and each.name != "embeddings"] == []


# --- parts that stay open -----------------------------------------------------------------------------


def test_the_next_writer_goes_on_with_the_parts_of_the_last(index_folder: Path) -> None:
    store = EmbeddedStore(index_folder)
    update(store, "a.py", "alpha")
    kept = store._cache._parts
    for number in range(5):
        update(store, "a.py", f"alpha{number}", "beta")
        assert store._cache._parts is kept
    assert (found(store, "alpha4"), found(store, "alpha3"), found(store, "beta")) == (1, 0, 1)
    check([store], 2)
    store.close()


def test_two_that_write_in_turn_do_not_write_over_each_other(index_folder: Path) -> None:
    """Each keeps its files open; what it knows of their ends is old after every turn of the other."""
    one, other = EmbeddedStore(index_folder), EmbeddedStore(index_folder)
    for number in range(6):
        update((one, other)[number % 2], f"{number}.py", f"word{number}", f"second{number}")
        check([one, other], 2 * number + 2)
    assert [found(one, f"word{number}") for number in range(6)] == [1] * 6
    update(one, "0.py", "changed")
    update(other, "0.py", "changed again")
    assert [found(each, "word0") for each in (one, other)] == [0, 0]
    check([one, other], 11)
    one.close()
    other.close()


def test_parts_of_a_generation_that_was_compacted_away_are_not_written_to(index_folder: Path) -> None:
    one, other = EmbeddedStore(index_folder), EmbeddedStore(index_folder)
    update(one, "a.py", "alpha")
    writer = other.writer()
    writer.compact()
    writer.close()
    update(one, "b.py", "beta")
    check([one, other], 2)
    one.close()
    other.close()


def test_what_a_writer_could_not_finish_is_not_left_to_the_next(
    index_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = EmbeddedStore(index_folder)
    update(store, "a.py", "alpha")
    writer = store.writer()
    writer.put([document("b.py", "beta")])
    with monkeypatch.context() as full:
        full.setattr(StateFile, "write", refuse)
        with pytest.raises(StorageError):
            writer.publish()
        with pytest.raises(StorageError):
            writer.close()
    assert found(store, "beta") == 0
    update(store, "c.py", "gamma")
    assert [found(store, word) for word in ("alpha", "beta", "gamma")] == [1, 1, 1]
    check([store], 3)
    store.close()


def refuse(self: StateFile, state: PartState, *, sync: bool) -> None:
    raise StorageError("no space left")


def test_rows_that_are_older_than_their_vectors_are_noticed(index_folder: Path) -> None:
    """As a power failure may leave them: the vectors speak of chunks that the rows do not have."""
    store = EmbeddedStore(index_folder)
    update(store, "a.py", "alpha")
    rows = store.place().rows / STATE
    before = rows.read_bytes()
    update(store, "b.py", "beta")
    update(store, "b.py", "gamma")
    store.close()
    rows.write_bytes(before)
    with pytest.raises(CorruptIndexError, match="chunks are missing"):
        EmbeddedStore(index_folder, read_only=True).reader()
    store = EmbeddedStore(index_folder)
    assert [found(store, word) for word in ("alpha", "beta", "gamma")] == [1, 0, 1]
    check([store], 2)
    store.close()


# --- the lines ----------------------------------------------------------------------------------------


def test_a_publication_makes_the_file_longer_until_it_has_many_lines(tmp_path: Path) -> None:
    part, path = PartWriter(tmp_path), tmp_path / STATE
    sizes = []
    for number in range(1, 100):
        part.append("rows", np.arange(3))
        part.publish(number, number)
        assert (read_state(tmp_path).rows, PartReader(tmp_path).array("rows", np.int64).size) == (number, 3 * number)
        sizes.append(path.stat().st_size)
    shorter = [at for at, (earlier, later) in enumerate(pairwise(sizes), 1) if later < earlier]
    assert 2 <= len(shorter) <= 3  # of 99; lines grow by a digit now and then
    assert max(sizes) <= (state._MOST_LINES + 2) * len(state_line(part.state))
    part.close()


def test_only_who_wrote_last_may_go_on(tmp_path: Path) -> None:
    one = PartWriter(tmp_path)
    assert not one.still()
    one.publish(1, 1)
    assert one.still()
    other = PartWriter(tmp_path)
    assert other.still()
    other.publish(2, 2)
    assert (one.still(), other.still()) == (False, True)
    (tmp_path / STATE).unlink()
    assert not other.still()
    one.close()
    other.close()


@pytest.mark.parametrize("kept", [0, 1, 9, -1])
def test_a_line_that_is_cut_short_is_no_state(tmp_path: Path, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "_PAUSE_S", 0.0)
    part = PartWriter(tmp_path)
    part.publish(1, 1)
    part.publish(2, 2)
    part.close()
    whole = (tmp_path / STATE).read_bytes()
    first = whole.index(b"\n") + 1
    cut = whole[: first + kept] if kept >= 0 else whole[:-1]
    (tmp_path / STATE).write_bytes(cut)
    if kept == 0:
        assert read_state(tmp_path).rows == 1
        return
    with pytest.raises(CorruptIndexError, match="cut short; run `dowse rebuild`"):
        read_state(tmp_path)


def test_a_line_that_is_being_written_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = PartWriter(tmp_path)
    part.publish(1, 1)
    part.close()
    path = tmp_path / STATE
    before, line = path.read_bytes(), state_line(PartState(2, 2))
    path.write_bytes(before + line[:20])
    monkeypatch.setattr(state.time, "sleep", lambda seconds: path.write_bytes(before + line))
    assert read_state(tmp_path).rows == 2


def test_a_full_disk_leaves_the_lines_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = PartWriter(tmp_path)
    part.publish(1, 1)
    part.publish(2, 2)
    write, calls = os.pwrite, 0

    def half(handle: int, data: memoryview, at: int) -> int:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(handle, data[: len(data) // 2], at)

    with monkeypatch.context() as full:
        full.setattr(os, "pwrite", half)
        with pytest.raises(StorageError, match="no space left"):
            part.publish(3, 3)
    assert calls == 2
    assert read_state(tmp_path).rows == 2
    part.close()
