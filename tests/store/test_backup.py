"""A backup is one file of a live index; what is restored from it answers alike and goes on."""

from __future__ import annotations

import os
import stat
import threading
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

import dowse
from dowse.cli.main import cli
from dowse.errors import BadRequestError, CorruptIndexError, NoIndexError, NotFoundError, SchemaVersionError
from dowse.models.embed_hash import HashEmbedder
from dowse.store.backup import back_up, restore

NOTES = [{"id": f"n{number}", "text": f"common note {number} about apples"} for number in range(12)]


@pytest.fixture
def index(index_folder: Path) -> Path:
    with dowse.open(index_folder, embedder="hash") as engine:
        engine.add(NOTES)
        engine.remove(["n11"])
    return index_folder


def answers(index: Path) -> list[tuple[str, float]]:
    with dowse.open(index, embedder="hash", create=False) as engine:
        return [(hit.id, hit.final_score) for hit in engine.query("apples note 3", top_k=30).chunks]


def test_a_restored_index_answers_alike_and_embeds_nothing_again(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, other = index.parent / "app.dowse", index.parent / "other"
    manifest = back_up(index, file)
    assert (manifest.documents, manifest.chunks, manifest.vectors) == (11, 11, 12)
    before = answers(index)

    with monkeypatch.context() as patch:
        patch.setattr(HashEmbedder, "embed", lambda *_, **_roles: pytest.fail("embedded again"))
        assert restore(file, other) == manifest
    assert answers(other) == before
    with dowse.open(other, embedder="hash") as engine:
        report = engine.add([*NOTES[:11], {"id": "late", "text": "pears"}])
        assert (report.added, report.unchanged) == (1, 11)
        assert engine.query("pears").chunks[0].text.startswith("pears")
        assert [check for check in engine.verify(deep=True) if check.state != "ok"] == []


def test_files_of_a_backup_and_of_what_is_restored_are_private(index: Path) -> None:
    file, other = index.parent / "app.dowse", index.parent / "other"
    old = os.umask(0)
    try:
        back_up(index, file)
        restore(file, other)
    finally:
        os.umask(old)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(other.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in other.rglob("*") if path.is_file()} == {0o600}
    assert sorted(path.name for path in index.parent.iterdir()) == ["app.dowse", "index", "other"]


def test_a_backup_beside_a_writer_has_whole_documents(index: Path) -> None:
    stop, written = threading.Event(), []

    def write() -> None:
        with dowse.open(index, embedder="hash") as engine:
            while not stop.is_set():
                engine.add([{"id": f"w{len(written)}", "text": f"word{len(written)} twice"}])
                written.append(1)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for number in range(4):
            acknowledged = len(written)
            back_up(index, index.parent / "live.dowse")
            restore(index.parent / "live.dowse", index.parent / str(number))
            with dowse.open(index.parent / str(number), embedder="hash") as engine:
                assert engine.status().documents >= 11 + acknowledged
                assert [check.name for check in engine.verify(deep=True) if check.state == "fail"] == []
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.9])
@pytest.mark.parametrize("harm", ["flip", "cut"])
def test_a_damaged_backup_is_refused_and_leaves_no_index(index: Path, share: float, harm: str) -> None:
    file, other = index.parent / "app.dowse", index.parent / "other"
    back_up(index, file)
    data = bytearray(file.read_bytes())
    at = int(share * len(data)) or data.index(b"dowse-backup.json") + 40  # in the manifest
    data[at] ^= 0x55
    file.write_bytes(data[:at] if harm == "cut" else data)
    with pytest.raises((CorruptIndexError, BadRequestError, NotFoundError), match=r"app\.dowse"):
        restore(file, other)
    assert not (other / "dowse.db").exists()


def test_foreign_files_and_existing_indexes_are_refused(index: Path, tmp_path: Path) -> None:
    file = tmp_path / "app.dowse"
    with pytest.raises(NotFoundError, match="no such file"):
        restore(file, tmp_path / "x")
    file.write_text("notes")
    with pytest.raises(BadRequestError, match="not a backup"):
        restore(file, tmp_path / "x")
    with pytest.raises(BadRequestError, match="not a backup"):
        back_up(index, file)
    assert file.read_text() == "notes"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a.txt", "text")
    with pytest.raises(BadRequestError, match="not a backup of Dowse"):
        restore(file, tmp_path / "x")
    back_up(index, file)
    with pytest.raises(BadRequestError, match="already has an index"):
        restore(file, index)
    with pytest.raises(NoIndexError):
        back_up(tmp_path / "none", tmp_path / "new.dowse")
    assert not (tmp_path / "x").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["app.dowse"]


def test_a_backup_of_a_newer_dowse_is_refused(index: Path) -> None:
    file = index.parent / "app.dowse"
    back_up(index, file)
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data.replace(b'"schema":"', b'"schema":"9'))
    with pytest.raises(SchemaVersionError, match="newer Dowse"):
        restore(file, index.parent / "other")


def test_a_damaged_index_does_not_replace_a_good_backup(index: Path) -> None:
    file = index.parent / "app.dowse"
    back_up(index, file)
    good = file.read_bytes()
    database = index / "dowse.db"
    database.write_bytes(database.read_bytes().replace(b"note 3 about", b"note 3 abovt"))
    with pytest.raises(CorruptIndexError, match="does not match its checksum"):
        back_up(index, file)
    assert file.read_bytes() == good


def test_the_commands_print_json(index: Path, tmp_path: Path) -> None:
    run = CliRunner()
    done = run.invoke(cli, ["backup", str(tmp_path / "a.dowse"), "--index", str(index), "--json"])
    assert done.exit_code == 0, done.output
    assert '"documents":11' in done.stdout
    done = run.invoke(cli, ["restore", str(tmp_path / "a.dowse"), "--index", str(tmp_path / "new"), "--json"])
    assert done.exit_code == 0, done.output
    assert '"chunks":11' in done.stdout
