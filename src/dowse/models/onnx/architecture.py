"""A model's config.json goes in, the shape of the encoder and the names of its tensors come out, or a refusal.

What the graph cannot compute is refused by name: computing something else would give vectors that look right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dowse.errors import BadRequestError
from dowse.models.onnx.graph_builder import LINEAR, Rotary, Shape

BERT_TYPES = ("bert", "roberta", "xlm-roberta", "camembert")
NOMIC_TYPE = "nomic_bert"
MODEL_TYPES = (*BERT_TYPES, NOMIC_TYPE)  # values of "model_type" in config.json that Dowse computes

_NOMIC_BIAS = {
    "qkv": "qkv_proj_bias",
    "attn_out": "qkv_proj_bias",
    "ffn_up": "mlp_fc1_bias",
    "ffn_down": "mlp_fc2_bias",
}
_NOMIC_TRAINED_POSITIONS = 2048  # what nomic_bert's own code assumes where the config does not say
# Each would change the formula; null and false both mean off.
_NOMIC_OFF = (
    "prenorm", "parallel_block", "use_rms_norm", "causal", "moe_every_n_layers",
    "rotary_emb_interleaved", "rotary_emb_scale_base", "rotary_head_dim",
)  # fmt: skip


@dataclass(frozen=True)
class TensorNames:
    """Where a family of encoders keeps its parameters. Of several names, the rows stand one below the other."""

    layer: str  # what a layer's names begin with
    embed_norm: str
    linear: Mapping[str, tuple[str, ...]]  # by graph.LINEAR and graph.NORMS


@dataclass(frozen=True)
class Architecture:
    """How to read and compute the model of a folder."""

    shape: Shape
    names: TensorNames
    first_position: int | None  # row of the position table that the first token takes; None: there is no table


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
    raise _unsupported(folder, f"model type {kind!r}; supported are {', '.join(MODEL_TYPES)}")


def _bert_shape(config: Mapping[str, Any], folder: Path) -> Shape:
    if config.get("hidden_act", "gelu") != "gelu":
        raise _unsupported(folder, f"activation {config['hidden_act']!r}; supported is 'gelu'")
    if config.get("position_embedding_type", "absolute") != "absolute":
        raise _unsupported(folder, f"positions of type {config['position_embedding_type']!r}; supported is 'absolute'")
    return Shape(
        layers=config["num_hidden_layers"],
        hidden=config["hidden_size"],
        heads=config["num_attention_heads"],
        intermediate=config["intermediate_size"],
        epsilon=float(config.get("layer_norm_eps", 1e-12)),
    )


def _nomic_shape(config: Mapping[str, Any], folder: Path) -> Shape:
    """Defaults are those of nomic_bert's own configuration class, which stands on GPT-2's."""
    if "n_embd" not in config:
        raise _unsupported(folder, "a nomic_bert config without 'n_embd'; supported is the layout with GPT-2's names")
    if (activation := config.get("activation_function")) != "swiglu":
        raise _unsupported(folder, f"activation {activation!r}; supported is 'swiglu'")
    if (fraction := config.get("rotary_emb_fraction", 0.0)) != 1:
        raise _unsupported(folder, f"rotary_emb_fraction {fraction}; supported is 1.0")
    for switch in _NOMIC_OFF:
        if config.get(switch):
            raise _unsupported(folder, f"{switch} {config[switch]}; supported is a nomic_bert without it")
    # Beyond the trained positions some models change the base with the length (rotary_scaling_factor): texts are cut.
    trained = config.get("max_trained_positions") or _NOMIC_TRAINED_POSITIONS
    return Shape(
        layers=config["n_layer"],
        hidden=config["n_embd"],
        heads=config["n_head"],
        intermediate=_nomic_width(config),
        epsilon=float(config.get("layer_norm_epsilon", 1e-5)),
        biased=tuple(name for name in LINEAR if config.get(_NOMIC_BIAS[name], True)),
        gated=True,
        rotary=Rotary(float(config.get("rotary_emb_base", 1000)), min(trained, config.get("n_positions") or trained)),
    )


def _nomic_width(config: Mapping[str, Any]) -> int:
    """The gated maps are as wide as the config says, or ⅔ of four times the hidden size, rounded up to 256."""
    wanted = config.get("n_inner") or int(8 * config["n_embd"] / 3)
    return -(-wanted // 256) * 256


def _unsupported(folder: Path, what: str) -> BadRequestError:
    return BadRequestError(
        f"model folder {folder} has {what}. Choose another model (`dowse models list`), or serve this one behind an "
        "OpenAI-compatible address (https://host/v1#model)"
    )
