"""Groups of hits: one hit for a document with its best passages, and one for identical passages."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import msgspec

from dowse.query.plan.file_kinds import MOSTLY
from dowse.query.stages.exact_names import UNNAMED, distance, dotted
from dowse.query.stages.signals import NameMatch, matcher
from dowse.query.stages.state import Hit, QueryState, StageScore
from dowse.tokenizer import Tokenizer

POOL = 80  # hits that groups are made of; 100 gain 0.003 nDCG, and cost 1.5 times the CPU of a list of chunks
PASSAGES = 3  # shown in a group; chosen
RANK_CONSTANT = 10  # of the weight 10/(10 + rank) of a hit
DECAY = 0.8  # of each further hit of a file in a repository; 0.7 to 0.9 differ by less than 0.002 nDCG
PROSE_DECAY = (
    0.0  # where fewer than three in five hits are code: more passages of a text do not make it a better answer
)
FILE_WEIGHT = 1.0  # of the name of the file, beside √mass in [0,1]; 0.7 to 1.4 likewise
SYMBOL_WEIGHT = 0.3  # of the best name of a symbol in it
OWN_SYMBOL = 0.5  # of its own symbol in the order of passages inside a group


class MergeCopies(msgspec.Struct, frozen=True):
    """Stage that makes one hit of passages with the same content; it names the places of the others."""

    name: str = "copies"

    def __call__(self, state: QueryState, /) -> QueryState:
        first: dict[str, int] = {}
        places: dict[str, list[str]] = {}
        for at, hit in enumerate(state.hits):
            key = hit.chunk.content_hash or hit.chunk.id
            if first.setdefault(key, at) != at:
                places.setdefault(key, []).append(_place(hit))
        if not places:
            return state
        kept = (state.hits[at].changed(copies=tuple(places.get(key, ()))) for key, at in first.items())
        return state.changed(hits=tuple(kept))


def _place(hit: Hit) -> str:
    chunk = hit.chunk
    return chunk.source_uri if chunk.start_line is None else f"{chunk.source_uri}:{chunk.start_line}"


class _Member(msgspec.Struct, frozen=True):
    hit: Hit
    weight: float  # 10/(10 + rank)
    match: NameMatch
    named: int  # distance to a name that the query spells

    @property
    def order(self) -> tuple[int, float]:
        return self.named, -(self.weight + (OWN_SYMBOL * self.match.symbol if self.named == UNNAMED else 0.0))


class GroupByDocument(msgspec.Struct, frozen=True):
    """Stage that ranks documents by (√mass + file + 0.3·symbol)·kind/2.3 and keeps the best passages of each.

    The mass is Σ 10/(10 + rank)·0.8^k over the hits of a document, k counting from 0, as a share of the largest; the
    root keeps long files from outranking the file that the query names. Where most hits are prose, only the best hit
    counts. Documents that define a name which the query spells rank first.
    """

    tokenizer: Tokenizer
    name: str = "group"

    def __call__(self, state: QueryState, /) -> QueryState:
        match = matcher(state.query, self.tokenizer, [hit.found for hit in state.hits])
        names = tuple(dotted(name) for name in state.query.mentions)
        documents: dict[str, list[_Member]] = {}
        for rank, hit in enumerate(state.hits, start=1):
            member = _Member(hit, RANK_CONSTANT / (RANK_CONSTANT + rank), match(hit.found), _named(hit, names))
            documents.setdefault(hit.chunk.document_id, []).append(member)
        code = sum(hit.chunk.corpus_type == "CODE_LOGIC" for hit in state.hits)
        decay = DECAY if code >= MOSTLY * len(state.hits) else PROSE_DECAY
        masses = {key: _mass(members, decay) for key, members in documents.items()}
        largest = max(masses.values(), default=1.0)
        rows = [(*_value(members, masses[key] / largest), members) for key, members in documents.items()]
        best = max((value for value, _, _ in rows), default=0.0)
        rows.sort(key=lambda row: (min(each.named for each in row[2]), -row[0]))
        hits = (
            _grouped(members, StageScore(self.name, value if _unnamed(members) else best, rank, why))
            for rank, (value, why, members) in enumerate(rows, start=1)
        )
        return state.changed(hits=tuple(hits))


def _named(hit: Hit, names: Sequence[str]) -> int:
    """Return how near a hit comes to a spelled name; where only the case differs, it comes after its definition."""
    exact = bool(names) and any(score.stage == "exact" for score in hit.scores)
    return distance(hit.found, names) if exact else UNNAMED


def _unnamed(members: Sequence[_Member]) -> bool:
    return all(each.named == UNNAMED for each in members)


def _mass(members: Sequence[_Member], decay: float) -> float:
    return sum(each.weight * decay**k for k, each in enumerate(members))


def _value(members: Sequence[_Member], mass: float) -> tuple[float, str]:
    """Return the value of a document and the arithmetic behind it."""
    symbol = max(each.match.symbol for each in members)
    match = members[0].match
    full = 1 + FILE_WEIGHT + SYMBOL_WEIGHT
    value = (sqrt(mass) + FILE_WEIGHT * match.file + SYMBOL_WEIGHT * symbol) * match.factor / full
    names = f"{FILE_WEIGHT:g}·{match.file:.2f} file name + {SYMBOL_WEIGHT:g}·{symbol:.2f} symbol name"
    why = f"(√{mass:.2f} mass of {len(members)} passages + {names})/{full:g} {match.why}"
    return value, why.rstrip()


def _grouped(members: Sequence[_Member], score: StageScore) -> Hit:
    best, *others = (each.hit for each in sorted(members, key=lambda each: each.order)[:PASSAGES])
    return best.scored(score).changed(copies=best.copies, passages=tuple(others))
