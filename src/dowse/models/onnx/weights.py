"""Weights of a model: parameters and tokenizer of a folder or pack, mapped from disk and not copied."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowse.errors import ModelUnavailableError
from dowse.models.onnx.architecture import architecture
from dowse.models.onnx.graph_builder import LINEAR, EncoderShape
from dowse.models.onnx.recipe import REQUIRED_FILES, packs_in

Array = NDArray[Any]
Floats = NDArray[np.float32]

_PACK_MAGIC = b"HMSEMB01"
_LONGEST_HEADER = 100_000_000  # bytes; the limit of the safetensors format


def open_weights(path: Path) -> ModelWeights:
    """Open a folder with the three required files, a pack, or a folder with one pack."""
    packs = packs_in(path)
    try:
        return PackWeights(packs[0]) if packs else FolderWeights(path)
    except FileNotFoundError as err:
        needed = ", ".join(REQUIRED_FILES)
        raise ModelUnavailableError(
            f"model folder {path} has no {Path(str(err.filename)).name}; it needs {needed} "
            "(PyTorch .bin files are not read). Try `dowse models list`"
        ) from err
    except (KeyError, ValueError, struct.error) as err:
        raise ModelUnavailableError(
            f"model files in {path} are damaged ({err}); delete them and run `dowse models pull`"
        ) from err


class FolderWeights:
    """Weights of a folder as published on the model hub; tensor names with or without a model prefix.

    Parameters have the names of Dowse. Linear maps are [outputs, inputs], as trained.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.files = tuple(folder / name for name in REQUIRED_FILES)
        self._architecture = architecture(json.loads((folder / "config.json").read_bytes()), folder)
        self.shape = self._architecture.shape
        self._tensors = {
            name.removeprefix("bert.").removeprefix("roberta."): tensor
            for name, tensor in read_safetensors(folder / "model.safetensors").items()
        }
        self.tokenizer_json = (folder / "tokenizer.json").read_bytes()
        self._check()

    def parameter(self, layer: int, name: str, part: str) -> Floats:
        """`name` is one of LINEAR or NORMS, `part` is "weight", or "bias" where the shape has one."""
        names = self._architecture.names
        parts = [self._get(f"{names.layer.format(layer)}{tensor}.{part}") for tensor in names.linear[name]]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def embed_norm(self, part: str) -> Floats:
        return self._get(f"{self._architecture.names.embed_norm}.{part}")

    def rows(self, ids: Array) -> Floats:
        """Return the word rows of the ids."""
        return _floats(self._tensors["embeddings.word_embeddings.weight"][ids])

    def offsets(self) -> Floats:
        """Return the row added to word rows at each position: position, if any, plus the first token type."""
        kind = self._get("embeddings.token_type_embeddings.weight")[0]
        if self.shape.rotary:
            return np.broadcast_to(kind, (self.shape.rotary.positions, self.shape.hidden))
        positions = self._get("embeddings.position_embeddings.weight")
        return _floats(positions[self._architecture.first_position :] + kind)

    def type_shift(self) -> Floats:
        """Return the row that the second text of a pair adds to `offsets`; zeros with only one token type."""
        rows = self._get("embeddings.token_type_embeddings.weight")
        return _floats(rows[1] - rows[0]) if len(rows) > 1 else np.zeros(self.shape.hidden, np.float32)

    def pair_head(self) -> dict[str, Floats]:
        """Read `pooler` and `classifier` of a cross-encoder by the names of BERT or RoBERTa."""
        roberta = "classifier.out_proj.weight" in self._tensors
        names = ("classifier.dense", "classifier.out_proj") if roberta else ("pooler.dense", "classifier")
        return {
            f"{ours}.{part}": self._get(f"{theirs}.{part}")
            for ours, theirs in zip(("pooler", "classifier"), names, strict=True)
            for part in ("weight", "bias")
        }

    def _check(self) -> None:
        """Refuse a checkpoint whose tensors have another shape than its config."""
        names = self._architecture.names
        for layer in range(self.shape.layers):
            for name, tensors in names.linear.items():
                found = [self._mapped(f"{names.layer.format(layer)}{each}.weight").shape for each in tensors]
                wanted = self.shape.linear(name)[::-1] if name in LINEAR else (self.shape.hidden,)
                if (sum(rows for rows, *_ in found), *found[0][1:]) != wanted or len({each[1:] for each in found}) > 1:
                    raise ValueError(f"layer {layer}: {' and '.join(tensors)} have shape {found}, config says {wanted}")

    def _get(self, name: str) -> Floats:
        return _floats(self._mapped(name))

    def _mapped(self, name: str) -> Array:
        if name not in self._tensors:
            raise ModelUnavailableError(
                f"model folder {self._folder} has no tensor {name!r}; it is incomplete or not a BERT-like encoder"
            )
        return self._tensors[name]


class PackWeights:
    """Weights of an HMSEMB01 pack: magic, u64 header length, JSON header, tokenizer, tensors.

    An int8 tensor is stored as its values [outputs, inputs], then float32 scales [outputs, inputs/group].
    """

    _LAYER = {  # noqa: RUF012 - a constant
        "qkv": "qkv",
        "attn_out": "ao",
        "ffn_up": "f1",
        "ffn_down": "f2",
        "attn_norm": "aln",
        "ffn_norm": "fln",
    }

    def __init__(self, path: Path) -> None:
        self.files = (path,)
        raw = np.memmap(path, np.uint8, "r")
        if bytes(raw[:8]) != _PACK_MAGIC:
            raise ValueError("not a pack file")
        (length,) = struct.unpack("<Q", bytes(raw[8:16]))
        header, at = json.loads(bytes(raw[16 : 16 + length])), 16 + length
        self.tokenizer_json = bytes(raw[at : at + header["tokenizer_len"]])
        at += header["tokenizer_len"]
        self._values: dict[str, Array] = {}
        self._scales: dict[str, Floats] = {}
        for tensor in header["tensors"]:
            self._keep(tensor, raw[at : at + tensor["len"]])
            at += tensor["len"]
        if at != len(raw):
            raise ValueError(f"{len(raw)} bytes, header announces {at}")
        arch = header["arch"]
        self.shape = EncoderShape(
            arch["layers"], arch["hidden"], arch["heads"], arch["intermediate"], float(arch["layer_norm_eps"])
        )
        self._first_position = int(arch["position_offset"])

    def parameter(self, layer: int, name: str, part: str) -> Floats:
        key = f"l{layer}.{self._LAYER[name]}.{part[0]}"
        return _ungrouped(self._values[key], self._scales[key]) if key in self._scales else self._values[key]

    def embed_norm(self, part: str) -> Floats:
        return self._values[f"emb_ln.{part[0]}"]

    def rows(self, ids: Array) -> Floats:
        return _ungrouped(self._values["word_emb"][ids], self._scales["word_emb"][ids])

    def offsets(self) -> Floats:
        return _floats(self._values["pos_emb"][self._first_position :] + self._values["type_emb"][0])

    def _keep(self, tensor: Mapping[str, Any], data: Array) -> None:
        name, dims = tensor["name"], tensor["shape"]
        count = math.prod(dims)
        if tensor["dtype"] == "f32":
            self._values[name] = _copied(data).reshape(dims)
        else:
            self._values[name] = data[:count].view(np.int8).reshape(dims)
            self._scales[name] = _copied(data[count:]).reshape(dims[0], dims[1] // tensor["group"])


ModelWeights = FolderWeights | PackWeights


def read_safetensors(path: Path) -> dict[str, Array]:
    """Map the float tensors of a file by name; no other type is needed."""
    raw = np.memmap(path, np.uint8, "r")
    (length,) = struct.unpack("<Q", bytes(raw[:8]))
    if length > min(_LONGEST_HEADER, len(raw)):
        raise ValueError(f"{path.name} is not a safetensors file")
    header, data = json.loads(bytes(raw[8 : 8 + length])), raw[8 + length :]
    kinds: dict[str, Any] = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16}
    tensors: dict[str, Array] = {}
    for name, tensor in header.items():
        if name == "__metadata__" or tensor["dtype"] not in kinds:
            continue
        begin, end = tensor["data_offsets"]
        found = np.frombuffer(data[begin:end].data, kinds[tensor["dtype"]]).reshape(tensor["shape"])
        # A bfloat16 is the upper half of a float32; numpy has no such type.
        tensors[name] = found if tensor["dtype"] != "BF16" else (found.astype(np.uint32) << 16).view(np.float32)
    return tensors


def _floats(array: Array) -> Floats:
    return np.asarray(array, np.float32)


def _copied(data: Array) -> Floats:
    """Copy floats: a pack does not align them, and onnxruntime needs alignment."""
    return np.frombuffer(data.tobytes(), np.float32)


def _ungrouped(values: Array, scales: Floats) -> Floats:
    """Multiply each group of inputs by its scale."""
    grouped = values.reshape(*scales.shape, -1).astype(np.float32)
    grouped *= scales[..., None]
    return grouped.reshape(values.shape)
