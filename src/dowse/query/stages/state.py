"""What the pipeline knows so far: a question goes in, and each stage returns a new slate that knows more.

Numbers stay in arrays until text is fetched, and become sentences only for the hits that are returned, so
that a pool of 300 candidates costs a query a few array operations and not 300 objects.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from dowse.filters import Filter
from dowse.ports import Found, Ids, Slots, Values, Vector
from dowse.types import (
    Chunk,
    Degradation,
    EdgeContext,
    Leg,
    ParentContext,
    QueryType,
    Score,
    ServiceContext,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dowse.query.stages.confidence import Confidence
    from dowse.query.stages.fusion import Method

    Ranks = NDArray[np.int64]
else:
    Ranks = Any


TermsByLeg = tuple[tuple[Leg, tuple[str, ...]], ...]


class Variant(msgspec.Struct, frozen=True):
    """The question in other words."""

    text: str
    weight: float  # against the original's 1
    terms: TermsByLeg = ()  # empty until prepared

    def terms_of(self, leg: Leg) -> tuple[str, ...]:
        return dict(self.terms).get(leg, ())


class Query(msgspec.Struct, frozen=True):
    """The question, as the stages need it."""

    text: str
    k: int  # how many hits are wanted in the end
    where: Filter = ()
    terms: TermsByLeg = ()  # empty until prepared
    variants: tuple[Variant, ...] = ()  # besides the question itself
    mentions: tuple[str, ...] = ()  # names of things that the question spells as code

    @property
    def asked(self) -> tuple[Variant, ...]:
        """All that is searched for: the question itself, then its variants."""
        return (Variant(self.text, 1.0, self.terms), *self.variants)


class Ranking(msgspec.Struct, frozen=True, eq=False):
    """One leg's list, with what was asked of it, so that fusion can ask the same of any other chunk."""

    leg: Leg
    found: Found
    terms: tuple[str, ...] = ()  # of a word leg
    vector: Vector | None = None  # of the dense leg
    variant: int = 0  # of `Query.asked`; 0 is the question itself


class Column(msgspec.Struct, frozen=True, eq=False):
    """One leg's view of all fused chunks; the arrays run parallel to `Fused.ids`."""

    leg: Leg
    weight: float
    found: int  # how many chunks the leg itself brought
    scores: Values  # exact; NaN where there is no vector yet
    ranks: Ranks  # from 1, among the chunks the leg itself brought; 0 for the others
    parts: Values  # what the leg adds to `Fused.raw`
    variant: int = 0


class Fused(msgspec.Struct, frozen=True, eq=False):
    """The union of the legs' chunks, best first."""

    method: Method
    ids: Ids
    raw: Values  # the sum of the columns' parts and of the company, in the method's own unit
    values: Values  # raw mapped to [0,1]
    columns: tuple[Column, ...]
    queries: tuple[Ranks, ...] = ()  # nested fusion only: ranks in each variant's own fused list, 0 where absent
    slots: Slots | None = None  # where the store has the chunks; see `Found`
    company: Values | None = None  # what a chunk's neighbours add to `raw`; None where they were not asked


class Hit(msgspec.Struct, frozen=True):
    """A chunk in the running. A struct, because every stage makes fifty: a frozen dataclass takes ten times as long."""

    chunk: Chunk
    value: float  # in [0,1], or a little above after a boost: the last stage's word
    row: int | None = None  # in Fused; None for what came later, by name or through the graph
    scores: tuple[Score, ...] = ()  # what stages after fusion gave it, oldest first
    rerank: float | None = None  # in [0,1]: the last reranker's own word, before it was blended
    child: Chunk | None = None  # what was found, when its parent has taken its place
    parents: tuple[ParentContext, ...] = ()  # document first
    graph: tuple[EdgeContext, ...] = ()  # how the chunk graph led here

    @property
    def found(self) -> Chunk:
        """The chunk that was searched and has a vector; a parent has none."""
        return self.child or self.chunk

    def changed(self, **parts: Any) -> Hit:
        return msgspec.structs.replace(self, **parts)

    def at_most(self, value: float) -> Hit:
        """Behind hits that have this value."""
        if self.value <= value:
            return self
        return Hit(self.chunk, value, self.row, self.scores, self.rerank, self.child, self.parents, self.graph)

    def scored(self, score: Score, rerank: float | None = None) -> Hit:
        """With a stage's word, which is its value from now on."""
        judged = self.rerank if rerank is None else rerank
        scores = (*self.scores, score)
        return Hit(self.chunk, score.value, self.row, scores, judged, self.child, self.parents, self.graph)


@dataclass(frozen=True, eq=False)
class Slate:
    """What the pipeline knows so far. Never changed in place."""

    query: Query
    lists: tuple[Ranking, ...] = ()  # one per leg that answered; an empty list is an honest "nothing found"
    fused: Fused | None = None
    hits: tuple[Hit, ...] = ()  # from hydration onwards; their order is the ranking
    dropped: int = 0  # ids that a leg found and the store no longer has
    degraded: tuple[Degradation, ...] = ()
    query_type: QueryType | None = None
    metadata_answer: str | None = None
    evidence: tuple[str, ...] = ()  # ids of the documents that the metadata answer rests on
    service_context: tuple[tuple[str, ServiceContext], ...] | None = None
    confidence: Confidence | None = None

    def changed(self, **parts: Any) -> Slate:
        """`dataclasses.replace` past the constructor, in a tenth of its time: every stage of a query does this."""
        made = object.__new__(Slate)
        vars(made).update(vars(self))
        vars(made).update(parts)
        return made

    def brought_since(self, before: Slate) -> int | None:
        """How many chunks the newest part of this slate holds; None when it has no new part."""
        if self.hits is not before.hits:
            return len(self.hits)
        if self.fused is not None and before.fused is None:
            return len(self.fused.ids)
        new = self.lists[len(before.lists) :]
        return sum(len(each.found.ids) for each in new) if new else None


class StageTrace(msgspec.Struct, frozen=True):
    """What one stage took and brought."""

    stage: str
    ms: float
    count: int | None = None  # chunks; None when it brought none or was skipped


class Traced(msgspec.Struct, frozen=True, eq=False):
    """A slate, and how it came about."""

    slate: Slate
    trace: tuple[StageTrace, ...] = ()


class Stage(Protocol):
    """One step of the path: a frozen value with its collaborators as fields. It does not log, time or catch.

    A struct where every query makes one, as `Hit`; else a dataclass.
    """

    @property
    def name(self) -> str: ...

    def __call__(self, slate: Slate, /) -> Slate: ...
