"""Signals of a repository: how well the names of a file and of a symbol answer the query, and the kind of the file.

The same words answer in names as in text, split at case, underscores and digits, as stems. Two words are alike if one
begins the other. The constants are in docs/trials/repositories.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

import msgspec

from dowse.query.plan.file_kinds import kind_rule
from dowse.query.stages.sort import ranked_hits
from dowse.query.stages.state import Hit, Query, QueryState
from dowse.tokenizer import Tokenizer
from dowse.types import Chunk

NAME_WEIGHT = 0.3  # of the better name, beside the value in [0,1]
PIECE = 0.9  # of the name of a symbol that is defined in another chunk: its definition ranks first; chosen
STEM_WEIGHT = 0.25  # of the share of the file's words in F; below 1, so the query's share counts more
SHORTEST_BEGINNING = 3  # letters of a word that begins another
MOST_INITIALS = 4  # words that a short name stands for: sse is server-sent events
BEARERS = frozenset(("mod", "index", "__init__", "__main__", "lib", "main"))  # files that bear their folder's name

HOW = re.compile(r"^\s*(how\b.*)\bworks?\W*$", re.IGNORECASE | re.DOTALL)  # "work" is no part of a name there
MESSAGE = re.compile(r"[\w.]+: ")


class NameMatch(msgspec.Struct, frozen=True):
    """Names of a chunk compared with the query, each in [0,1], and the factor of its file's kind."""

    file: float
    symbol: float
    factor: float
    kind: str = ""
    defines: bool = False  # a symbol whose words are those of the query

    @property
    def best(self) -> float:
        return max(self.file, self.symbol)

    @property
    def why(self) -> str:
        return f"×{self.factor:g} {self.kind}" if self.kind else ""


Matcher = Callable[[Chunk], NameMatch]


def matcher(query: Query, tokenizer: Tokenizer, chunks: Sequence[Chunk]) -> Matcher:
    """Return a function that compares the names of a chunk with the query; equal names are compared once."""
    asked = Asked(tokenizer.words(HOW.sub(r"\1", query.text)))
    rule = kind_rule(query.text, asked.words, chunks, named=bool(query.mentions))
    files: dict[str | None, float] = {None: 0.0}
    symbols: dict[str | None, float] = {None: 0.0}

    def match(chunk: Chunk) -> NameMatch:
        path, symbol, defined = chunk.file_path, chunk.symbol_name, 0.0
        if path not in files:
            files[path] = file_match(asked, path or "", tokenizer)
        for each in chunk.defines:
            if (name := each.name) not in symbols:
                symbols[name] = symbol_match(asked, tokenizer.words(name))
            if symbols[name] > defined:
                defined = symbols[name]
        if symbol not in symbols:
            symbols[symbol] = symbol_match(asked, tokenizer.words(symbol or ""))
        factor, kind = rule(chunk) if defined < 1 else (1.0, "")
        return NameMatch(files[path], max(defined, PIECE * symbols[symbol]), factor, kind, defined == 1)

    return match


class Asked(dict[str, int]):
    """Words of a query. By a word of a name, the words that it answers, as bits; computed when first read."""

    def __init__(self, words: Iterable[str]) -> None:
        super().__init__()
        self.words = tuple(dict.fromkeys(words))
        self._initials = "".join(each[0] for each in self.words)
        self._by_start: dict[str, list[int]] = {}
        for at, word in enumerate(self.words):
            self._by_start.setdefault(word[:SHORTEST_BEGINNING], []).append(at)
        for at, pair in enumerate(pairwise(self.words)):
            self["".join(pair)] = 0b11 << at  # websocket answers WebSocket

    def __missing__(self, word: str) -> int:
        found = 0
        for at in self._by_start.get(word[:SHORTEST_BEGINNING], ()):
            found |= alike(word, self.words[at]) << at
        if not found and 1 < len(word) <= MOST_INITIALS and (at := self._initials.find(word)) >= 0:
            found = ((1 << len(word)) - 1) << at
        self[word] = found
        return found

    def share(self, names: Iterable[str]) -> float:
        """Return the share of the query's words that a name answers."""
        found = 0
        for each in names:
            found |= self[each]
        return found.bit_count() / len(self.words) if self.words else 0.0

    def back(self, names: Sequence[str]) -> float:
        """Return the share of a name's words that the query has."""
        return sum(self[each] > 0 for each in names) / len(names) if names else 0.0


def alike(one: str, other: str) -> bool:
    """Return whether two words are equal, or one of three letters or more begins the other."""
    if one == other:
        return True
    begins = one if other.startswith(one) else other if one.startswith(other) else ""
    return len(begins) >= SHORTEST_BEGINNING


def file_match(asked: Asked, path: str, tokenizer: Tokenizer) -> float:
    """Return 1.25·share·back/(0.25·back + share): the query's words in the name and folder, and the name's in it."""
    folder, _, file = path.rpartition("/")
    stem, parent = file.partition(".")[0], folder.rpartition("/")[2]
    if stem in BEARERS and parent:
        stem, parent = parent, ""
    own = tokenizer.words(stem)
    share, back = asked.share([*own, *tokenizer.words(parent)]), asked.back(own)
    return (1 + STEM_WEIGHT) * share * back / (STEM_WEIGHT * back + share) if share else 0.0


def symbol_match(asked: Asked, own: Sequence[str]) -> float:
    """Return the harmonic mean of the query's words in a name and of the name's words in the query."""
    share = asked.share(own)
    if not share:
        return 0.0
    back = asked.back(own)
    return 2 * share * back / (share + back)


class Signals(msgspec.Struct, frozen=True):
    """Stage that scores (v + 0.3·max(file, symbol))·kind/1.3, so that values stay in [0,1].

    Not for a query that spells a name or is a message (`redis: connection pool timeout`): it asks for these very
    words, and parts of them in names mislead.
    """

    tokenizer: Tokenizer
    name: str = "signals"

    def __call__(self, state: QueryState, /) -> QueryState:
        if state.query.mentions or MESSAGE.match(state.query.text):
            return state
        chunks = [hit.found for hit in state.hits]
        match = matcher(state.query, self.tokenizer, chunks)
        found = [match(chunk) for chunk in chunks]
        if all(not each.best and each.factor == 1 for each in found):
            return state
        top = max(hit.value for hit in state.hits)
        rows = (_row(hit, each, top) for hit, each in zip(state.hits, found, strict=True))
        return state.changed(hits=ranked_hits(self.name, rows))


def _row(hit: Hit, match: NameMatch, top: float) -> tuple[Hit, float, str]:
    value = top if match.defines else hit.value
    of = "symbol" if match.symbol >= match.file else "file"
    names = f"{NAME_WEIGHT:g}·{match.best:.2f} {of} name"
    why = f"({value:.2f} + {names})/{1 + NAME_WEIGHT:g} {'defines it' if match.defines else match.why}"
    return hit, (value + NAME_WEIGHT * match.best) * match.factor / (1 + NAME_WEIGHT), why.rstrip()
