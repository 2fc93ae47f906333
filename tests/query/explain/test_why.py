"""Which terms matched: what the store says must agree with cutting the whole text, on any text and question."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dowse.identity import id_number, searchable_text
from dowse.ports import Store
from dowse.store.embedded import EmbeddedStore
from dowse.store.memory import MemoryStore
from dowse.tokenizer import Tokenizer
from dowse.types import Leg
from factories import document

TOKENIZER = Tokenizer()
Matched = Mapping[Leg, tuple[str, ...]]


def plainly(question: str, text: str) -> Matched:
    """The definition: all terms of the text, and those of the question among them."""
    terms = TOKENIZER(searchable_text(document("a", text).chunks[0]))
    own = {"bm25_code": set(terms.code), "bm25_nlp": {*terms.prose, *terms.stops}}
    asked = TOKENIZER.query(question).items()
    return {leg: tuple(term for term in dict.fromkeys(wanted) if term in own[leg]) for leg, wanted in asked}


def held(store: Store, question: str, text: str) -> Matched:
    written = document("a", text)
    writer = store.writer()
    writer.put([written])
    writer.close()
    ids = np.array([id_number(written.chunks[0].id)], np.uint64)
    return store.reader().held_terms(TOKENIZER.query(question), ids)[0]


def both(question: str, text: str) -> list[Matched]:
    with TemporaryDirectory() as place:
        embedded = EmbeddedStore(Path(place) / "index")
        found = [held(embedded, question, text), held(MemoryStore(), question, text)]
        embedded.close()
    return found


WORDS = st.sampled_from(
    [
        "retry", "retries", "Retrying", "parseHTTPResponse", "get_user", "asset", "set", "dying", "die", "lies", "tied",
        "skies", "sky", "hopping", "hope", "hoping", "organization", "organize", "generously", "the", "who", "İstanbul",
        "Straße", "STRASSE", "x-ray", "94.2%", "a.b.c", "$var", "naïve", "\\n", "\\t", "news", "only",
        "early", "university",
    ]
)  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(st.lists(WORDS, max_size=12), st.lists(WORDS, min_size=1, max_size=5))
def test_held_terms_agree_with_cutting_the_whole_text(text: list[str], question: list[str]) -> None:
    joined = " ".join(text).replace("\\n", "\n").replace("\\t", "\t")
    wanted = plainly(" ".join(question), joined)
    assert both(" ".join(question), joined) == [wanted, wanted]


@pytest.mark.parametrize(
    ("question", "text", "matched"), [("set", "an asset", ()), ("retries", "we retry", ("retri",))]
)
def test_parts_of_words_are_no_terms_and_inflections_are(question: str, text: str, matched: tuple[str, ...]) -> None:
    assert [each["bm25_nlp"] for each in both(question, text)] == [matched, matched]


def test_a_chunk_that_is_not_there_holds_nothing() -> None:
    assert MemoryStore().reader().held_terms({"bm25_nlp": ["a"]}, np.array([7], np.uint64)) == [{"bm25_nlp": ()}]
