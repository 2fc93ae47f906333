"""A model's folder goes in, how the model wants to be used comes out: pooling, prefixes, length, and its name."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dowse.errors import BadRequestError, ModelUnavailableError
from dowse.models.onnx.graph_builder import Pooling
from dowse.types import Role

MAX_TOKENS = 256  # lab/quality.md was measured with it; chunks are cut to about as much
# Files of a folder that are read here; all of them may be missing.
OPTIONAL_FILES = (
    "1_Pooling/config.json",
    "config_sentence_transformers.json",
    "modules.json",
    "sentence_bert_config.json",
)

# (start of the name after the organisation, query prefix, chunk prefix) as the model cards ask for, for folders that
# do not say it themselves.
_PREFIXES = (
    ("CodeRankEmbed", "Represent this query for searching relevant code: ", ""),
    ("bge-", "Represent this sentence for searching relevant passages: ", ""),
    ("e5-", "query: ", "passage: "),
    ("multilingual-e5-", "query: ", "passage: "),
    ("nomic-embed-text", "search_query: ", "search_document: "),
    ("snowflake-arctic-embed", "Represent this sentence for searching relevant passages: ", ""),
)


@dataclass(frozen=True)
class Recipe:
    """How a model wants to be used."""

    model: str  # the name that goes into the manifest
    pooling: Pooling
    query_prefix: str = ""
    chunk_prefix: str = ""
    max_tokens: int = MAX_TOKENS

    def prefix(self, role: Role) -> str:
        return self.query_prefix if role == "query" else self.chunk_prefix


def folder_recipe(folder: Path, name: str) -> Recipe:
    """`name` with a short hash of the config and the size of the weights, so that another model under the same name
    is not taken for this one."""
    config, weights = folder / "config.json", folder / "model.safetensors"
    missing = [file.name for file in (config, weights) if not file.is_file()]
    if missing:
        raise ModelUnavailableError(
            f"model folder {folder} has no {' and no '.join(missing)} (PyTorch .bin and sharded files are not read); "
            "choose another model with `dowse models list`"
        )
    digest = hashlib.sha256(config.read_bytes() + str(weights.stat().st_size).encode()).hexdigest()
    prompts = _read(folder, "config_sentence_transformers.json").get("prompts") or {}
    query, chunk = known_prefixes(name)
    longest = _read(folder, "sentence_bert_config.json").get("max_seq_length") or MAX_TOKENS
    return Recipe(
        model=f"{name}+{digest[:8]}",
        pooling=_pooling(folder),
        query_prefix=prompts.get("query", query),
        chunk_prefix=prompts.get("document", prompts.get("passage", chunk)),
        max_tokens=min(MAX_TOKENS, longest),
    )


def known_prefixes(model: str) -> tuple[str, str]:
    """(query prefix, chunk prefix) of a model family, by its name; empty when none is known."""
    # A folder that was pulled by hub id is named org--name; opened by its path, it is still the same model.
    last = model.rsplit("/", 1)[-1].rsplit("--", 1)[-1].lower()
    for start, query, chunk in _PREFIXES:
        if last.startswith(start.lower()):
            return query, chunk
    return "", ""


def _pooling(folder: Path) -> Pooling:
    """As the folder says; the mean where it says nothing."""
    for module in _read(folder, "modules.json", empty=[]):
        kind = str(module.get("type", "")).rsplit(".", 1)[-1]
        if kind not in ("Transformer", "Pooling", "Normalize"):
            raise _unsupported(folder, f"a layer of type {kind!r} after the encoder")
    modes = _read(folder, "1_Pooling/config.json")
    wanted = [key.removeprefix("pooling_mode_") for key, on in modes.items() if key.startswith("pooling_mode_") and on]
    if "pooling_mode" in modes:  # how newer versions write it
        wanted = [str(modes["pooling_mode"])]
    known = {"cls_token": Pooling.CLS, "cls": Pooling.CLS, "mean_tokens": Pooling.MEAN, "mean": Pooling.MEAN}
    if len(wanted) > 1 or any(mode not in known for mode in wanted):
        raise _unsupported(folder, f"pooling {' and '.join(wanted)!r}")
    return known[wanted[0]] if wanted else Pooling.MEAN


def _read(folder: Path, name: str, empty: Any = None) -> Any:
    """The JSON of an optional file, of the type of `empty`."""
    empty = {} if empty is None else empty
    try:
        value = json.loads((folder / name).read_bytes())
    except FileNotFoundError:
        return empty
    except ValueError as err:
        raise ModelUnavailableError(f"{folder / name} is not JSON ({err}); download the model again") from err
    if not isinstance(value, type(empty)):
        raise ModelUnavailableError(f"{folder / name} holds {type(value).__name__}; download the model again")
    return value


def _unsupported(folder: Path, what: str) -> BadRequestError:
    return BadRequestError(
        f"model folder {folder} asks for {what}, which Dowse does not compute; choose another model "
        "(`dowse models list`), or serve this one behind an OpenAI-compatible address (https://host/v1#model)"
    )
