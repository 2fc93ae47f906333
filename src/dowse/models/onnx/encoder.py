"""Encoder: token ids to the vector of a text or the logits of a pair, computed by onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dowse.models.onnx.prepared import PreparedModel
from dowse.models.onnx.weights import ModelWeights

_LOG_ERRORS_ONLY = 3  # onnxruntime's severity


class Encoder:
    """Encoder of texts; safe to share between threads.

    Texts run one by one: no padding, no mask, and no vector depends on the other texts. At 200 tokens that is also
    the fastest. One session thread: Python threads that share a session embed 93 texts a second, two session threads
    76.
    """

    def __init__(self, weights: ModelWeights, made: PreparedModel) -> None:
        import onnxruntime as ort

        self._weights = weights
        self._offsets = weights.offsets()
        self.longest = len(self._offsets)  # number of positions of the model
        ort.disable_telemetry_events()
        options = ort.SessionOptions()
        options.log_severity_level = _LOG_ERRORS_ONLY
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        # The next level would fuse Add and LayerNormalization, which is slower (see `graph_builder`).
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        self._tensors = made.tensors  # the session does not copy them: they must live as long
        self._values = [ort.OrtValue.ortvalue_from_numpy(tensor) for tensor in made.tensors.values()]
        options.add_external_initializers(list(made.tensors), self._values)
        self._session = ort.InferenceSession(made.graph, options, providers=["CPUExecutionProvider"])

    def run(
        self, ids: Sequence[int] | NDArray[np.int64], shift: NDArray[np.float32] | None = None
    ) -> NDArray[np.float32]:
        """Run one text and return the only row of the first output; `shift` is added to the rows of its tokens."""
        embedded = self._weights.rows(np.asarray(ids, np.int64)) + self._offsets[: len(ids)]
        if shift is not None:
            embedded += shift
        row: NDArray[np.float32] = self._session.run(None, {"embedded": embedded[None]})[0][0]
        return row
