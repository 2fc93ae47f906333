"""A tiny random BERT or RoBERTa: a seed goes in, a model folder and a plain float64 forward pass of it come out."""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

VOCABULARY, HIDDEN, WIDE, LAYERS, HEADS, POSITIONS = 200, 64, 128, 2, 4, 66
EPSILON = 1e-12
_MAPS = {
    "attention.self.query": (HIDDEN, HIDDEN),
    "attention.self.key": (HIDDEN, HIDDEN),
    "attention.self.value": (HIDDEN, HIDDEN),
    "attention.output.dense": (HIDDEN, HIDDEN),
    "intermediate.dense": (WIDE, HIDDEN),
    "output.dense": (HIDDEN, WIDE),
}
_HEADS = {False: ("pooler.dense", "classifier"), True: ("classifier.dense", "classifier.out_proj")}  # by `roberta`
_KINDS = {"float32": "F32", "float16": "F16", "uint16": "BF16", "int64": "I64"}


@dataclass(frozen=True)
class TinyEncoder:
    """Random weights by BERT's names, and what the model computes, written from the definition."""

    weights: dict[str, np.ndarray]
    roberta: bool

    def states(self, ids: list[int], types: list[int] | None = None) -> np.ndarray:
        """One row a token."""
        first = 2 if self.roberta else 0
        x = (
            self._w("embeddings.word_embeddings")[ids]
            + self._w("embeddings.token_type_embeddings")[types or [0] * len(ids)]
            + self._w("embeddings.position_embeddings")[first : first + len(ids)]
        )
        x = self._norm(x, "embeddings.LayerNorm")
        for layer in range(LAYERS):
            base = f"encoder.layer.{layer}."
            mixed = self._linear(self._attention(x, base), f"{base}attention.output.dense")
            x = self._norm(mixed + x, f"{base}attention.output.LayerNorm")
            wide = self._linear(x, f"{base}intermediate.dense")
            wide = wide / 2 * (1 + np.vectorize(math.erf)(wide / math.sqrt(2)))
            x = self._norm(self._linear(wide, f"{base}output.dense") + x, f"{base}output.LayerNorm")
        return x

    def mean(self, ids: list[int]) -> np.ndarray:
        return _unit(self.states(ids).mean(axis=0))

    def cls(self, ids: list[int]) -> np.ndarray:
        return _unit(self.states(ids)[0])

    def logits(self, ids: list[int], types: list[int]) -> np.ndarray:
        """Of a pair, by the head of `with_head`."""
        pooler, classifier = _HEADS[self.roberta]
        return self._linear(np.tanh(self._linear(self.states(ids, types)[0], pooler)), classifier)

    def _attention(self, x: np.ndarray, base: str) -> np.ndarray:
        query, key, value = (
            self._linear(x, f"{base}attention.self.{name}").reshape(len(x), HEADS, -1).transpose(1, 0, 2)
            for name in ("query", "key", "value")
        )
        fit = query @ key.transpose(0, 2, 1) / math.sqrt(HIDDEN // HEADS)
        share = np.exp(fit - fit.max(axis=-1, keepdims=True))
        share /= share.sum(axis=-1, keepdims=True)
        return (share @ value).transpose(1, 0, 2).reshape(len(x), HIDDEN)

    def _linear(self, x: np.ndarray, name: str) -> np.ndarray:
        return x @ self._w(name).T + self.weights[f"{name}.bias"].astype(np.float64)

    def _norm(self, x: np.ndarray, name: str) -> np.ndarray:
        x = x - x.mean(axis=-1, keepdims=True)
        x = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + EPSILON)
        return x * self._w(name) + self.weights[f"{name}.bias"].astype(np.float64)

    def _w(self, name: str) -> np.ndarray:
        return self.weights[f"{name}.weight"].astype(np.float64)


def random_encoder(seed: int, *, roberta: bool = False) -> TinyEncoder:
    rng = np.random.default_rng(seed)

    def random(*shape: int) -> np.ndarray:
        return rng.normal(0, 0.3, shape).astype(np.float32)

    weights = {
        "embeddings.word_embeddings.weight": random(VOCABULARY, HIDDEN),
        "embeddings.position_embeddings.weight": random(POSITIONS, HIDDEN),
        "embeddings.token_type_embeddings.weight": random(1 if roberta else 2, HIDDEN),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in range(LAYERS):
        base = f"encoder.layer.{layer}."
        for name, shape in _MAPS.items():
            weights[f"{base}{name}.weight"], weights[f"{base}{name}.bias"] = random(*shape), random(shape[0])
        norms += [f"{base}attention.output.LayerNorm", f"{base}output.LayerNorm"]
    for name in norms:
        weights[f"{name}.weight"], weights[f"{name}.bias"] = 1 + random(HIDDEN), random(HIDDEN)
    return TinyEncoder(weights, roberta)


def with_head(encoder: TinyEncoder, seed: int, labels: int = 1) -> TinyEncoder:
    """The same encoder as a cross-encoder."""
    rng = np.random.default_rng(seed)
    pooler, classifier = _HEADS[encoder.roberta]
    shapes = {pooler: (HIDDEN, HIDDEN), classifier: (labels, HIDDEN)}
    head = {
        f"{name}.{part}": rng.normal(0, 0.3, shape if part == "weight" else shape[:1]).astype(np.float32)
        for name, shape in shapes.items()
        for part in ("weight", "bias")
    }
    return TinyEncoder(encoder.weights | head, encoder.roberta)


def write_folder(folder: Path, encoder: TinyEncoder, *, prefix: str = "", **config: Any) -> Path:
    """As published on a model hub; `config` overrides fields of config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    fields = {
        "model_type": "roberta" if encoder.roberta else "bert",
        "pad_token_id": 1 if encoder.roberta else 0,
        "num_hidden_layers": LAYERS,
        "hidden_size": HIDDEN,
        "num_attention_heads": HEADS,
        "intermediate_size": WIDE,
        "hidden_act": "gelu",
        "layer_norm_eps": EPSILON,
    }
    (folder / "config.json").write_text(json.dumps(fields | config))
    write_safetensors(
        folder / "model.safetensors",
        {name if "classifier" in name else prefix + name: array for name, array in encoder.weights.items()}
        | {"embeddings.position_ids": np.arange(POSITIONS)},
    )
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer_json()))
    return folder


def write_safetensors(path: Path, arrays: dict[str, np.ndarray]) -> None:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, array in arrays.items():
        header[name] = {
            "dtype": _KINDS[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(array.tobytes() for array in arrays.values()))


def tokenizer_json() -> dict[str, Any]:
    """Words w0, w1 … and four special tokens; it truncates and pads by itself, as published ones do."""
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *(f"w{number}" for number in range(VOCABULARY - 4))]
    return {
        "version": "1.0",
        "truncation": {"max_length": 16, "strategy": "LongestFirst", "stride": 0},
        "padding": {
            "strategy": {"Fixed": 16},
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "[PAD]",
        },
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
        "decoder": None,
        "model": {
            "type": "WordLevel",
            "vocab": {word: number for number, word in enumerate(words)},
            "unk_token": "[UNK]",
        },
    }


def _unit(vector: np.ndarray) -> np.ndarray:
    unit: np.ndarray = vector / np.linalg.norm(vector)
    return unit
