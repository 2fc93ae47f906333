"""Architecture of a model: encoder shape and tensor names, read from config.json.

Unsupported features are refused by name: ignoring them would give wrong vectors that look right.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from dowse.errors import BadRequestError
from dowse.models.onnx.graph_builder import LINEAR, EncoderShape, Rotary

BERT_TYPES = ("bert", "roberta", "xlm-roberta", "camembert")
NOMIC_TYPE = "nomic_bert"
MODEL_TYPES = (*BERT_TYPES, NOMIC_TYPE)  # values of "model_type" in config.json that Dowse computes

_NOMIC_BIAS = {
    "qkv": "qkv_proj_bias",
    "attn_out": "qkv_proj_bias",
    "ffn_up": "mlp_fc1_bias",
    "ffn_down": "mlp_fc2_bias",
}
_NOMIC_TRAINED_POSITIONS = 2048  # default in the code of nomic_bert
# Each would change the formula; null and false both mean off.
_NOMIC_OFF = (
    "prenorm", "parallel_block", "use_rms_norm", "causal", "moe_every_n_layers",
    "rotary_emb_interleaved", "rotary_emb_scale_base", "rotary_head_dim",
)  # fmt: skip


class TensorNames(msgspec.Struct, frozen=True):
    """Tensor names of a family of encoders; the rows of several tensors are concatenated."""

    layer: str  # start of the names in a layer
    embed_norm: str
    linear: Mapping[str, tuple[str, ...]]  # by LINEAR and NORMS


class Architecture(msgspec.Struct, frozen=True):
    """Shape, tensor names and positions of the model of a folder."""

    shape: EncoderShape
    names: TensorNames
    first_position: int | None  # row of the first token in the position table; None: no table


_BERT_NAMES = TensorNames(
    layer="encoder.layer.{}.",
    embed_norm="embeddings.LayerNorm",
    linear={
        "qkv": ("attention.self.query", "attention.self.key", "attention.self.value"),
        "attn_out": ("attention.output.dense",),
        "ffn_up": ("intermediate.dense",),
        "ffn_down": ("output.dense",),
        "attn_norm": ("attention.output.LayerNorm",),
        "ffn_norm": ("output.LayerNorm",),
    },
)
_NOMIC_NAMES = TensorNames(
    layer="encoder.layers.{}.",
    embed_norm="emb_ln",
    linear={
        "qkv": ("attn.Wqkv",),
        "attn_out": ("attn.out_proj",),
        "ffn_up": ("mlp.fc11", "mlp.fc12"),  # value, gate
        "ffn_down": ("mlp.fc2",),
        "attn_norm": ("norm1",),
        "ffn_norm": ("norm2",),
    },
)


def architecture(config: Mapping[str, Any], folder: Path) -> Architecture:
    kind = config.get("model_type")
    if kind == NOMIC_TYPE:
        return Architecture(_nomic_shape(config, folder), _NOMIC_NAMES, None)
    if kind in BERT_TYPES:
        # All but BERT count positions from the padding id + 1.
        first_position = 0 if kind == "bert" else config["pad_token_id"] + 1
        return Architecture(_bert_shape(config, folder), _BERT_NAMES, first_position)
    raise unsupported(folder, f"model type {kind!r}; supported are {', '.join(MODEL_TYPES)}")


def _bert_shape(config: Mapping[str, Any], folder: Path) -> EncoderShape:
    if config.get("hidden_act", "gelu") != "gelu":
        raise unsupported(folder, f"activation {config['hidden_act']!r}; supported is 'gelu'")
    if config.get("position_embedding_type", "absolute") != "absolute":
        raise unsupported(folder, f"positions of type {config['position_embedding_type']!r}; supported is 'absolute'")
    return EncoderShape(
        layers=config["num_hidden_layers"],
        hidden=config["hidden_size"],
        heads=config["num_attention_heads"],
        intermediate=config["intermediate_size"],
        epsilon=float(config.get("layer_norm_eps", 1e-12)),
    )


def _nomic_shape(config: Mapping[str, Any], folder: Path) -> EncoderShape:
    """Read the shape; defaults are those of the configuration class of nomic_bert."""
    if "n_embd" not in config:
        raise unsupported(
            folder, "a nomic_bert config without 'n_embd'; supported is the layout with the names of GPT-2"
        )
    if (activation := config.get("activation_function")) != "swiglu":
        raise unsupported(folder, f"activation {activation!r}; supported is 'swiglu'")
    if (fraction := config.get("rotary_emb_fraction", 0.0)) != 1:
        raise unsupported(folder, f"rotary_emb_fraction {fraction}; supported is 1.0")
    for switch in _NOMIC_OFF:
        if config.get(switch):
            raise unsupported(folder, f"{switch} {config[switch]}; supported is a nomic_bert without it")
    # Beyond the trained positions some models change the base with the length (rotary_scaling_factor): texts are cut.
    trained = config.get("max_trained_positions") or _NOMIC_TRAINED_POSITIONS
    # The width of the gated maps: from the config, or 8/3 of the hidden size, rounded up to 256.
    wide = config.get("n_inner") or int(8 * config["n_embd"] / 3)
    return EncoderShape(
        layers=config["n_layer"],
        hidden=config["n_embd"],
        heads=config["n_head"],
        intermediate=-(-wide // 256) * 256,
        epsilon=float(config.get("layer_norm_epsilon", 1e-5)),
        biased=tuple(name for name in LINEAR if config.get(_NOMIC_BIAS[name], True)),
        gated=True,
        rotary=Rotary(float(config.get("rotary_emb_base", 1000)), min(trained, config.get("n_positions") or trained)),
    )


def unsupported(folder: Path, what: str) -> BadRequestError:
    return BadRequestError(
        f"model folder {folder} has {what}. Choose another model (`dowse models list`), or serve this one behind an "
        "OpenAI-compatible address (https://host/v1#model)"
    )
