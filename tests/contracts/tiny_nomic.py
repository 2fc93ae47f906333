"""A tiny random nomic_bert: a seed goes in, a model folder and a plain float64 forward pass of it come out."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from contracts.tiny_encoder import tokenizer_json, write_safetensors

VOCABULARY, HIDDEN, WIDE, LAYERS, HEADS, POSITIONS = 200, 64, 256, 2, 4, 66
HEAD = HIDDEN // HEADS
EPSILON, BASE = 1e-12, 1000
_MAPS = {  # (outputs, inputs), and the switch of its bias in config.json
    "attn.Wqkv": (3 * HIDDEN, HIDDEN, "qkv_proj_bias"),
    "attn.out_proj": (HIDDEN, HIDDEN, "qkv_proj_bias"),
    "mlp.fc11": (WIDE, HIDDEN, "mlp_fc1_bias"),
    "mlp.fc12": (WIDE, HIDDEN, "mlp_fc1_bias"),
    "mlp.fc2": (HIDDEN, WIDE, "mlp_fc2_bias"),
}


@dataclass(frozen=True)
class TinyNomic:
    """Random weights by nomic_bert's names, and what the model computes, written from the definition."""

    weights: dict[str, np.ndarray]
    biases: frozenset[str]  # the switches that are on

    def states(self, ids: list[int]) -> np.ndarray:
        """One row a token."""
        x = self._w("embeddings.word_embeddings")[ids] + self._w("embeddings.token_type_embeddings")[0]
        x = self._norm(x, "emb_ln")
        for layer in range(LAYERS):
            base = f"encoder.layers.{layer}."
            x = self._norm(self._linear(self._attention(x, base), f"{base}attn.out_proj") + x, f"{base}norm1")
            value, gate = self._linear(x, f"{base}mlp.fc11"), self._linear(x, f"{base}mlp.fc12")
            gated = value * gate / (1 + np.exp(-gate))
            x = self._norm(self._linear(gated, f"{base}mlp.fc2") + x, f"{base}norm2")
        return x

    def mean(self, ids: list[int]) -> np.ndarray:
        return _unit(self.states(ids).mean(axis=0))

    def cls(self, ids: list[int]) -> np.ndarray:
        return _unit(self.states(ids)[0])

    def _attention(self, x: np.ndarray, base: str) -> np.ndarray:
        qkv = self._linear(x, f"{base}attn.Wqkv").reshape(len(x), 3, HEADS, HEAD)
        mixed = np.empty((len(x), HEADS, HEAD))
        for head in range(HEADS):
            query, key, value = (qkv[:, part, head] for part in range(3))
            query, key = _rotated(query), _rotated(key)
            for token in range(len(x)):
                fit = key @ query[token] / math.sqrt(HEAD)
                share = np.exp(fit - fit.max())
                mixed[token, head] = share / share.sum() @ value
        return mixed.reshape(len(x), HIDDEN)

    def _linear(self, x: np.ndarray, name: str) -> np.ndarray:
        product = x @ self._w(name).T
        bias = self.weights.get(f"{name}.bias")
        return product if bias is None else product + bias.astype(np.float64)

    def _norm(self, x: np.ndarray, name: str) -> np.ndarray:
        x = x - x.mean(axis=-1, keepdims=True)
        x = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + EPSILON)
        return x * self._w(name) + self.weights[f"{name}.bias"].astype(np.float64)

    def _w(self, name: str) -> np.ndarray:
        return self.weights[f"{name}.weight"].astype(np.float64)


def random_nomic(seed: int, *, biases: frozenset[str] = frozenset()) -> TinyNomic:
    rng = np.random.default_rng(seed)

    def random(*shape: int) -> np.ndarray:
        return rng.normal(0, 0.3, shape).astype(np.float32)

    weights = {
        "embeddings.word_embeddings.weight": random(VOCABULARY, HIDDEN),
        "embeddings.token_type_embeddings.weight": random(2, HIDDEN),
    }
    norms = ["emb_ln"]
    for layer in range(LAYERS):
        base = f"encoder.layers.{layer}."
        for name, (outputs, inputs, switch) in _MAPS.items():
            weights[f"{base}{name}.weight"] = random(outputs, inputs)
            if name == "attn.Wqkv":
                # Queries and keys fit with a deviation of about 1, as trained ones do. At 6, attention would be a
                # choice of one token, and any rounding might choose another: no measure of int8.
                weights[f"{base}{name}.weight"][: 2 * HIDDEN] *= 0.4
            if switch in biases:
                weights[f"{base}{name}.bias"] = random(outputs)
        norms += [f"{base}norm1", f"{base}norm2"]
    for name in norms:
        weights[f"{name}.weight"], weights[f"{name}.bias"] = 1 + random(HIDDEN), random(HIDDEN)
    return TinyNomic(weights, biases)


def write_folder(folder: Path, encoder: TinyNomic, *, pooling: str, **config: Any) -> Path:
    """As published on a model hub; `pooling` is "cls" or "mean", `config` overrides fields of config.json."""
    (folder / "1_Pooling").mkdir(parents=True)
    fields = {
        "model_type": "nomic_bert",
        "activation_function": "swiglu",
        "layer_norm_epsilon": EPSILON,
        "max_trained_positions": POSITIONS,
        "n_embd": HIDDEN,
        "n_head": HEADS,
        "n_inner": WIDE,
        "n_layer": LAYERS,
        "n_positions": 4 * POSITIONS,
        "prenorm": False,
        "rotary_emb_base": BASE,
        "rotary_emb_fraction": 1.0,
        "rotary_emb_interleaved": False,
        "rotary_emb_scale_base": None,
        "rotary_scaling_factor": 2,
        **{switch: switch in encoder.biases for *_, switch in _MAPS.values()},
    }
    (folder / "config.json").write_text(json.dumps(fields | config))
    (folder / "1_Pooling" / "config.json").write_text(
        json.dumps({"pooling_mode_cls_token": pooling == "cls", "pooling_mode_mean_tokens": pooling == "mean"})
    )
    write_safetensors(folder / "model.safetensors", encoder.weights)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer_json()))
    return folder


def _rotated(rows: np.ndarray) -> np.ndarray:
    """Row p: its i-th and (i + d/2)-th number turned as a point of the plane by the angle p · base^(−2i/d)."""
    points = rows[:, : HEAD // 2] + 1j * rows[:, HEAD // 2 :]
    for position in range(len(rows)):
        for pair in range(HEAD // 2):
            points[position, pair] *= np.exp(1j * position * BASE ** (-2 * pair / HEAD))
    return np.concatenate([points.real, points.imag], axis=1)


def _unit(vector: np.ndarray) -> np.ndarray:
    unit: np.ndarray = vector / np.linalg.norm(vector)
    return unit
