"""The named pipelines: a name and a request go in, every knob of the query path comes out.

`default` is what was measured; the five others reproduce the systems that Dowse unites, each with its own order and
constants (requirements S0 to S4), on Dowse's scale of [0,1] and without their bugs. docs/profiles.md tells them apart.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from dowse.errors import BadRequestError
from dowse.ports import STANDARD
from dowse.query.plan.classify import BY_TYPE
from dowse.query.stages.freshness_and_boost import BOOST_RULES, BoostRule
from dowse.query.stages.graph import GraphOptions
from dowse.types import LEGS, Fusion, Leg, ParentMode, QueryRequest, QueryType

POOL_FACTOR = 3  # candidates per leg for each hit wanted; design 6
POOL_MINIMUM = 20  # candidates per leg, however few hits are wanted; design 6

Merge = Literal["flat", "nested"]
Link = Literal["heuristic", "score", "cross-encoder", "llm"]
LINKS: tuple[Link, ...] = get_args(Link)
Place = Literal[
    "graph", "replace_parents", "rerank", "freshness", "boost", "min_score", "mmr", "exact", "slots", "attach_parents"
]
PLACES: tuple[Place, ...] = get_args(Place)
"""Stages after hydration. A profile puts them in order; which of them run is another knob of each."""

ORDER: tuple[Place, ...] = (
    "graph", "rerank", "freshness", "boost", "replace_parents", "min_score", "mmr", "exact", "slots", "attach_parents",
)  # fmt: skip
PARENTS_FIRST: tuple[Place, ...] = (
    "graph", "replace_parents", "rerank", "freshness", "boost", "min_score", "mmr", "exact", "slots", "attach_parents",
)  # fmt: skip
EVEN: tuple[tuple[Leg, float], ...] = (("dense", 1.0), ("bm25_code", 1.0), ("bm25_nlp", 1.0))
DENSE_AND_PROSE: tuple[Leg, ...] = ("dense", "bm25_nlp")

# Fields of a request that are a profile's, too, under the same name.
SHARED = (
    "top_k", "fusion", "alpha", "missing_rank", "expand", "rerank_weight", "freshness_half_life_days",
    "freshness_weight", "boost", "parents", "min_score", "min_similarity", "mmr", "diversity", "graph", "expand_graph",
)  # fmt: skip
GRAPH_FIELDS = (
    ("graph_hops", "hops"), ("graph_relations", "relations"), ("graph_min_weight", "min_weight"),
    ("graph_bidirectional", "bidirectional"), ("graph_slots", "slots"),
)  # fmt: skip


@dataclass(frozen=True)
class Profile:
    """Every knob. A request's own value always wins."""

    name: str
    top_k: int = 10
    legs: tuple[Leg, ...] = LEGS  # at most these; a request may ask fewer
    fusion: Fusion = "z"
    alpha: float = 0.7  # weight of the dense leg; measured with what follows: .65 costs .001 (decision 0011)
    weights: tuple[tuple[Leg, float], ...] | None = None  # by leg, instead of alpha
    exponent: float = 2.0  # of z; measured with crowd and pull: at 1.5 it costs .003 (decision 0011)
    crowd: float = 0.15  # of a crowd's likeness, taken from cosines; 0 turns it off; measured (decision 0011)
    pull: float = 0.3  # of a chunk's neighbours on its sum; 0 turns it off; measured (decision 0011)
    depth: int = 100  # candidates per leg; measured: 60 and 200 differ by less than .001 (lab/quality.md section 4)
    k1: float = STANDARD.k1  # of BM25: how soon a repeated term adds no more
    b: float = STANDARD.b  # of BM25: how much a long chunk is discounted
    rank_constant: int = 60  # of reciprocal rank fusion; Cormack, Clarke and Büttcher, SIGIR 2009
    missing_rank: int | None = None
    window: int = 50  # hits whose text is fetched, for the stages after fusion; design 6
    by_type: tuple[tuple[QueryType, float, int], ...] = ()  # (type, alpha, top_k)
    classify_by_llm: bool = False  # the rules are free and do as well in the default (C-24)
    steer: bool = False  # identifiers shift alpha; unproven, see docs/profiles.md
    expand: bool = False
    merge: Merge = "flat"  # how the variants' lists become one (C-22)
    rerank: tuple[Link, ...] = ("cross-encoder",)  # those that are configured run
    rerank_weight: float = 0.7  # S3-17, C-12
    llm_window: int = 20  # candidates an LLM reads; S3-39: 15 to 25 is the sweet spot
    llm_scale: tuple[float, float] = (0.0, 10.0)  # C-09
    llm_characters: int = 800  # of each passage
    rerank_timeout_s: float = 10.0  # for one link of the chain; R-34
    freshness_half_life_days: float = 90.0  # S0-01
    freshness_weight: float = 0.1  # S0-01; 0 turns it off
    freshness_boost_only: bool = False  # C-14
    boost: bool = True
    boost_rules: tuple[BoostRule, ...] = BOOST_RULES
    boost_cap: float | None = 1.5  # C-15
    parents: ParentMode = "attach"
    min_score: float = 0.0
    min_similarity: float | None = None
    mmr: bool = False
    diversity: float = 0.3  # S1-06
    exact: bool = True  # a name asked for as an identifier comes first
    metadata: bool = True  # questions about documents are answered from their metadata
    graph: bool = False
    graph_options: GraphOptions = field(default_factory=GraphOptions)
    expand_graph: bool = False
    order: tuple[Place, ...] = ORDER

    def adjusted(self, request: QueryRequest) -> Profile:
        """This profile with the request's own values in it. Doing it twice changes nothing."""
        asked = vars(request)
        given: dict[str, Any] = {name: value for name in SHARED if (value := asked[name]) is not None}
        top_k = given.get("top_k", self.top_k)
        pool = max(POOL_FACTOR * top_k, POOL_MINIMUM, self.depth)
        given |= {
            "legs": tuple(leg for leg in request.legs if leg in self.legs) or request.legs,
            "weights": self.weights if request.alpha is None and request.weights is None else request.weights,
            "depth": pool if request.depth is None else request.depth,
            "rank_constant": self.rank_constant if request.k is None else request.k,
            "window": max(self.window, top_k),
            "rerank": _chain(request.rerank, self.rerank),
            "graph_options": _graph_options(request, self.graph_options),
        }
        # Most requests change nothing, and copying forty fields takes longer than finding that out.
        own = vars(self)
        changes = {name: value for name, value in given.items() if value != own[name]}
        return replace(self, **changes) if changes else self

    def for_type(self, query_type: QueryType, request: QueryRequest) -> Profile:
        """With the parameters of that type of question, where the request does not say otherwise (C-23)."""
        for kind, alpha, top_k in self.by_type:
            if kind == query_type:
                changed = replace(self, alpha=alpha, top_k=top_k)
                return changed.adjusted(request)
        return self


def _chain(asked: bool | str | None, own: tuple[Link, ...]) -> tuple[Link, ...]:
    if asked is None or asked is True:
        return own
    if asked is False or asked == "none":
        return ()
    return tuple(link for name in asked.split(",") for link in LINKS if link == name.strip())


def _graph_options(request: QueryRequest, own: GraphOptions) -> GraphOptions:
    given = {ours: getattr(request, theirs) for theirs, ours in GRAPH_FIELDS}
    changed: dict[str, Any] = {name: value for name, value in given.items() if value is not None and value != ()}
    if request.graph_weight is not None:
        changed |= {"graph_weight": request.graph_weight, "vector_weight": 1 - request.graph_weight}
    return replace(own, **changed) if changed else own


_PLAIN = Profile(
    "",
    fusion="rrf",
    crowd=0.0,
    pull=0.0,
    depth=POOL_MINIMUM,
    rerank=(),
    rerank_weight=1.0,  # these systems replace the score (C-12)
    freshness_weight=0.0,
    boost=False,
    parents="off",
    exact=False,
    metadata=False,
)
"""What the five systems have in common: RRF, and nothing that they did not have."""

PROFILES = (
    Profile("default"),
    # S0: three lists that count the same, cross-encoder, freshness, boosts that stack (B-14), services.
    replace(
        _PLAIN,
        name="engineering",
        top_k=20,
        weights=EVEN,
        rerank=("cross-encoder",),
        freshness_weight=0.1,
        boost=True,
        boost_cap=None,
    ),
    # S1: three paraphrases, an LLM that scores from 0 to 10, MMR, the best five, with section and document.
    replace(
        _PLAIN,
        name="documents",
        top_k=5,
        legs=DENSE_AND_PROSE,
        alpha=0.7,
        expand=True,
        rerank=("llm",),
        mmr=True,
        parents="attach",
    ),
    # S2: keyword .6 and semantic 1.0, then names and summaries; an exact name comes first.
    replace(
        _PLAIN,
        name="entities",
        top_k=10,
        weights=(("dense", 1.0), ("bm25_code", 0.3), ("bm25_nlp", 0.3)),
        rerank=("heuristic",),
        exact=True,
    ),
    # S3: weights and hits by type of question, what a leg misses counts as rank 1000, an LLM from 1 to 10 at .7.
    replace(
        _PLAIN,
        name="papers",
        top_k=5,
        legs=DENSE_AND_PROSE,
        alpha=0.7,
        missing_rank=1000,
        by_type=BY_TYPE,
        classify_by_llm=True,
        expand=True,
        merge="nested",
        rerank=("llm",),
        rerank_weight=0.7,
        llm_scale=(1.0, 10.0),
        llm_characters=500,
        metadata=True,
    ),
    # S4: keyword .3, parents before the reranker, a minimum score, and the chunk graph with its literal formula.
    replace(
        _PLAIN,
        name="graph",
        top_k=10,
        legs=DENSE_AND_PROSE,
        alpha=0.7,
        parents="replace",
        graph=True,
        graph_options=GraphOptions(by_cosine=True, literal=True),
        order=PARENTS_FIRST,
    ),
)


def named(name: str, profiles: tuple[Profile, ...] = PROFILES) -> Profile:
    for profile in profiles:
        if profile.name == name:
            return profile
    known = ", ".join(profile.name for profile in profiles)
    raise BadRequestError(f"unknown profile {name!r}; choose from {known}, or write [profiles.{name}] in dowse.toml")
