"""Names and summaries are read with the question in mind: candidates go in, a number in [0,1] for each comes out.

No model: exact names first, then names and summaries that hold the question's terms; stubs last (S2, C-19, C-20).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import Protocol

import msgspec

from dowse.ports import Candidate
from dowse.query.plan.mentions import find_mentions
from dowse.query.stages.rerank import Judgement, reranked
from dowse.tokenizer import Tokenizer
from dowse.types import Chunk

SHORTEST_TERM = 3  # characters; S2-09
MORE_STOP_WORDS = frozenset({"could", "may", "might", "shall", "would"})  # in S2's list (R-27), not in the tokenizer's
STUB_CHARACTERS = 50  # S2-06
MANY_CONNECTIONS = 5  # S2-07
_RUN = re.compile(r"[\w$]+")
ROOM = 1e-9  # keeps what is not exact below what is


class Facts(msgspec.Struct, frozen=True):
    """What is known of a candidate in the light of the question."""

    exact: bool
    terms: int  # of the question
    in_name: int  # how many of them the name holds
    in_summary: int
    stub: bool
    connected: bool

    @property
    def named(self) -> int:
        """A stub gains nothing from its name unless that is exact (T-04)."""
        return 0 if self.stub and not self.exact else self.in_name

    @property
    def summary_share(self) -> float:
        return self.in_summary / self.terms if self.terms else 0.0  # B-42: a question without terms


class Formula(Protocol):
    def __call__(self, value: float, facts: Facts, /) -> float:
        """The new value; not yet in [0,1]."""
        ...

    def why(self, facts: Facts, /) -> str: ...


@dataclass(frozen=True)
class Additive:
    """value + boosts: S2-03 to S2-08, on a value in [0,1] so that they weigh something (B-44)."""

    exact: float = 2.0
    name_term: float = 0.5  # for each term
    summary: float = 0.3  # times the share of terms
    stub: float = -0.3
    connected: float = 0.2

    def __call__(self, value: float, facts: Facts, /) -> float:
        return value + sum(self._parts(facts))

    def why(self, facts: Facts, /) -> str:
        parts = zip(self._parts(facts), _reasons(facts), strict=True)
        said = [f"{part:+.2g} {reason}" for part, reason in parts if part]
        return ", ".join(said) or "neither name nor summary says anything"

    def _parts(self, facts: Facts) -> tuple[float, ...]:
        return (
            self.exact * facts.exact,
            self.name_term * facts.named,
            self.summary * facts.summary_share,
            self.stub * facts.stub,
            self.connected * facts.connected,
        )


@dataclass(frozen=True)
class Multiplicative:
    """value × factors: how the entity system did it later (C-19)."""

    exact: float = 3.0
    name_share: float = 1.5
    summary_share: float = 0.5
    stub: float = 0.5
    connected: float = 1.15

    def __call__(self, value: float, facts: Facts, /) -> float:
        return value * prod(self._factors(facts))

    def why(self, facts: Facts, /) -> str:
        factors = zip(self._factors(facts), _reasons(facts), strict=True)
        said = [f"×{factor:.3g} {reason}" for factor, reason in factors if factor != 1]
        return ", ".join(said) or "neither name nor summary says anything"

    def _factors(self, facts: Facts) -> tuple[float, ...]:
        return (
            self.exact if facts.exact else 1.0,
            1 + self.name_share * (facts.named / facts.terms if facts.terms else 0.0),
            1 + self.summary_share * facts.summary_share,
            self.stub if facts.stub else 1.0,
            self.connected if facts.connected else 1.0,
        )


def _reasons(facts: Facts) -> tuple[str, ...]:
    """In the order of a formula's parts."""
    return (
        "exact name",
        f"{facts.named} of {facts.terms} terms in the name",
        f"{facts.in_summary} of {facts.terms} terms in the summary",
        f"under {STUB_CHARACTERS} characters",
        f"more than {MANY_CONNECTIONS} connections",
    )


@dataclass(frozen=True)
class HeuristicReranker:
    """Satisfies `dowse.ports.Reranker`. Its word already holds the candidate's value, so it is not blended again."""

    formula: Formula = field(default_factory=Additive)
    tokenizer: Tokenizer = field(default_factory=Tokenizer, compare=False, repr=False)
    model: str = "heuristic"

    def score(self, query: str, candidates: Sequence[Candidate], *, timeout_s: float | None = None) -> list[float]:
        return [each.score for each in self.judge(query, candidates)]

    def judge(self, query: str, candidates: Sequence[Candidate]) -> list[Judgement]:
        facts = self.facts(query, [each.chunk for each in candidates])
        raw = [self.formula(each.value, of) for each, of in zip(candidates, facts, strict=True)]
        scores = _unit(_exact_on_top(raw, [of.exact for of in facts]))
        return [Judgement(score, partial(self.formula.why, of)) for score, of in zip(scores, facts, strict=True)]

    def rerank(self, query: str, candidates: Sequence[Candidate], top_k: int | None = None) -> list[Candidate]:
        """Sorted, trimmed; `Candidate.value` is the new score."""
        return reranked(self, query, candidates, top_k)

    def facts(self, query: str, chunks: Sequence[Chunk]) -> list[Facts]:
        terms = self._terms(query)
        names = {folded(each) for each in (query, *(mention.name or "" for mention in find_mentions(query)))} - {""}
        return [self._facts(chunk, terms, names) for chunk in chunks]

    def _facts(self, chunk: Chunk, terms: set[str], names: set[str]) -> Facts:
        name = name_of(chunk)
        return Facts(
            exact=is_named(chunk, names),
            terms=len(terms),
            in_name=len(terms & self._stems(self.tokenizer.code(name))) if name else 0,
            in_summary=len(terms & self._stems(self.tokenizer.code(chunk.summary))) if chunk.summary else 0,
            stub=len(chunk.text.strip()) < STUB_CHARACTERS,  # B-43: an empty text is a stub, too
            connected=chunk.connection_count > MANY_CONNECTIONS,
        )

    def _terms(self, query: str) -> set[str]:
        """Whole terms (B-45), as stems; of an identifier its parts, not the whole as well, which would count twice."""
        split = (self.tokenizer.code(run) for run in _RUN.findall(query))
        parts = (part for tokens in split for part in (tokens[:-1] or tokens))
        return self._stems(part for part in parts if len(part) >= SHORTEST_TERM and part not in MORE_STOP_WORDS)

    def _stems(self, words: Iterable[str]) -> set[str]:
        return set(self.tokenizer.prose(" ".join(words))[0])


def name_of(chunk: Chunk) -> str:
    """The symbol's name; of prose, the heading right above it."""
    if chunk.symbol_name or not chunk.section_path:
        return chunk.symbol_name or ""
    return chunk.section_path.rsplit(">", 1)[-1].strip().lstrip("#").strip()


def is_named(chunk: Chunk, names: set[str]) -> bool:
    """Whether a folded name is the chunk's: its name, its qualified name, or the end of that (`Store.search`)."""
    if name_of(chunk).casefold() in names:
        return True
    if not chunk.qualified_name:
        return False
    qualified = folded(chunk.qualified_name)
    return qualified in names or any("." in name and qualified.endswith(f".{name}") for name in names)


def folded(name: str) -> str:
    """Names that a reader would call the same: `Store::search()` and `store.search`."""
    return name.strip().strip("`\"'").removesuffix("()").replace("::", ".").replace("#", ".").strip().casefold()


def _exact_on_top(raw: list[float], exact: list[bool]) -> list[float]:
    """S2-14: exact names always come first; the others are scaled down below them, if that is needed."""
    best_other = max((value for value, named in zip(raw, exact, strict=True) if not named), default=0.0)
    least_exact = min((value for value, named in zip(raw, exact, strict=True) if named), default=None)
    if least_exact is None or best_other < least_exact or best_other <= 0:
        return raw
    factor = max(least_exact - ROOM, 0.0) / best_other
    return [value if named else min(value, value * factor) for value, named in zip(raw, exact, strict=True)]


def _unit(raw: list[float]) -> list[float]:
    """Divided by the largest when that is above 1; below 0 is 0, where the order they came in holds."""
    largest = max([1.0, *raw])
    return [max(value, 0.0) / largest for value in raw]
