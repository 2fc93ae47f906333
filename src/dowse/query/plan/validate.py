"""Validation of a request: return its filter, or raise an error that names the field to change."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, isfinite, ulp
from typing import get_args

from dowse.errors import BadRequestError
from dowse.filters import Filter, from_request
from dowse.query.plan.profiles import LINKS, POOL_FACTOR, Profile
from dowse.types import LEGS, Fusion, ParentMode, QueryRequest, QueryType

LARGEST_TOP_K = 10_000  # chosen: more is an export, not a search
LARGEST_DEPTH = POOL_FACTOR * LARGEST_TOP_K
LONGEST_DEADLINE_S = 86_400  # a day; chosen: clocks overflow somewhere above it
MOST_HOPS = 2  # chosen: beyond it every chunk is near every other
SHORTEST_DEADLINE_S = ulp(0.0)
LARGEST_FLOAT = 1.7e308

# Numbers: kind, least and largest value, and the advice for a value outside.
_WHOLE, _ANY = "give a whole number", "give a number"
_NUMBERS: tuple[tuple[str, type, float, float, str], ...] = (
    ("top_k", int, 1, LARGEST_TOP_K, ""),
    ("depth", int, 1, LARGEST_DEPTH, ""),
    ("k", int, 0, inf, ""),
    ("missing_rank", int, 1, inf, ""),
    ("graph_hops", int, 1, MOST_HOPS, ""),
    ("graph_slots", int, 0, LARGEST_TOP_K, ""),
    ("rerank_weight", float, 0, 1, ""),
    ("freshness_weight", float, 0, 1, ""),
    ("min_score", float, 0, 1, ""),
    ("diversity", float, 0, 1, ""),
    ("graph_weight", float, 0, 1, ""),
    ("graph_min_weight", float, 0, 1, ""),
    ("alpha", float, 0, 1, "give a number between 0 (words only) and 1 (vectors only)"),
    ("min_similarity", float, -1, 1, "give a cosine between -1 and 1"),
    ("freshness_half_life_days", float, 0, LARGEST_FLOAT, "give a number of days, 0 for no freshness"),
    (
        "deadline_s", float, SHORTEST_DEADLINE_S, LONGEST_DEADLINE_S,
        f"give a number of seconds above 0, at most {LONGEST_DEADLINE_S:,}",
    ),
)  # fmt: skip
_CHOICES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("fusion", "fusion", get_args(Fusion)),
    ("parents", "parent mode", get_args(ParentMode)),
    ("syntax", "syntax", ("plain", "operators")),
    ("query_type", "query type", tuple(QueryType)),
)


def validated(request: QueryRequest, profile: Profile, plugged: tuple[str, ...] = ()) -> Filter:
    """Return all filters of the request as one. `plugged`: names of the user's legs."""
    if not isinstance(request.text, str):
        raise BadRequestError(f"the query is {request.text!r}; give text")
    if not request.text.strip():
        raise BadRequestError("the query is blank; type some words, as in `dowse search 'retry with backoff'`")
    for fault in (*_values(request), *_legs(request, (*LEGS, *plugged))):
        raise BadRequestError(fault)
    top_k = profile.top_k if request.top_k is None else request.top_k
    if request.graph_slots is not None and request.graph_slots > top_k:
        raise BadRequestError(f"graph_slots is {request.graph_slots}, more than the {top_k} hits; give at most {top_k}")
    return from_request(request)


def _values(request: QueryRequest) -> Iterator[str]:
    given = vars(request)
    for name, kind, least, most, advice in _NUMBERS:
        if (value := given[name]) is None:
            continue
        if type(value) is bool or not isinstance(value, kind if kind is int else (int, float)):
            yield f"{name} is {value!r}; {advice or (_WHOLE if kind is int else _ANY)}"
        elif not least <= value <= most:  # NaN fails both comparisons
            span = f"at least {least}" if most == inf else f"between {least} and {most:,}"
            yield f"{name} is {value}; {advice or f'give a number {span}'}"
    for name, said, choices in _CHOICES:
        if (value := given[name]) is not None and value not in choices:
            yield f"unknown {said} {value!r}; choose from {', '.join(choices)}"
    rerank = request.rerank
    if rerank is None or isinstance(rerank, bool) or rerank == "none":
        return
    if not isinstance(rerank, str):
        yield f"rerank is {rerank!r}; give True, False, or names of none, {', '.join(LINKS)}"
        return
    names = [name.strip() for name in rerank.split(",")]
    yield from (
        f"unknown reranker {name!r}; choose from none, {', '.join(LINKS)}" for name in names if name not in LINKS
    )
    if len(set(names)) < len(names):
        yield f"a reranker is named twice in {rerank!r}; name each once"


def _legs(request: QueryRequest, legs: tuple[str, ...]) -> Iterator[str]:
    known = ", ".join(legs)
    if not request.legs:
        yield f"no leg is chosen; choose one or more of {known}"
    for leg in request.legs:
        if leg not in legs:
            yield f"unknown leg {leg!r}; choose from {known}"
    if len(set(request.legs)) < len(request.legs):
        yield f"a leg is named twice in {', '.join(request.legs)}; name each once"
    weights = request.weights
    if weights is None:
        return
    if request.alpha is not None:
        yield "both alpha and weights are given; keep one of them"
    try:
        pairs = [(leg, float(weight)) for leg, weight in weights]
    except (TypeError, ValueError):
        yield f"weights are {weights!r}; give pairs of leg and number"
        return
    names = [leg for leg, _ in pairs]
    for leg, weight in pairs:
        if leg not in legs:
            yield f"a weight is given for the unknown leg {leg!r}; choose from {known}"
        if names.count(leg) > 1:
            yield f"leg {leg} has more than one weight; give one"
        if not (isfinite(weight) and weight >= 0):
            yield f"the weight of {leg} is {weight}; give a number of at least 0"
    if missing := [leg for leg in request.legs if leg not in names]:
        # Neither 0 nor 1 is obvious for a leg that was left out, so it is not guessed.
        yield f"no weight is given for {', '.join(missing)}; give one to each leg, 0 to leave it out"
    if not any(weight > 0 for leg, weight in pairs if leg in request.legs or leg not in LEGS):
        yield "every weight is 0; give at least one leg a weight above 0"
