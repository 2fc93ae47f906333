"""Validation of a request: return its filter, or raise an error that names the field to change."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import get_args

from dowse.errors import BadRequestError
from dowse.filters import Filter, from_request
from dowse.query.plan.profiles import LINKS, POOL_FACTOR, Profile
from dowse.types import LEGS, Fusion, ParentMode, QueryRequest, QueryType, Syntax

LARGEST_TOP_K = 10_000  # chosen: more is an export, not a search
LARGEST_DEPTH = POOL_FACTOR * LARGEST_TOP_K
LONGEST_DEADLINE_S = 86_400  # a day; chosen: clocks overflow somewhere above it
MOST_HOPS = 2  # chosen: beyond it every chunk is near every other


# Counts with their least and largest value, and the fields in [0,1].
_COUNTS: tuple[tuple[str, int, int | None], ...] = (
    ("top_k", 1, LARGEST_TOP_K),
    ("depth", 1, LARGEST_DEPTH),
    ("k", 0, None),
    ("missing_rank", 1, None),
    ("graph_hops", 1, MOST_HOPS),
    ("graph_slots", 0, LARGEST_TOP_K),
)
_SHARES = ("rerank_weight", "freshness_weight", "min_score", "diversity", "graph_weight", "graph_min_weight")
_CHOICES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("fusion", "fusion", get_args(Fusion)),
    ("parents", "parent mode", get_args(ParentMode)),
    ("syntax", "syntax", get_args(Syntax)),
    ("query_type", "query type", tuple(QueryType)),
)


def validated(request: QueryRequest, profile: Profile) -> Filter:
    """Return all filters of the request as one."""
    if not request.text.strip():
        raise BadRequestError("the query is blank; type some words, as in `dowse search 'retry with backoff'`")
    for checks in (_choices, _counts, _shares, _spans, _legs, _weights):
        for fault in checks(request):
            raise BadRequestError(fault)
    top_k = profile.top_k if request.top_k is None else request.top_k
    if request.graph_slots is not None and request.graph_slots > top_k:
        raise BadRequestError(f"graph_slots is {request.graph_slots}, more than the {top_k} hits; give at most {top_k}")
    return from_request(request)


def _choices(request: QueryRequest) -> Iterator[str]:
    for field, name, choices in _CHOICES:
        value = getattr(request, field)
        if value is not None and value not in choices:
            yield f"unknown {name} {value!r}; choose from {', '.join(choices)}"
    if isinstance(request.rerank, str) and request.rerank != "none":
        names = [name.strip() for name in request.rerank.split(",")]
        for name in names:
            if name not in LINKS:
                yield f"unknown reranker {name!r}; choose from none, {', '.join(LINKS)}"
        if len(set(names)) < len(names):
            yield f"a reranker is named twice in {request.rerank!r}; name each once"


def _counts(request: QueryRequest) -> Iterator[str]:
    for name, least, most in _COUNTS:
        value = getattr(request, name)
        if value is None:
            continue
        if type(value) is not int:
            yield f"{name} is {value!r}; give a whole number"
        elif value < least or (most is not None and value > most):
            span = f"at least {least}" if most is None else f"between {least} and {most:,}"
            yield f"{name} is {value}; give a number {span}"


def _shares(request: QueryRequest) -> Iterator[str]:
    for name in _SHARES:
        value = getattr(request, name)
        if value is not None and not 0 <= value <= 1:  # NaN fails both comparisons
            yield f"{name} is {value}; give a number between 0 and 1"
    similarity = request.min_similarity
    if similarity is not None and not -1 <= similarity <= 1:
        yield f"min_similarity is {similarity}; give a cosine between -1 and 1"


def _spans(request: QueryRequest) -> Iterator[str]:
    deadline_s, half_life = request.deadline_s, request.freshness_half_life_days
    if deadline_s is not None and not 0 < deadline_s <= LONGEST_DEADLINE_S:  # NaN fails both comparisons
        yield f"the deadline is {deadline_s} s; give a number of seconds above 0, at most {LONGEST_DEADLINE_S:,}"
    if half_life is not None and not (isfinite(half_life) and half_life >= 0):
        yield f"freshness_half_life_days is {half_life}; give a number of days, 0 for no freshness"


def _legs(request: QueryRequest) -> Iterator[str]:
    known = ", ".join(LEGS)
    if not request.legs:
        yield f"no leg is chosen; choose one or more of {known}"
    for leg in request.legs:
        if leg not in LEGS:
            yield f"unknown leg {leg!r}; choose from {known}"
    if len(set(request.legs)) < len(request.legs):
        yield f"a leg is named twice in {', '.join(request.legs)}; name each once"


def _weights(request: QueryRequest) -> Iterator[str]:
    alpha, weights = request.alpha, request.weights
    if alpha is not None and not 0 <= alpha <= 1:  # NaN fails both comparisons
        yield f"alpha is {alpha}; give a number between 0 (words only) and 1 (vectors only)"
    if weights is None:
        return
    if alpha is not None:
        yield "both alpha and weights are given; keep one of them"
    names = [leg for leg, _ in weights]
    for leg, weight in weights:
        if leg not in LEGS:
            yield f"a weight is given for the unknown leg {leg!r}; choose from {', '.join(LEGS)}"
        if names.count(leg) > 1:
            yield f"leg {leg} has more than one weight; give one"
        if not (isfinite(weight) and weight >= 0):
            yield f"the weight of {leg} is {weight}; give a number of at least 0"
    if missing := [leg for leg in request.legs if leg not in names]:
        # Neither 0 nor 1 is obvious for a leg that was left out, so it is not guessed.
        yield f"no weight is given for {', '.join(missing)}; give one to each leg, 0 to leave it out"
    if not any(weight > 0 for leg, weight in weights if leg in request.legs):
        yield "every weight is 0; give at least one leg a weight above 0"
