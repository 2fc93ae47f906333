"""Ablation: the effect of each part of the search, with its interval and CPU time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import msgspec

from dowse.evaluate.metrics import MAIN, Interval, difference
from dowse.evaluate.run import EvalRun, QueryRunner, SearchSetting, mean_metrics
from dowse.ports import Reporter
from dowse.types import LEGS, Leg

LABELS: dict[Leg, str] = {"dense": "dense", "bm25_code": "code", "bm25_nlp": "prose"}
EQUAL: tuple[tuple[Leg, float], ...] = tuple((leg, 1.0) for leg in LEGS)
Change = tuple[tuple[str, Any], ...]
STAGES: tuple[tuple[str, Change, Change], ...] = (
    ("without neighbour smoothing", (), (("hubness", 0.0), ("smoothing", 0.0))),
    ("without corpus boost", (("boost", False),), ()),
    ("without freshness", (("freshness_weight", 0.0),), ()),
    ("without exact names", (), (("exact", False),)),
    ("without metadata answers", (), (("metadata", False),)),
    ("without reranking", (("rerank", False),), ()),
    ("with heuristic reranking", (("rerank", "heuristic"),), ()),
    ("with MMR", (("mmr", True),), ()),
)
"""Stages after fusion: changes in the request and in the profile that switch them. A stage that is off or not
configured changes nothing."""


class AblationRow(msgspec.Struct, frozen=True, eq=False):
    """Result of one setting over all collections, compared with the first setting."""

    setting: SearchSetting
    runs: tuple[EvalRun, ...]  # in the order of the collections
    against: Interval | None  # this minus the first; None for the first itself

    @property
    def mean(self) -> float:
        return mean_metrics(self.runs)[MAIN]

    @property
    def cpu_ms_per_query(self) -> float:
        return sum(run.cpu_ms_per_query for run in self.runs) / len(self.runs)


def legs_alone(base: SearchSetting) -> list[SearchSetting]:
    plain = replace(base.request, alpha=None, weights=None)
    return [SearchSetting(LABELS[leg], replace(plain, legs=(leg,)), base.knobs) for leg in LEGS]


def settings(base: SearchSetting) -> list[SearchSetting]:
    """List the base setting, then legs alone and in pairs, other fusions, and stages switched."""
    plain = replace(base.request, alpha=None, weights=None)
    pairs = [(" + ".join(LABELS[leg] for leg in pair), replace(plain, legs=pair)) for pair in combinations(LEGS, 2)]
    votes = replace(plain, fusion="rrf", k=60)
    fusions = [
        ("rrf 60, three equal legs", replace(votes, weights=EQUAL)),
        ("rrf 60, dense + prose", replace(votes, legs=("dense", "bm25_nlp"), alpha=0.5)),
        ("minmax", replace(plain, fusion="minmax")),
    ]
    return [
        base,
        *legs_alone(base),
        *(SearchSetting(name, asked, base.knobs) for name, asked in (*pairs, *fusions)),
        *(
            SearchSetting(name, replace(base.request, **dict(asked)), base.knobs + knobs)
            for name, asked, knobs in STAGES
        ),
    ]


def ablate(
    runners: Sequence[QueryRunner], tried: Sequence[SearchSetting], report: Reporter | None = None
) -> list[AblationRow]:
    """Run all settings; the first is the one that others are compared with."""
    runs = [tuple(runner.run(each, report) for runner in runners) for each in tried]
    compared = [run.figures() for run in runs[0]]
    rows = [AblationRow(tried[0], runs[0], None)]
    for setting, own in zip(tried[1:], runs[1:], strict=True):
        rows.append(AblationRow(setting, own, difference([run.figures() for run in own], compared)))
    return rows
