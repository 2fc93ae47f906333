"""Adjustments of hits: freshness of conversations, boosts by corpus type, and thresholds."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from math import isnan
from typing import Annotated

import msgspec

from dowse.query.stages.sort import ranked_hits
from dowse.query.stages.state import Fused, Hit, QueryState
from dowse.types import Chunk, CorpusType

SECONDS_PER_DAY = 86_400
FAMILY = "CONVO_"  # corpus types that age
_WORD = re.compile(r"[^\W_]+")


class Freshness(msgspec.Struct, frozen=True):
    """Stage that ages conversations: (1 − w)·s + w·2^(−age/half-life); a future timestamp counts as now.

    With `boost_only` no hit sinks: s + w·decay·(1 − s).
    """

    now: Callable[[], datetime]
    half_life_days: float = 90.0
    weight: float = 0.1
    boost_only: bool = False
    name: str = "freshness"

    def __call__(self, state: QueryState, /) -> QueryState:
        if not any(self.ages(hit.found) for hit in state.hits):
            return state
        now = self.now()
        return state.changed(hits=ranked_hits(self.name, (self._row(hit, now) for hit in state.hits)))

    def ages(self, chunk: Chunk) -> bool:
        return chunk.timestamp is not None and chunk.corpus_type.startswith(FAMILY)

    def decay(self, moment: datetime, now: datetime) -> float:
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)  # naive times count as UTC
        age_days = max((now - moment).total_seconds() / SECONDS_PER_DAY, 0.0)
        return float(2 ** (-age_days / self.half_life_days))

    def _row(self, hit: Hit, now: datetime) -> tuple[Hit, float, str]:
        chunk, value = hit.found, hit.value
        if chunk.timestamp is None or not self.ages(chunk):
            return hit, value, "no decay for this kind of document"
        decay = self.decay(chunk.timestamp, now)
        if self.boost_only:
            why = f"+ {self.weight:.2g}·{decay:.2f} of the distance to 1"
            return hit, value + self.weight * decay * (1 - value), why
        fresh = (1 - self.weight) * value + self.weight * decay
        return hit, fresh, f"{1 - self.weight:.2g}·{value:.2f} + {self.weight:.2g}·{decay:.2f} for its age"


class BoostRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Words in a query that boost corpus types. A word or phrase matches whole words only."""

    words: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    corpus_types: tuple[CorpusType, ...]
    factor: Annotated[float, msgspec.Meta(ge=0)]


# Inflections are listed: a rule that guesses them finds "podcast" for "pod".
BOOST_RULES = (
    BoostRule(
        (
            "deploy", "deploys", "deployed", "deploying", "deployment", "deployments", "k8s", "kubernetes",
            "pod", "pods", "container", "containers", "helm",
        ),
        (CorpusType.CODE_DEPLOY, CorpusType.DOC_RUNBOOK),
        1.3,
    ),
    BoostRule(
        (
            "incident", "incidents", "broke", "broken", "down", "outage", "outages",
            "alert", "alerts", "alerted", "alerting",
        ),
        (CorpusType.CONVO_SLACK, CorpusType.DOC_RUNBOOK),
        1.3,
    ),
    BoostRule(
        ("how to", "steps", "procedure", "procedures", "guide", "guides"),
        (CorpusType.DOC_RUNBOOK, CorpusType.DOC_README),
        1.2,
    ),
)  # fmt: skip


class CorpusBoost(msgspec.Struct, frozen=True):
    """Stage that multiplies hits by the factors of all matching rules, at most by `cap`; None: without a limit."""

    rules: tuple[BoostRule, ...] = BOOST_RULES
    cap: float | None = 1.5
    name: str = "boost"

    def __call__(self, state: QueryState, /) -> QueryState:
        matching = self.matching(state.query.text)
        if not matching:
            return state
        return state.changed(hits=ranked_hits(self.name, (self._row(hit, matching) for hit in state.hits)))

    def matching(self, text: str) -> tuple[tuple[BoostRule, str], ...]:
        """Return the rules that match a query, each with the matching word."""
        padded = f" {' '.join(_WORD.findall(text.lower()))} "
        found = ((rule, next((word for word in rule.words if f" {word} " in padded), None)) for rule in self.rules)
        return tuple((rule, word) for rule, word in found if word is not None)

    def factor(self, corpus_type: str, rules: Sequence[BoostRule]) -> float:
        product = 1.0
        for rule in rules:
            if corpus_type in rule.corpus_types:
                product *= rule.factor
        return product if self.cap is None else min(product, self.cap)

    def _row(self, hit: Hit, matching: Sequence[tuple[BoostRule, str]]) -> tuple[Hit, float, str]:
        kind = hit.chunk.corpus_type
        factor = self.factor(kind, [rule for rule, _ in matching])
        words = ", ".join(repr(word) for rule, word in matching if kind in rule.corpus_types)
        return hit, hit.value * factor, f"×{factor:.3g} {kind} for {words}" if words else f"×1 {kind}"


class Threshold(msgspec.Struct, frozen=True):
    """Stage that drops hits below a value, and hits without a query word below a cosine."""

    min_score: float = 0.0
    min_similarity: float | None = None
    name: str = "min_score"

    def __call__(self, state: QueryState, /) -> QueryState:
        kept = tuple(
            hit for hit in state.hits if hit.value >= self.min_score and not self._too_unlike(hit, state.fused)
        )
        return state.changed(hits=kept)

    def _too_unlike(self, hit: Hit, fused: Fused | None) -> bool:
        if self.min_similarity is None or fused is None or hit.row is None:
            return False
        cosines = [float(column.scores[hit.row]) for column in fused.columns if column.leg == "dense"]
        words = any(float(column.scores[hit.row]) > 0 for column in fused.columns if column.leg != "dense")
        known = [each for each in cosines if not isnan(each)]
        return not words and bool(known) and max(known) < self.min_similarity
