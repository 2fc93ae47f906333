"""Encoders: token ids to the vector of a text or the logits of a pair, computed by onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dowse.models.onnx.graph_builder import pair_graph
from dowse.models.onnx.prepared import PreparedModel
from dowse.models.onnx.quantise import graph_tensors
from dowse.models.onnx.weights import FolderWeights, ModelWeights

_LOG_ERRORS_ONLY = 3  # onnxruntime's severity


class Encoder:
    """Encoder of texts; safe to share between threads.

    Texts run one by one: no padding, no mask, and no vector depends on the other texts. At 200 tokens that is also
    the fastest. One session thread: Python threads that share a session embed 93 texts a second, two session threads
    76.
    """

    def __init__(self, weights: ModelWeights, made: PreparedModel) -> None:
        self._weights = weights
        self._offsets = weights.offsets()
        self._session = OnnxSession(made.graph, made.tensors)

    @property
    def longest(self) -> int:
        """Number of positions of the model."""
        return len(self._offsets)

    def run(self, ids: Sequence[int]) -> NDArray[np.float32]:
        return self._session.run(self._embedded(ids))

    def _embedded(self, ids: Sequence[int]) -> NDArray[np.float32]:
        return self._weights.rows(np.asarray(ids, np.int64)) + self._offsets[: len(ids)]


class PairEncoder(Encoder):
    """Encoder of pairs for a cross-encoder; safe to share between threads."""

    def __init__(self, weights: FolderWeights, *, exact: bool = False) -> None:
        head = weights.pair_head()
        self.labels = len(head["classifier.bias"])
        tensors = graph_tensors(weights, exact=exact) | {
            name: np.require(array.T, requirements=["C", "A"]) for name, array in head.items()
        }
        super().__init__(weights, PreparedModel(pair_graph(weights.shape, self.labels, exact=exact), tensors))
        self._shift = weights.type_shift()

    def run_pair(self, ids: Sequence[int], types: Sequence[int]) -> NDArray[np.float32]:
        """Run a pair; `types` are 0 for the first text and 1 for the second."""
        return self._session.run(self._embedded(ids) + np.asarray(types, np.float32)[:, None] * self._shift)


class OnnxSession:
    """Session of onnxruntime and its tensors, which it does not copy and which must live as long."""

    def __init__(self, graph: bytes, tensors: Mapping[str, NDArray[Any]]) -> None:
        import onnxruntime as ort

        ort.disable_telemetry_events()
        options = ort.SessionOptions()
        options.log_severity_level = _LOG_ERRORS_ONLY
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        # The next level would fuse Add and LayerNormalization, which is slower (see `graph_builder`).
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        self._tensors = tensors
        self._values = [ort.OrtValue.ortvalue_from_numpy(tensor) for tensor in tensors.values()]
        options.add_external_initializers(list(tensors), self._values)
        self._session = ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])

    def run(self, embedded: NDArray[np.float32]) -> NDArray[np.float32]:
        """Run one text, [tokens, hidden], and return the only row of the first output."""
        row: NDArray[np.float32] = self._session.run(None, {"embedded": embedded[None]})[0][0]
        return row
