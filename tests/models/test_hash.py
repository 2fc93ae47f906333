"""The hash embedder: deterministic, and able to rank."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.embedder import EmbedderContract
from dowse.errors import BadRequestError
from dowse.models.embed_hash import HashEmbedder
from dowse.ports import Embedder


class TestHashEmbedderContract(EmbedderContract):
    @pytest.fixture
    def embedder(self) -> Embedder:
        return HashEmbedder()


def test_shared_words_decide_the_ranking() -> None:
    embedder = HashEmbedder()
    query = embedder.embed(["retry payment timeout"], role="query")[0]
    passages = [
        "the payment service retries after a timeout",
        "payment by card",
        "a walk in the park",
    ]
    scores = embedder.embed(passages, role="chunk") @ query
    assert scores[0] > scores[1] > scores[2]


def test_parts_of_identifiers_and_inflections_are_near() -> None:
    embedder = HashEmbedder()
    query, near, far = embedder.embed(["parse response", "parseHTTPResponse", "closeWindow"], role="chunk")
    assert query @ near > 0.3 > query @ far


def test_another_process_gives_the_same_vector() -> None:
    text = "deploy the ledger service"
    code = (
        "from dowse.models.embed_hash import HashEmbedder\n"
        f"print(HashEmbedder(64).embed([{text!r}], role='chunk')[0].tobytes().hex())"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    assert found == HashEmbedder(64).embed([text], role="query")[0].tobytes().hex()


@given(st.lists(st.text(st.characters(exclude_categories=())), max_size=5))
def test_any_text_has_a_unit_vector(texts: list[str]) -> None:
    matrix = HashEmbedder(32).embed(texts, role="chunk")
    np.testing.assert_allclose(np.linalg.norm(matrix, axis=1), 1, atol=1e-5)


def test_dimension_is_in_the_name() -> None:
    assert HashEmbedder(64).model != HashEmbedder(128).model


def test_too_few_dimensions_are_refused() -> None:
    with pytest.raises(BadRequestError, match="hash:256"):
        HashEmbedder(3)
