"""A tokenizer of what one text needs gives the ids that the whole one gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors, trainers

import dowse
from dowse.config import Config
from dowse.models import registry
from dowse.models.onnx.tokenizer import LONGEST, TokenIds, byte_pairs, small_json
from dowse.models.onnx.weights import open_weights

SPECIAL = ["<s>", "</s>", "<mask>"]
MOST = 64  # tokens of a text


@pytest.fixture(scope="module")
def trained() -> bytes:
    """Byte pairs of the sample company's own texts, set up as GPT-2's and RoBERTa's are."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=2000, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    sample = Path(dowse.__file__).parent / "sample" / "acme"
    tokenizer.train([str(each) for each in sorted(sample.rglob("*.md"))], trainer)
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0), add_prefix_space=False)
    return tokenizer.to_str().encode()


def whole_ids(tokenizer_json: bytes, text: str) -> list[int]:
    tokenizer = Tokenizer.from_buffer(tokenizer_json)
    tokenizer.no_padding()
    tokenizer.enable_truncation(MOST)
    return tokenizer.encode(text).ids


TEXTS = [
    "",
    " ",
    "where do we retry payments?",
    "  two  blanks\tand\n\nbreaks ",
    "don't we've RetryBudget_2 x86-64",
    "Größe naïve 重试 🙂 e\u0301",
    "a <mask> in the <s>middle</s> of it",
    "word " * 200,
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_small_tokenizer_gives_the_ids_of_the_whole_one(trained: bytes, text: str) -> None:
    pairs = byte_pairs(trained)
    assert pairs is not None
    assert whole_ids(small_json(pairs, text), text) == whole_ids(trained, text)


@given(st.text() | st.lists(st.sampled_from([*TEXTS[2].split(), *SPECIAL, " ", "  ", "payment"])).map("".join))
def test_any_text_gets_the_same_ids(trained: bytes, text: str) -> None:
    pairs = byte_pairs(trained)
    assert pairs is not None
    text = text.encode("utf-8", "replace").decode()
    assert whole_ids(small_json(pairs, text), text) == whole_ids(trained, text)


def test_a_small_tokenizer_is_small(trained: bytes) -> None:
    pairs = byte_pairs(trained)
    assert pairs is not None
    small = json.loads(small_json(pairs, "retry"))["model"]
    assert set(small["vocab"]) >= {*"rety", *SPECIAL}
    assert all(token in "retry" for token in set(small["vocab"]) - set(SPECIAL))
    assert all("".join(merge.split(" ")) in "retry" for merge in small["merges"])


def test_the_first_text_and_every_later_one_get_their_ids(trained: bytes) -> None:
    for first in TEXTS:
        tokens = TokenIds(trained, MOST, byte_pairs(trained))
        for text in [first, *TEXTS, "x" * (LONGEST + 1)]:
            assert tokens.ids(text) == whole_ids(trained, text)


@pytest.mark.parametrize(
    "change",
    [
        {"normalizer": {"type": "Lowercase"}},
        {"pre_tokenizer": {"type": "Whitespace"}},
        {"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}},
        {"added_tokens": [{"id": 5000, "content": "<new>", "special": True}]},
        {"model": {"type": "WordPiece", "vocab": {}}},
        {"model": {"type": "BPE", "vocab": {}, "merges": [], "continuing_subword_prefix": "##"}},
    ],
)
def test_a_tokenizer_that_changes_texts_is_loaded_whole(trained: bytes, change: dict[str, Any]) -> None:
    assert byte_pairs(json.dumps(json.loads(trained) | change).encode()) is None


@pytest.mark.model
def test_the_default_model_gives_the_same_ids_from_a_part_of_its_tokenizer() -> None:
    import os

    place = registry.locate(registry.get(registry.DEFAULT), Config.load(Path.cwd(), os.environ).models_folder)
    if place is None:
        pytest.skip("the default model is not on this machine; type: dowse models pull")
    data = open_weights(place).tokenizer_json
    pairs = byte_pairs(data)
    assert pairs is not None
    texts = [
        *TEXTS,
        *(each.read_text("utf-8")[:400] for each in sorted(Path(dowse.__file__).parent.rglob("*.py"))[:60]),
    ]
    tokenizer = Tokenizer.from_buffer(data)
    for text in texts:
        assert Tokenizer.from_buffer(small_json(pairs, text)).encode(text).ids == tokenizer.encode(text).ids
