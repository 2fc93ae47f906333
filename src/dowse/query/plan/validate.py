"""The border of the query path: a request goes in, its filter comes out, or an error says what to change."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import get_args

from dowse.errors import BadRequestError
from dowse.filters import Filter, from_request
from dowse.query.plan.profiles import LINKS, POOL_FACTOR, PROFILES, Profile, named
from dowse.types import LEGS, Fusion, ParentMode, QueryRequest, QueryType

LARGEST_TOP_K = 10_000  # chosen: more is an export, not a search
LARGEST_DEPTH = POOL_FACTOR * LARGEST_TOP_K
LONGEST_DEADLINE_S = 86_400  # a day; chosen: what waits longer has no deadline, and clocks overflow somewhere
MOST_HOPS = 2  # design 6: beyond, everything is near everything


def validated(request: QueryRequest, profiles: tuple[Profile, ...] = PROFILES) -> Filter:
    """All filters of the request as one."""
    for checks in (_text, _choices, _counts, _shares, _spans, _legs, _weights):
        for fault in checks(request):
            raise BadRequestError(fault)
    _fits(request, named(request.profile, profiles))
    return from_request(request)


def _text(request: QueryRequest) -> Iterator[str]:
    if not request.text.strip():
        yield "the query is blank; type what you are looking for, as in `dowse search 'retry with backoff'`"


def _choices(request: QueryRequest) -> Iterator[str]:
    if request.fusion is not None and request.fusion not in get_args(Fusion):
        yield f"unknown fusion {request.fusion!r}; choose from {', '.join(get_args(Fusion))}"
    if request.parents is not None and request.parents not in get_args(ParentMode):
        yield f"unknown way with parents {request.parents!r}; choose from {', '.join(get_args(ParentMode))}"
    if request.query_type is not None and request.query_type not in list(QueryType):
        yield f"unknown type of question {request.query_type!r}; choose from {', '.join(QueryType)}"
    if isinstance(request.rerank, str) and request.rerank != "none":
        names = [name.strip() for name in request.rerank.split(",")]
        for name in names:
            if name not in LINKS:
                yield f"unknown reranker {name!r}; choose from none, {', '.join(LINKS)}"
        if len(set(names)) < len(names):
            yield f"a reranker is named twice in {request.rerank!r}; name each once"


def _counts(request: QueryRequest) -> Iterator[str]:
    ranges = (
        ("top_k", request.top_k, 1, LARGEST_TOP_K),
        ("depth", request.depth, 1, LARGEST_DEPTH),
        ("k", request.k, 0, None),
        ("missing_rank", request.missing_rank, 1, None),
        ("graph_hops", request.graph_hops, 1, MOST_HOPS),
        ("graph_slots", request.graph_slots, 0, LARGEST_TOP_K),
    )
    for name, value, least, most in ranges:
        if value is None:
            continue
        if type(value) is not int:
            yield f"{name} is {value!r}; give a whole number"
        elif value < least or (most is not None and value > most):
            span = f"at least {least}" if most is None else f"between {least} and {most:,}"
            yield f"{name} is {value}; give a number {span}"


def _shares(request: QueryRequest) -> Iterator[str]:
    names = (
        "rerank_weight", "freshness_weight", "min_score", "diversity", "graph_weight", "graph_min_weight",
    )  # fmt: skip
    for name in names:
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
    if half_life is not None and not (isfinite(half_life) and half_life > 0):
        yield f"freshness_half_life_days is {half_life}; give a number of days above 0, or freshness_weight 0 for none"


def _legs(request: QueryRequest) -> Iterator[str]:
    known = ", ".join(LEGS)
    if not request.legs:
        yield f"no leg is asked; choose one or more of {known}"
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


def _fits(request: QueryRequest, profile: Profile) -> None:
    """What only the profile can tell."""
    top_k = profile.top_k if request.top_k is None else request.top_k
    if request.graph_slots is not None and request.graph_slots > top_k:
        raise BadRequestError(f"graph_slots is {request.graph_slots}, more than the {top_k} hits; give at most {top_k}")
