"""Remedies for a missing chunk: changes of the request, smallest first. They are guesses; the caller tries them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

import msgspec

from dowse.filters import FILTER_BUILDERS, Clause, from_request
from dowse.query.explain.trace import ChunkTrace, DroppedAt
from dowse.query.plan.operators import without_operators
from dowse.query.plan.profiles import LINKS, Profile
from dowse.types import QueryRequest

MOST = 24  # changes; chosen: each is a whole query
FAR_K = 100  # hits; chosen: who asks for more is not looking for one of them
ALPHAS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
FILTERS = (*FILTER_BUILDERS, "meta_filter", "created_after", "created_before")

Fields = tuple[tuple[str, Any], ...]
# By the name of a stage that can drop a chunk: the fields that turn it off.
SWITCHES: Mapping[str, Fields] = {
    "min_score": (("min_score", 0.0), ("min_similarity", -1.0)),
    "mmr": (("mmr", False),),
    "group": (("group", "none"),),
    "copies": (("group", "none"),),
    "freshness": (("freshness_weight", 0.0),),
    "boost": (("boost", False),),
    "parents": (("parents", "off"),),
    "graph": (("graph", False),),
    "graph_slots": (("graph_slots", 0),),
} | dict.fromkeys(LINKS, (("rerank", False),))


class Remedy(msgspec.Struct, frozen=True):
    """Fields of a request to change, and the change in words."""

    fields: Fields
    text: str


class Case(msgspec.Struct, frozen=True):
    """Facts that the choice of remedies depends on."""

    request: QueryRequest
    profile: Profile  # as the request adjusts it
    profiles: tuple[str, ...]  # names to choose from
    blocking: tuple[Clause, ...]
    dropped_at: DroppedAt
    trace: ChunkTrace


def remedies(case: Case) -> Iterator[Remedy]:
    """Yield at most MOST remedies. The first lifts the filters that exclude the chunk; the others build on it."""
    base = _without_filters(case)
    if base is not None:
        yield base
    for each in islice(_others(case), MOST):
        yield each if base is None else Remedy((*base.fields, *each.fields), f"{base.text}, and {each.text}")


def _others(case: Case) -> Iterator[Remedy]:
    """Yield: the dropping stage off; a few more hits; other weights; many more hits; deeper legs; other profiles."""
    if (stage := case.dropped_at.stage) in SWITCHES:
        yield Remedy(SWITCHES[stage], f"turn off {stage}")
    k = case.profile.top_k
    last = case.trace.last.rank if case.trace.last else None
    if last is not None and k < last <= 2 * k:
        yield Remedy((("top_k", last),), f"show {last} results instead of {k}")
    now = case.profile.alpha if case.profile.weights is None else 0.5
    for alpha in sorted(ALPHAS, key=lambda each: (abs(each - now), each)):  # of the dense leg, the nearest first
        if abs(alpha - now) > 0.01:
            kind = {0.0: "words only", 1.0: "vectors only"}.get(alpha, f"{alpha:.0%} vectors, {1 - alpha:.0%} words")
            yield Remedy((("weights", None), ("alpha", alpha)), f"use {kind} (alpha {alpha:g} instead of {now:g})")
    for more in dict.fromkeys((last, case.trace.fused.rank if case.trace.fused else None, FAR_K)):
        if more is not None and k < more <= FAR_K:
            yield Remedy((("top_k", more),), f"show {more} results instead of {k}")
    depth = min((place.rank for place in case.trace.legs if place.rank is not None), default=0)
    if depth > case.profile.depth:
        text = f"fetch {depth} candidates per leg instead of {case.profile.depth}"
        yield Remedy((("depth", depth),), text)
        yield Remedy((("depth", depth), ("top_k", FAR_K)), f"{text}, and show {FAR_K} results")
    for name in case.profiles:
        if name != case.request.profile:
            yield Remedy((("profile", name),), f"use profile {name}")


def _without_filters(case: Case) -> Remedy | None:
    """Return the request without the filters that exclude the chunk, and only those."""
    if not case.blocking:
        return None
    request, dropped = case.request, []
    for name in FILTERS:
        bare = replace(request, **{name: _empty(name)})
        lost = set(from_request(request)) - set(from_request(bare))
        if lost & set(case.blocking):
            dropped.append(name)
    fields: list[tuple[str, Any]] = [(name, _empty(name)) for name in dropped]
    if request.syntax == "operators" and (text := without_operators(request.text, case.blocking)) != request.text:
        fields.append(("text", text))
        dropped.append("the operators that exclude it")
    if kept_out := set(request.where) & set(case.blocking):
        fields.append(("where", tuple(each for each in request.where if each not in kept_out)))
        dropped.append("where")
    return Remedy(tuple(fields), f"remove {', '.join(dropped)}")


def _empty(name: str) -> Any:
    return None if name.startswith("created_") else ()
