"""Explanation of one target: its rank and scores among the hits, or the stage that dropped it and a verified remedy."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import msgspec

from dowse.errors import NotFoundError
from dowse.query.explain.remedies import Case, Remedy, remedies
from dowse.query.explain.trace import DroppedAt, StagePosition, TracedQuery
from dowse.query.pipeline import PreparedQuery
from dowse.types import Chunk, QueryRequest, ScoredChunk

Prepare = Callable[[QueryRequest], PreparedQuery]


class VerifiedRemedy(msgspec.Struct, frozen=True):
    """A remedy that was tried, and the rank it gives the chunk."""

    remedy: Remedy
    rank: int


class Explanation(msgspec.Struct, frozen=True):
    """Why a target ranks where it does, or why it is missing: `hit` and `rank`, or `dropped_at` and `verified`."""

    query: str
    target: str
    chunk: Chunk  # of a document: the one that came furthest
    trace: tuple[StagePosition, ...]  # oldest first
    rank: int | None = None  # among the hits, from 1
    hit: ScoredChunk | None = None  # with the history of its scores
    dropped_at: DroppedAt | None = None
    verified: VerifiedRemedy | None = None  # the smallest change that works; None if none does
    tried: int = 0  # queries that were run to find it


def explained(
    request: QueryRequest, target: str, chunks: Sequence[Chunk], prepare: Prepare, profiles: Sequence[str] = ()
) -> Explanation:
    """Follow the best of the target's chunks through the query; if it is missing, try remedies, also other profiles."""
    searched = [chunk for chunk in chunks if chunk.level == "chunk"]
    if not searched:
        raise NotFoundError(f"{target} has no searchable chunk; run `dowse show {target}` to see its content")
    traced = TracedQuery.run(prepare(request))
    if (found := traced.shown(searched)) is not None:
        chunk, rank = found
        return Explanation(request.text, target, chunk, traced.trace_of(chunk).positions, rank, traced.hit(rank))
    chunk = traced.furthest(searched)
    trace = traced.trace_of(chunk)
    dropped = traced.dropped_at(chunk, trace)
    case = Case(request, traced.ready.profile, tuple(profiles), traced.blocking(chunk), dropped, trace)
    verified, tried = None, 0
    for remedy in () if dropped.stage == "store" else remedies(case):
        tried += 1
        changed = dataclasses.replace(request, **dict(remedy.fields))
        if (found := TracedQuery.run(prepare(changed)).shown(searched)) is not None:
            verified = VerifiedRemedy(remedy, found[1])
            break
    return Explanation(request.text, target, chunk, trace.positions, dropped_at=dropped, verified=verified, tried=tried)
