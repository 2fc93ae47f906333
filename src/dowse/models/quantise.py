"""Weights go in, the tensors that the graph asks for by name come out: int8 with a scale per output, or fp32."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from dowse.models.graph import LINEAR, NORMS, ROTARY_COS, ROTARY_SIN, Shape

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dowse.models.weights import Weights

LARGEST = 63  # 7 bits and sign: 2·255·63 = 32,130 fits 16 bits, see graph.py


def graph_tensors(weights: Weights, *, exact: bool) -> dict[str, NDArray[Any]]:
    """Every tensor of `graph.encoder_graph`, contiguous and aligned. They must live as long as the session."""
    import numpy as np

    tensors: dict[str, NDArray[Any]] = {f"embed_norm.{part}": weights.embed_norm(part) for part in ("weight", "bias")}
    tensors |= rotations(weights.shape)
    for layer in range(weights.shape.layers):
        for name in (*LINEAR, *NORMS):
            if name in (*NORMS, *weights.shape.biased):
                tensors[f"{layer}.{name}.bias"] = weights.parameter(layer, name, "bias")
            if name in LINEAR and not exact:
                rows = weights.blocks(layer, name)
                shape = weights.shape.linear(name)
                tensors[f"{layer}.{name}.weight"], tensors[f"{layer}.{name}.scale"] = quantised(rows, shape)
            else:
                tensors[f"{layer}.{name}.weight"] = weights.parameter(layer, name, "weight").T
    return {name: np.require(tensor, requirements=["C", "A"]) for name, tensor in tensors.items()}


def quantised(
    blocks: Iterable[NDArray[np.float32]], dims: tuple[int, int]
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """As `per_output`, a few rows at a time: whole matrices of floats would go through memory five times, and a model
    that is opened for one question waits for that. CPU of a first vector: granite 195 → 172 ms, MiniLM 120 → 100."""
    import numpy as np

    values, scale, done = np.empty(dims, np.int8), np.empty(dims[1], np.float32), 0
    for block in blocks:
        part = slice(done, done + len(block))
        values[:, part], scale[part] = per_output(block)
        done = part.stop
    return values, scale


def per_output(weight: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """[outputs, inputs] floats become [inputs, outputs] int8 in ±63 and a scale per output; zero stays zero."""
    import numpy as np

    scale = np.maximum(np.abs(weight).max(axis=1), np.float32(1e-12)) / np.float32(LARGEST)
    steps = weight / scale[:, None]
    return np.rint(steps, out=steps).astype(np.int8).T, scale


def rotations(shape: Shape) -> dict[str, NDArray[Any]]:
    """cos and sin of position · base^(−2i/d), one row a position, for the i-th of d/2 pairs of a head's d numbers."""
    import numpy as np

    if shape.rotary is None:
        return {}
    head = shape.hidden // shape.heads
    angles = np.outer(np.arange(shape.rotary.positions), shape.rotary.base ** (-np.arange(0, head, 2) / head))
    return {ROTARY_COS: np.cos(angles).astype(np.float32), ROTARY_SIN: np.sin(angles).astype(np.float32)}
