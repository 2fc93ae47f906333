"""What might bring a lost chunk in: a request and its loss go in; changed requests, smallest change first, come out.

They are guesses, in the order of how little they change; whoever asks tries them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from dowse.filters import Clause, from_request
from dowse.query.explain.trace import Loss, Way
from dowse.query.plan.profiles import Profile
from dowse.types import QueryRequest

MOST = 24  # changes; chosen: each is a whole query
FAR_K = 100  # hits; chosen: who asks for more is not looking for one of them
ALPHAS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
FILTERS = (
    "corpus_filter", "service_filter", "repo_filter", "document_filter", "source_filter", "language_filter",
    "path_filter", "section_filter", "channel_filter", "author_filter", "meta_filter", "created_after",
    "created_before",
)  # fmt: skip

Fields = tuple[tuple[str, Any], ...]
# By the name of a stage that can lose a chunk, what turns it off.
SWITCHES: tuple[tuple[str, Fields], ...] = (
    ("min_score", (("min_score", 0.0), ("min_similarity", -1.0))),
    ("mmr", (("mmr", False),)),
    ("freshness", (("freshness_weight", 0.0),)),
    ("boost", (("boost", False),)),
    ("parents", (("parents", "off"),)),
    ("graph", (("graph", False),)),
    ("graph_slots", (("graph_slots", 0),)),
    ("cross-encoder", (("rerank", False),)),
    ("heuristic", (("rerank", False),)),
    ("score", (("rerank", False),)),
    ("llm", (("rerank", False),)),
)


@dataclass(frozen=True)
class Remedy:
    """Fields of a request to change, and that in words."""

    fields: Fields
    told: str


@dataclass(frozen=True)
class Case:
    """All that the choice of remedies rests on."""

    request: QueryRequest
    profile: Profile  # as the request adjusts it
    profiles: tuple[str, ...]  # names to choose from
    blocking: tuple[Clause, ...]
    loss: Loss
    way: Way


def remedies(case: Case) -> Iterator[Remedy]:
    """No more than MOST of them. What the filter keeps out is let in first; the others build on that."""
    base = _without_filters(case)
    if base is not None:
        yield base
    others = _others(case)
    yield from islice((_joined(base, each) for each in others), MOST)


def _others(case: Case) -> Iterator[Remedy]:
    """Off with what took it out; a few more hits; other weights; many more hits; deeper legs; other profiles."""
    for stage, fields in SWITCHES:
        if stage == case.loss.stage:
            yield Remedy(fields, f"without {stage}")
    k = case.profile.top_k
    last = case.way.last.rank if case.way.last else None
    if last is not None and k < last <= 2 * k:
        yield Remedy((("top_k", last),), f"{last} hits instead of {k}")
    yield from _weights(case)
    for more in dict.fromkeys((last, case.way.fused.rank if case.way.fused else None, FAR_K)):
        if more is not None and k < more <= FAR_K:
            yield Remedy((("top_k", more),), f"{more} hits instead of {k}")
    yield from _deeper(case)
    for name in case.profiles:
        if name != case.request.profile:
            yield Remedy((("profile", name),), f"the profile {name}")


def _weights(case: Case) -> Iterator[Remedy]:
    """Nearest to what it was first."""
    now = case.profile.alpha if case.profile.weights is None else 0.5
    for alpha in sorted(ALPHAS, key=lambda each: (abs(each - now), each)):
        if abs(alpha - now) > 0.01:
            kind = {0.0: "words only", 1.0: "vectors only"}.get(alpha, f"{alpha:.0%} vectors, {1 - alpha:.0%} words")
            yield Remedy((("weights", None), ("alpha", alpha)), f"{kind} (alpha {alpha:g} instead of {now:g})")


def _deeper(case: Case) -> Iterator[Remedy]:
    ranks = [place.rank for place in case.way.legs if place.rank is not None]
    depth = min(ranks, default=0)
    if depth > case.profile.depth:
        told = f"legs that bring {depth} chunks instead of {case.profile.depth}"
        yield Remedy((("depth", depth),), told)
        yield Remedy((("depth", depth), ("top_k", FAR_K)), f"{told}, and {FAR_K} hits")


def _without_filters(case: Case) -> Remedy | None:
    """The request without the filters that keep the chunk out, and only those."""
    if not case.blocking:
        return None
    request, dropped = case.request, []
    for name in FILTERS:
        bare = replace(request, **{name: _empty(name)})
        lost = set(from_request(request)) - set(from_request(bare))
        if lost & set(case.blocking):
            dropped.append(name)
    fields: list[tuple[str, Any]] = [(name, _empty(name)) for name in dropped]
    if kept_out := set(request.where) & set(case.blocking):
        fields.append(("where", tuple(each for each in request.where if each not in kept_out)))
        dropped.append("where")
    return Remedy(tuple(fields), f"without {', '.join(dropped)}")


def _empty(name: str) -> Any:
    return None if name.startswith("created_") else ()


def _joined(base: Remedy | None, other: Remedy) -> Remedy:
    return other if base is None else Remedy((*base.fields, *other.fields), f"{base.told}, and {other.told}")
