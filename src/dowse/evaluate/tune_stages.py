"""Collections go in; advice comes out on the stages after fusion: rerankers, boosts, freshness, exact names.

Unlike the knobs of the fusion these cannot be tried on candidates that were kept: every question is asked anew for each
of them, by the product itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dowse.evaluate.run import Asker, Setting
from dowse.evaluate.tune import Advice, settled
from dowse.ports import Reporter
from dowse.query.plan.profiles import Profile
from dowse.query.stages.freshness_and_boost import BoostRule
from dowse.types import QueryRequest

HALF, TWICE = 0.5, 2.0  # of what a boost adds; chosen


def ways(profile: Profile, *, cross_encoder: bool) -> list[Setting]:
    """The profile as it is, then with one stage turned at a time. Only knobs that a profile can keep."""
    asked = QueryRequest("", profile=profile.name)
    links = [("cross-encoder",), ("heuristic", "cross-encoder")] if cross_encoder else []
    chains = [
        chain for chain in ((), ("heuristic",), *links) if chain != _running(profile, cross_encoder=cross_encoder)
    ]
    turned: list[tuple[str, tuple[tuple[str, object], ...]]] = [
        *((f"rerank by {', then '.join(chain) or 'nothing'}", (("rerank", chain),)) for chain in chains),
        ("boosts off", (("boost", False),)),
        ("boosts halved", (("boost_rules", scaled(profile.boost_rules, HALF)),)),
        ("boosts doubled", (("boost_rules", scaled(profile.boost_rules, TWICE)), *_cap(profile))),
        ("freshness off", (("freshness_weight", 0.0),)),
        ("exact names off" if profile.exact else "exact names on", (("exact", not profile.exact),)),
    ]
    return [Setting("as it is", asked), *(Setting(name, asked, knobs) for name, knobs in turned)]


def scaled(rules: Sequence[BoostRule], by: float) -> tuple[BoostRule, ...]:
    """1.3 halved is 1.15: what a factor has above 1 is scaled."""
    return tuple(replace(rule, factor=1 + by * (rule.factor - 1)) for rule in rules)


def advise_stages(askers: Sequence[Asker], profile: Profile, report: Reporter | None = None) -> Advice[Setting]:
    tried = ways(profile, cross_encoder=askers[0].parts.cross_encoder is not None)
    table = {
        asker.collection.dataset.name: np.array([asker.run(way, report).figures() for way in tried]) for asker in askers
    }
    questions = {
        asker.collection.dataset.name: [each.id for each in asker.collection.dataset.questions] for asker in askers
    }
    return settled(table, questions, tried)


def _running(profile: Profile, *, cross_encoder: bool) -> tuple[str, ...]:
    """The links of the chain that are there to run."""
    return tuple(link for link in profile.rerank if link != "cross-encoder" or cross_encoder)


def _cap(profile: Profile) -> tuple[tuple[str, float], ...]:
    """The boosts' common cap, as far above 1 as they are."""
    return () if profile.boost_cap is None else (("boost_cap", 1 + TWICE * (profile.boost_cap - 1)),)
