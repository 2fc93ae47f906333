"""Query state: the immutable value that stages pass on, and its parts.

Numbers stay in arrays until text is fetched, and become sentences only for returned hits, so that 300 candidates cost a
few array operations and not 300 objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from dowse.filters import Filter
from dowse.ports import Found, Ids, Ranks, Values, Vector
from dowse.types import Chunk, Degradation, EdgeContext, Leg, ParentContext, QueryType, ServiceContext
from dowse.views import FrozenDict

if TYPE_CHECKING:
    from dowse.query.stages.confidence import Confidence
    from dowse.query.stages.fusion import Method

TermsByLeg = tuple[tuple[Leg, tuple[str, ...]], ...]


class Variant(msgspec.Struct, frozen=True):
    """Another wording of the query."""

    text: str
    weight: float  # the original has 1
    terms: TermsByLeg = ()  # empty until prepared


class Query(msgspec.Struct, frozen=True):
    """Parsed query passed to the pipeline stages."""

    text: str
    k: int  # number of hits to return
    where: Filter = ()
    terms: TermsByLeg = ()  # empty until prepared
    variants: tuple[Variant, ...] = ()  # other wordings
    mentions: tuple[str, ...] = ()  # names that the query spells as code

    @property
    def wordings(self) -> tuple[Variant, ...]:
        """All wordings to search: the query itself, then its variants."""
        return (Variant(self.text, 1.0, self.terms), *self.variants)


class Ranking(msgspec.Struct, frozen=True, eq=False):
    """List of one leg with its terms or vector, so that fusion can score any other chunk the same way.

    A leg that a user plugged in has neither: only the chunks that it found have a score.
    """

    leg: Leg
    found: Found
    terms: tuple[str, ...] | None = None  # of a word leg
    vector: Vector | None = None  # of the dense leg
    variant: int = 0  # index into `Query.wordings`; 0 is the query itself


class Column(msgspec.Struct, frozen=True, eq=False):
    """Scores of one leg for all fused chunks; the arrays are parallel to `Fused.ids`."""

    leg: Leg
    weight: float
    found: int  # chunks that the leg found
    scores: Values  # exact; NaN where there is no vector yet
    ranks: Ranks  # from 1, among the chunks that the leg found; 0 for the others
    parts: Values  # addends of `Fused.raw`
    variant: int = 0


class Fused(msgspec.Struct, frozen=True, eq=False):
    """Union of the chunks of all legs, best first."""

    method: Method
    ids: Ids
    raw: Values  # the sum of the columns' parts and of `smoothing`, in the method's own unit
    values: Values  # raw mapped to [0,1]
    columns: tuple[Column, ...]
    queries: tuple[Ranks, ...] = ()  # nested fusion only: ranks in each variant's own fused list, 0 where absent
    smoothing: Values | None = None  # added to `raw` by a chunk's neighbours; None where the stage did not run


class StageScore(msgspec.Struct, frozen=True):
    """The score that one stage gave one hit; `types.Score` is its public form."""

    stage: str
    value: float
    rank: int
    why: str = ""


class Hit(msgspec.Struct, frozen=True):
    """A ranked chunk, as it passes from stage to stage."""

    chunk: Chunk
    value: float  # score of the last stage, in [0,1], or a little above after a boost
    row: int | None = None  # in Fused; None for hits found later, by name or through the graph
    scores: tuple[StageScore, ...] = ()  # of stages after fusion, oldest first
    rerank: float | None = None  # score of the last reranker, in [0,1], before blending
    child: Chunk | None = None  # the chunk that was found, when its parent replaces it
    parents: tuple[ParentContext, ...] = ()  # document first
    graph: tuple[EdgeContext, ...] = ()  # the path through the chunk graph
    copies: tuple[str, ...] = ()  # places of identical passages
    passages: tuple[Hit, ...] = ()  # other hits of the same document, where documents are shown

    @property
    def found(self) -> Chunk:
        """The chunk that the search found; a parent has no vector."""
        return self.child or self.chunk

    def changed(self, **parts: Any) -> Hit:
        return msgspec.structs.replace(self, **parts)

    def scored(self, score: StageScore, rerank: float | None = None) -> Hit:
        """Return the hit with the score of a stage as its value."""
        judged = self.rerank if rerank is None else rerank
        scores = (*self.scores, score)
        return Hit(self.chunk, score.value, self.row, scores, judged, self.child, self.parents, self.graph, self.copies)


class QueryState(msgspec.Struct, frozen=True, eq=False):
    """State of a query between two stages. Never changed in place."""

    query: Query
    lists: tuple[Ranking, ...] = ()  # one per leg that answered, possibly empty
    fused: Fused | None = None
    hits: tuple[Hit, ...] = ()  # in ranking order, from hydration onwards
    dropped: int = 0  # ids that the store no longer has
    degraded: tuple[Degradation, ...] = ()
    query_type: QueryType | None = None
    metadata_answer: str | None = None
    evidence: tuple[str, ...] = ()  # ids of the documents behind the metadata answer
    service_context: FrozenDict[ServiceContext] | None = None
    confidence: Confidence | None = None

    def changed(self, **parts: Any) -> QueryState:
        return msgspec.structs.replace(self, **parts)

    def brought_since(self, before: QueryState) -> int | None:
        """Return the number of chunks in the newest part of this state; None without a new part."""
        if self.hits is not before.hits:
            return len(self.hits)
        if self.fused is not None and before.fused is None:
            return len(self.fused.ids)
        new = self.lists[len(before.lists) :]
        return sum(len(each.found.ids) for each in new) if new else None


class StageTrace(msgspec.Struct, frozen=True):
    """Time and yield of one stage."""

    stage: str
    ms: float
    count: int | None = None  # chunks; None if it added none or was skipped


class Traced(msgspec.Struct, frozen=True, eq=False):
    """A state and the trace of its stages."""

    state: QueryState
    trace: tuple[StageTrace, ...] = ()


class Stage(Protocol):
    """One stage of the pipeline: a frozen value with its components as fields. It does not log, time or catch."""

    @property
    def name(self) -> str: ...

    def __call__(self, state: QueryState, /) -> QueryState: ...
