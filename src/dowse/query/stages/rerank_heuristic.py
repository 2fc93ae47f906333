"""Heuristic reranker without a model: exact names first, then names and summaries with query terms; stubs last."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from dowse.ports import Candidate
from dowse.query.plan.mentions import find_mentions
from dowse.query.rows import candidates_of
from dowse.query.stages.rerank import Judgement, reranked
from dowse.tokenizer import Tokenizer
from dowse.types import Chunk

SHORTEST_TERM = 3  # characters
MORE_STOP_WORDS = frozenset({"could", "may", "might", "shall", "would"})  # besides those of dowse.tokenizer
STUB_CHARACTERS = 50  # a shorter text is a stub
MANY_CONNECTIONS = 5  # more of them earn a boost
_RUN = re.compile(r"[\w$]+")
ROOM = 1e-9  # keeps other candidates below exact ones


class Facts(msgspec.Struct, frozen=True):
    """Features of a candidate for one query."""

    exact: bool
    terms: int  # of the question
    in_name: int  # how many of them the name holds
    in_summary: int
    stub: bool
    connected: bool

    @property
    def named(self) -> int:
        """Terms in the name; 0 for a stub unless its name is exact."""
        return 0 if self.stub and not self.exact else self.in_name


class Additive(msgspec.Struct, frozen=True):
    """Formula: the value in [0,1] plus boosts."""

    exact: float = 2.0
    name_term: float = 0.5  # for each term
    summary: float = 0.3  # times the share of terms
    stub: float = -0.3
    connected: float = 0.2

    def __call__(self, value: float, facts: Facts, /) -> float:
        return value + sum(self._parts(facts))

    def why(self, facts: Facts, /) -> str:
        reasons = (
            "exact name",
            f"{facts.named} of {facts.terms} terms in the name",
            f"{facts.in_summary} of {facts.terms} terms in the summary",
            f"under {STUB_CHARACTERS} characters",
            f"more than {MANY_CONNECTIONS} connections",
        )
        said = [f"{part:+.2g} {reason}" for part, reason in zip(self._parts(facts), reasons, strict=True) if part]
        return ", ".join(said) or "no match in name or summary"

    def _parts(self, facts: Facts) -> tuple[float, ...]:
        return (
            self.exact * facts.exact,
            self.name_term * facts.named,
            self.summary * (facts.in_summary / facts.terms if facts.terms else 0.0),
            self.stub * facts.stub,
            self.connected * facts.connected,
        )


@dataclass(frozen=True)
class HeuristicReranker:
    """Reranker by names and summaries. Its score includes the candidate's value, so it is not blended again."""

    formula: Additive = field(default_factory=Additive)
    tokenizer: Tokenizer = field(default_factory=Tokenizer, compare=False, repr=False)
    model: str = "heuristic"

    def score(self, query: str, candidates: Sequence[Candidate], *, timeout_s: float | None = None) -> list[float]:
        return [each.score for each in self.judge(query, candidates)]

    def judge(self, query: str, candidates: Sequence[Candidate]) -> list[Judgement]:
        facts = self.facts(query, [each.chunk for each in candidates])
        raised = self._raised(candidates, facts)
        largest = max([1.0, *raised])
        pairs = zip((max(value, 0.0) / largest for value in raised), facts, strict=True)
        return [Judgement(score, partial(self.formula.why, of)) for score, of in pairs]

    def rerank(self, query: str, candidates: Sequence[Any], top_k: int | None = None) -> list[Candidate]:
        """Return candidates sorted and trimmed; `Candidate.value` is the original score and the boosts, unscaled."""
        given = candidates_of(candidates)
        return reranked(given, self._raised(given, self.facts(query, [each.chunk for each in given])), top_k)

    def _raised(self, candidates: Sequence[Candidate], facts: Sequence[Facts]) -> list[float]:
        raw = [self.formula(each.value, of) for each, of in zip(candidates, facts, strict=True)]
        return _exact_on_top(raw, [of.exact for of in facts])

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
            stub=len(chunk.text.strip()) < STUB_CHARACTERS,
            connected=chunk.connection_count > MANY_CONNECTIONS,
        )

    def _terms(self, query: str) -> set[str]:
        """Return stems of whole terms; of an identifier only its parts, which would else count twice."""
        split = (self.tokenizer.code(run) for run in _RUN.findall(query))
        parts = (part for tokens in split for part in (tokens[:-1] or tokens))
        return self._stems(part for part in parts if len(part) >= SHORTEST_TERM and part not in MORE_STOP_WORDS)

    def _stems(self, words: Iterable[str]) -> set[str]:
        return set(self.tokenizer.prose(" ".join(words))[0])


def name_of(chunk: Chunk) -> str:
    """Return the name of the symbol; of prose, the heading right above it."""
    if chunk.symbol_name or not chunk.section_path:
        return chunk.symbol_name or ""
    return chunk.section_path.rsplit(">", 1)[-1].strip().lstrip("#").strip()


def is_named(chunk: Chunk, names: set[str]) -> bool:
    """Return whether a folded name is the chunk's name, qualified name, or the end of that (`Store.search`)."""
    if name_of(chunk).casefold() in names:
        return True
    if not chunk.qualified_name:
        return False
    qualified = folded(chunk.qualified_name)
    return qualified in names or any("." in name and qualified.endswith(f".{name}") for name in names)


def folded(name: str) -> str:
    """Return one form of equivalent names: `Store::search()` and `store.search`."""
    return name.strip().strip("`\"'").removesuffix("()").replace("::", ".").replace("#", ".").strip().casefold()


def _exact_on_top(raw: list[float], exact: list[bool]) -> list[float]:
    """Return values with the others scaled below the exact names, if needed."""
    best_other = max((value for value, named in zip(raw, exact, strict=True) if not named), default=0.0)
    least_exact = min((value for value, named in zip(raw, exact, strict=True) if named), default=None)
    if least_exact is None or best_other < least_exact or best_other <= 0:
        return raw
    factor = max(least_exact - ROOM, 0.0) / best_other
    return [value if named else min(value, value * factor) for value, named in zip(raw, exact, strict=True)]
