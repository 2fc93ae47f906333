"""Trace of one chunk through a query: its position after every stage, and the stage that dropped it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise

import msgspec
import numpy as np

from dowse.filters import Clause, Filter, Gt, Lt, Not, Or
from dowse.ports import Ids, QuerySession, Values
from dowse.query.pipeline import PreparedQuery, iter_waves
from dowse.query.result import scored_chunks
from dowse.query.stages.fusion import exact_scores
from dowse.query.stages.legs import numbers
from dowse.query.stages.state import Fused, Hit, QueryState, Ranking, Traced
from dowse.types import Chunk, ScoredChunk

FARTHEST = 10_000  # ranks that are searched for in a leg; chosen: nobody scrolls that far
_OPERATORS = dict(
    Eq="is", Ne="is not", In="is one of", Gt="is above", Lt="is below", Prefix="starts with", Contains="has"
)


class StagePosition(msgspec.Struct, frozen=True):
    """Rank of a chunk after one stage."""

    stage: str
    rank: int | None  # from 1; None: not in the list
    of: int  # length of the list
    value: float | None = None  # in that stage's own unit
    note: str = ""

    @property
    def text(self) -> str:
        rank = "absent" if self.rank is None else f"rank {self.rank:,}"
        return f"{self.stage}: {self.note or rank}"


class ChunkTrace(msgspec.Struct, frozen=True):
    """Positions of one chunk: in each leg, in the fused list, after each later stage."""

    legs: tuple[StagePosition, ...]
    fused: StagePosition | None
    later: tuple[StagePosition, ...]

    @property
    def positions(self) -> tuple[StagePosition, ...]:
        return (*self.legs, *((self.fused,) if self.fused else ()), *self.later)

    @property
    def last(self) -> StagePosition | None:
        """After fusion and all later stages; None when nothing was fused."""
        return self.later[-1] if self.later else self.fused


class DroppedAt(msgspec.Struct, frozen=True):
    """The stage that dropped a chunk, and the reason in a sentence."""

    stage: str
    reason: str


class TracedQuery(msgspec.Struct, frozen=True, eq=False):
    """A finished query with its state after every wave."""

    ready: PreparedQuery
    waves: tuple[Traced, ...]

    @classmethod
    def run(cls, ready: PreparedQuery) -> TracedQuery:
        return cls(ready, tuple(iter_waves(ready.waves, ready.state, None, ready.deadline)))

    @property
    def reader(self) -> QuerySession:
        return self.ready.context.reader

    @property
    def state(self) -> QueryState:
        return self.waves[-1].state

    @property
    def lists(self) -> list[Ranking]:
        """Lists of the question itself, without those of its variants."""
        return [each for each in self.state.lists if each.variant == 0]

    @property
    def fused(self) -> Fused | None:
        """The fused list before hydration: the graph adds rows later."""
        return next((each.state.fused for each in reversed(self.waves) if not each.state.hits), None)

    def shown(self, chunks: Sequence[Chunk]) -> tuple[Chunk, int] | None:
        """Return the best ranked of these chunks among the hits, also where its parent took its place."""
        for rank, hit in enumerate(self.state.hits[: self.state.query.k], start=1):
            for chunk in chunks:
                if _stands_for(hit, chunk):
                    return chunk, rank
        return None

    def hit(self, rank: int) -> ScoredChunk:
        return scored_chunks(self.state.hits[rank - 1 : rank], self.state, self.ready.context)[0]

    def furthest(self, chunks: Sequence[Chunk]) -> Chunk:
        """Return the chunk with the best last rank, else in fusion, else the one nearest to the lists of the legs."""
        ids = numbers(chunk.id for chunk in chunks)
        hits = {hit.found.id: rank for rank, hit in enumerate(self.state.hits)}
        rows = {} if self.fused is None else {number: row for row, number in enumerate(self.fused.ids.tolist())}
        absent = len(hits) + len(rows)
        passes, near = self.reader.passing(ids, self.state.query.where), self._nearness(ids)

        def key(at: int) -> tuple[int, int, bool, float, str]:
            chunk, row = chunks[at], rows.get(int(ids[at]), absent)
            return hits.get(chunk.id, absent), row, not passes[at], -float(near[at]), chunk.id

        return chunks[min(range(len(chunks)), key=key)]

    def trace_of(self, chunk: Chunk) -> ChunkTrace:
        legs = tuple(self._in_leg(each, chunk) for each in self.lists)
        later, before = [], QueryState(self.state.query)
        for traced in self.waves:
            if traced.state.hits is not before.hits:
                later.append(_in_hits(traced, chunk))
            before = traced.state
        return ChunkTrace(legs, self._in_fusion(chunk), tuple(later))

    def blocking(self, chunk: Chunk) -> tuple[Clause, ...]:
        """Return the clauses of the filter that the chunk fails."""
        number, where = numbers([chunk.id]), self.state.query.where
        return tuple(each for each in where if not self.reader.passing(number, (each,))[0])

    def dropped_at(self, chunk: Chunk, trace: ChunkTrace) -> DroppedAt:
        if not self.reader.passing(numbers([chunk.id]), ())[0]:
            return DroppedAt("store", "it is no longer searchable; its file was indexed again or removed")
        if blocking := self.blocking(chunk):
            return DroppedAt("filter", f"the filter excludes it: {'; '.join(map(clause_text, blocking))}")
        if trace.fused is None:
            return DroppedAt("legs", "no leg answered, so there are no results; run `dowse doctor`")
        if trace.fused.rank is None:
            return DroppedAt("legs", f"no leg found it: {'; '.join(each.text for each in trace.legs)}")
        k, window, first = self.state.query.k, self.ready.profile.window, trace.fused
        steps = list(pairwise((first, *trace.later)))
        for before, after in steps:
            if after.rank is None and before is first:
                reason = f"fusion ranked it {first.rank} of {first.of}; later stages process the first {window}"
                return DroppedAt("fuse", reason)
            if after.rank is None:
                return DroppedAt(after.stage, f"{after.stage} removed it, from rank {before.rank}")
        for before, after in reversed(steps):
            if (before.rank or 0) <= k < (after.rank or 0):
                reason = f"{after.stage} moved it from rank {before.rank} to {after.rank}; the limit is {k}"
                return DroppedAt(after.stage, reason)
        last = trace.later[-1] if trace.later else first
        return DroppedAt("limit", f"its rank is {last.rank} of {last.of}; the limit is {k}")

    def _nearness(self, ids: Ids) -> Values:
        """Return the sum of shares of each leg's best score: it tells which chunk of a document came nearest."""
        total = np.zeros(len(ids))
        for each in self.lists:
            best = float(each.found.scores.max(initial=0.0))
            total += np.nan_to_num(exact_scores(self.reader, [each], ids)[0], nan=0.0) / (best if best > 0 else 1.0)
        return total

    def _in_fusion(self, chunk: Chunk) -> StagePosition | None:
        fused = self.fused
        if fused is None:
            return None
        row = _index(fused.ids, numbers([chunk.id]))
        value = None if row is None else float(fused.values[row])
        return StagePosition("fuse", None if row is None else row + 1, len(fused.ids), value)

    def _in_leg(self, asked: Ranking, chunk: Chunk) -> StagePosition:
        ids, found = numbers([chunk.id]), len(asked.found.ids)
        score = float(exact_scores(self.reader, [asked], ids)[0, 0])
        if np.isnan(score):
            return StagePosition(asked.leg, None, found, None, "it has no vector yet")
        if asked.terms is not None and score == 0:
            return StagePosition(asked.leg, None, found, 0.0, "it contains no word of the query")
        if not self.reader.passing(ids, self.state.query.where)[0]:
            return StagePosition(asked.leg, None, found, score, "the filter excludes it")
        row = _index(asked.found.ids, ids)
        if row is not None:
            return StagePosition(asked.leg, row + 1, found, score)
        deep, where, rank = min(self.reader.stats.chunks, FARTHEST), self.state.query.where, None  # without the limit
        if asked.terms is not None:
            rank = _index(self.reader.search_words(asked.leg, asked.terms, deep, where).ids, ids)
        elif asked.vector is not None:
            rank = _index(self.reader.search_vectors(asked.vector, deep, where).ids, ids)
        rank = None if rank is None else rank + 1
        place = f"rank {rank:,}" if rank else f"not among the best {FARTHEST:,}"
        return StagePosition(asked.leg, rank, found, score, f"{place}; the leg returns {found}")


def clause_text(clause: Clause) -> str:
    """Return a clause as `language is one of go, rust`."""
    if isinstance(clause, Not):
        return f"not ({_filter_text(clause.where)})"
    if isinstance(clause, Or):
        return " or ".join(f"({_filter_text(each)})" for each in clause.filters)
    value = getattr(clause, "values", None) or getattr(clause, "patterns", None) or (getattr(clause, "value", ""),)
    if clause.field == "timestamp" and isinstance(clause, Gt | Lt):
        word = "after" if isinstance(clause, Gt) else "before"
        return f"timestamp is {word} {datetime.fromtimestamp(float(clause.value), UTC):%Y-%m-%d %H:%M} UTC"
    return f"{clause.field} {_OPERATORS.get(type(clause).__name__, 'matches')} {', '.join(map(str, value))}"


def _filter_text(where: Filter) -> str:
    return " and ".join(map(clause_text, where))


def _stands_for(hit: Hit, chunk: Chunk) -> bool:
    own = chunk.id in (hit.chunk.id, hit.found.id) or (hit.child is not None and hit.chunk.id == chunk.parent_id)
    return own or any(_stands_for(each, chunk) for each in hit.passages)


def _in_hits(traced: Traced, chunk: Chunk) -> StagePosition:
    hits, stage = traced.state.hits, traced.trace[-1].stage
    rank = next((at for at, hit in enumerate(hits, start=1) if _stands_for(hit, chunk)), None)
    if rank is None:
        return StagePosition(stage, None, len(hits))
    hit = hits[rank - 1]
    why = next((each.why for each in reversed(hit.scores) if each.stage == stage), "")
    return StagePosition(stage, rank, len(hits), hit.value, why)


def _index(ids: Ids, wanted: Ids) -> int | None:
    rows = np.flatnonzero(ids == wanted[0])
    return int(rows[0]) if len(rows) else None
