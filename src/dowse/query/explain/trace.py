"""The way of one chunk through a query: what every stage knew goes in, its place after each of them comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dowse.filters import Clause
from dowse.identity import id_number
from dowse.ports import Ids, StoreReader, Values
from dowse.query.pipeline import Prepared, walk
from dowse.query.stages.state import Fused, Hit, Ranking, Slate, Traced
from dowse.types import Chunk

FARTHEST = 10_000  # ranks that are looked for in a leg; beyond it, "not among them" says as much; chosen


@dataclass(frozen=True)
class Place:
    """Where a chunk stood after one stage."""

    stage: str
    rank: int | None  # from 1; None: nowhere
    of: int  # how many stood there
    value: float | None = None  # in that stage's own unit
    note: str = ""

    @property
    def told(self) -> str:
        rank = "nowhere" if self.rank is None else f"rank {self.rank:,}"
        return f"{self.stage}: {self.note or rank}"


@dataclass(frozen=True)
class Way:
    """All places, oldest first. `legs` are where it was looked for, `later` what became of it."""

    legs: tuple[Place, ...]
    fused: Place | None
    later: tuple[Place, ...]

    @property
    def places(self) -> tuple[Place, ...]:
        return (*self.legs, *((self.fused,) if self.fused else ()), *self.later)

    @property
    def last(self) -> Place | None:
        """After fusion and all that followed; None when nothing was fused."""
        return self.later[-1] if self.later else self.fused


@dataclass(frozen=True)
class Loss:
    """The stage where a chunk was lost, and a sentence about it."""

    stage: str
    reason: str


@dataclass(frozen=True, eq=False)
class Walked:
    """A query that was run to its end, with what was known after every wave."""

    ready: Prepared
    traces: tuple[Traced, ...]

    @classmethod
    def of(cls, ready: Prepared) -> Walked:
        return cls(ready, tuple(walk(ready.waves, ready.slate, None, ready.deadline)))

    @property
    def reader(self) -> StoreReader:
        return self.ready.asked.reader

    @property
    def slate(self) -> Slate:
        return self.traces[-1].slate

    @property
    def lists(self) -> list[Ranking]:
        """Of the question itself; its variants only help."""
        return [each for each in self.slate.lists if each.variant == 0]

    @property
    def fused(self) -> Fused | None:
        """As fusion and the chunks' company left it: the graph adds rows later."""
        return next((each.slate.fused for each in reversed(self.traces) if not each.slate.hits), None)

    def shown(self, chunks: Sequence[Chunk]) -> tuple[Chunk, int] | None:
        """The best placed of these chunks among the hits, itself or by its parent in its place."""
        for rank, hit in enumerate(self.slate.hits[: self.slate.query.k], start=1):
            for chunk in chunks:
                if _stands_for(hit, chunk):
                    return chunk, rank
        return None

    def furthest(self, chunks: Sequence[Chunk]) -> Chunk:
        """The one with the best last place, else in fusion, else the one nearest to what the legs found."""
        ids = _numbers(chunks)
        hits = {hit.found.id: rank for rank, hit in enumerate(self.slate.hits)}
        rows = {} if self.fused is None else {number: row for row, number in enumerate(self.fused.ids.tolist())}
        nowhere = len(hits) + len(rows)
        passes, near = self.reader.passing(ids, self.slate.query.where), self._nearness(ids)

        def far(at: int) -> tuple[int, int, bool, float, str]:
            chunk, row = chunks[at], rows.get(int(ids[at]), nowhere)
            return hits.get(chunk.id, nowhere), row, not passes[at], -float(near[at]), chunk.id

        return chunks[min(range(len(chunks)), key=far)]

    def way(self, chunk: Chunk) -> Way:
        legs = tuple(self._in_leg(each, chunk) for each in self.lists)
        later, before = [], Slate(self.slate.query)
        for traced in self.traces:
            if traced.slate.hits is not before.hits:
                later.append(_in_hits(traced, chunk))
            before = traced.slate
        return Way(legs, self._in_fusion(chunk), tuple(later))

    def blocking(self, chunk: Chunk) -> tuple[Clause, ...]:
        """The clauses of the filter that the chunk does not pass."""
        number = _numbers([chunk])
        return tuple(each for each in self.slate.query.where if not self.reader.passing(number, (each,))[0])

    def loss(self, chunk: Chunk, way: Way) -> Loss:
        if not self.reader.passing(_numbers([chunk]), ())[0]:
            return Loss("store", "it is no longer searchable; its file was indexed again or removed")
        if blocking := self.blocking(chunk):
            return Loss("filter", f"the filter keeps it out: {'; '.join(map(told, blocking))}")
        if way.fused is None:
            return Loss("legs", "no leg answered, so nothing at all was found; `dowse doctor` tells why")
        if way.fused.rank is None:
            return Loss("legs", f"no leg brought it: {'; '.join(each.told for each in way.legs)}")
        return self._lost_later(way.fused, way.later)

    def _lost_later(self, fused: Place, later: Sequence[Place]) -> Loss:
        k, window = self.slate.query.k, self.ready.profile.window
        for before, after in pairwise((fused, *later)):
            if after.rank is not None:
                continue
            if before is fused:
                return Loss("fuse", f"fusion put it at rank {fused.rank} of {fused.of}, and {window} go on")
            return Loss(after.stage, f"{after.stage} took it out, from rank {before.rank}")
        for before, after in reversed(list(pairwise((fused, *later)))):
            if (before.rank or 0) <= k < (after.rank or 0):
                return Loss(
                    after.stage, f"{after.stage} moved it from rank {before.rank} to {after.rank}; {k} are shown"
                )
        last = later[-1] if later else fused
        return Loss(
            "fuse",
            f"fusion put it at rank {fused.rank} of {fused.of}; in the end it is at {last.rank}, and {k} are shown",
        )

    def _nearness(self, ids: Ids) -> Values:
        """Shares of each leg's best score, added up: tells which chunk of a document came nearest."""
        total = np.zeros(len(ids))
        for each in self.lists:
            best = float(each.found.scores.max(initial=0.0))
            total += np.nan_to_num(self._exact(each, ids), nan=0.0) / (best if best > 0 else 1.0)
        return total

    def _in_fusion(self, chunk: Chunk) -> Place | None:
        fused = self.fused
        if fused is None:
            return None
        rows = np.flatnonzero(fused.ids == _numbers([chunk])[0])
        if not len(rows):
            return Place("fuse", None, len(fused.ids))
        return Place("fuse", int(rows[0]) + 1, len(fused.ids), float(fused.values[rows[0]]))

    def _in_leg(self, asked: Ranking, chunk: Chunk) -> Place:
        ids, brought = _numbers([chunk]), len(asked.found.ids)
        score = float(self._exact(asked, ids)[0])
        if np.isnan(score):
            return Place(asked.leg, None, brought, None, "it has no vector yet")
        if asked.vector is None and score == 0:
            return Place(asked.leg, None, brought, 0.0, "no word of the question occurs in it")
        if not self.reader.passing(ids, self.slate.query.where)[0]:
            return Place(asked.leg, None, brought, score, "the filter keeps it out")
        at = np.flatnonzero(asked.found.ids == ids[0])
        if len(at):
            return Place(asked.leg, int(at[0]) + 1, brought, score)
        rank = self._rank_beyond(asked, ids)
        where = f"rank {rank:,}" if rank else f"not among the best {FARTHEST:,}"
        return Place(asked.leg, rank, brought, score, f"{where}, and the leg brings {brought}")

    def _rank_beyond(self, asked: Ranking, ids: Ids) -> int | None:
        """Where a leg would have it if it went on."""
        deep, where = min(self.reader.stats.chunks, FARTHEST), self.slate.query.where
        if asked.vector is None:
            found = self.reader.search_words(asked.leg, asked.terms, deep, where)
        else:
            found = self.reader.search_vectors(asked.vector, deep, where)
        at = np.flatnonzero(found.ids == ids[0])
        return int(at[0]) + 1 if len(at) else None

    def _exact(self, asked: Ranking, ids: Ids) -> Values:
        if asked.vector is None:
            return self.reader.score_words({asked.leg: asked.terms}, ids)[asked.leg]
        return self.reader.score_vectors(asked.vector, ids)


def told(clause: Clause) -> str:
    """As `language is one of go, rust`."""
    words = {"Eq": "is", "Ne": "is not", "In": "is one of", "Gt": "is above", "Lt": "is below", "Prefix": "starts with"}
    value = getattr(clause, "values", None) or getattr(clause, "patterns", None) or (getattr(clause, "value", ""),)
    return f"{clause.field} {words.get(type(clause).__name__, 'is like')} {', '.join(map(str, value))}"


def _stands_for(hit: Hit, chunk: Chunk) -> bool:
    return chunk.id in (hit.chunk.id, hit.found.id) or (hit.child is not None and hit.chunk.id == chunk.parent_id)


def _in_hits(traced: Traced, chunk: Chunk) -> Place:
    hits = traced.slate.hits
    rank = next((at for at, hit in enumerate(hits, start=1) if _stands_for(hit, chunk)), None)
    hit = None if rank is None else hits[rank - 1]
    why = next((each.why for each in reversed(hit.scores) if each.stage == traced.trace[-1].stage), "") if hit else ""
    return Place(traced.trace[-1].stage, rank, len(hits), None if hit is None else hit.value, why)


def _numbers(chunks: Sequence[Chunk]) -> Ids:
    return np.array([id_number(chunk.id) for chunk in chunks], np.uint64)
