"""A model's weights go in; its graph, tensors and tokenizer come out, from a file if they were made before.

Making them takes 50 ms of CPU for the default model, and another 90 for its tokenizer (`tokens.py`); a search in a new
process would spend a third of its time on that.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dowse.models.onnx import prepared as kept
from dowse.models.onnx.graph_builder import Pooling, encoder_graph
from dowse.models.onnx.quantise import graph_tensors
from dowse.models.onnx.tokenizer import byte_pairs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from dowse.models.onnx.weights import Weights

FOLDER = "prepared"  # in the models folder
_LAYOUT = 2  # counts up when the graph, the quantisation or the arrays change
_GRAPH, _TENSOR, _PAIRS = "graph", "tensor ", "pairs "


@dataclass(frozen=True)
class Prepared:
    """What an encoder runs. `pairs` is the tokenizer as arrays, where it is of that kind and was kept."""

    graph: bytes
    tensors: Mapping[str, NDArray[Any]]
    pairs: Mapping[str, NDArray[Any]] | None = None


def prepared(weights: Weights, pooling: Pooling, *, exact: bool, folder: Path | None = None) -> Prepared:
    """From `folder`, or made and kept there. Weights in fp32 are not kept: they are as large as the model itself."""
    if folder is None or exact:
        return _made(weights, pooling, exact=exact)
    key = json.dumps([_LAYOUT, pooling, kept.state(weights.files)])
    file = folder / f"{_name(weights.files[0])}.arrays"
    arrays = kept.kept(file, key)
    if arrays is not None:
        return Prepared(arrays[_GRAPH].tobytes(), _part(arrays, _TENSOR), _part(arrays, _PAIRS) or None)
    import numpy as np

    found = _made(weights, pooling, exact=exact)
    whole = {_GRAPH: np.frombuffer(found.graph, np.uint8)}
    whole |= {_TENSOR + name: array for name, array in found.tensors.items()}
    whole |= {_PAIRS + name: array for name, array in (byte_pairs(weights.tokenizer_json) or {}).items()}
    kept.keep(file, key, whole)
    return found


def _made(weights: Weights, pooling: Pooling, *, exact: bool) -> Prepared:
    return Prepared(encoder_graph(weights.shape, pooling, exact=exact), graph_tensors(weights, exact=exact))


def _part(arrays: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _name(file: Path) -> str:
    """Of a model's folder, with a digest of where it is: two folders of one name do not take turns."""
    place = file.absolute()
    return f"{place.parent.name}-{hashlib.sha256(str(place).encode()).hexdigest()[:8]}"
