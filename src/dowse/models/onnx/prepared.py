"""Prepared models and their encoder: graph, quantised tensors and tokenizer, cached in one mapped file.

Without the cache the default model takes 50 ms of CPU, and its tokenizer another 90 (`tokenizer.py`): a third of the
time of a search in a new process.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import prod
from pathlib import Path
from threading import get_ident
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from dowse.models.onnx.graph_builder import Pooling, encoder_graph
from dowse.models.onnx.quantise import graph_tensors
from dowse.models.onnx.tokenizer import byte_pairs
from dowse.models.onnx.weights import ModelWeights

Arrays = Mapping[str, NDArray[Any]]

FOLDER = "prepared"  # in the models folder
_LOG_ERRORS_ONLY = 3  # onnxruntime's severity
_LAYOUT = 2  # raise it when the graph, the quantisation or the arrays change
_GRAPH, _TENSOR, _PAIRS = "graph", "tensor ", "pairs "


class PreparedModel(msgspec.Struct, frozen=True):
    """Graph and tensors of an encoder; `pairs` is a cached byte-pair tokenizer as arrays."""

    graph: bytes
    tensors: Arrays
    pairs: Arrays | None = None


def prepared(weights: ModelWeights, pooling: Pooling, *, exact: bool, folder: Path | None = None) -> PreparedModel:
    """Load from `folder`, or make and cache there; not in fp32, which is as large as the model."""
    if folder is None or exact:
        return PreparedModel(encoder_graph(weights.shape, pooling, exact=exact), graph_tensors(weights, exact=exact))
    key = json.dumps([_LAYOUT, pooling, state(weights.files)])
    # The name has the folder and a hash of its path, so that two folders of one name do not collide.
    place = weights.files[0].absolute()
    file = folder / f"{place.parent.name}-{hashlib.sha256(str(place).encode()).hexdigest()[:8]}.arrays"
    arrays = kept(file, key)
    if arrays is not None:
        return PreparedModel(arrays[_GRAPH].tobytes(), _part(arrays, _TENSOR), _part(arrays, _PAIRS) or None)
    found = prepared(weights, pooling, exact=False)
    whole = {_GRAPH: np.frombuffer(found.graph, np.uint8)}
    whole |= {_TENSOR + name: array for name, array in found.tensors.items()}
    whole |= {_PAIRS + name: array for name, array in (byte_pairs(weights.tokenizer_json) or {}).items()}
    keep(file, key, whole)
    return found


def _part(arrays: Arrays, prefix: str) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


_MAGIC = b"DOWSEARR"
_START = struct.Struct("<8sQ")
_ALIGNED = 64  # bytes: a cache line, and enough for any instruction that onnxruntime uses


def keep(file: Path, key: str, arrays: Arrays) -> None:
    """Write the arrays. A read-only folder is no error: the next start makes them again."""
    rows: dict[str, Any] = {}
    at = 0
    for name, array in arrays.items():
        rows[name] = [array.dtype.str, array.shape, at]
        at += _padded(array.nbytes)
    text = json.dumps({"key": key, "arrays": rows, "bytes": at}).encode()
    text += b" " * (_padded(_START.size + len(text)) - _START.size - len(text))
    scratch = file.with_name(f".{file.name}.{os.getpid()}-{get_ident()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with scratch.open("wb") as out:
            out.write(_START.pack(_MAGIC, len(text)) + text)
            for array in arrays.values():
                out.write(array.tobytes() + bytes(_padded(array.nbytes) - array.nbytes))
            out.flush()
            os.fsync(out.fileno())  # else a crash may leave a file of zeros
        scratch.replace(file)
    except OSError:
        with suppress(OSError):
            scratch.unlink()


def kept(file: Path, key: str) -> dict[str, NDArray[Any]] | None:
    """Map the arrays of that key, read-only; None without a valid file."""
    try:
        with file.open("rb") as stream:
            data = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
        magic, length = _START.unpack_from(data)
        header = json.loads(bytes(data[_START.size : _START.size + length]))
    except (OSError, ValueError, struct.error):  # missing, empty, cut off or damaged
        return None
    body = data[_START.size + length :]
    if magic != _MAGIC or header["key"] != key or header["bytes"] != len(body):
        return None
    return {
        name: np.frombuffer(body, kind, prod(shape), at).reshape(shape)
        for name, (kind, shape, at) in header["arrays"].items()
    }


def state(files: tuple[Path, ...]) -> list[list[int]]:
    """Return size, times and inode of the files, to detect changes without reading them."""
    found = [file.stat() for file in files]
    return [[each.st_size, each.st_mtime_ns, each.st_ctime_ns, each.st_ino] for each in found]


def _padded(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED


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
