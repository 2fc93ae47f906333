"""Choice of the embedding model: opens the embedder that a user or an index names."""

from __future__ import annotations

import os
import re
from pathlib import Path
from threading import Lock

from dowse.errors import BadRequestError, ModelUnavailableError, NotFoundError
from dowse.models import registry
from dowse.models.onnx.recipe import PACK_SUFFIX, Recipe, folder_recipe, packs_in
from dowse.ports import Embedder, Reporter
from dowse.trust import is_plain_model, is_trusted, parse_server, refusal

AUTO = "auto"
NONE = "none"
SPEC = "embedder of "  # + model name: key of the stored setting by which an index opens its model again
PATH_STARTS = ("/", "./", "../", "~")
_HASH_MODEL = re.compile(r"hash-\d+")  # as an index names it


def open_embedder(
    spec: str,
    *,
    models_folder: Path,
    progress: Reporter | None = None,
    threads: int = 1,
    allow_fetch: bool = True,
    api_key: str | None = None,
) -> Embedder | None:
    """Open the embedder that `spec` names; None for `none`.

    `hash`, `hash:DIM` or `hash-DIM`; a registry name or its hub id; the path of a folder; a hub id `org/name`; or
    `https://host/v1#model` for an OpenAI-compatible endpoint, whose key may also be in DOWSE_EMBEDDER_API_KEY.
    """
    spec = spec.strip()
    if spec in ("", NONE):
        return None
    if spec == "hash" or spec.startswith("hash:") or _HASH_MODEL.fullmatch(spec):
        from dowse.models.embed_hash import DIMENSION, HashEmbedder

        number = spec[len("hash:") :]
        if number and not number.isdecimal():
            raise BadRequestError(f"{spec!r} has no whole number of dimensions; try 'hash:256'")
        return HashEmbedder(int(number) if number else DIMENSION)
    if (address := parse_server(spec)) is not None:
        from dowse.models.embed_http import KEY_VARIABLE, HttpEmbedder

        base_url, _, model = address.text.partition("#")
        if not model:
            raise BadRequestError(f"{spec!r} does not name a model; add it after a #, as in {base_url}#my-model")
        return HttpEmbedder(base_url, model, api_key=api_key or os.environ.get(KEY_VARIABLE))
    path, recipe = _local(spec, models_folder, progress, allow_fetch=allow_fetch)
    from dowse.models.embed_onnx import OnnxEmbedder
    from dowse.models.onnx.prepared import FOLDER

    return OnnxEmbedder(path, recipe, threads=threads, keep=models_folder / FOLDER)


def on_this_machine(name: str, models_folder: Path, progress: Reporter | None = None, *, allow_fetch: bool) -> Path:
    """Return the folder of a registry or hub model; fetch an absent one if allowed."""
    found = registry.local_folder(name, models_folder)
    if found is not None:
        return found
    if not allow_fetch:
        raise registry.absent(name, models_folder)
    from dowse.models import fetch

    return fetch.pull(name, models_folder, progress=progress)


def _local(spec: str, models_folder: Path, progress: Reporter | None, *, allow_fetch: bool) -> tuple[Path, Recipe]:
    """Find the files of a model and its recipe."""
    entry = registry.find(spec)
    if entry is not None:
        return on_this_machine(spec, models_folder, progress, allow_fetch=allow_fetch), entry.recipe
    folder = Path(spec).expanduser()
    if folder.is_dir() or folder.suffix == PACK_SUFFIX:
        return folder, _folder_recipe(folder)
    if spec.startswith(PATH_STARTS):
        raise NotFoundError(f"no model folder {folder}; run `dowse models list` for names")
    if registry.HUB_ID.fullmatch(spec):
        folder = on_this_machine(spec, models_folder, progress, allow_fetch=allow_fetch)
        return folder, folder_recipe(folder, spec)
    raise registry.unknown(spec)


def _folder_recipe(path: Path) -> Recipe:
    """Read the recipe of a folder; that of a pack is in the registry only."""
    packs = packs_in(path)
    if not packs:
        return folder_recipe(path, path.resolve().name)
    if not packs[0].is_file():
        raise NotFoundError(f"no model file {packs[0]}; run `dowse models list` for names")
    for entry in registry.ENTRIES:
        if any((file.name, file.size_bytes) == (packs[0].name, packs[0].stat().st_size) for file in entry.files):
            return entry.recipe
    raise BadRequestError(f"{packs[0]} is not a pack that Dowse knows; run `dowse models list` for names")


class Models:
    """Embedding models of one engine: opened on first use, then kept."""

    def __init__(self, wanted: Embedder | str, models_folder: Path, threads: int, index: Path) -> None:
        self._wanted = wanted
        self._index = index
        self._folder = models_folder
        self._threads = threads
        self._opened: dict[str, Embedder | None] = {}
        self._lock = Lock()

    @property
    def words_only(self) -> bool:
        return self._wanted == NONE

    @property
    def spec(self) -> str | None:
        """The requested model by name, in a form that opens it from any folder."""
        if not isinstance(self._wanted, str) or self._wanted in (AUTO, NONE):
            return None
        path = Path(self._wanted).expanduser()
        return str(path.absolute()) if path.exists() else self._wanted

    def for_index(self, spec: str | None, report: Reporter | None = None) -> Embedder | None:
        """Open the embedder for an index with vectors of `spec`, or without vectors yet. None: words only."""
        if not isinstance(self._wanted, str):
            return self._wanted
        name = (spec or registry.DEFAULT) if self._wanted == AUTO else self._wanted
        if self._wanted == AUTO and not (is_plain_model(name) or registry.find(name) or is_trusted(self._index, name)):
            raise ModelUnavailableError(
                refusal(self._index, name, "send text to a server, or load a model from outside the project")
            )
        with self._lock:
            if name not in self._opened:
                self._opened[name] = open_embedder(
                    name, models_folder=self._folder, threads=self._threads, progress=report
                )
            return self._opened[name]

    def required(self, report: Reporter | None = None) -> Embedder:
        found = self.for_index(None, report)
        if found is None:
            raise ModelUnavailableError("this command needs an embedding model; run `dowse models list` for names")
        return found
