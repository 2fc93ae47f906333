"""The nomic_bert architecture against a plain float64 forward pass of tiny random models, through the folder path."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from contracts import tiny_encoder
from contracts.embedder import EmbedderContract
from contracts.tiny_nomic import BASE, HEAD, HIDDEN, POSITIONS, WIDE, TinyNomic, random_nomic, write_folder
from dowse.cli.main import cli
from dowse.errors import BadRequestError, ModelUnavailableError
from dowse.models.choose import open_embedder
from dowse.models.embed_onnx import OnnxEmbedder
from dowse.models.onnx.architecture import MODEL_TYPES
from dowse.models.onnx.graph_builder import EncoderShape, Pooling, Rotary
from dowse.models.onnx.quantise import rotations
from dowse.models.onnx.recipe import folder_recipe
from dowse.ports import Embedder
from values import replace

CLS, SEP, UNKNOWN, FIRST_WORD = 2, 3, 1, 4
ALL_BIASES = frozenset({"qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias"})
TEXTS = ["w1 w2 w3", "w7", "", " ".join(f"w{n % 190}" for n in range(3, 50)), "strange w5"]
TEXT_IDS = [
    [CLS, *(FIRST_WORD + n for n in (1, 2, 3)), SEP],
    [CLS, FIRST_WORD + 7, SEP],
    [CLS, SEP],
    [CLS, *(FIRST_WORD + n % 190 for n in range(3, 50)), SEP],
    [CLS, UNKNOWN, FIRST_WORD + 5, SEP],
]


def embedder_of(folder: Path, *, exact: bool = False) -> OnnxEmbedder:
    return OnnxEmbedder(folder, folder_recipe(folder, "tiny-nomic"), exact=exact)


def expected(encoder: TinyNomic, pooling: str, ids: list[list[int]]) -> np.ndarray:
    compute = encoder.cls if pooling == "cls" else encoder.mean
    return np.stack([compute(each) for each in ids])


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize(
    "biases", [frozenset(), ALL_BIASES, *(frozenset({each}) for each in sorted(ALL_BIASES))], ids=sorted
)
def test_fp32_equals_the_definition(tmp_path: Path, pooling: str, biases: frozenset[str]) -> None:
    encoder = random_nomic(1, biases=biases)
    folder = write_folder(tmp_path / "m", encoder, pooling=pooling)
    found = embedder_of(folder, exact=True).embed(TEXTS, role="chunk")
    np.testing.assert_allclose(found, expected(encoder, pooling, TEXT_IDS), atol=1e-5)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("biases", [frozenset(), ALL_BIASES], ids=["without biases", "with biases"])
def test_int8_is_close_to_the_definition(tmp_path: Path, pooling: str, biases: frozenset[str]) -> None:
    """Over twenty seeds the worst cosine was above .993."""
    encoder = random_nomic(2, biases=biases)
    found = embedder_of(write_folder(tmp_path / "m", encoder, pooling=pooling)).embed(TEXTS, role="chunk")
    cosines = (found * expected(encoder, pooling, TEXT_IDS)).sum(axis=1)
    assert cosines.min() > 0.99


def test_rotations_are_those_of_the_formula() -> None:
    shape = EncoderShape(1, HIDDEN, HIDDEN // HEAD, 256, rotary=Rotary(float(BASE), POSITIONS))
    tables = rotations(shape)
    position, pair = 5, 3
    angle = position * BASE ** (-2 * pair / HEAD)
    assert tables["rotary.cos"][position, pair] == pytest.approx(np.cos(angle))
    assert tables["rotary.sin"][position, pair] == pytest.approx(np.sin(angle))
    assert tables["rotary.cos"].shape == (POSITIONS, HEAD // 2)
    assert rotations(replace(shape, rotary=None)) == {}


def test_the_order_of_words_matters(tmp_path: Path) -> None:
    """Without rotations, a mean over tokens would not tell the two apart."""
    folder = write_folder(tmp_path / "m", random_nomic(3), pooling="mean")
    one, other = embedder_of(folder, exact=True).embed(["w1 w2 w3 w4", "w4 w3 w2 w1"], role="chunk")
    assert np.abs(one - other).max() > 1e-3


def test_texts_are_cut_to_the_trained_positions(tmp_path: Path) -> None:
    """Not to n_positions: beyond the trained ones the rotations of some models depend on the length."""
    encoder = random_nomic(4)
    embedder = embedder_of(write_folder(tmp_path / "m", encoder, pooling="mean"), exact=True)
    words = [FIRST_WORD + n % 190 for n in range(200)]
    found = embedder.embed([" ".join(f"w{n % 190}" for n in range(200))], role="chunk")
    wanted = expected(encoder, "mean", [[CLS, *words[: POSITIONS - 2], SEP]])
    np.testing.assert_allclose(found, wanted, atol=1e-5)


class TestTinyNomicContract(EmbedderContract):
    knows_words = False  # its weights are random

    @pytest.fixture
    def embedder(self, tmp_path: Path) -> Embedder:
        folder = write_folder(tmp_path / "m", random_nomic(5), pooling="cls")
        return OnnxEmbedder(folder, folder_recipe(folder, "tiny"), threads=2)


@pytest.mark.parametrize(
    ("name", "pooling", "query", "chunk"),
    [
        ("nomic-ai--CodeRankEmbed", "cls", "Represent this query for searching relevant code: ", ""),
        ("nomic-ai/CodeRankEmbed", "cls", "Represent this query for searching relevant code: ", ""),
        ("nomic-ai/nomic-embed-text-v1.5", "mean", "search_query: ", "search_document: "),
    ],
)
def test_published_models_are_used_as_their_cards_ask(
    tmp_path: Path, name: str, pooling: str, query: str, chunk: str
) -> None:
    found = folder_recipe(write_folder(tmp_path / "m", random_nomic(1), pooling=pooling), name)
    assert (found.pooling, found.query_prefix, found.chunk_prefix) == (Pooling(pooling), query, chunk)


def test_a_folder_opens_by_its_path(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "CodeRankEmbed", random_nomic(6), pooling="cls")
    opened = open_embedder(str(folder), models_folder=tmp_path / "models", allow_fetch=False)
    assert opened is not None
    assert opened.dimension == HIDDEN
    assert opened.model.startswith("CodeRankEmbed+")
    assert np.abs(opened.embed(["w1"], role="query") - opened.embed(["w1"], role="chunk")).max() > 1e-3


@pytest.mark.parametrize(
    ("config", "word"),
    [
        ({"activation_function": "geglu"}, "geglu"),
        ({"rotary_emb_fraction": 0.5}, "rotary_emb_fraction"),
        ({"rotary_emb_interleaved": True}, "rotary_emb_interleaved"),
        ({"rotary_emb_scale_base": 512}, "rotary_emb_scale_base"),
        ({"prenorm": True}, "prenorm"),
        ({"use_rms_norm": True}, "use_rms_norm"),
        ({"causal": True}, "causal"),
        ({"moe_every_n_layers": 2}, "moe_every_n_layers"),
    ],
)
def test_variants_that_are_not_computed_are_refused_by_name(
    tmp_path: Path, config: dict[str, object], word: str
) -> None:
    folder = write_folder(tmp_path / "m", random_nomic(1), pooling="cls", **config)
    with pytest.raises(BadRequestError, match=word):
        embedder_of(folder)


@pytest.mark.parametrize("tensor", ["encoder.layers.1.norm2.bias", "encoder.layers.0.mlp.fc12.weight", "emb_ln.weight"])
def test_a_missing_tensor_is_named(tmp_path: Path, tensor: str) -> None:
    encoder = random_nomic(1)
    rest = {name: array for name, array in encoder.weights.items() if name != tensor}
    folder = write_folder(tmp_path / "m", replace(encoder, weights=rest), pooling="cls")
    with pytest.raises(ModelUnavailableError, match=tensor):
        embedder_of(folder)


def test_weights_of_another_width_than_the_config_says_are_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "m", random_nomic(1), pooling="cls", n_inner=2 * WIDE)
    with pytest.raises(ModelUnavailableError, match=r"mlp\.fc11"):
        embedder_of(folder)


@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_every_architecture_that_is_listed_loads(tmp_path: Path, model_type: str) -> None:
    if model_type == "nomic_bert":
        folder = write_folder(tmp_path / "m", random_nomic(1), pooling="mean")
    else:
        encoder = tiny_encoder.random_encoder(1, roberta=model_type != "bert")
        folder = tiny_encoder.write_folder(tmp_path / "m", encoder, model_type=model_type)
    assert embedder_of(folder).embed(["w1 w2"], role="chunk").shape == (1, HIDDEN)


def test_models_list_names_the_architectures_that_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOWSE_CONFIG", os.devnull)
    monkeypatch.setenv("DOWSE_MODELS", str(tmp_path / "models"))
    as_json = CliRunner().invoke(cli, ["models", "list", "--json"])
    assert json.loads(as_json.stdout)["architectures"] == list(MODEL_TYPES)
    for_people = CliRunner().invoke(cli, ["models", "list"])
    assert for_people.exit_code == 0
    assert ", ".join(MODEL_TYPES) in for_people.stderr
