"""The two tokenizers: text goes in, terms for the two word legs come out; used by ingest, persist and query.

code    identifiers split at camel case, acronyms, underscores and digits; the parts, lower-cased, and the whole
        identifier as well when there is more than one part: parseHTTPResponse2 → parse http response 2
        parsehttpresponse2. No stemming.
prose   runs of letters and digits, lower-cased, reduced to Snowball English stems.

Stop words are dropped from both, and do not count for a chunk's length; the prose leg keeps them aside, so that a
query of stop words only still finds something. Definition and figures: shared/lab/quality.md section 1.

Where the speed comes from, in order of effect: every distinct word is split or stemmed once and remembered; ASCII
text is cut by `str.translate` and `str.split`, which run in C over the whole chunk; `map` over the memory's
`__getitem__` keeps the loop over words in C as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import Stemmer

from dowse.types import Leg

# The NLTK-style English list that was measured: against Lucene's 33 words it gains .013 nDCG@10 in the prose leg.
_STOP_LIST = """
    a about above after again against all am an and any are as at be because been before being below between
    both but by can d did do does doing don down during each few for from further had has have having he her
    here hers herself him himself his how i if in into is it its itself just ll m me more most my myself no nor
    not now o of off on once only or other our ours ourselves out over own re s same she should so some such t
    than that the their theirs them themselves then there these they this those through to too under until up ve
    very was we were what when where which while who whom why will with y you your yours yourself yourselves
"""
STOP_WORDS = frozenset(_STOP_LIST.split())
STOP_MARK = "~"  # keeps the stop word "down" apart from the stem of "downs"
LONGEST_WHOLE = 64  # characters; chosen: a SHA-256 in hexadecimal is still found by its whole
LONGEST_WORD = 128  # characters; chosen: longer runs are encoded data, and are dropped
MEMORY_LIMIT = 500_000  # words per memory, about 170 bytes each; a full one is emptied

_IDENTIFIER = re.compile(r"[^\W\d][\w$]*|\$[\w$]+|\d+")
_WORD = re.compile(r"[^\W_]+")
# An acronym before a capitalised word, a (capitalised) word, an acronym, a number.
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_CODE_BLANKS = {code: " " for code in range(128) if not re.match(r"[\w$]", chr(code))}
_WORD_BLANKS = {code: " " for code in range(128) if not _WORD.match(chr(code))}


@dataclass(frozen=True)
class Terms:
    """The terms of one text, in order, with repetitions; `stops` are the stop words of the prose leg, marked."""

    code: Sequence[str]
    prose: Sequence[str]
    stops: Sequence[str]


class Tokenizer:
    """Both tokenizers and their memories. Cheap to make, faster the longer it lives; share one between threads."""

    def __init__(self, memory_limit: int = MEMORY_LIMIT) -> None:
        self._parts = _Memory(_split_run, memory_limit)
        self._stem: Callable[[str], str] = Stemmer.Stemmer("english", 0).stemWord  # 0: its own cache is slower
        self._stems = _Memory(self._stem_of, memory_limit)

    def code(self, text: str) -> list[str]:
        runs = text.translate(_CODE_BLANKS).split() if text.isascii() else _IDENTIFIER.findall(text)
        return " ".join(map(self._parts.__getitem__, runs)).split()

    def prose(self, text: str) -> tuple[list[str], list[str]]:
        """Stems, and the stop words that were left out, marked."""
        text = text.lower()
        words = text.translate(_WORD_BLANKS).split() if text.isascii() else _WORD.findall(text)
        stems = " ".join(map(self._stems.__getitem__, words)).split()
        return stems, [STOP_MARK + word for word in words if word in STOP_WORDS]

    def __call__(self, text: str) -> Terms:
        stems, stops = self.prose(text)
        return Terms(self.code(text), stems, stops)

    def query(self, text: str) -> dict[Leg, list[str]]:
        """Terms by word leg. Stop words only when there is nothing else, so a query never ends up empty of them."""
        terms = self(text)
        return {"bm25_code": list(terms.code), "bm25_nlp": list(terms.prose or terms.stops)}

    def _stem_of(self, word: str) -> str:
        return "" if word in STOP_WORDS or len(word) > LONGEST_WORD else self._stem(word)


class _Memory(dict[str, str]):
    """A dict that computes what it misses, and is emptied when full."""

    def __init__(self, compute: Callable[[str], str], limit: int) -> None:
        super().__init__()
        self._compute = compute
        self._limit = limit

    def __missing__(self, key: str) -> str:
        if len(self) >= self._limit:
            self.clear()
        value = self[key] = self._compute(key)
        return value


def _split_run(run: str) -> str:
    """Tokens, joined by blanks, of a run of word characters: mostly one identifier, but 2to3 is 2 and to3."""
    return " ".join(token for found in _IDENTIFIER.findall(run) for token in _identifier_tokens(found))


def _identifier_tokens(identifier: str) -> list[str]:
    if len(identifier) > LONGEST_WORD:
        return []
    if identifier.isascii():
        parts = _PART.findall(identifier)
    else:
        parts = [identifier[part.start() : part.end()] for part in _PART.finditer(_shape(identifier))]
    tokens = [part.lower() for part in parts if part.lower() not in STOP_WORDS]
    if len(parts) > 1 and len(identifier) <= LONGEST_WHOLE:
        tokens.append(identifier.lower())
    return tokens


def _shape(identifier: str) -> str:
    """A for a capital, a for another letter, 0 for a digit, _ for the rest: lets one pattern split any script."""
    return "".join(
        "A" if char.isupper() else "a" if char.isalpha() else "0" if char.isnumeric() else "_" for char in identifier
    )
