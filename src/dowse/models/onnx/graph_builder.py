"""ONNX graph of a BERT-like encoder, without weights: a few kilobytes.

Every weight is declared with name and shape and marked "external"; `prepared.py` passes the arrays to onnxruntime.
An ONNX file is a protobuf message, and writing one takes two short functions, so the `onnx` package is not needed.
The embedding tables stay outside: the graph starts at the summed rows, and does not know the vocabulary.

How the int8 maps stay exact enough, and equal on every processor:

- Weights have 7 bits. Processors without VNNI add pairs of products in 16 bits, and 2·255·63 still fits, where
  2·255·127 saturates: the same numbers everywhere, with the fast kernel, and nothing to probe.
- The operator has one step for all activations of a text, and one token with large values would leave few levels for
  the others. After a norm the same few inputs are large in every text, and the weights of the norm show which: they
  are divided before the map, and their weights multiplied (`quantise.evening`; SmoothQuant, arXiv 2211.10438, without
  sample texts). For granite this raises the cosine to fp32 from 0.979 to 0.997 with one pass over the input.
- After GELU no weight shows it, and the first token of granite is 50 times as large as the others: each token has its
  own step, and the product is multiplied by it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

LINEAR = ("qkv", "attn_out", "ffn_up", "ffn_down")
HEADS = ("query", "key", "value")  # parts of qkv, each a separate product
EVENED = ("qkv", "ffn_up")  # the maps that read a norm
NORMS = ("attn_norm", "ffn_norm")
ROTARY_COS, ROTARY_SIN = "rotary.cos", "rotary.sin"

_FLOAT, _UINT8, _INT8, _INT64 = 1, 2, 3, 7  # TensorProto.DataType
_MICROSOFT = "com.microsoft"  # onnxruntime's own operators
_OPSET, _IR_VERSION = 18, 9
_GELU_DEPTH = 0.17  # how far below 0 GELU goes
_GELU_ZERO = 16  # of 256 levels, the one for 0: few are needed below it


class Pooling(StrEnum):
    """Reduction of token vectors to one."""

    MEAN = "mean"
    CLS = "cls"


class Rotary(msgspec.Struct, frozen=True):
    """Rotary positions (RoFormer, arXiv 2104.09864); the halves of a head are the two axes."""

    base: float
    positions: int


class EncoderShape(msgspec.Struct, frozen=True):
    """Sizes and features of an encoder that determine its graph."""

    layers: int
    hidden: int
    heads: int
    intermediate: int
    epsilon: float = 1e-12
    biased: tuple[str, ...] = LINEAR  # the linear maps that have a bias
    gated: bool = False  # SwiGLU instead of GELU: ffn_up gives values, then gates
    rotary: Rotary | None = None  # None: positions are in the input

    def linear(self, name: str) -> tuple[int, int]:
        """Return (inputs, outputs) of one of the four linear maps of a layer."""
        hidden, wide = self.hidden, self.intermediate
        return {
            "qkv": (hidden, 3 * hidden),
            "attn_out": (hidden, hidden),
            "ffn_up": (hidden, 2 * wide if self.gated else wide),
            "ffn_down": (wide, hidden),
        }[name]


def encoder_graph(shape: EncoderShape, pooling: Pooling, *, exact: bool) -> bytes:
    """Build a graph from `embedded` [1, tokens, hidden] to `vector` [1, hidden]; int8 unless `exact`."""
    graph = _OnnxGraph(shape, exact=exact)
    graph.pool(graph.layers(first_only=pooling is Pooling.CLS), pooling)
    return graph.serialise("vector", shape.hidden)


def pair_graph(shape: EncoderShape, labels: int, *, exact: bool) -> bytes:
    """Build a graph from `embedded` of a pair to `logits` [1, labels]: tanh(x·pooler)·classifier, in fp32."""
    graph = _OnnxGraph(shape, exact=exact)
    graph.classify(graph.layers(first_only=True), labels)
    return graph.serialise("logits", labels)


class _OnnxGraph:
    """Nodes and weights of a graph. Methods add nodes and return the name of their output."""

    def __init__(self, shape: EncoderShape, *, exact: bool) -> None:
        self._shape = shape
        self._exact = exact
        self._nodes: list[bytes] = []
        self._tensors: dict[str, bytes] = {}

    def layers(self, *, first_only: bool) -> str:
        """Add all layers; with `first_only` the last one computes the first token only."""
        state = self.norm("embedded", None, "embed_norm")
        last = self._shape.layers - 1
        for layer in range(self._shape.layers):
            state = self._layer(state, layer, first_only=first_only and layer == last)
        return state

    def _layer(self, state: str, layer: int, *, first_only: bool) -> str:
        read = asked = self._read(state, layer, "qkv")
        if first_only:
            # The output reads the first token only; skipping the others here saves a seventh of the work.
            zero, one = self._constant("zero", [0]), self._constant("one", [1])
            state = self._op("Slice", [state, zero, one, one], f"{state}.first")
            asked = self._read(state, layer, "qkv")
        query, key, value = (self._product(asked if name == "query" else read, layer, name) for name in HEADS)
        if self._shape.rotary:
            query, key = self._rotated(query, self._shape.rotary), self._rotated(key, self._shape.rotary)
        mixed = self._op(
            "MultiHeadAttention", [query, key, value], f"{layer}.mixed", _MICROSOFT, num_heads=self._shape.heads
        )
        state = self.norm(self._linear(mixed, layer, "attn_out"), state, f"{layer}.attn_norm")
        wide = self._activated(self._linear(state, layer, "ffn_up"), f"{layer}.wide")
        by_token = not (self._exact or self._shape.gated or first_only)
        narrow = self._by_token(wide, layer) if by_token else self._linear(wide, layer, "ffn_down")
        return self.norm(narrow, state, f"{layer}.ffn_norm")

    def norm(self, x: str, residual: str | None, name: str) -> str:
        """Add LayerNorm(x + residual) in two nodes: the fused one of onnxruntime takes three times as long."""
        if residual:
            x = self._op("Add", [x, residual], f"{name}.sum")
        hidden = [self._shape.hidden]
        inputs = [x, self._weight(f"{name}.weight", hidden), self._weight(f"{name}.bias", hidden)]
        return self._op("LayerNormalization", inputs, f"{name}.out", axis=2, epsilon=self._shape.epsilon)

    def pool(self, state: str, pooling: Pooling) -> None:
        """Add pooling. The divisor of the mean is left out: the vector gets unit length anyway."""
        if pooling is Pooling.MEAN:
            # Over both axes: onnxruntime takes four times as long for the second of three alone.
            state = self._op("ReduceSum", [state, self._constant("all_tokens", [0, 1])], "sum", keepdims=1)
        pooled = self._op("Squeeze", [state, self._constant("one", [1])], "pooled")
        self._op("LpNormalization", [pooled], "vector", axis=1, p=2)

    def classify(self, state: str, labels: int) -> None:
        hidden = self._shape.hidden
        first = self._op("Squeeze", [state, self._constant("one", [1])], "pooled")
        inner = self._op("Tanh", [self._dense(first, "pooler", hidden)], "pooler.tanh")
        self._op("Identity", [self._dense(inner, "classifier", labels)], "logits")

    def serialise(self, output: str, width: int) -> bytes:
        graph = _message(
            (1, self._nodes),
            (2, "encoder"),
            (5, self._tensors.values()),
            (11, _value("embedded", [1, "tokens", self._shape.hidden])),
            (12, _value(output, [1, width])),
        )
        opsets = [_message((1, ""), (2, _OPSET)), _message((1, _MICROSOFT), (2, 1))]
        return _message((1, _IR_VERSION), (2, "dowse"), (7, graph), (8, opsets))

    def _dense(self, x: str, name: str, outputs: int) -> str:
        """Add x·W + b in fp32."""
        weight = self._weight(f"{name}.weight", [self._shape.hidden, outputs])
        product = self._op("MatMul", [x, weight], f"{name}.product")
        return self._op("Add", [product, self._weight(f"{name}.bias", [outputs])], f"{name}.out")

    def _rotated(self, x: str, rotary: Rotary) -> str:
        """Add a rotation; the first token is at position 0, so a text may have fewer tokens than the table."""
        dims = [rotary.positions, self._shape.hidden // self._shape.heads // 2]
        tables = [self._weight(ROTARY_COS, dims), self._weight(ROTARY_SIN, dims)]
        return self._op("RotaryEmbedding", [x, self._constant("zero", [0]), *tables], f"{x}.rotated", _MICROSOFT)

    def _activated(self, x: str, name: str) -> str:
        """Add GELU(x), or value·SiLU(gate) of the two halves of x."""
        if not self._shape.gated:
            # FastGelu uses tanh for erf: two thirds of the time, off by at most 0.0005.
            return self._op("Gelu" if self._exact else "FastGelu", [x], name, _MICROSOFT)
        value, gate = self._ops("Split", [x], [f"{name}.value", f"{name}.gate"], axis=2, num_outputs=2)
        # SiLU is QuickGelu with a factor of 1: one pass instead of two.
        gate = self._op("QuickGelu", [gate], f"{name}.silu", _MICROSOFT, alpha=1.0)
        return self._op("Mul", [value, gate], name)

    def _linear(self, x: str, layer: int, name: str) -> str:
        """Add x·W + b, or x·W."""
        return self._product(self._read(x, layer, name), layer, name)

    def _read(self, x: str, layer: int, name: str) -> list[str]:
        """Prepare x for a product: as it is in fp32, else as 8 bits, step and zero."""
        if self._exact:
            return [x]
        if name in EVENED:
            x = self._op("Mul", [x, self._weight(f"{layer}.{name}.even", [self._shape.hidden])], f"{x}.even")
        return self._ops("DynamicQuantizeLinear", [x], [f"{x}.bits", f"{x}.step", f"{x}.zero"])

    def _product(self, read: Sequence[str], layer: int, name: str, *, biased: bool = True) -> str:
        """`name` is one of LINEAR or HEADS."""
        whole = "qkv" if name in HEADS else name
        inputs, outputs = self._shape.linear(whole)
        outputs = outputs // len(HEADS) if name in HEADS else outputs
        biased = biased and whole in self._shape.biased
        name = f"{layer}.{name}"
        bias = [self._weight(f"{name}.bias", [outputs])] if biased else []
        if self._exact:
            weight = self._weight(f"{name}.weight", [inputs, outputs])
            product = self._op("MatMul", [*read, weight], f"{name}.product")
            return self._op("Add", [product, *bias], f"{name}.out") if biased else product
        bits, step, zero = read
        weight = self._weight(f"{name}.weight", [inputs, outputs], _INT8)
        scale = self._weight(f"{name}.scale", [outputs])
        operands = [bits, weight, step, scale, zero, "", *bias]  # "": the weights' zero is 0
        return self._op("MatMulIntegerToFloat", operands, f"{name}.out", _MICROSOFT)

    def _by_token(self, wide: str, layer: int) -> str:
        """Add FFN-down in int8 with a step for each token: its largest value has the highest level."""
        name = f"{layer}.ffn_down"
        largest = self._op("ReduceMax", [wide, self._constant("last_axis", [-1])], f"{name}.max", keepdims=1)
        level = self._constant("level", [1 / (255 - _GELU_ZERO)])
        least = self._constant("least_step", [_GELU_DEPTH / _GELU_ZERO])
        step = self._op("Max", [self._op("Mul", [largest, level], f"{name}.size"), least], f"{name}.step")
        steps = self._op("Reshape", [step, self._constant("flat", [-1])], f"{name}.steps")
        if "gelu_zero" not in self._tensors:  # one for every token, shared by the layers
            zero = self._constant("gelu_zero", bytes([_GELU_ZERO]))
            tokens = self._op("Shape", ["embedded"], "tokens", start=1, end=2)
            self._op("Expand", [zero, tokens], "gelu_zeros")
        bits = self._op("QuantizeLinear", [wide, steps, "gelu_zeros"], f"{name}.bits", axis=1)
        product = self._product([bits, self._constant("unit", [1.0]), "gelu_zero"], layer, "ffn_down", biased=False)
        product = self._op("Mul", [product, step], f"{name}.product")
        if "ffn_down" not in self._shape.biased:
            return product
        return self._op("Add", [product, self._weight(f"{name}.bias", [self._shape.hidden])], f"{name}.sum")

    def _op(self, kind: str, inputs: Sequence[str], output: str, domain: str = "", **attributes: float) -> str:
        """Add a node; return the name of its output."""
        return self._ops(kind, inputs, [output], domain, **attributes)[0]

    def _ops(
        self, kind: str, inputs: Sequence[str], outputs: list[str], domain: str = "", **attributes: float
    ) -> list[str]:
        """Add a node with several outputs; return their names."""
        # AttributeProto: name 1, f 2, i 3, type 20, which is 1 for a float and 2 for an integer.
        kinds = [(key, value, 1 if isinstance(value, float) else 2) for key, value in attributes.items()]
        encoded = [_message((1, key), (1 + kind, value), (20, kind)) for key, value, kind in kinds]
        self._nodes.append(_message((1, inputs), (2, outputs), (3, outputs[0]), (4, kind), (5, encoded), (7, domain)))
        return outputs

    def _weight(self, name: str, dims: Sequence[int], kind: int = _FLOAT) -> str:
        """Declare a tensor that is passed at run time: field 14 says external, 13 a place that is not used."""
        place = _message((1, "location"), (2, "injected"))
        self._tensors[name] = _message((1, dims), (2, kind), (8, name), (13, place), (14, 1))
        return name

    def _constant(self, name: str, values: Sequence[float] | bytes) -> str:
        """Add a constant of bytes, floats or integers, by the type of its values."""
        kind, code = (_FLOAT, "f") if isinstance(values[0], float) else (_INT64, "q")
        if isinstance(values, bytes):
            kind, code = _UINT8, "B"
        data = struct.pack(f"<{len(values)}{code}", *values)
        self._tensors[name] = _message((1, len(values)), (2, kind), (8, name), (9, data))
        return name


def _value(name: str, dims: Iterable[str | int]) -> bytes:
    """Encode a float input or output; a named dimension is known at run time only."""
    encoded = [_message((2, dim)) if isinstance(dim, str) else _message((1, dim)) for dim in dims]
    tensor = _message((1, _FLOAT), (2, _message((1, encoded))))
    return _message((1, name), (2, _message((1, tensor))))


_Field = int | float | str | bytes


def _message(*fields: tuple[int, _Field | Iterable[_Field]]) -> bytes:
    """Encode a protobuf message of (field number, value) pairs; a list of values repeats its field."""
    out = bytearray()
    for number, value in fields:
        for item in [value] if isinstance(value, int | float | str | bytes) else value:
            if isinstance(item, int):
                out += _varint(number << 3) + _varint(item)
            elif isinstance(item, float):
                out += _varint(number << 3 | 5) + struct.pack("<f", item)
            else:
                data = item.encode() if isinstance(item, str) else item
                out += _varint(number << 3 | 2) + _varint(len(data)) + data
    return bytes(out)


def _varint(number: int) -> bytes:
    """Encode seven bits a byte, lowest first; the top bit marks that more follow."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
