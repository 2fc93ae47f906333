"""Why not: a question and a chunk that did not come go in; what lost it, and what would bring it in, come out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from dowse.errors import NotFoundError
from dowse.query.explain.remedies import Case, Remedy, remedies
from dowse.query.explain.trace import Loss, Place, Walked
from dowse.query.pipeline import Prepared
from dowse.types import Chunk, QueryRequest

Ask = Callable[[QueryRequest], Prepared]


@dataclass(frozen=True)
class Change:
    """A remedy that was tried, and where it puts the chunk."""

    remedy: Remedy
    rank: int


@dataclass(frozen=True)
class WhyNot:
    """`rank` is the chunk's place among the hits when it is there after all; then nothing lost it."""

    query: str
    target: str
    chunk: Chunk  # of a document: the one that came furthest
    way: tuple[Place, ...]  # oldest first
    rank: int | None = None
    loss: Loss | None = None
    change: Change | None = None  # the smallest of those that work; None when none of them does
    tried: int = 0  # queries that were asked to find it


def why_not(
    request: QueryRequest, target: str, chunks: Sequence[Chunk], ask: Ask, profiles: Sequence[str] = ()
) -> WhyNot:
    """Follow the best of these chunks, which are what `target` names, through the query; then ask it otherwise.

    `profiles` are the names that may be proposed.
    """
    searched = [chunk for chunk in chunks if chunk.level == "chunk"]
    if not searched:
        raise NotFoundError(f"{target} holds no chunk that is searched; `dowse show {target}` prints what it holds")
    walked = Walked.of(ask(request))
    if (found := walked.shown(searched)) is not None:
        chunk, rank = found
        return WhyNot(request.text, target, chunk, walked.way(chunk).places, rank)
    chunk = walked.furthest(searched)
    way = walked.way(chunk)
    loss = walked.loss(chunk, way)
    case = Case(request, walked.ready.profile, tuple(profiles), walked.blocking(chunk), loss, way)
    change, tried = _tried(request, searched, ask, () if loss.stage == "store" else remedies(case))
    return WhyNot(request.text, target, chunk, way.places, None, loss, change, tried)


def _tried(
    request: QueryRequest, chunks: Sequence[Chunk], ask: Ask, choices: Iterable[Remedy]
) -> tuple[Change | None, int]:
    tried = 0
    for tried, remedy in enumerate(choices, start=1):
        changed = replace(request, **dict(remedy.fields))
        found = Walked.of(ask(changed)).shown(chunks)
        if found is not None:
            return Change(remedy, found[1]), tried
    return None, tried
