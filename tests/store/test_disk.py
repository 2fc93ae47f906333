"""Disks that are full or cannot be written to, and files that grow too large: clear errors, nothing lost."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from dowse.errors import BadRequestError, StorageError
from dowse.filters import Ne
from dowse.identity import number_id
from dowse.store.embedded import EmbeddedStore
from dowse.store.verify import verify
from dowse.store.writer import EmbeddedWriter
from dowse.types import Document
from factories import document, vectors

DISK = "12m"
BALLAST_BYTES = 8_000_000  # freed when the disk is full: what the rest holds can be derived in it
DIMENSION = 256


def _mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"mounting needs rights that this user lacks: {done.stderr.strip()}")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    _mount("-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(disk))
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def _document(number: int) -> Document:
    """Six chunks, one of which fills a page or two in every part."""
    rng = random.Random(number)
    texts = (" ".join(f"w{rng.randrange(2000)}" for _ in range(800)) for _ in range(6))
    return document(f"{number}.py", *(f"name{number} {text}" for text in texts))


def _put(writer: EmbeddedWriter, number: int) -> None:
    writer.put([_document(number)])


def _publish(writer: EmbeddedWriter, number: int) -> None:
    _put(writer, number)
    writer.publish()


def _compact(writer: EmbeddedWriter, number: int) -> None:
    _put(writer, number)
    writer.compact()


def _embed(writer: EmbeddedWriter, number: int) -> None:
    _publish(writer, number)
    writer.use_model("test-model", DIMENSION)
    hashes = [each.content_hash for each in writer.pending(100)]
    writer.put_vectors(hashes, vectors(hashes, DIMENSION))


def fill(writer: EmbeddedWriter, step: Callable[[EmbeddedWriter, int], None]) -> list[int]:
    """Until the disk is full; the documents that were acknowledged."""
    acknowledged: list[int] = []
    with pytest.raises(StorageError, match="space"):
        acknowledged.extend(_stepping(writer, step))  # extend takes them one by one, so those before the error stay
    return acknowledged


def _stepping(writer: EmbeddedWriter, step: Callable[[EmbeddedWriter, int], None]) -> Iterator[int]:
    for number in range(10_000):
        step(writer, number)
        yield number


def check_all(store: EmbeddedStore, numbers: list[int]) -> None:
    for number in numbers:
        found = store.reader().search_words("bm25_code", [f"name{number}"], 10, ()).ids
        assert len(found) == 6, f"document {number}: {len(found)} of 6 chunks"
    assert [check for check in verify(store, deep=True) if check.state != "ok"] == []


@pytest.mark.parametrize("step", [_put, _publish, _compact, _embed])
def test_a_full_disk_is_an_error_and_work_goes_on_when_there_is_space(
    small_disk: Path, step: Callable[[EmbeddedWriter, int], None]
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(os.urandom(BALLAST_BYTES))
    store = EmbeddedStore(small_disk / "index")
    writer = store.writer()
    acknowledged = fill(writer, step)
    assert acknowledged
    reading = EmbeddedStore(small_disk / "index", read_only=True)  # a full disk can be read from
    assert len(reading.reader().search_words("bm25_code", ["name0"], 10, ()).ids) in (0, 6)
    reading.close()
    ballast.unlink()
    _publish(writer, 10_000)
    check_all(store, [*acknowledged, 10_000])
    writer.close()
    store.close()
    store = EmbeddedStore(small_disk / "index")
    check_all(store, [*acknowledged, 10_000])
    store.close()


def test_a_full_disk_that_is_left_alone_is_mended_by_the_next_run(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(os.urandom(BALLAST_BYTES))
    store = EmbeddedStore(small_disk / "index")
    writer = store.writer()
    acknowledged = fill(writer, _publish)
    with suppress(StorageError):  # what is left to publish may have no space; the lock is let go of all the same
        writer.close()
    store.close()
    ballast.unlink()
    store = EmbeddedStore(small_disk / "index")
    check_all(store, acknowledged)
    store.writer().close()
    store.close()


def test_no_space_for_a_new_index_is_an_error(small_disk: Path) -> None:
    with pytest.raises(OSError, match="No space"):
        (small_disk / "ballast").write_bytes(bytes(20_000_000))
    with pytest.raises(StorageError, match="space"):
        EmbeddedStore(small_disk / "index")
    (small_disk / "ballast").unlink()
    EmbeddedStore(small_disk / "index").close()


def _write(store: EmbeddedStore) -> None:
    writer = store.writer()
    try:
        _publish(writer, 2)
    finally:
        with suppress(StorageError):
            writer.close()


@pytest.mark.parametrize("unpublished", [False, True])
def test_an_index_on_a_full_disk_opens_and_answers(
    small_disk: Path, unpublished: bool, caplog: pytest.LogCaptureFixture
) -> None:
    index, ballast = small_disk / "index", small_disk / "ballast"
    store = EmbeddedStore(index)
    writer = store.writer()
    _embed(writer, 0)
    if unpublished:
        _put(writer, 1)
        writer._lock.close()  # as a killed writer leaves it
    else:
        writer.close()
    store.close()
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(bytes(512)):
            pass
    store = EmbeddedStore(index)
    assert len(store.reader().search_words("bm25_code", ["name0"], 10, ()).ids) == 6
    assert len(store.reader().get([number_id(int(store.reader().ids[0]))])) == 1
    assert ("answers come from what was published before" in caplog.text) is unpublished
    with pytest.raises(StorageError, match=r"cannot write|no space"):
        _write(store)
    ballast.unlink()
    with closing(EmbeddedStore(index)) as other:  # and an open store sees what is written when there is space again
        writer = other.writer()
        _publish(writer, 3)
        writer.close()
        assert len(store.reader().search_words("bm25_code", ["name3"], 10, ()).ids) == 6
        check_all(other, [0, 3, *([1] if unpublished else [])])
    store.close()


# --- places that cannot be written to -----------------------------------------------------------------


@pytest.fixture
def sealed(index_folder: Path, tmp_path: Path) -> Iterator[Path]:
    """An index on a file system that is mounted read-only."""
    store = EmbeddedStore(index_folder)
    writer = store.writer()
    _embed(writer, 1)
    writer.close()
    store.close()
    place = tmp_path / "sealed"
    place.mkdir()
    _mount("--bind", str(index_folder), str(place))
    _mount("-o", "remount,ro,bind", str(place))
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize("read_only", [True, False])
def test_an_index_on_a_read_only_disk_answers(sealed: Path, read_only: bool) -> None:
    store = EmbeddedStore(sealed, read_only=read_only)
    check_all(store, [1])
    assert store.reader().stats.vectors == 6
    with pytest.raises(BadRequestError if read_only else StorageError, match=r"[rR]ead-only"):
        store.writer()
    store.close()


def test_an_index_cannot_begin_on_a_read_only_disk(sealed: Path) -> None:
    with pytest.raises(StorageError, match="Read-only"):
        EmbeddedStore(sealed / "new")


def test_an_old_generation_that_cannot_be_deleted_stops_no_compaction(small_disk: Path) -> None:
    store = EmbeddedStore(small_disk / "index")
    writer = store.writer()
    _publish(writer, 1)
    stuck = small_disk / "index" / "derived" / "77"
    stuck.mkdir()
    _mount("-t", "tmpfs", "tmpfs", str(stuck))
    writer.compact()
    check_all(store, [1])
    assert store.place().number == 78
    subprocess.run(["umount", str(stuck)], check=True)
    writer.compact()
    assert not stuck.exists()
    writer.close()
    store.close()


# --- compaction ---------------------------------------------------------------------------------------


def _generation(folder: Path) -> str:
    return next(path.name for path in (folder / "derived").iterdir() if path.is_dir())


def test_compaction_comes_when_more_than_a_fifth_is_dead(index_folder: Path) -> None:
    """1001 dead of 3000 + 1001 + 1000 rows are more than .2 · 5001 = 1000.2; 1000 of 5000 are not."""
    store = EmbeddedStore(index_folder)
    writer = store.writer()
    texts = [f"w{number}" for number in range(3000)]
    writer.put([document("kept.py", *texts), document("churn.py", *texts[:1001])])
    writer.publish()
    first = _generation(index_folder)
    writer.put([document("churn.py", *texts[1:1001])])
    writer.publish()
    assert (_generation(index_folder) != first, store.reader().rows) == (True, 4000)
    second = _generation(index_folder)
    writer.put([document("churn.py", *texts[:1000])])
    writer.publish()
    assert (_generation(index_folder), store.reader().rows, len(store.reader().dead)) == (second, 5000, 1000)
    assert store.reader().stats.chunks == 4000
    assert len(store.reader().search_words("bm25_code", ["w0"], 9, (Ne("language", "x"),)).ids) == 2
    writer.close()
    store.close()
