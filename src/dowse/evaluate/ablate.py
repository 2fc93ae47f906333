"""Collections go in; what each part of the search adds comes out, with its interval and its cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from dowse.evaluate.bootstrap import Interval, difference, interval
from dowse.evaluate.metrics import MAIN
from dowse.evaluate.run import Asker, Run, Setting, mean_metrics
from dowse.ports import Reporter
from dowse.types import LEGS, Leg

LABELS: dict[Leg, str] = {"dense": "dense", "bm25_code": "code", "bm25_nlp": "prose"}
EQUAL: tuple[tuple[Leg, float], ...] = tuple((leg, 1.0) for leg in LEGS)
Change = tuple[tuple[str, Any], ...]
STAGES: tuple[tuple[str, Change, Change], ...] = (
    ("without company", (), (("crowd", 0.0), ("pull", 0.0))),
    ("without corpus boost", (("boost", False),), ()),
    ("without freshness", (("freshness_weight", 0.0),), ()),
    ("without exact names", (), (("exact", False),)),
    ("without metadata answers", (), (("metadata", False),)),
    ("without reranking", (("rerank", False),), ()),
    ("with heuristic reranking", (("rerank", "heuristic"),), ()),
    ("with MMR", (("mmr", True),), ()),
)
"""Stages after fusion, turned the other way: what changes in the request, and in the profile. One that is off or not
configured anyway changes nothing."""


@dataclass(frozen=True, eq=False)
class Row:
    """One way of asking, over all collections, beside the one it is compared with."""

    setting: Setting
    runs: tuple[Run, ...]  # in the order of the collections
    against: Interval | None  # this minus the compared; None for the compared itself

    @property
    def mean(self) -> float:
        return mean_metrics(self.runs)[MAIN]

    @property
    def own(self) -> Interval:
        return interval([run.figures() for run in self.runs])

    @property
    def cpu_ms_per_query(self) -> float:
        return sum(run.cpu_ms_per_query for run in self.runs) / len(self.runs)


def legs_alone(base: Setting) -> list[Setting]:
    plain = replace(base.request, alpha=None, weights=None)
    return [Setting(LABELS[leg], replace(plain, legs=(leg,)), base.knobs) for leg in LEGS]


def settings(base: Setting) -> list[Setting]:
    """The compared way first, then what is left of it when parts are taken away, then other fusions."""
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
        *(Setting(name, asked, base.knobs) for name, asked in (*pairs, *fusions)),
        *(Setting(name, replace(base.request, **dict(asked)), base.knobs + knobs) for name, asked, knobs in STAGES),
    ]


def ablate(askers: Sequence[Asker], ways: Sequence[Setting], report: Reporter | None = None) -> list[Row]:
    """The first way is what the others are compared with."""
    runs = [tuple(asker.run(way, report) for asker in askers) for way in ways]
    compared = [run.figures() for run in runs[0]]
    rows = [Row(ways[0], runs[0], None)]
    for way, own in zip(ways[1:], runs[1:], strict=True):
        rows.append(Row(way, own, difference([run.figures() for run in own], compared)))
    return rows
