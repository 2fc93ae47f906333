"""Recipe of a model: its pooling, prefixes, length and name, read from its folder."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec

from dowse.errors import ModelUnavailableError
from dowse.models.onnx.architecture import unsupported
from dowse.models.onnx.graph_builder import Pooling
from dowse.types import Role

MAX_TOKENS = 256  # chunks are cut to about as much
PACK_SUFFIX = ".hmsemb"
REQUIRED_FILES = ("config.json", "model.safetensors", "tokenizer.json")
# Other files of a folder that are read if they exist.
OPTIONAL_FILES = (
    "1_Pooling/config.json",
    "config_sentence_transformers.json",
    "modules.json",
    "sentence_bert_config.json",
)

# (start of the name after the organisation, query prefix, chunk prefix) as in the model cards, for folders that do
# not name their prefixes.
_PREFIXES = (
    ("CodeRankEmbed", "Represent this query for searching relevant code: ", ""),
    ("bge-", "Represent this sentence for searching relevant passages: ", ""),
    ("e5-", "query: ", "passage: "),
    ("multilingual-e5-", "query: ", "passage: "),
    ("nomic-embed-text", "search_query: ", "search_document: "),
    ("snowflake-arctic-embed", "Represent this sentence for searching relevant passages: ", ""),
)


class Recipe(msgspec.Struct, frozen=True):
    """Settings that a model was trained for."""

    model: str  # name that the index stores
    pooling: Pooling
    query_prefix: str = ""
    chunk_prefix: str = ""
    max_tokens: int = MAX_TOKENS

    def prefix(self, role: Role) -> str:
        return self.query_prefix if role == "query" else self.chunk_prefix


def packs_in(path: Path) -> list[Path]:
    """List the pack files at a path: the file itself, or those of the folder."""
    return [path] if path.suffix == PACK_SUFFIX else sorted(path.glob(f"*{PACK_SUFFIX}"))


def folder_recipe(folder: Path, name: str) -> Recipe:
    """Read the recipe of a folder."""
    missing = [each for each in ("config.json", "model.safetensors") if not (folder / each).is_file()]
    if missing:
        raise ModelUnavailableError(
            f"model folder {folder} has no {' and no '.join(missing)} (PyTorch .bin and sharded files are not read); "
            "choose another model with `dowse models list`"
        )
    prompts = _read(folder, "config_sentence_transformers.json").get("prompts") or {}
    query, chunk = known_prefixes(name)
    longest = _read(folder, "sentence_bert_config.json").get("max_seq_length") or MAX_TOKENS
    return Recipe(
        model=identity(folder, name),
        pooling=_pooling(folder),
        query_prefix=prompts.get("query", query),
        chunk_prefix=prompts.get("document", prompts.get("passage", chunk)),
        max_tokens=min(MAX_TOKENS, longest),
    )


def identity(folder: Path, name: str) -> str:
    """Return the name with a short hash of config and weight size, which tells models of one name apart."""
    size = (folder / "model.safetensors").stat().st_size
    digest = hashlib.sha256((folder / "config.json").read_bytes() + str(size).encode()).hexdigest()
    return f"{name}+{digest[:8]}"


def known_prefixes(model: str) -> tuple[str, str]:
    """Return (query prefix, chunk prefix) of a model family by its name; empty for an unknown one."""
    # A folder pulled by hub id is named org--name; opened by its path it is the same model.
    last = model.rsplit("/", 1)[-1].rsplit("--", 1)[-1].lower()
    for start, query, chunk in _PREFIXES:
        if last.startswith(start.lower()):
            return query, chunk
    return "", ""


def _pooling(folder: Path) -> Pooling:
    """Read the pooling of a folder; the mean by default."""
    for module in _read(folder, "modules.json", empty=[]):
        kind = str(module.get("type", "")).rsplit(".", 1)[-1]
        if kind not in ("Transformer", "Pooling", "Normalize"):
            raise unsupported(folder, f"a layer of type {kind!r} after the encoder, which Dowse does not compute")
    modes = _read(folder, "1_Pooling/config.json")
    wanted = [key.removeprefix("pooling_mode_") for key, on in modes.items() if key.startswith("pooling_mode_") and on]
    if "pooling_mode" in modes:  # newer versions
        wanted = [str(modes["pooling_mode"])]
    known = {"cls_token": Pooling.CLS, "cls": Pooling.CLS, "mean_tokens": Pooling.MEAN, "mean": Pooling.MEAN}
    if len(wanted) > 1 or any(mode not in known for mode in wanted):
        raise unsupported(folder, f"pooling {' and '.join(wanted)!r}, which Dowse does not compute")
    return known[wanted[0]] if wanted else Pooling.MEAN


def _read(folder: Path, name: str, empty: Any = None) -> Any:
    """Read the JSON of an optional file, of the type of `empty`."""
    empty = {} if empty is None else empty
    try:
        value = json.loads((folder / name).read_bytes())
    except FileNotFoundError:
        return empty
    except ValueError as err:
        raise ModelUnavailableError(f"{folder / name} is not JSON ({err}); download the model again") from err
    if not isinstance(value, type(empty)):
        raise ModelUnavailableError(f"{folder / name} must not be a {type(value).__name__}; download the model again")
    return value
