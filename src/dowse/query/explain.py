"""Why a hit has its place: its row of the fused arrays goes in, a score and a sentence per stage come out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import isnan

from dowse.identity import searchable_text
from dowse.query.fuse import ReciprocalRank, ZScore
from dowse.query.fuse_nested import CrossQuery
from dowse.query.slate import Column, Fused, Query
from dowse.text import STOP_MARK, Tokenizer
from dowse.types import Chunk, Leg, Score

LABELS: Mapping[Leg, str] = {"dense": "dense", "bm25_code": "code", "bm25_nlp": "prose"}
IRREGULAR = frozenset({"die", "lie", "tie"})  # stems of dying, lying and tying: Snowball's exceptions
Matched = Mapping[Leg, tuple[str, ...]]


class Matcher:
    """Finds out which of a query's terms occur in a chunk. One for all hits of a result: words are cut once.

    Only words that hold the beginning of a term are cut: the whole text of every hit would take longer than the rest
    of the path.
    """

    def __init__(self, query: Query, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._wanted = [(leg, [(term, _beginning(leg, term)) for term in dict.fromkeys(of)]) for leg, of in query.terms]
        self._known: dict[tuple[Leg, str], Collection[str]] = {}

    def __call__(self, chunk: Chunk) -> Matched:
        """By word leg, in the query's order."""
        text = f" {searchable_text(chunk)} ".replace("\n", " ")
        lower = text.lower()
        if len(lower) != len(text):  # a few letters have another length in lower case, and places would not agree
            return {
                leg: tuple(term for term, _ in terms if term in self._terms(leg, text)) for leg, terms in self._wanted
            }
        return {
            leg: tuple(term for term, start in terms if self._occurs(leg, term, start, text, lower))
            for leg, terms in self._wanted
        }

    def _occurs(self, leg: Leg, term: str, start: str, text: str, lower: str) -> bool:
        at = lower.find(start)
        while at >= 0:
            end = lower.find(" ", at)
            if term in self._terms(leg, text[lower.rfind(" ", 0, at) + 1 : end]):
                return True
            at = lower.find(start, end)
        return False

    def _terms(self, leg: Leg, word: str) -> Collection[str]:
        known = self._known.get((leg, word))
        if known is None:
            stems, stops = ((), ()) if leg == "bm25_code" else self._tokenizer.prose(word)
            known = self._known[leg, word] = self._tokenizer.code(word) if leg == "bm25_code" else (*stems, *stops)
        return known


def _beginning(leg: Leg, term: str) -> str:
    """What a word must hold, in lower case, to become the term. A stem may differ from its word in the last letter
    (retri, retry).
    """
    bare = term.removeprefix(STOP_MARK)
    if leg == "bm25_code" or len(bare) < 2:
        return bare
    return bare[:1] if bare in IRREGULAR else bare[:-1]


def history(fused: Fused, row: int, matched: Matched) -> tuple[Score, ...]:
    """What each leg and fusion gave one chunk, in that order. A variant's legs are named dense~1, bm25_nlp~1 …"""
    legs = (_leg_score(column, row, () if column.variant else matched.get(column.leg, ())) for column in fused.columns)
    return (*legs, Score("fuse", float(fused.values[row]), row + 1, _fusion(fused, row)))


def _leg_score(column: Column, row: int, matched: tuple[str, ...]) -> Score:
    value, rank = float(column.scores[row]), int(column.ranks[row])
    name = f"{column.leg}~{column.variant}" if column.variant else column.leg
    if isnan(value):
        return Score(name, 0.0, 0, "no vector yet, so it counts neither for nor against")
    place = f"rank {rank} of {column.found}" if rank else f"not among the leg's best {column.found}"
    if column.leg == "dense":
        return Score(name, value, rank, f"cosine {_short(value)}, {place}")
    if value == 0:
        return Score(name, value, rank, "no query term occurs")
    terms = f" for {', '.join(matched)}" if matched else ""
    return Score(name, value, rank, f"BM25 {value:.2f}{terms}, {place}")


def _fusion(fused: Fused, row: int) -> str:
    """The sum as it was made, term by term."""
    method = fused.method
    if isinstance(method, CrossQuery):
        ranks = (int(each[row]) or method.missing_rank for each in fused.queries)
        votes = " + ".join(f"1/({method.rank_constant}+{rank})" for rank in ranks)
        return f"mean over {len(fused.queries)} queries: ({votes})/{len(fused.queries)}"
    if isinstance(method, ReciprocalRank):
        return "rrf: " + " + ".join(_vote(column, row, method) for column in fused.columns)
    total = sum(column.weight for column in fused.columns)
    terms = []
    for column in fused.columns:
        share = column.weight / total
        inner = float(column.parts[row]) / share if share else 0.0
        terms.append(f"{_weight(share)}·{inner:.2f} {_label(column)}")
    formula = f"z^{method.exponent:g}" if isinstance(method, ZScore) else method.name
    return f"{formula}: " + " + ".join(terms)


def _vote(column: Column, row: int, method: ReciprocalRank) -> str:
    rank = int(column.ranks[row]) or method.missing_rank
    vote = "0" if rank is None else f"{_weight(column.weight)}/({method.rank_constant}+{rank})"
    return f"{vote} {_label(column)}"


def _label(column: Column) -> str:
    return f"{LABELS[column.leg]}~{column.variant}" if column.variant else LABELS[column.leg]


def _short(value: float) -> str:
    """Two places, without the zero before the point."""
    return f"{value:.2f}".replace("0.", ".", 1) if abs(value) < 0.995 else f"{value:.2f}"


def _weight(value: float) -> str:
    """Three significant digits, without the zero before the point."""
    return f"{value:.3g}".removeprefix("0") or "0"
