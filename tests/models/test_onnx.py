"""The local embedder against a plain float64 forward pass of tiny random models, and against damaged folders."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from contracts.embedder import EmbedderContract
from contracts.tiny_encoder import (
    HIDDEN,
    LAYERS,
    POSITIONS,
    TinyEncoder,
    random_encoder,
    write_folder,
    write_safetensors,
)
from dowse.errors import BadRequestError, ModelUnavailableError
from dowse.models.embed_onnx import OnnxEmbedder
from dowse.models.onnx.graph_builder import EncoderShape, Pooling, encoder_graph
from dowse.models.onnx.quantise import LARGEST, evening, per_output
from dowse.models.onnx.recipe import Recipe, folder_recipe
from dowse.ports import Embedder

CLS, SEP, UNKNOWN, FIRST_WORD = 2, 3, 1, 4
TEXTS = ["w1 w2 w3", "w7", "", " ".join(f"w{n % 190}" for n in range(3, 50)), "strange w5"]
TEXT_IDS = [
    [CLS, *(FIRST_WORD + n for n in (1, 2, 3)), SEP],
    [CLS, FIRST_WORD + 7, SEP],
    [CLS, SEP],
    [CLS, *(FIRST_WORD + n % 190 for n in range(3, 50)), SEP],
    [CLS, UNKNOWN, FIRST_WORD + 5, SEP],
]


def recipe(pooling: Pooling, **fields: object) -> Recipe:
    return Recipe("tiny", pooling, **fields)  # type: ignore[arg-type]


def expected(encoder: TinyEncoder, pooling: Pooling, ids: list[list[int]]) -> np.ndarray:
    compute = encoder.cls if pooling is Pooling.CLS else encoder.mean
    return np.stack([compute(each) for each in ids])


@pytest.mark.parametrize("pooling", list(Pooling))
@pytest.mark.parametrize(("roberta", "prefix"), [(False, ""), (False, "bert."), (True, "roberta.")])
def test_fp32_equals_the_definition(tmp_path: Path, pooling: Pooling, roberta: bool, prefix: str) -> None:
    encoder = random_encoder(1, roberta=roberta)
    folder = write_folder(tmp_path, encoder, prefix=prefix)
    found = OnnxEmbedder(folder, recipe(pooling), exact=True).embed(TEXTS, role="chunk")
    np.testing.assert_allclose(found, expected(encoder, pooling, TEXT_IDS), atol=1e-5)


@pytest.mark.parametrize("pooling", list(Pooling))
@pytest.mark.parametrize("roberta", [False, True])
def test_int8_is_close_to_the_definition(tmp_path: Path, pooling: Pooling, roberta: bool) -> None:
    encoder = random_encoder(2, roberta=roberta)
    found = OnnxEmbedder(write_folder(tmp_path, encoder), recipe(pooling)).embed(TEXTS, role="chunk")
    cosines = (found * expected(encoder, pooling, TEXT_IDS)).sum(axis=1)
    assert cosines.min() > 0.99


def test_int8_survives_weights_and_activations_at_their_largest(tmp_path: Path) -> None:
    """Where sums of products saturate in 16 bits, equal large weights are the worst case."""
    encoder = random_encoder(3)
    for name, weight in encoder.weights.items():
        if name.endswith(("query.weight", "key.weight", "value.weight", "dense.weight")):
            np.copyto(weight, np.where(weight > 0, 0.3, -0.3))
        if name.endswith("intermediate.dense.bias"):
            np.copyto(weight, 5.0)  # every value after GELU is large and positive
    found = OnnxEmbedder(write_folder(tmp_path, encoder), recipe(Pooling.MEAN)).embed(TEXTS, role="chunk")
    cosines = (found * expected(encoder, Pooling.MEAN, TEXT_IDS)).sum(axis=1)
    assert cosines.min() > 0.99


def test_one_loud_token_does_not_drown_the_others(tmp_path: Path) -> None:
    """With one activation scale for the whole text the other tokens would have almost no levels left: cosine .95."""
    encoder = random_encoder(5)
    unit, axis, loudness = 5, 7, 300.0
    words, layer = encoder.weights["embeddings.word_embeddings.weight"], "encoder.layer.0."
    words[:, axis], words[FIRST_WORD, axis] = 0.0, 3.0
    encoder.weights[f"{layer}attention.output.LayerNorm.weight"][axis] = 4.0
    encoder.weights[f"{layer}attention.output.LayerNorm.bias"][axis] = 0.0
    up = encoder.weights[f"{layer}intermediate.dense.weight"]
    up[unit], up[unit, axis] = 0.0, loudness
    encoder.weights[f"{layer}intermediate.dense.bias"][unit] = -3 * loudness
    encoder.weights[f"{layer}output.dense.weight"][:, unit] /= loudness
    ids = [[CLS, *(FIRST_WORD + n for n in range(30)), SEP]]
    embedder = OnnxEmbedder(write_folder(tmp_path, encoder), recipe(Pooling.MEAN))
    found = embedder.embed([" ".join(f"w{n}" for n in range(30))], role="chunk")
    assert (found * expected(encoder, Pooling.MEAN, ids)).sum() > 0.99


def test_one_loud_input_of_every_token_does_not_drown_the_others(tmp_path: Path) -> None:
    """The norm before a map says which inputs are loud; were they not divided, the cosine would be .998 or less."""
    encoder = random_encoder(11)
    axis, loudness = 7, 200.0
    for layer in range(LAYERS):
        encoder.weights[f"encoder.layer.{layer}.attention.output.LayerNorm.bias"][axis] = loudness
        encoder.weights[f"encoder.layer.{layer}.intermediate.dense.weight"][:, axis] /= loudness
    found = OnnxEmbedder(write_folder(tmp_path, encoder), recipe(Pooling.MEAN)).embed(TEXTS, role="chunk")
    assert (found * expected(encoder, Pooling.MEAN, TEXT_IDS)).sum(axis=1).min() > 0.9995


def test_an_input_that_is_always_zero_divides_by_no_zero() -> None:
    loud = evening(np.array([0, -4], np.float32), np.array([0, 5], np.float32))
    assert loud[0] > 0
    assert loud[1] == 3


@pytest.mark.parametrize("kind", ["F16", "BF16"])
def test_half_precision_checkpoints_are_read(tmp_path: Path, kind: str) -> None:
    encoder = random_encoder(5)
    folder = write_folder(tmp_path, encoder)
    halves = {
        name: array.astype(np.float16) if kind == "F16" else (array.view(np.uint32) >> 16).astype(np.uint16)
        for name, array in encoder.weights.items()
    }
    write_safetensors(folder / "model.safetensors", halves)
    found = OnnxEmbedder(folder, recipe(Pooling.MEAN), exact=True).embed(TEXTS, role="chunk")
    assert (found * expected(encoder, Pooling.MEAN, TEXT_IDS)).sum(axis=1).min() > 0.999


def test_texts_are_cut_to_the_models_positions(tmp_path: Path) -> None:
    encoder = random_encoder(6)
    embedder = OnnxEmbedder(write_folder(tmp_path, encoder), recipe(Pooling.MEAN), exact=True)
    words = [FIRST_WORD + n % 190 for n in range(500)]
    found = embedder.embed([" ".join(f"w{n % 190}" for n in range(500))], role="chunk")
    wanted = expected(encoder, Pooling.MEAN, [[CLS, *words[: POSITIONS - 2], SEP]])
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_texts_are_cut_to_the_recipes_tokens(tmp_path: Path) -> None:
    encoder = random_encoder(6)
    embedder = OnnxEmbedder(write_folder(tmp_path, encoder), recipe(Pooling.CLS, max_tokens=5), exact=True)
    found = embedder.embed(["w1 w2 w3 w4 w5 w6"], role="chunk")
    wanted = expected(encoder, Pooling.CLS, [[CLS, *(FIRST_WORD + n for n in (1, 2, 3)), SEP]])
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_prefixes_depend_on_the_role(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, random_encoder(7))
    plain = OnnxEmbedder(folder, recipe(Pooling.MEAN))
    asymmetric = OnnxEmbedder(folder, recipe(Pooling.MEAN, query_prefix="w8 ", chunk_prefix="w9 "))
    for role, prefix in (("query", "w8 "), ("chunk", "w9 ")):
        found = asymmetric.embed(["w1 w2"], role=role)  # type: ignore[arg-type]
        np.testing.assert_array_equal(found, plain.embed([f"{prefix}w1 w2"], role=role))  # type: ignore[arg-type]


def test_several_threads_give_the_same_bits(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, random_encoder(8))
    texts = [f"w{n} w{n + 1} w{n * 3 % 190}" for n in range(40)]
    one = OnnxEmbedder(folder, recipe(Pooling.MEAN)).embed(texts, role="chunk")
    four = OnnxEmbedder(folder, recipe(Pooling.MEAN), threads=4).embed(texts, role="chunk")
    np.testing.assert_array_equal(one, four)


class TestTinyEncoderContract(EmbedderContract):
    knows_words = False  # its weights are random

    @pytest.fixture
    def embedder(self, tmp_path: Path) -> Embedder:
        return OnnxEmbedder(write_folder(tmp_path, random_encoder(9)), recipe(Pooling.MEAN), threads=2)


def test_a_graph_holds_no_weights() -> None:
    wide = encoder_graph(EncoderShape(6, 384, 12, 1536), Pooling.CLS, exact=False)
    narrow = encoder_graph(EncoderShape(6, 64, 4, 128), Pooling.CLS, exact=False)
    assert len(wide) < 30_000
    assert abs(len(wide) - len(narrow)) < 500


@given(arrays(np.float32, (5, 16), elements=st.floats(-100, 100, width=32)))
def test_quantised_weights_are_within_half_a_step(weight: np.ndarray) -> None:
    values, scale = per_output(weight)
    assert values.dtype == np.int8
    assert np.abs(values).max() <= LARGEST
    assert (np.abs(values.T * scale[:, None] - weight) <= scale[:, None] * 0.5001).all()


def test_products_of_quantised_values_fit_sixteen_bits() -> None:
    assert 2 * 255 * LARGEST <= 2**15 - 1 < 2 * 255 * 127


# --- folders that say how to use the model -------------------------------------------------------------


def test_a_folder_says_pooling_prefixes_and_length(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "my-model", random_encoder(1))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(
        json.dumps({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False, "word_embedding_dimension": 64})
    )
    (folder / "config_sentence_transformers.json").write_text(
        json.dumps({"prompts": {"query": "ask: ", "document": "doc: "}})
    )
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 100}))
    found = folder_recipe(folder, "my-model")
    assert found.pooling is Pooling.CLS
    assert (found.query_prefix, found.chunk_prefix) == ("ask: ", "doc: ")
    assert found.max_tokens == min(256, 100)


def test_a_folder_that_says_nothing_is_pooled_by_the_mean(tmp_path: Path) -> None:
    found = folder_recipe(write_folder(tmp_path, random_encoder(1)), "plain")
    assert found == Recipe(found.model, Pooling.MEAN, "", "", 256)


def test_a_known_family_has_its_prefix(tmp_path: Path) -> None:
    found = folder_recipe(write_folder(tmp_path, random_encoder(1)), "BAAI/bge-small-en-v1.5")
    assert found.query_prefix.startswith("Represent this sentence")
    assert found.chunk_prefix == ""


def test_another_model_under_the_same_name_has_another_name_in_the_manifest(tmp_path: Path) -> None:
    one = write_folder(tmp_path / "a" / "model", random_encoder(1))
    other = write_folder(tmp_path / "b" / "model", random_encoder(1), layer_norm_eps=1e-5)
    assert folder_recipe(one, "model").model != folder_recipe(other, "model").model
    assert folder_recipe(one, "model").model == folder_recipe(one, "model").model


@pytest.mark.parametrize(
    ("file", "content", "word"),
    [
        ("1_Pooling/config.json", {"pooling_mode_max_tokens": True}, "max_tokens"),
        ("1_Pooling/config.json", {"pooling_mode": "lasttoken"}, "lasttoken"),
        ("modules.json", [{"type": "sentence_transformers.models.Dense"}], "Dense"),
    ],
)
def test_what_cannot_be_computed_is_refused(tmp_path: Path, file: str, content: object, word: str) -> None:
    folder = write_folder(tmp_path, random_encoder(1))
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).write_text(json.dumps(content))
    with pytest.raises(BadRequestError, match=word):
        folder_recipe(folder, "model")


@pytest.mark.parametrize(
    "config", [{"model_type": "t5"}, {"hidden_act": "relu"}, {"position_embedding_type": "relative_key"}]
)
def test_another_architecture_is_refused_by_name(tmp_path: Path, config: dict[str, str]) -> None:
    folder = write_folder(tmp_path, random_encoder(1), **config)
    with pytest.raises(BadRequestError, match=next(iter(config.values()))):
        OnnxEmbedder(folder, recipe(Pooling.MEAN))


# --- damage --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    folder = write_folder(tmp_path, random_encoder(1))
    (folder / name).unlink()
    with pytest.raises(ModelUnavailableError, match=name):
        OnnxEmbedder(folder, recipe(Pooling.MEAN))


@pytest.mark.parametrize("keep", [0, 5, 100, 60_000])
def test_truncated_weights_are_refused(tmp_path: Path, keep: int) -> None:
    folder = write_folder(tmp_path, random_encoder(1))
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:keep])
    with pytest.raises(ModelUnavailableError, match="damaged"):
        OnnxEmbedder(folder, recipe(Pooling.MEAN))


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_a_file_that_is_not_json_is_refused(tmp_path: Path, name: str) -> None:
    folder = write_folder(tmp_path, random_encoder(1))
    (folder / name).write_text("<html>not found</html>")
    with pytest.raises(ModelUnavailableError):
        OnnxEmbedder(folder, recipe(Pooling.MEAN))


def test_weights_with_nan_are_refused_when_they_show(tmp_path: Path) -> None:
    encoder = random_encoder(1)
    encoder.weights["encoder.layer.1.output.LayerNorm.bias"][3] = np.nan
    embedder = OnnxEmbedder(write_folder(tmp_path, encoder), recipe(Pooling.MEAN))
    with pytest.raises(ModelUnavailableError, match="NaN"):
        embedder.embed(["w1"], role="chunk")


def test_weights_of_a_missing_layer_are_named(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, random_encoder(1), num_hidden_layers=3)
    with pytest.raises(ModelUnavailableError, match=r"encoder\.layer\.2"):
        OnnxEmbedder(folder, recipe(Pooling.MEAN))


def test_dimension_is_the_hidden_size(tmp_path: Path) -> None:
    assert OnnxEmbedder(write_folder(tmp_path, random_encoder(1)), recipe(Pooling.CLS)).dimension == HIDDEN
