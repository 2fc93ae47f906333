"""Archives are read without being unpacked; whatever is wrong with one is a line, and the run goes on."""

import bz2
import gzip
import io
import lzma
import os
import struct
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dowse.errors import BadRequestError
from dowse.ingest.pipeline import IndexOptions, index
from dowse.ingest.sources import archives
from dowse.ingest.sources.archives import BOMB_LEAST_BYTES, clean, is_archive, member_bytes, members
from dowse.ingest.sources.requests import IndexRequest
from dowse.reports import IndexReport
from dowse.store.memory import MemoryStore

LIMIT = 10_000


def make_zip(path: Path, files: Mapping[str, bytes], **how: int) -> Path:
    with zipfile.ZipFile(path, "w", how.get("compression", zipfile.ZIP_DEFLATED)) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def make_tar(path: Path, files: Mapping[str, bytes]) -> Path:
    with tarfile.open(path, "w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path


def run(store: MemoryStore, *paths: Path, archives: bool = False) -> IndexReport:
    options = IndexOptions(max_file_bytes=LIMIT)
    return index(store, [IndexRequest(path, archives=archives) for path in paths], options)


def stored(store: MemoryStore) -> list[str]:
    return sorted(f"{info.source}/{info.path}" for info in store.documents())


FILES = {"docs/a.md": b"# Alpha\n\nOne.\n", "src/b.py": b"def beta():\n    return 2\n"}


# --- members become documents ----------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["zip", "tar", "tar.gz", "tgz", "tar.bz2", "tar.xz"])
def test_members_of_a_named_archive_become_documents(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "box" / f"acme.{suffix}"
    path.parent.mkdir()
    if suffix == "zip":
        make_zip(path, FILES)
    else:
        plain = make_tar(tmp_path / "plain.tar", FILES).read_bytes()
        pack = {"tar.gz": gzip.compress, "tgz": gzip.compress, "tar.bz2": bz2.compress, "tar.xz": lzma.compress}
        path.write_bytes(pack.get(suffix, bytes)(plain))
    store = MemoryStore()
    report = run(store, path)
    assert (report.added, report.problems) == (2, ())
    assert stored(store) == [f"box/acme.{suffix}!/docs/a.md", f"box/acme.{suffix}!/src/b.py"]
    texts = {chunk.text.strip() for info in store.documents() for chunk in store.reader().document_chunks(info.id)}
    assert any("beta" in text for text in texts)


def test_archives_met_on_the_way_are_opened_only_if_asked(tmp_path: Path) -> None:
    folder = tmp_path / "box"
    folder.mkdir()
    make_zip(folder / "acme.zip", FILES)
    (folder / "own.txt").write_text("own\n")
    store = MemoryStore()
    assert dict(run(store, folder).skipped) == {"archive": 1}
    assert run(store, folder, archives=True).added == 2
    assert len(stored(store)) == 3


def test_what_a_named_archive_gave_stays_when_its_folder_is_indexed(tmp_path: Path) -> None:
    make_zip(tmp_path / "acme.zip", FILES)
    store = MemoryStore()
    run(store, tmp_path / "acme.zip")
    assert run(store, tmp_path).removed == 0
    (tmp_path / "acme.zip").unlink()
    assert run(store, tmp_path).removed == 2


def test_an_archive_that_did_not_change_is_not_unpacked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_zip(tmp_path / "acme.zip", FILES)
    os.utime(path, (1, 1))
    store = MemoryStore()
    run(store, path)
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("a member was unpacked"))
    assert run(store, path).unchanged == 2


def test_a_changed_archive_changes_only_what_changed_in_it(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "acme.zip", FILES | {"old.txt": b"old\n"})
    store = MemoryStore()
    run(store, path)
    make_zip(path, FILES | {"docs/a.md": b"# Alpha\n\nTwo.\n"})
    report = run(store, path)
    assert (report.added, report.changed, report.removed, report.unchanged) == (0, 1, 1, 1)


def test_names_inside_an_archive_are_judged_like_files(tmp_path: Path) -> None:
    inner = {
        ".git/config": b"x",
        "node_modules/a.js": b"x",
        "photo.png": b"x",
        "inner.zip": b"x",
        "big.txt": b"x" * 10_001,
    }
    path = make_zip(tmp_path / "acme.zip", {"keep.txt": b"keep\n", "empty.txt": b"", **inner})
    report = run(MemoryStore(), path)
    assert report.added == 1
    reasons = {"hidden": 1, "vendored": 1, "binary": 1, "archive": 1, "too large": 1, "empty": 1}
    assert dict(report.skipped) == reasons


# --- bad archives ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["../evil.txt", "/etc/evil.txt", "a/../../evil.txt", "..\\evil.txt", "C:\\evil.txt", "a\nb.txt", "."]
)
def test_a_name_that_leads_out_is_no_path(name: str) -> None:
    assert clean(name) is None


@given(st.text(max_size=40))
def test_a_clean_name_stays_inside(name: str) -> None:
    found = clean(name)
    if found is not None:
        assert os.path.normpath(os.path.join("/box", found)).startswith("/box/")
        assert clean(found) == found


def test_path_traversal_is_a_problem_and_the_rest_is_read(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "acme.zip", {"../evil.txt": b"evil\n", **FILES})
    store = MemoryStore()
    report = run(store, path)
    assert [(each.path.rpartition("!/")[2], each.reason) for each in report.problems] == [
        ("../evil.txt", "skipped: the path leads out of the archive")
    ]
    assert len(stored(store)) == 2
    assert sorted(each.name for each in tmp_path.iterdir()) == ["acme.zip"]


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("zeros.txt", "w") as file:
        for _ in range(BOMB_LEAST_BYTES // 2**20 + 1):
            file.write(bytes(2**20))
    with pytest.raises(BadRequestError, match="possible zip bomb"):
        members(str(path))
    report = run(MemoryStore(), path)
    assert (report.added, len(report.problems)) == (0, 1)


def test_a_tar_that_goes_on_for_ever_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_BYTES", 100_000)
    path = tmp_path / "bomb.tar.gz"
    path.write_bytes(gzip.compress(make_tar(tmp_path / "p.tar", {"zeros.txt": bytes(500_000)}).read_bytes()))
    with pytest.raises(BadRequestError, match=r"unpacks? to more than"):
        members(str(path))


def test_sizes_are_those_of_the_bytes_and_not_of_the_directory(tmp_path: Path) -> None:
    """The directory says 10 bytes, the data holds 50,000: it is read up to the limit and no further."""
    path = make_zip(tmp_path / "liar.zip", {"a.txt": b"x" * 50_000}, compression=zipfile.ZIP_STORED)
    data = bytearray(path.read_bytes())
    at = data.rfind(b"PK\x01\x02")
    data[at + 24 : at + 28] = struct.pack("<I", 10)
    path.write_bytes(data)
    assert [member.size_bytes for member in members(str(path))[0]] == [10]
    found = dict(member_bytes(str(path), ["a.txt"], LIMIT))
    assert isinstance(found["a.txt"], str) or len(found["a.txt"]) <= LIMIT


def test_an_encrypted_zip_is_a_problem_that_says_what_to_do(tmp_path: Path) -> None:
    path = make_zip(tmp_path / "locked.zip", FILES)
    data = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):  # the flag of encryption, in both headers
        at = data.find(mark)
        data[at + offset] |= 1
    path.write_bytes(data)
    report = run(MemoryStore(), path)
    assert report.added == 1
    assert report.problems[0].reason == "encrypted: 1 of 2 files; unpack it and index the folder"


def test_a_tar_header_of_any_size_is_not_believed(tmp_path: Path) -> None:
    header = tarfile.TarInfo("long")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 1 << 30
    (tmp_path / "long.tar").write_bytes(header.tobuf(tarfile.GNU_FORMAT) + bytes(2048))
    with pytest.raises(BadRequestError, match="not a readable archive: a header of"):
        members(str(tmp_path / "long.tar"))


def test_links_in_an_archive_are_not_followed(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "links.tar", "w") as archive:
        for name, kind in (("soft.txt", tarfile.SYMTYPE), ("hard.txt", tarfile.LNKTYPE), ("pipe", tarfile.FIFOTYPE)):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, "/etc/passwd"
            archive.addfile(entry)
    assert members(str(tmp_path / "links.tar")) == ([], [])


@pytest.mark.parametrize("name", ["a.zip", "a.tar", "a.tar.gz", "a.tgz", "a.tar.xz", "a.tar.bz2"])
@given(data=st.binary(max_size=600), cut=st.integers(0, 600))
def test_a_broken_archive_is_a_bad_request_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: bytes, cut: int
) -> None:
    folder = tmp_path_factory.mktemp("broken")
    whole = make_zip(folder / "w.zip", FILES) if name.endswith("zip") else make_tar(folder / "w.tar", FILES)
    damaged = bytearray(whole.read_bytes())
    damaged[cut : cut + len(data) // 8] = data[: len(data) // 8]
    for number, content in enumerate((data, bytes(damaged), bytes(damaged[:cut]))):
        path = folder / f"{number}{name}"
        path.write_bytes(content)
        try:
            found, _ = members(str(path))
            for _ in member_bytes(str(path), [each.name for each in found], LIMIT):
                pass
        except BadRequestError:
            pass


def test_an_archive_that_vanishes_keeps_the_run_going(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_zip(tmp_path / "acme.zip", FILES)
    listing = archives.members

    def and_then_it_goes(name: str) -> tuple[list[archives.ArchiveMember], list[str]]:
        found = listing(name)
        path.unlink()
        return found

    monkeypatch.setattr("dowse.ingest.sources.walk.members", and_then_it_goes)
    report = run(MemoryStore(), path)
    assert [each.reason.split(":")[0] for each in report.problems] == ["not a readable archive"] * 2


def test_only_archives_of_files_are_archives() -> None:
    assert is_archive("a/B.ZIP")
    assert is_archive("x.tar.gz")
    assert not is_archive("app.jar")
    assert not is_archive("notes.gz")
