"""Token ids go in, the vector of a text or the logits of a pair come out: tables, a weightless graph and a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dowse.models.onnx.graph_builder import pair_graph
from dowse.models.onnx.quantise import graph_tensors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dowse.models.onnx.preparing import Prepared
    from dowse.models.onnx.weights import FolderWeights, Weights

_LOG_ERRORS_ONLY = 3  # onnxruntime's severity


class Encoder:
    """Safe to share between threads.

    Texts run one by one: no padding, no mask, and no text's vector depends on its neighbours. At 200 tokens that is
    also the fastest way (lab/runtime.md). One session thread: several Python threads that share a session give 93
    texts a second where two session threads give 76.
    """

    def __init__(self, weights: Weights, made: Prepared) -> None:
        self._weights = weights
        self._offsets = weights.offsets()
        self._session = Session(made.graph, made.tensors)

    @property
    def longest(self) -> int:
        """How many tokens the model has positions for."""
        return len(self._offsets)

    def run(self, ids: Sequence[int]) -> NDArray[np.float32]:
        import numpy as np

        embedded = self._weights.rows(np.asarray(ids, np.int64)) + self._offsets[: len(ids)]
        return self._session.run(embedded)


class PairEncoder:
    """A cross-encoder: token ids of a pair go in, its logits come out. Safe to share; pairs run one by one, too."""

    def __init__(self, weights: FolderWeights, *, exact: bool = False) -> None:
        import numpy as np

        self._weights = weights
        self._offsets = weights.offsets()
        self._shift = weights.type_shift()
        head = weights.pair_head()
        self.labels = len(head["classifier.bias"])
        tensors = graph_tensors(weights, exact=exact) | {
            name: np.require(array.T, requirements=["C", "A"]) for name, array in head.items()
        }
        self._session = Session(pair_graph(weights.shape, self.labels, exact=exact), tensors)

    @property
    def longest(self) -> int:
        return len(self._offsets)

    def run(self, ids: Sequence[int], types: Sequence[int]) -> NDArray[np.float32]:
        """`types` are 0 for the first text and 1 for the second."""
        import numpy as np

        embedded = self._weights.rows(np.asarray(ids, np.int64)) + self._offsets[: len(ids)]
        embedded = embedded + np.asarray(types, np.float32)[:, None] * self._shift
        return self._session.run(embedded)


class Session:
    """One onnxruntime session and the tensors it reads: onnxruntime does not copy them, so they live as long."""

    def __init__(self, graph: bytes, tensors: Mapping[str, NDArray[Any]]) -> None:
        import onnxruntime as ort

        ort.disable_telemetry_events()
        options = ort.SessionOptions()
        options.log_severity_level = _LOG_ERRORS_ONLY
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        # The next level would fuse Add and LayerNormalization, which is slower (see graph.py).
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        self._tensors = tensors
        self._values = [ort.OrtValue.ortvalue_from_numpy(tensor) for tensor in tensors.values()]
        options.add_external_initializers(list(tensors), self._values)
        self._session = ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])

    def run(self, embedded: NDArray[np.float32]) -> NDArray[np.float32]:
        """Of one text, [tokens, hidden]; the first output's only row."""
        row: NDArray[np.float32] = self._session.run(None, {"embedded": embedded[None]})[0][0]
        return row
