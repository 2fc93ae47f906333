"""Quantisation of weights: the tensors of the graph, int8 with a scale per output, or fp32."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowse.models.onnx.graph_builder import EVENED, HEADS, LINEAR, NORMS, ROTARY_COS, ROTARY_SIN, EncoderShape
from dowse.models.onnx.weights import ModelWeights

LARGEST = 63  # 7 bits and sign: 2·255·63 = 32,130 fits 16 bits, see graph_builder


def graph_tensors(weights: ModelWeights, *, exact: bool) -> dict[str, NDArray[Any]]:
    """Make every tensor of the graph, contiguous and aligned. They must live as long as the session."""
    tensors: dict[str, NDArray[Any]] = {f"embed_norm.{part}": weights.embed_norm(part) for part in ("weight", "bias")}
    tensors |= rotations(weights.shape)
    for layer in range(weights.shape.layers):
        for name in NORMS:
            tensors |= {f"{layer}.{name}.{part}": weights.parameter(layer, name, part) for part in ("weight", "bias")}
        for name in LINEAR:
            for part, array in _linear(weights, layer, name, exact=exact).items():
                if name == "qkv" and part != "even":
                    heads = zip(HEADS, np.split(array, len(HEADS), axis=-1), strict=True)
                    tensors |= {f"{layer}.{head}.{part}": each for head, each in heads}
                else:
                    tensors[f"{layer}.{name}.{part}"] = array
    return {name: np.require(tensor, requirements=["C", "A"]) for name, tensor in tensors.items()}


def _linear(weights: ModelWeights, layer: int, name: str, *, exact: bool) -> dict[str, NDArray[Any]]:
    """Make the tensors of a map by the last part of their names; the weight is [inputs, outputs]."""
    found: dict[str, NDArray[Any]] = {}
    if name in weights.shape.biased:
        found["bias"] = weights.parameter(layer, name, "bias")
    weight = weights.parameter(layer, name, "weight")
    if exact:
        return found | {"weight": weight.T}
    if name in EVENED:
        loud = evening(*(_norm_before(weights, layer, name, part) for part in ("weight", "bias")))
        found["even"] = 1 / loud
        weight = weight * loud
    found["weight"], found["scale"] = per_output(weight)
    return found


def evening(weight: NDArray[np.float32], bias: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the divisors of the inputs of a map, by which its weights are multiplied."""
    # The root of the largest value that the norm allows: without it the weights would be as uneven as the inputs were.
    reach: NDArray[np.float32] = np.sqrt(np.maximum(np.abs(weight) + np.abs(bias), np.float32(1e-12)))
    return reach


def _norm_before(weights: ModelWeights, layer: int, name: str, part: str) -> NDArray[np.float32]:
    if name == "ffn_up":
        return weights.parameter(layer, "attn_norm", part)
    return weights.parameter(layer - 1, "ffn_norm", part) if layer else weights.embed_norm(part)


def per_output(weight: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Quantise [outputs, inputs] floats to [inputs, outputs] int8 in ±63 and a scale per output; 0 stays 0."""
    scale = np.maximum(np.abs(weight).max(axis=1), np.float32(1e-12)) / np.float32(LARGEST)
    steps = weight / scale[:, None]
    return np.rint(steps, out=steps).astype(np.int8).T, scale


def rotations(shape: EncoderShape) -> dict[str, NDArray[Any]]:
    """Return cos and sin of position · base^(−2i/d) for pair i of d numbers, a row for each position."""
    if shape.rotary is None:
        return {}
    head = shape.hidden // shape.heads
    angles = np.outer(np.arange(shape.rotary.positions), shape.rotary.base ** (-np.arange(0, head, 2) / head))
    return {ROTARY_COS: np.cos(angles).astype(np.float32), ROTARY_SIN: np.sin(angles).astype(np.float32)}
