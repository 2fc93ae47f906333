"""What a question's words and a hit's age say: hits go in; adjusted, in a new order or fewer, they come out."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isnan

import msgspec

from dowse.query.stages.sort import ranked_hits
from dowse.query.stages.state import Fused, Hit, Slate
from dowse.types import Chunk

SECONDS_PER_DAY = 86_400
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Freshness:
    """Conversations age: (1 − w)·s + w·2^(−age/half-life); a moment in the future counts as now (S0-21, C-14).

    The half-life is exact: ln 2, not .693. With `boost_only` nothing sinks: s + w·decay·(1 − s).
    """

    now: Callable[[], datetime]
    half_life_days: float = 90.0  # S0-01
    weight: float = 0.1  # S0-01
    boost_only: bool = False
    family: str = "CONVO_"
    name: str = "freshness"

    def __call__(self, slate: Slate, /) -> Slate:
        if not any(self.ages(hit.found) for hit in slate.hits):
            return slate
        now = self.now()
        return slate.changed(hits=ranked_hits(self.name, (self._row(hit, now) for hit in slate.hits)))

    def ages(self, chunk: Chunk) -> bool:
        return chunk.timestamp is not None and chunk.corpus_type.startswith(self.family)

    def decay(self, moment: datetime, now: datetime) -> float:
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)  # B-07
        age_days = max((now - moment).total_seconds() / SECONDS_PER_DAY, 0.0)
        return float(2 ** (-age_days / self.half_life_days))

    def _row(self, hit: Hit, now: datetime) -> tuple[Hit, float, str]:
        chunk, value = hit.found, hit.value
        if chunk.timestamp is None or not self.ages(chunk):
            return hit, value, "does not age"
        decay = self.decay(chunk.timestamp, now)
        if self.boost_only:
            return (
                hit,
                value + self.weight * decay * (1 - value),
                f"+ {self.weight:.2g}·{decay:.2f} of what is left to 1",
            )
        fresh = (1 - self.weight) * value + self.weight * decay
        return hit, fresh, f"{1 - self.weight:.2g}·{value:.2f} + {self.weight:.2g}·{decay:.2f} for its age"


@dataclass(frozen=True)
class BoostRule:
    """Words in a question that speak for kinds of writing. A word or phrase matches whole words only (B-13)."""

    words: tuple[str, ...]
    corpus_types: tuple[str, ...]
    factor: float


# S0-22 with C-17: inflections are listed, because a rule that guesses them finds "podcast" for "pod".
BOOST_RULES = (
    BoostRule(
        (
            "deploy", "deploys", "deployed", "deploying", "deployment", "deployments", "k8s", "kubernetes",
            "pod", "pods", "container", "containers", "helm",
        ),
        ("CODE_DEPLOY", "DOC_RUNBOOK"),
        1.3,
    ),
    BoostRule(
        (
            "incident", "incidents", "broke", "broken", "down", "outage", "outages",
            "alert", "alerts", "alerted", "alerting",
        ),
        ("CONVO_SLACK", "DOC_RUNBOOK"),
        1.3,
    ),
    BoostRule(
        ("how to", "steps", "procedure", "procedures", "guide", "guides"), ("DOC_RUNBOOK", "DOC_README"), 1.2,
    ),
)  # fmt: skip


class CorpusBoost(msgspec.Struct, frozen=True):
    """s·(product of the factors of all rules that match), at most `cap`; None stacks without end, as S0 did (B-14)."""

    rules: tuple[BoostRule, ...] = BOOST_RULES
    cap: float | None = 1.5  # C-15
    name: str = "boost"

    def __call__(self, slate: Slate, /) -> Slate:
        matching = self.matching(slate.query.text)
        if not matching:
            return slate
        return slate.changed(hits=ranked_hits(self.name, (self._row(hit, matching) for hit in slate.hits)))

    def matching(self, text: str) -> tuple[tuple[BoostRule, str], ...]:
        """The rules that a question sets off, with the word that did."""
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


@dataclass(frozen=True)
class Threshold:
    """Drops hits below a value, and hits that only their vector speaks for when that speaks too softly (C-30)."""

    min_score: float = 0.0
    min_similarity: float | None = None
    name: str = "min_score"

    def __call__(self, slate: Slate, /) -> Slate:
        kept = tuple(
            hit for hit in slate.hits if hit.value >= self.min_score and not self._too_unlike(hit, slate.fused)
        )
        return slate.changed(hits=kept)

    def _too_unlike(self, hit: Hit, fused: Fused | None) -> bool:
        if self.min_similarity is None or fused is None or hit.row is None:
            return False
        cosines = [float(column.scores[hit.row]) for column in fused.columns if column.leg == "dense"]
        words = any(float(column.scores[hit.row]) > 0 for column in fused.columns if column.leg != "dense")
        known = [each for each in cosines if not isnan(each)]
        return not words and bool(known) and max(known) < self.min_similarity
