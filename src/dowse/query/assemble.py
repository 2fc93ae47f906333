"""Assembly of the stages after the legs, in the order of the profile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from secrets import token_bytes
from typing import Any

import msgspec

from dowse.filters import Prefix
from dowse.fusion_kernel import FusionKernel
from dowse.ports import LLM, QuerySession, Reranker, SearchLeg
from dowse.query.cache import CachedReranker, Caches
from dowse.query.exact_text import literals
from dowse.query.plan.profiles import PROFILES, Link, Profile, StageSlot
from dowse.query.result import coverage
from dowse.query.stages.document_groups import GroupByDocument, MergeCopies
from dowse.query.stages.exact_names import ExactNames
from dowse.query.stages.freshness_and_boost import FAMILY, CorpusBoost, Freshness, Threshold
from dowse.query.stages.fusion import Fuse, Method, MinMax, ReciprocalRank, ZScore
from dowse.query.stages.graph import Graph, GraphSlots
from dowse.query.stages.leg_weights import Alpha, ByLeg
from dowse.query.stages.legs import Hydrate
from dowse.query.stages.parents import AttachParents, ReplaceByParent
from dowse.query.stages.rerank import Rerank, ScoreReranker
from dowse.query.stages.rerank_heuristic import HeuristicReranker
from dowse.query.stages.signals import Signals
from dowse.query.stages.state import Query, Stage
from dowse.tokenizer import Tokenizer
from dowse.types import Degradation, DocumentInfo

NO_CROSS_ENCODER = "no cross-encoder is configured; set DOWSE_RERANKER to a hub id or folder"
NO_LLM = "no LLM is configured; set DOWSE_LLM_BASE_URL and DOWSE_LLM_MODEL"


_AGING = (Prefix("corpus_type", FAMILY),)  # hits that freshness may move
_MOVE_FEW = frozenset({"freshness", "boost", "exact", "parents"})  # stages whose moves can be foreseen


@dataclass(frozen=True)
class Parts:
    """Optional parts of a query besides the store and the embedder. A dataclass, to keep `secret` out of its repr."""

    llm: LLM | None = None
    rerank_llm: LLM | None = None  # that reranks; None: `llm`
    legs: tuple[SearchLeg, ...] = ()  # of the user, beside or instead of Dowse's
    service_graph: Any = None  # of the user, instead of the store's
    cross_encoder: Reranker | None = None
    cross_encoder_note: str = NO_CROSS_ENCODER  # why there is none
    cross_encoder_lost: bool = False  # configured, and cannot be opened
    open_cross_encoder: Callable[[], Reranker | None] | None = None  # called by the first query that needs it
    profiles: tuple[Profile, ...] = PROFILES
    caches: Caches | None = None
    fusion_kernel: FusionKernel | None = None  # None: numpy does the arithmetic
    secret: bytes = field(default_factory=lambda: token_bytes(16), repr=False)  # of the LLM reranker's tags
    documents: Callable[[], Iterable[DocumentInfo]] = tuple
    values_of: Callable[[str], Sequence[str]] | None = None  # of a field, to name those that a filter may mean
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


class Step(msgspec.Struct, frozen=True):
    """A stage, and the rules for its failure."""

    stage: Stage
    optional: bool = False  # an UnavailableError skips it, with a note
    even_late: bool = False  # runs after the deadline, too
    when_answered: bool = False  # runs after metadata have answered the query, which ends the search
    apart: bool = False  # runs in a thread of its own, beside the others of its wave


Wave = tuple[Step, ...]
"""Steps that run in parallel. When there is more than one, they may only add lists."""


class Assembly(msgspec.Struct, frozen=True):
    """Factory of the stages of one query."""

    profile: Profile
    reader: QuerySession
    tokenizer: Tokenizer
    parts: Parts = msgspec.field(default_factory=Parts)
    left_s: Callable[[], float | None] = lambda: None

    def fuse(self) -> Stage:
        profile = self.profile
        share = coverage(self.reader.stats)
        weights = Alpha(profile.alpha, share) if profile.weights is None else ByLeg(profile.weights)
        if profile.merge == "flat":
            return Fuse(self.reader, self.method(), weights, self.parts.fusion_kernel)
        from dowse.query.stages.fusion_nested import FuseNested

        return FuseNested(self.reader, self.method(), weights, self.parts.fusion_kernel)

    def method(self) -> Method:
        match self.profile.fusion:
            case "z":
                return ZScore(self.profile.exponent)
            case "minmax":
                return MinMax()
            case "rrf":
                return ReciprocalRank(self.profile.rank_constant, self.profile.missing_rank)

    def hydrate(self, query: Query, steps: Iterable[Wave], *, only_shown: bool, early: bool) -> list[Hydrate]:
        """Return stages that fetch the window, or only the shown hits if no later stage can reorder or add hits.

        `early`: a stage of its own fetches the shown hits first, so that a stream can send them.
        """
        own = self.profile
        named = own.exact and (query.mentions or literals(query.text))
        fixed = only_shown and own.parents != "replace" and not named
        fixed = fixed and {step.stage.name for (step,) in steps} <= _MOVE_FEW
        if not fixed or (own.boost and CorpusBoost(own.boost_rules).matching(query.text)):
            shown = [Hydrate(self.reader, own.top_k)] if early and own.top_k < own.window else []
            return [*shown, Hydrate(self.reader, own.window, name="window" if shown else "hydrate")]
        return [Hydrate(self.reader, own.window, own.top_k, _AGING)]

    def later(self) -> Iterator[Wave]:
        """Yield the stages after hydration that are on."""
        stages = self._stages()
        order = self.profile.order if "group" in self.profile.order else (*self.profile.order, "group")
        for slot in order:
            if slot == "rerank":
                yield from self._links()
            elif (stage := stages[slot]) is not None:
                # A threshold and groups are not optional: the answer would be wrong without them. Stages other than
                # the graph take less time than a look at the clock, so they run after the deadline, too.
                yield (Step(stage, optional=slot not in ("min_score", "group"), even_late=slot != "graph"),)

    def _stages(self) -> dict[StageSlot, Stage | None]:
        own, reader = self.profile, self.reader
        half_life, weight = own.freshness_half_life_days, own.freshness_weight
        fresh = weight > 0 and half_life > 0
        cut = own.min_score > 0 or own.min_similarity is not None
        return {
            "copies": MergeCopies() if own.group == "document" else None,
            "signals": Signals(self.tokenizer) if own.signals and own.group == "none" else None,
            "group": GroupByDocument(self.tokenizer) if own.group == "document" else None,
            "graph": Graph(reader, own.graph_options) if own.graph else None,
            "replace_parents": ReplaceByParent(reader) if own.parents == "replace" else None,
            "freshness": Freshness(self.parts.now, half_life, weight, own.freshness_boost_only) if fresh else None,
            "boost": CorpusBoost(own.boost_rules, own.boost_cap) if own.boost else None,
            "min_score": Threshold(own.min_score, own.min_similarity) if cut else None,
            "mmr": self._diversify() if own.mmr else None,
            "exact": ExactNames(reader, self.tokenizer) if own.exact else None,
            "slots": GraphSlots(own.graph_options.slots) if own.graph else None,
            "attach_parents": AttachParents(reader) if own.parents == "attach" else None,
        }

    def _diversify(self) -> Stage:
        from dowse.query.stages.mmr import Diversify

        return Diversify(self.reader, self.profile.diversity)

    def _links(self) -> Iterator[Wave]:
        own = self.profile
        for link in own.rerank:
            reranker = self._reranker(link)
            if reranker is None:
                continue
            outside = link in ("cross-encoder", "llm")
            # The heuristic includes the score before it, and `score` is that score: neither is blended.
            weight = own.rerank_weight if outside else 1.0
            window = min(own.llm_window, own.window) if link == "llm" else own.window
            stage = Rerank(reranker, link, weight, window, self._time_left)
            yield (Step(stage, optional=True, even_late=not outside),)

    def _time_left(self) -> float | None:
        left_s = self.left_s()
        return self.profile.rerank_timeout_s if left_s is None else min(left_s, self.profile.rerank_timeout_s)

    def _reranker(self, link: Link) -> Reranker | None:
        own, parts = self.profile, self.parts
        if link == "heuristic":
            return HeuristicReranker(tokenizer=self.tokenizer)
        if link == "score":
            return ScoreReranker()
        reranker, llm = parts.cross_encoder, parts.rerank_llm or parts.llm
        if link == "llm" and llm is not None:
            from dowse.query.stages.rerank_llm import LLMReranker

            reranker = LLMReranker(llm, own.llm_scale, own.llm_characters, secret=parts.secret)
        elif link == "llm":
            return None
        return reranker if reranker is None or parts.caches is None else CachedReranker(reranker, parts.caches.scores)


def missing_links(profile: Profile, parts: Parts, *, asked: bool) -> tuple[Degradation, ...]:
    """Return notes about rerankers that are not configured.

    A cross-encoder is an extra: its absence is noted only if the request asks for it or it cannot be opened. A profile
    with an LLM depends on it.
    """
    notes = []
    if "cross-encoder" in profile.rerank and parts.cross_encoder is None and (asked or parts.cross_encoder_lost):
        notes.append(Degradation("cross-encoder", parts.cross_encoder_note))
    if "llm" in profile.rerank and parts.llm is None and parts.rerank_llm is None:
        notes.append(Degradation("llm", NO_LLM))
    return tuple(notes)
