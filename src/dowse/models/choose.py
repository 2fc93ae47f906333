"""What a user wrote as the embedder goes in, an embedder comes out; the front door of this package."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from dowse.errors import BadRequestError, ModelUnavailableError, NotFoundError
from dowse.models import registry
from dowse.models.onnx.recipe import OPTIONAL_FILES, Recipe, folder_recipe
from dowse.models.onnx.weights import PACK_SUFFIX, REQUIRED_FILES
from dowse.ports import Progress

if TYPE_CHECKING:
    from dowse.ports import Embedder, Reporter

KEY_VARIABLE = "DOWSE_EMBEDDER_API_KEY"
_HASH_MODEL = re.compile(r"hash-\d+")  # as an index names it
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")


def open_embedder(
    spec: str,
    *,
    models_folder: Path,
    progress: Reporter | None = None,
    threads: int = 1,
    allow_fetch: bool = True,
    api_key: str | None = None,
) -> Embedder | None:
    """The embedder that `spec` names; None for `none`.

    `hash`, `hash:DIM` or `hash-DIM`; a registry name or its hub id; the path of a folder; a hub id `org/name`; or
    `https://host/v1#model` for an OpenAI-compatible endpoint, whose key may also stand in DOWSE_EMBEDDER_API_KEY.
    """
    spec = spec.strip()
    if spec in ("", "none"):
        return None
    if spec == "hash" or spec.startswith("hash:") or _HASH_MODEL.fullmatch(spec):
        return _open_hash(spec)
    if spec.startswith(("http://", "https://")):
        return _open_http(spec, api_key or os.environ.get(KEY_VARIABLE))
    path, recipe = _local(spec, models_folder, progress, allow_fetch=allow_fetch)
    from dowse.models.embed_onnx import OnnxEmbedder
    from dowse.models.onnx.preparing import FOLDER

    return OnnxEmbedder(path, recipe, threads=threads, keep=models_folder / FOLDER)


def pull(name: str, models_folder: Path, *, folders: tuple[Path, ...] = (), progress: Reporter | None = None) -> Path:
    """Where the model is, fetched if need be: a registry name (from `folders` first), or a hub id."""
    if registry.find(name) is None and _HUB_ID.fullmatch(name):
        return _pull_hub(name, models_folder, progress)
    from dowse.models import fetch

    return fetch.pull(name, models_folder, folders=folders, progress=progress)


def _local(spec: str, models_folder: Path, progress: Reporter | None, *, allow_fetch: bool) -> tuple[Path, Recipe]:
    """Where the files are, and how to use them."""
    entry = registry.find(spec)
    if entry is not None:
        found = registry.locate(entry, models_folder)
        if found is None:
            from dowse.models import fetch

            found = pull(spec, models_folder, progress=progress) if allow_fetch else fetch.path(spec, models_folder)
        return found, entry.recipe
    folder = Path(spec).expanduser()
    if folder.is_dir() or folder.suffix == PACK_SUFFIX:
        return folder, _folder_recipe(folder)
    if spec.startswith(("/", "./", "../", "~")):
        raise NotFoundError(f"no model folder {folder}; see `dowse models list` for names")
    if _HUB_ID.fullmatch(spec):
        folder = _hub_folder(spec, models_folder)
        if not folder.is_dir():
            if not allow_fetch:
                raise ModelUnavailableError(
                    f"model {spec!r} is not on this machine ({models_folder}); run `dowse models pull {spec}`"
                )
            _pull_hub(spec, models_folder, progress)
        return folder, folder_recipe(folder, spec)
    raise registry.unknown(spec)


def _folder_recipe(path: Path) -> Recipe:
    """Of a folder, or of a pack, which only the registry can name."""
    packs = [path] if path.suffix == PACK_SUFFIX else sorted(path.glob(f"*{PACK_SUFFIX}"))
    if not packs:
        return folder_recipe(path, path.resolve().name)
    if not packs[0].is_file():
        raise NotFoundError(f"no model file {packs[0]}; see `dowse models list` for names")
    for entry in registry.ENTRIES:
        if any((file.name, file.size_bytes) == (packs[0].name, packs[0].stat().st_size) for file in entry.files):
            return entry.recipe
    raise BadRequestError(f"{packs[0]} is not a pack that Dowse knows; see `dowse models list`")


def _hub_folder(hub_id: str, models_folder: Path) -> Path:
    return models_folder / hub_id.replace("/", "--")


def _pull_hub(hub_id: str, models_folder: Path, progress: Reporter | None) -> Path:
    import tempfile

    from dowse.models.fetch_hub import download_files

    target = _hub_folder(hub_id, models_folder)
    if target.is_dir():
        return target
    if progress:
        progress(Progress("pull", 0, None, hub_id))
    models_folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".pull-", dir=models_folder) as workshop:
        folder = Path(workshop) / "model"
        folder.mkdir()
        try:
            download_files(hub_id, REQUIRED_FILES, folder, optional=OPTIONAL_FILES)
        except ModelUnavailableError as err:
            raise ModelUnavailableError(
                f"model {hub_id!r} cannot be had: {err}. Give a folder instead, or one of `dowse models list`"
            ) from err
        if not target.exists():
            folder.rename(target)
    return target


def _open_hash(spec: str) -> Embedder:
    from dowse.models.embed_hash import DIMENSION, HashEmbedder

    number = spec[len("hash:") :]
    if number and not number.isdecimal():
        raise BadRequestError(f"{spec!r} has no whole number of dimensions; try 'hash:256'")
    return HashEmbedder(int(number) if number else DIMENSION)


def _open_http(spec: str, api_key: str | None) -> Embedder:
    from dowse.models.embed_http import HttpEmbedder

    base_url, _, model = spec.partition("#")
    if not model:
        raise BadRequestError(f"{spec!r} does not name a model; write it behind a #, as in {base_url}#my-model")
    return HttpEmbedder(base_url, model, api_key=api_key)
