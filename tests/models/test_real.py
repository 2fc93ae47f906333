"""The two models of the registry, with their real weights: the contract, meaning, and int8 against fp32.

Weights are looked for in DOWSE_MODELS, else in the user's cache. Without them the tests are skipped, unless
DOWSE_REQUIRE_MODELS=1, which fetches them and fails if that does.
"""

from __future__ import annotations

import os
import sysconfig
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from contracts.embedder import MeaningContract
from dowse.config import default_models_folder
from dowse.models import fetch
from dowse.models.choose import open_embedder
from dowse.models.embed_onnx import OnnxEmbedder
from dowse.models.registry import ENTRIES, get
from dowse.ports import Embedder

pytestmark = pytest.mark.model
NAMES = [entry.name for entry in ENTRIES]


def models_folder() -> Path:
    return Path(os.environ.get("DOWSE_MODELS") or default_models_folder())


@cache
def opened(name: str) -> Embedder:
    if os.environ.get("DOWSE_REQUIRE_MODELS") == "1":
        fetch.pull(name, models_folder())
    if fetch.locate(get(name), models_folder()) is None:
        pytest.skip(f"no weights of {name} in {models_folder()}; run `dowse models pull {name}`")
    embedder = open_embedder(name, models_folder=models_folder(), allow_fetch=False)
    assert embedder is not None
    return embedder


class TestGraniteContract(MeaningContract):
    @pytest.fixture
    def embedder(self) -> Embedder:
        return opened("granite-embedding-30m-english")


class TestMiniLMContract(MeaningContract):
    @pytest.fixture
    def embedder(self) -> Embedder:
        return opened("all-MiniLM-L6-v2")


@pytest.mark.parametrize("name", NAMES)
def test_name_and_dimension_are_those_of_the_registry(name: str) -> None:
    embedder = opened(name)
    assert (embedder.model, embedder.dimension) == (name, get(name).dimension)


@pytest.mark.parametrize("name", NAMES)
def test_int8_agrees_with_fp32(name: str) -> None:
    """Measured .997 in the mean; with one activation scale for a whole text granite had .950."""
    embedder = opened(name)
    exact = OnnxEmbedder(fetch.path(name, models_folder()), get(name).recipe, exact=True)
    texts = passages()
    left, right = embedder.embed(texts, role="chunk"), exact.embed(texts, role="chunk")
    cosines = (left * right).sum(axis=1)
    assert cosines.mean() > 0.995
    assert cosines.min() > 0.985
    ranks_left, ranks_right = (np.argsort(-(each @ each.T), axis=1)[:, 1:6] for each in (left, right))
    shared = [len({*a} & {*b}) / 5 for a, b in zip(ranks_left.tolist(), ranks_right.tolist(), strict=True)]
    assert np.mean(shared) > 0.85


def passages() -> list[str]:
    """Pieces of about 200 tokens from the standard library."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    pieces = []
    for name in ("argparse.py", "heapq.py", "socket.py", "json/decoder.py", "sqlite3/__init__.py", "textwrap.py"):
        lines = (folder / name).read_text("utf-8").splitlines()
        pieces += ["\n".join(lines[at : at + 22]) for at in range(0, min(len(lines), 110), 22)]
    return [piece for piece in pieces if len(piece) > 200]


def test_an_empty_text_and_a_text_of_padding_are_not_near_everything() -> None:
    embedder = opened(NAMES[0])
    empty, text = embedder.embed(["", "Rotate the signing keys every ninety days."], role="chunk")
    assert float(empty @ text) < 0.9
