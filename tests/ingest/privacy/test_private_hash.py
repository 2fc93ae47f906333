"""What an index keeps of unmasked bytes confirms no guess, and a changed file is still noticed."""

from __future__ import annotations

import os
import stat
from hashlib import blake2b
from pathlib import Path

import pytest

import dowse
from dowse.config import user_folder
from dowse.identity import bytes_hash
from dowse.ingest.pipeline import MASKING_RULES
from dowse.private_hash import SIZE_STEP, private_hash, private_size
from dowse.reports import IndexReport

SECRET = b'password = "hunter42"\n'


def run(index_folder: Path, folder: Path) -> IndexReport:
    with dowse.open(index_folder, embedder="hash") as engine:
        return engine.index([folder])


def touch(file: Path, day: int) -> None:
    os.utime(file, ns=(day * 86_400 * 10**9, day * 86_400 * 10**9))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "notes"
    made.mkdir()
    (made / "a.py").write_bytes(SECRET)
    (made / "b.py").write_bytes(b"def plain():\n    return 1\n")
    for file in made.iterdir():
        touch(file, 100)
    return made


def test_no_hash_and_no_size_of_a_file_with_a_secret_is_in_the_index(index_folder: Path, folder: Path) -> None:
    assert run(index_folder, folder).masked == 1
    stored = b"".join(path.read_bytes() for path in index_folder.rglob("*") if path.is_file())
    for digest in (blake2b(SECRET, digest_size=16).digest(), blake2b(SECRET, digest_size=32).digest()):
        assert digest not in stored
        assert digest.hex().encode() not in stored
    assert bytes_hash(b"def plain():\n    return 1\n").encode() in stored  # hashes without a secret are as they were
    with dowse.open(index_folder, embedder="hash") as engine:
        sizes = {info.path: info.size_bytes for info in engine._store.documents("notes")}
    assert sizes == {"a.py": SIZE_STEP, "b.py": len(b"def plain():\n    return 1\n")}


def test_documents_that_are_added_are_hashed_with_the_key(index_folder: Path) -> None:
    with dowse.open(index_folder, embedder="hash") as engine:
        row = {"id": "1", "source": "s", "text": SECRET.decode()}
        assert engine.add([row]).added == 1
        assert engine.add([row]).unchanged == 1
        (info,) = engine._store.documents("s")
    assert info.content_hash != bytes_hash(SECRET)
    assert SECRET[12:20] not in b"".join(path.read_bytes() for path in index_folder.rglob("*") if path.is_file())


def test_the_key_tells_whether_a_touched_file_changed(index_folder: Path, folder: Path) -> None:
    run(index_folder, folder)
    assert run(index_folder, folder).unchanged == 2
    touch(folder / "a.py", 101)
    assert run(index_folder, folder).unchanged == 2
    (folder / "a.py").write_bytes(SECRET.replace(b"42", b"43"))
    touch(folder / "a.py", 102)
    assert run(index_folder, folder).changed == 1


def test_without_the_key_a_touched_file_is_read_once_more_and_not_embedded(
    index_folder: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(index_folder, folder)
    monkeypatch.setenv("DOWSE_HASH_KEY", "of the team")
    assert run(index_folder, folder).unchanged == 2  # same time stamps: nothing is read
    for day, changed in ((101, 1), (102, 0)):
        touch(folder / "a.py", day)
        report = run(index_folder, folder)
        assert (report.changed, report.embedded) == (changed, 0)


def test_an_index_of_older_masking_is_read_again_once_and_not_embedded(index_folder: Path, folder: Path) -> None:
    run(index_folder, folder)
    with dowse.open(index_folder, embedder="hash") as engine:
        assert engine._store.fact("masking/notes") == MASKING_RULES
        writer = engine._store.writer()
        engine._store.set_fact("masking/notes", "1")
        writer.close()
    report = run(index_folder, folder)
    assert (report.changed, report.embedded) == (2, 0)
    assert run(index_folder, folder).unchanged == 2


def test_the_key_is_kept_for_this_user_alone() -> None:
    assert private_hash(b"x") == private_hash(b"x") != bytes_hash(b"x")
    file = user_folder("config") / "hash_key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(file.read_bytes()) == 32


@pytest.mark.parametrize(("size", "steps"), [(0, 0), (1, 1), (SIZE_STEP, 1), (SIZE_STEP + 1, 2)])
def test_sizes_are_rounded_up(size: int, steps: int) -> None:
    assert private_size(size) == steps * SIZE_STEP
