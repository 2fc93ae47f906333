"""Profiles: named sets of all knobs of the query pipeline.

`default` is the measured one. The five others reproduce the retrieval systems that Dowse unites, each with its own
order and constants, on a scale of [0,1]; docs/profiles.md compares them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec.structs import replace

from dowse.errors import BadRequestError
from dowse.ports import STANDARD
from dowse.query.plan.classify import BY_TYPE
from dowse.query.stages.document_groups import POOL
from dowse.query.stages.freshness_and_boost import BOOST_RULES, BoostRule
from dowse.query.stages.graph import Count, GraphOptions, Share
from dowse.types import LEGS, Fusion, Grouping, Leg, ParentMode, QueryRequest, QueryType

POOL_FACTOR = 3  # candidates per leg and wanted hit; chosen
POOL_MINIMUM = 20  # candidates per leg, however few hits are wanted; chosen

# Ranges of the knobs, checked in tables of the user.
NotNegative = Annotated[float, msgspec.Meta(ge=0)]
Positive = Annotated[float, msgspec.Meta(gt=0)]
Merge = Literal["flat", "nested"]
Link = Literal["heuristic", "score", "cross-encoder", "llm"]
LINKS: tuple[Link, ...] = get_args(Link)
StageSlot = Literal[
    "copies", "signals", "graph", "replace_parents", "rerank", "freshness", "boost", "min_score", "mmr", "exact",
    "slots", "group", "attach_parents",
]  # fmt: skip
SLOTS: tuple[StageSlot, ...] = get_args(StageSlot)
"""Stages after hydration. A profile orders them; other knobs turn each of them on or off."""

ORDER: tuple[StageSlot, ...] = (
    "copies", "signals", "graph", "rerank", "freshness", "boost", "replace_parents", "min_score", "mmr", "exact",
    "slots", "group", "attach_parents",
)  # fmt: skip
EVEN: tuple[tuple[Leg, float], ...] = (("dense", 1.0), ("bm25_code", 1.0), ("bm25_nlp", 1.0))
DENSE_AND_PROSE: tuple[Leg, ...] = ("dense", "bm25_nlp")

# Fields that a request and a profile share.
SHARED = (
    "top_k", "fusion", "alpha", "missing_rank", "expand", "rerank_weight", "freshness_half_life_days",
    "freshness_weight", "boost", "parents", "min_score", "min_similarity", "mmr", "diversity", "graph", "expand_graph",
    "group",
)  # fmt: skip
GRAPH_FIELDS = (
    ("graph_hops", "hops"), ("graph_relations", "relations"), ("graph_min_weight", "min_weight"),
    ("graph_bidirectional", "bidirectional"), ("graph_slots", "slots"),
)  # fmt: skip


class Profile(msgspec.Struct, frozen=True):
    """All knobs of the pipeline. A value of the request overrides them."""

    name: str
    top_k: Count = 10
    legs: tuple[Leg, ...] = LEGS  # a request may choose fewer
    fusion: Fusion = "z"
    alpha: Share = 0.7  # weight of the dense leg; 0.65 costs 0.001 nDCG (docs/trials/fusion.md)
    weights: tuple[tuple[Leg, NotNegative], ...] | None = None  # by leg, instead of alpha
    exponent: Positive = 2.0  # of z; at 1.5 it costs 0.003 nDCG (docs/trials/neighbour-smoothing.md)
    hubness: Share = 0.15  # share of a hub's surplus cosine that it loses; 0: off (same page)
    smoothing: Share = 0.3  # share of its neighbours in a chunk's sum; 0: off (same page)
    depth: Count = 100  # candidates per leg; measured: 60 and 200 differ by less than 0.001 nDCG
    k1: NotNegative = STANDARD.k1  # of BM25: saturation of repeated terms
    b: Share = STANDARD.b  # of BM25: discount of long chunks
    rank_constant: Annotated[int, msgspec.Meta(ge=0)] = 60  # of RRF; Cormack, Clarke and Büttcher, SIGIR 2009
    missing_rank: Count | None = None
    window: Count = 50  # hits that later stages see; chosen
    by_type: tuple[tuple[QueryType, Share, Count], ...] = ()  # (type, alpha, top_k)
    classify_by_llm: bool = False  # the rules are free, and as good in the default
    expand: bool = False
    merge: Merge = "flat"  # of the variants' lists
    rerank: tuple[Link, ...] = ("cross-encoder",)  # each runs if it is configured
    rerank_weight: Share = 0.7  # of the reranker's score; the score before it has the rest
    llm_window: Count = 20  # candidates an LLM reads; chosen: 15 to 25 is usual
    llm_scale: tuple[float, float] = (0.0, 10.0)
    llm_characters: Count = 800  # of each passage
    rerank_timeout_s: Positive = 10.0  # of one reranker; chosen: people wait no longer
    freshness_half_life_days: Positive = 90.0
    freshness_weight: Share = 0.1  # 0: off
    freshness_boost_only: bool = False  # nothing sinks for its age
    boost: bool = True
    boost_rules: tuple[BoostRule, ...] = BOOST_RULES
    boost_cap: Positive | None = 1.5  # None: factors multiply without a limit
    parents: ParentMode = "attach"
    min_score: Share = 0.0
    min_similarity: Annotated[float, msgspec.Meta(ge=-1, le=1)] | None = None
    mmr: bool = False
    diversity: Share = 0.3
    signals: bool = True  # names and kinds of files and symbols (docs/trials/repositories.md)
    group: Grouping = "none"
    exact: bool = True  # a symbol that the query names ranks first
    metadata: bool = True  # answer questions about documents from their metadata
    graph: bool = False
    graph_options: GraphOptions = msgspec.field(default_factory=GraphOptions)
    expand_graph: bool = False
    order: tuple[StageSlot, ...] = ORDER

    def adjusted(self, request: QueryRequest) -> Profile:
        """Return this profile with the values of the request. Idempotent."""
        asked = vars(request)
        given: dict[str, Any] = {name: value for name in SHARED if (value := asked[name]) is not None}
        top_k = given.get("top_k", self.top_k)
        names = request.rerank.split(",") if isinstance(request.rerank, str) else []
        chain = tuple(link for name in names for link in LINKS if link == name.strip())
        pool = max(POOL_FACTOR * top_k, POOL_MINIMUM, self.depth)
        given |= {
            "legs": tuple(leg for leg in request.legs if leg in self.legs) or request.legs,
            "weights": self.weights if request.alpha is None and request.weights is None else request.weights,
            "depth": pool if request.depth is None else request.depth,
            "rank_constant": self.rank_constant if request.k is None else request.k,
            "window": max(self.window, top_k, POOL if given.get("group", self.group) == "document" else 0),
            "rerank": self.rerank if request.rerank in (None, True) else chain,
        }
        graph: dict[str, Any] = {own: asked[name] for name, own in GRAPH_FIELDS if asked[name] not in (None, ())}
        if request.graph_weight is not None:
            graph |= {"graph_weight": request.graph_weight, "vector_weight": 1 - request.graph_weight}
        if graph:
            given["graph_options"] = replace(self.graph_options, **graph)
        changes = {name: value for name, value in given.items() if value != getattr(self, name)}
        return replace(self, **changes) if changes else self

    def for_type(self, query_type: QueryType, request: QueryRequest) -> Profile:
        """Return this profile with the parameters of a query type; values of the request override them."""
        for kind, alpha, top_k in self.by_type:
            if kind == query_type:
                return replace(self, alpha=alpha, top_k=top_k).adjusted(request)
        return self


_PLAIN = Profile(
    "",
    fusion="rrf",
    hubness=0.0,
    smoothing=0.0,
    depth=POOL_MINIMUM,
    rerank=(),
    rerank_weight=1.0,  # a reranker replaces the score
    freshness_weight=0.0,
    boost=False,
    parents="off",
    signals=False,
    exact=False,
    metadata=False,
)
"""Common base of the five systems: reciprocal rank fusion, and no stage that they lack."""

PROFILES = (
    Profile("default"),
    # Three lists of equal weight, cross-encoder, freshness, boosts without a limit.
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
    # Three paraphrases, an LLM that scores from 0 to 10, MMR, five hits with section and document.
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
    # Keyword weight 0.6 against 1.0, then names and summaries; an exact name ranks first.
    replace(
        _PLAIN,
        name="entities",
        top_k=10,
        weights=(("dense", 1.0), ("bm25_code", 0.3), ("bm25_nlp", 0.3)),
        rerank=("heuristic",),
        exact=True,
    ),
    # Weights and hits by query type, rank 1,000 for chunks that a leg misses, an LLM from 1 to 10 at 0.7.
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
    # Keyword weight 0.3, parents before the reranker, a minimum score, the chunk graph with its literal formula.
    replace(
        _PLAIN,
        name="graph",
        top_k=10,
        legs=DENSE_AND_PROSE,
        alpha=0.7,
        parents="replace",
        graph=True,
        graph_options=GraphOptions(by_cosine=True, literal=True),
        order=SLOTS,  # parents before the reranker
    ),
)


def named(name: str, profiles: tuple[Profile, ...] = PROFILES) -> Profile:
    for profile in profiles:
        if profile.name == name:
            return profile
    known = ", ".join(profile.name for profile in profiles)
    raise BadRequestError(f"unknown profile {name!r}; choose from {known}, or write [profiles.{name}] in dowse.toml")
