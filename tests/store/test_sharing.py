"""Several processes and threads at one index: one writes, the others are refused, wait, or read on."""

from __future__ import annotations

import random
import shutil
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from crash_writers import CrashWriters, versioned
from dowse.errors import BadRequestError, BusyError
from dowse.filters import Eq
from dowse.identity import number_id
from dowse.store.embedded import EmbeddedStore
from dowse.store.segments import forward
from dowse.store.snapshot import Snapshot
from dowse.store.verify import verify
from factories import document, ids, vectors

LONG_S = 30.0  # a bound for what should take milliseconds


@pytest.fixture
def index(index_folder: Path) -> Path:
    store = EmbeddedStore(index_folder)
    writer = store.writer()
    writer.put([versioned("0", 1), document("b.py", "bystander")])
    writer.close()
    store.close()
    return index_folder


# --- writers ----------------------------------------------------------------------------------------


def test_a_second_writer_is_refused_and_told_by_whom(index: Path, crash_writers: CrashWriters) -> None:
    process = crash_writers.start("hold", 0, index)
    while crash_writers.line() != ["ack", "hold"]:
        pass
    store = EmbeddedStore(index)
    with pytest.raises(BusyError, match=rf"{process}.*--wait"):
        store.writer()
    started = time.monotonic()
    with pytest.raises(BusyError):
        store.writer(wait_s=0.3)
    assert time.monotonic() - started >= 0.3
    crash_writers.kill(process)
    store.writer().close()  # a dead holder holds nothing
    store.close()


def test_a_second_writer_of_the_same_process_is_refused(index: Path) -> None:
    store = EmbeddedStore(index)
    writer = store.writer()
    with pytest.raises(BusyError):
        EmbeddedStore(index).writer()
    writer.close()
    store.writer().close()
    store.close()


def test_waiting_ends_when_the_holder_lets_go(index: Path) -> None:
    store, other = EmbeddedStore(index), EmbeddedStore(index)
    first = store.writer()
    taken = threading.Event()

    def wait() -> None:
        other.writer(wait_s=LONG_S).close()
        taken.set()

    thread = threading.Thread(target=wait)
    thread.start()
    assert not taken.wait(0.1)
    first.close()
    assert taken.wait(LONG_S)
    thread.join()
    store.close()
    other.close()


def test_many_that_begin_one_index_at_once_all_keep_their_documents(
    index_folder: Path, crash_writers: CrashWriters
) -> None:
    count = 8
    for number in range(count):
        crash_writers.ask("once", number, index_folder)
    dead = 0
    while dead < count:
        line = crash_writers.line()
        assert line[0] != "fail", " ".join(line)
        dead += line[0] == "dead"
    store = EmbeddedStore(index_folder)
    assert store.reader().stats.documents == count
    store.close()


# --- readers ----------------------------------------------------------------------------------------


def test_a_reader_is_not_blocked_by_a_transaction(index: Path, crash_writers: CrashWriters) -> None:
    process = crash_writers.start("hold", 0, index)
    while crash_writers.line() != ["ack", "hold"]:
        pass
    for read_only in (False, True):
        store = EmbeddedStore(index, read_only=read_only)
        found = store.reader().search_words("bm25_code", ["bystander"], 5, ())
        assert len(store.reader().get([number_id(int(each)) for each in found.ids])) == 1
        assert store.reader().document(document("b.py").id) is not None
        store.close()
    crash_writers.kill(process)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_document_that_is_replaced_is_never_seen_mixed_missing_or_twice(
    index: Path, crash_writers: CrashWriters, read_only: bool
) -> None:
    """Another process replaces it without end, and compacts; every moment shows one version, whole."""
    store = EmbeddedStore(index, read_only=read_only)
    process = crash_writers.start("swap", 5, index)
    seen: set[int] = set()
    stop_s = time.monotonic() + LONG_S
    swaps = 0
    while (len(seen) < 25 or swaps < 60) and time.monotonic() < stop_s:
        swaps += crash_writers.line() == ["ack", "swap"]
        reader = store.reader()
        found = reader.search_words("bm25_code", ["name0"], 50, ())
        numbers = [number_id(int(each)) for each in found.ids]
        chunks = reader.get(numbers)
        if len(chunks) < len(numbers) and store.reader() is not reader:
            continue  # the moment has passed, and its rows were let go of; the newer one has them all
        versions = {chunk.text.split()[1] for chunk in chunks.values()}
        assert len(versions) == 1, versions
        version = int(versions.pop().removeprefix("version"))
        assert sorted(numbers) == sorted(chunk.id for chunk in versioned("0", version).chunks)
        assert (reader.stats.documents, reader.stats.chunks) == (2, len(numbers) + 1)
        seen.add(version)
    crash_writers.kill(process)
    assert len(seen) >= 25
    store.close()


def test_a_reader_that_looked_before_a_compaction_ended_sees_no_dead_chunk(index: Path, tmp_path: Path) -> None:
    """It holds the old generation, still there; the tombstones that hide its dead are gone already."""
    store = EmbeddedStore(index)
    writer = store.writer()
    writer.put([versioned("0", 2)])
    writer.publish()
    old = store.place()
    shutil.copytree(old.folder, tmp_path / "old")
    writer.compact()
    shutil.copytree(tmp_path / "old", old.folder)
    snapshot, _ = store._take(old)
    assert _is_version(snapshot.search_words("bm25_code", ["name0"], 50, ()).ids.tolist(), 2)
    writer.close()
    store.close()


def test_threads_that_read_while_another_writes_see_whole_documents(index: Path) -> None:
    store = EmbeddedStore(index)
    writer = store.writer()
    done, wrong = threading.Event(), []

    def read() -> None:
        while not done.is_set():
            reader = store.reader()
            found = reader.search_words("bm25_nlp", ["name0"], 50, (Eq("document_source", "docs"),)).ids
            known = [version for version in range(40) if _is_version(found.tolist(), version)]
            if len(known) != 1:
                wrong.append(found.tolist())

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for version in range(40):
        writer.put([versioned("0", version)])
        writer.publish()
        if version % 13 == 0:
            writer.compact()
    done.set()
    for thread in threads:
        thread.join()
    assert not wrong
    writer.close()
    store.close()


def _is_version(found: list[int], version: int) -> bool:
    return sorted(found) == sorted(ids(*(each.id for each in versioned("0", version).chunks)).tolist())


def test_a_moment_that_goes_on_from_an_earlier_one_is_like_one_seen_anew(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ChunkLengths, the dead and the count of documents are carried on; room for lengths runs out twice here."""
    monkeypatch.setattr(forward, "_MORE_ROWS", 6)
    store, moments, rng = EmbeddedStore(index), [], random.Random(5)
    for step in range(24):
        writer = store.writer()
        name = rng.randrange(8)
        if rng.random() < 0.3:
            writer.remove([document(f"{name}.py").id])
        else:
            writer.put([document(f"{name}.py", *(f"word{step} " * rng.randrange(1, 9) for _ in range(3)))])
        if step == 13:
            writer.compact()
        writer.close()
        with closing(EmbeddedStore(index, read_only=True)) as other:
            moments.append((store.reader(), _seen(other.reader())))
            assert _seen(store.reader()) == moments[-1][1]
    assert all(_seen(moment) == was for moment, was in moments)  # what came later changed none of them
    store.close()


def _seen(moment: Snapshot) -> object:
    norms = [(norm.lengths.tolist(), norm.base, norm.slope) for norm in moment.session()._words.norms.values()]
    return moment.stats, norms, sorted(moment.dead.tolist()), moment.alive.tolist(), moment.living


def test_an_open_reader_picks_up_what_others_publish(index: Path) -> None:
    """Also one that was opened when nobody wrote, and one that cannot write."""
    readers = [EmbeddedStore(index, read_only=read_only) for read_only in (False, True)]
    before = [store.reader() for store in readers]
    other = EmbeddedStore(index)
    writer = other.writer()
    for number in range(3):
        writer.put([document("new.py", f"fresh{number}")])
        writer.publish()
        for store in readers:
            assert len(store.reader().search_words("bm25_code", [f"fresh{number}"], 5, ()).ids) == 1
            assert store.reader() is store.reader()
    writer.use_model("test-model", 16)
    hashes = [each.content_hash for each in writer.pending(9)]
    writer.put_vectors(hashes, vectors(hashes, 16))
    assert [store.reader().stats.vectors for store in readers] == [len(hashes)] * 2
    assert all(len(old.search_words("bm25_code", ["fresh0"], 5, ()).ids) == 0 for old in before)
    writer.close()
    for store in (*readers, other):
        store.close()


# --- read-only --------------------------------------------------------------------------------------


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_reading_only_changes_no_file(index: Path) -> None:
    before = _contents(index)
    store = EmbeddedStore(index, read_only=True)
    assert len(store.reader().search_words("bm25_code", ["bystander"], 5, ()).ids) == 1
    assert all(check.state == "ok" for check in verify(store, deep=True))
    with pytest.raises(BadRequestError, match="read-only"):
        store.writer()
    store.close()
    after = _contents(index)
    sqlites_own = {"dowse.db-shm", "dowse.db-wal"}  # by which readers and a writer keep out of each other's way
    assert after.keys() - before.keys() <= sqlites_own
    assert {name: data for name, data in after.items() if name in before} == before
    assert after.get("dowse.db-wal", b"") == b""


def test_random_moments_of_one_writer_agree_with_its_log(index: Path) -> None:
    """A snapshot taken at any point of a run answers for that point for as long as it is held."""
    store, rng = EmbeddedStore(index), random.Random(3)
    writer = store.writer()
    moments = []
    for version in range(2, 30):
        writer.put([versioned("0", version)])
        writer.publish()
        if rng.random() < 0.2:
            writer.compact()
        moments.append((version, store.reader()))
    for version, reader in moments:
        assert _is_version(reader.search_words("bm25_code", ["name0"], 50, ()).ids.tolist(), version)
    writer.close()
    store.close()


def test_a_new_index_is_empty_until_its_first_publication_and_needs_one_writer(tmp_path: Path) -> None:
    with closing(EmbeddedStore(tmp_path / "index")) as store, closing(EmbeddedStore(tmp_path / "index")) as other:
        assert store.reader().stats.chunks == 0
        assert not (tmp_path / "index" / "derived").exists()
        with closing(store.writer()) as writer:
            writer.put([document("a.md", "alpha")])
            with closing(EmbeddedStore(tmp_path / "index", read_only=True)) as third:
                assert third.reader().stats.chunks == 0  # stored, and not published yet
            writer.publish()
            assert [each.reader().stats.chunks for each in (store, other)] == [1, 1]
        assert [each.name for each in (tmp_path / "index" / "derived").iterdir() if each.is_dir()] == ["1"]
