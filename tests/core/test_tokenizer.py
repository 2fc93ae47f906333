"""The two tokenizers: examples of the systems that Dowse unites, and properties that hold for any text."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dowse.tokenizer import LONGEST_WHOLE, LONGEST_WORD, STOP_MARK, STOP_WORDS, Tokenizer


def code(text: str) -> str:
    return " ".join(Tokenizer().code(text))


def prose(text: str) -> str:
    return " ".join(Tokenizer().prose(text)[0])


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        # identifiers split at camel case, acronyms and underscores; the whole is kept as well
        ("getUserProfile", "get user profile getuserprofile"),
        ("getUser_profileData", "get user profile data getuser_profiledata"),
        ("HTTPClient", "http client httpclient"),
        ("parseHTTPResponse2", "parse http response 2 parsehttpresponse2"),
        ("http.Get(url)", "http get url"),
        ("user_id", "user id user_id"),
        ("MAX_RETRY_COUNT", "max retry count max_retry_count"),
        ("XMLHttpRequest", "xml http request xmlhttprequest"),
        ("utf8", "utf 8 utf8"),
        ("sha256sum", "sha 256 sum sha256sum"),
        ("2to3", "2 3 to3"),  # an identifier does not begin with a digit; `to` is a stop word
        ("__init__", "init"),
        ("_private", "private"),
        ("$scope", "scope"),
        ("jquery$fn", "jquery fn jquery$fn"),
        # punctuation splits, it is never deleted
        ("BERT-base", "bert base"),
        ("94.2%", "94 2"),
        ("node.js", "node js"),
        ("C++ and C#", "c c"),
        ("auth-service", "auth service"),
        ("a.b/c:d|e", "b c e"),  # a and d are stop words
        # words of programming languages are words
        ("type class func return new string", "type class func return new string"),
        ("the payment", "payment"),
        ("größeÄndern", "größe ändern größeändern"),
        ("数据库", "数据库"),
        ("", ""),
        ("$ _ __ --", ""),
    ],
)
def test_code_tokens(text: str, tokens: str) -> None:
    assert code(text) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Retrying the payments", "retri payment"),
        ("BERT-base", "bert base"),
        ("94.2%", "94 2"),
        ("user_id", "user id"),
        ("getUserProfile", "getuserprofil"),
        ("naïve Äpfel", "naïv äpfel"),
        ("the who is", ""),
        ("type class", "type class"),
    ],
)
def test_prose_tokens(text: str, tokens: str) -> None:
    assert prose(text) == tokens


@pytest.mark.parametrize("text", ["who", "Who is it?", "to be or not to be", "the"])
def test_a_query_of_stop_words_keeps_them(text: str) -> None:
    words = re.findall(r"\w+", text.lower())
    assert Tokenizer().query(text)["bm25_nlp"] == [STOP_MARK + word for word in words]


def test_stop_words_are_dropped_when_others_remain() -> None:
    assert Tokenizer().query("who owns the queue") == {"bm25_code": ["owns", "queue"], "bm25_nlp": ["own", "queue"]}


def test_a_stop_word_is_not_mistaken_for_a_stem() -> None:
    """`downs` stems to `down`, which is a stop word."""
    terms = Tokenizer()("downs down")
    assert (list(terms.prose), list(terms.stops)) == (["down"], [STOP_MARK + "down"])


def test_a_chunk_keeps_stop_words_aside() -> None:
    terms = Tokenizer()("Who is the owner")
    assert (list(terms.code), list(terms.prose)) == (["owner"], ["owner"])
    assert list(terms.stops) == ["~who", "~is", "~the"]


def test_long_runs_have_limits() -> None:
    sha = "A1" * (LONGEST_WHOLE // 2)
    assert Tokenizer().code(sha)[-1] == sha.lower()
    assert sha.lower() + "a" not in Tokenizer().code(sha + "a")
    assert (Tokenizer().code("x" * LONGEST_WORD), Tokenizer().code("x" * (LONGEST_WORD + 1))) == (
        ["x" * LONGEST_WORD],
        [],
    )
    assert Tokenizer().prose("x" * (LONGEST_WORD + 1)) == ([], [])


def test_a_full_memory_is_emptied_and_changes_nothing() -> None:
    words = " ".join(f"word{number} parseThing{number}" for number in range(50))
    small, large = Tokenizer(cache_limit=3), Tokenizer()
    assert (small(words), small(words)) == (large(words), large(words))


@given(st.text())
@example("İstanbul K ﬁ ǅ ß")
def test_tokens_are_words_without_blanks(text: str) -> None:
    terms = Tokenizer()(text)
    for token in (*terms.code, *terms.prose, *terms.stops):
        assert token
        assert token.split() == [token]
        assert len(token) <= 2 * LONGEST_WORD
    assert not STOP_WORDS.intersection(terms.code)


@given(st.text(st.characters(max_codepoint=127)))
@example("a$b $x 2$y 3to4 _$_ fooBar2Baz")
def test_what_stands_behind_a_text_does_not_change_its_terms(text: str) -> None:
    tokenizer = Tokenizer()
    assert tokenizer.code(text + " ж") == [*tokenizer.code(text), "ж"]
    assert tokenizer.prose(text + " ж") == ([*tokenizer.prose(text)[0], "ж"], tokenizer.prose(text)[1])


@given(st.text(min_size=1, max_size=60))
def test_a_query_with_a_word_in_it_is_never_empty(text: str) -> None:
    has_word = re.search(r"[^\W_]", text.lower()) is not None
    assert bool(Tokenizer().query(text)["bm25_nlp"]) == has_word


@given(st.text(), st.text())
def test_a_tokenizer_that_has_seen_much_answers_like_a_new_one(first: str, second: str) -> None:
    used = Tokenizer()
    used(first)
    assert used(second) == Tokenizer()(second)


@given(st.text(st.sampled_from("aAzZ09_$-. '’ΣσάΑß中，éİıǅ\u0301\x1c\x85\xa0\ud800٣²K\n")))
@example("ΟΔΟΣ.Α ΟΔΟΣ. ΣΣ_Σ'Σ")
def test_the_terms_of_any_script_are_those_of_two_patterns_over_the_whole_text(text: str) -> None:
    """Cutting a text into runs first, and remembering them, is only for speed."""
    words = re.findall(r"[^\W_]+", text.lower())
    terms = Tokenizer()(text)
    assert list(terms.stops) == [STOP_MARK + word for word in words if word in STOP_WORDS]
    assert len(terms.prose) == len([word for word in words if word not in STOP_WORDS])
    identifiers = re.findall(r"[^\W\d][\w$]*|\$[\w$]+|\d+", text)
    assert terms.code == [term for each in identifiers for term in Tokenizer().code(each)]


def test_a_text_without_blanks_is_not_remembered_as_one_word() -> None:
    tokenizer = Tokenizer(cache_limit=1)
    tokenizer("known")
    assert tokenizer.code("字" * 2000 + " known") == ["known"]
    assert list(tokenizer._cache) == [b"known"]


@given(st.text(st.sampled_from("abyoTHE_9é"), max_size=80))
@example("retry_budget")
@example("__THE_RETRY__BUDGET_")
@example("a" * LONGEST_WHOLE + "_b")
def test_a_joined_run_says_what_its_words_say_and_the_whole(text: str) -> None:
    tokenizer = Tokenizer()
    for run in tokenizer.runs(text) or []:
        if words := tokenizer.joined(run):
            of_words = [tokenizer.of_run(word) for word in words]
            code, prose, stops = (tuple(term for each in of_words for term in each[at]) for at in range(3))
            assert tokenizer.of_run(run) == ((*code, run.decode().lower()), prose, stops)
