"""Score history of a hit: a score and a sentence for each leg and for fusion."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import isnan

from dowse.query.stages.fusion import ReciprocalRank, ZScore
from dowse.query.stages.fusion_nested import CrossQuery
from dowse.query.stages.state import Column, Fused
from dowse.types import Leg, Score

LABELS: Mapping[Leg, str] = {"dense": "dense", "bm25_code": "code", "bm25_nlp": "prose"}
Matched = Mapping[Leg, tuple[str, ...]]


class Historian:
    """Histories of the first `count` chunks of a fusion: scores of each leg (of a variant: dense~1) and of fusion."""

    def __init__(self, fused: Fused, count: int) -> None:
        self._fused = fused
        self._count = count
        self._values: list[float] = fused.values[:count].tolist()

    @cached_property
    def _legs(self) -> list[_LegHistory]:
        return [_LegHistory(column, self._count) for column in self._fused.columns]

    @cached_property
    def _shares(self) -> list[float]:
        total = sum(column.weight for column in self._fused.columns)
        return [column.weight / total if total else 0.0 for column in self._fused.columns]

    def __call__(self, row: int, matched: Matched) -> tuple[Score, ...]:
        legs = [leg(row, () if leg.column.variant else matched.get(leg.column.leg, ())) for leg in self._legs]
        return (*legs, Score("fuse", self._values[row], row + 1, self._fusion(row)))

    def _fusion(self, row: int) -> str:
        fused, method = self._fused, self._fused.method
        if isinstance(method, CrossQuery):
            ranks = (int(each[row]) or method.missing_rank for each in fused.queries)
            votes = " + ".join(f"1/({method.rank_constant}+{rank})" for rank in ranks)
            return f"mean over {len(fused.queries)} queries: ({votes})/{len(fused.queries)}"
        if isinstance(method, ReciprocalRank):
            ranked = ((column, int(column.ranks[row]) or method.missing_rank) for column in fused.columns)
            return "rrf: " + " + ".join(
                f"{'0' if rank is None else f'{column.weight:.3g}/({method.rank_constant}+{rank})'} {_label(column)}"
                for column, rank in ranked
            )
        terms = (
            f"{share:.3g}·{leg.parts[row] / share if share else 0.0:.2f} {leg.label}"
            for share, leg in zip(self._shares, self._legs, strict=True)
        )
        formula = f"z^{method.exponent:g}" if isinstance(method, ZScore) else method.name
        smoothing = "" if fused.smoothing is None else f" + {fused.smoothing[row]:.2f} neighbours"
        return f"{formula}: " + " + ".join(terms) + smoothing


class _LegHistory:
    """Scores of one leg, in words."""

    def __init__(self, column: Column, count: int) -> None:
        self.column = column
        self.label = _label(column)
        self.parts: list[float] = column.parts[:count].tolist()
        self.scores: list[float] = column.scores[:count].tolist()
        self._name = f"{column.leg}~{column.variant}" if column.variant else column.leg
        self._ranks: list[int] = column.ranks[:count].tolist()

    def __call__(self, row: int, matched: tuple[str, ...]) -> Score:
        value, rank, found = self.scores[row], self._ranks[row], self.column.found
        if isnan(value):
            return Score(self._name, 0.0, 0, "no vector yet, so it counts neither for nor against")
        place = f"rank {rank} of {found}" if rank else f"not among the leg's best {found}"
        if self.column.leg == "dense":
            return Score(self._name, value, rank, f"cosine {value:.2f}, {place}")
        if self.column.leg not in LABELS:
            return Score(self._name, value, rank, f"{value:.2f}, {place}")
        if value == 0:
            return Score(self._name, value, rank, "no query term occurs")
        terms = f" for {', '.join(matched)}" if matched else ""
        return Score(self._name, value, rank, f"BM25 {value:.2f}{terms}, {place}")


def _label(column: Column) -> str:
    label = LABELS.get(column.leg, column.leg)
    return f"{label}~{column.variant}" if column.variant else label
