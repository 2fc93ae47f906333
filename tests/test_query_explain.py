"""Which terms matched: the quick way must agree with cutting the whole text, on any text and question."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dowse.identity import searchable_text
from dowse.query.explain import Matched, Matcher
from dowse.query.legs import Prepare
from dowse.query.slate import Query, Slate
from dowse.text import Tokenizer
from factories import PLAIN

TOKENIZER = Tokenizer()


def query_of(text: str) -> Query:
    return Prepare(TOKENIZER)(Slate(Query(text, 10))).query


def plainly(query: Query, text: str) -> Matched:
    """The definition: all terms of the text, and those of the query among them."""
    terms = TOKENIZER(searchable_text(replace(PLAIN, text=text)))
    own = {"bm25_code": set(terms.code), "bm25_nlp": {*terms.prose, *terms.stops}}
    return {leg: tuple(term for term in dict.fromkeys(wanted) if term in own[leg]) for leg, wanted in query.terms}


WORDS = st.sampled_from(
    [
        "retry", "retries", "Retrying", "parseHTTPResponse", "get_user", "asset", "set", "dying", "die", "lies", "tied",
        "skies", "sky", "hopping", "hope", "hoping", "organization", "organize", "generously", "the", "who", "İstanbul",
        "Straße", "STRASSE", "x-ray", "94.2%", "a.b.c", "$var", "naïve", "\\n", "\\t", "news", "only",
        "early", "university",
    ]
)  # fmt: skip


@given(st.lists(WORDS, max_size=12), st.lists(WORDS, min_size=1, max_size=5))
def test_matched_terms_agree_with_cutting_the_whole_text(text: list[str], question: list[str]) -> None:
    joined = " ".join(text).replace("\\n", "\n").replace("\\t", "\t")
    query = query_of(" ".join(question))
    assert Matcher(query, TOKENIZER)(replace(PLAIN, text=joined)) == plainly(query, joined)


@given(st.text(max_size=60), st.text(min_size=1, max_size=20))
def test_any_text_and_question_agree(text: str, question: str) -> None:
    query = query_of(question)
    assert Matcher(query, TOKENIZER)(replace(PLAIN, text=text)) == plainly(query, text)


@pytest.mark.parametrize(
    ("question", "text", "matched"), [("set", "an asset", ()), ("retries", "we retry", ("retri",))]
)
def test_parts_of_words_are_no_terms_and_inflections_are(question: str, text: str, matched: tuple[str, ...]) -> None:
    assert Matcher(query_of(question), TOKENIZER)(replace(PLAIN, text=text))["bm25_nlp"] == matched
