"""A hit's scores enter; its way through the stages leaves: a row with a bar for each stage, and the ranks as a line to
draw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log
from typing import Any

from dowse.serve.plain_text import clean_line
from dowse.types import LEGS

Row = Mapping[str, Any]

COLUMN, LEFT, TOP, HEIGHT, FOOT = 118, 52, 12, 104, 26  # of the drawing, in its own units; chosen by eye
ASIDE = 16  # from one leg to the next, so that equal ranks do not hide each other
GRID = (1, 3, 10, 30, 100)
_LOWEST = 200  # a rank beyond it is drawn there, with those that a leg did not find below


@dataclass(frozen=True)
class Step:
    """One stage's word on the hit."""

    stage: str
    leg: str  # dense, bm25_code or bm25_nlp; "" for the stages after them
    value: str
    rank: str
    why: str
    bar: float  # 0 to 100


@dataclass(frozen=True)
class Dot:
    x: float
    y: float
    label: str
    leg: str = ""


@dataclass(frozen=True)
class Drawing:
    """Ranks, best on top: the legs stand in the first column and run together in fusion."""

    width: float
    height: float
    grid: tuple[tuple[float, str], ...]
    columns: tuple[tuple[float, str], ...]
    dots: tuple[Dot, ...]
    lines: tuple[tuple[Dot, Dot], ...]
    told: str


@dataclass(frozen=True)
class Way:
    steps: tuple[Step, ...]
    drawing: Drawing | None


def tops(rows: Sequence[Row]) -> dict[str, float]:
    """By stage, the largest value among the hits: what a bar of BM25, which has no upper end, is measured by."""
    found: dict[str, float] = {}
    for row in rows:
        for score in row["scores"]:
            found[score["stage"]] = max(found.get(score["stage"], 0.0), score["value"])
    return found


def way(scores: Sequence[Row], top: Mapping[str, float]) -> Way:
    steps = tuple(_step(score, top) for score in scores)
    return Way(steps, _drawing(scores))


def _step(score: Row, top: Mapping[str, float]) -> Step:
    stage, value = str(score["stage"]), float(score["value"])
    leg = _leg(stage)
    whole = top.get(stage, 0.0) if leg.startswith("bm25") else 1.0
    return Step(
        stage=stage,
        leg=leg,
        value=f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}",
        rank=f"#{score['rank']}" if score["rank"] else "–",
        why=clean_line(score["why"]),
        bar=round(100 * min(max(value / whole, 0.0), 1.0), 1) if whole > 0 else 0.0,
    )


def _leg(stage: str) -> str:
    """A variant's leg is named after its leg: dense~1."""
    name = stage.partition("~")[0]
    return name if name in LEGS else ""


def _drawing(scores: Sequence[Row]) -> Drawing | None:
    legs = [score for score in scores if _leg(score["stage"]) and "~" not in score["stage"]]
    later = [score for score in scores if not _leg(score["stage"])]
    if not legs or not later:
        return None
    starts = [
        Dot(LEFT + ASIDE * at, _y(each["rank"]), _said(each), _leg(each["stage"])) for at, each in enumerate(legs)
    ]
    stops = [Dot(LEFT + COLUMN * at, _y(each["rank"]), _said(each)) for at, each in enumerate(later, start=1)]
    lines = [(start, stops[0]) for start in starts] + list(pairwise(stops))
    columns = [(LEFT, "legs"), *((dot.x, str(each["stage"])) for dot, each in zip(stops, later, strict=True))]
    return Drawing(
        width=LEFT + COLUMN * len(later) + LEFT,
        height=TOP + HEIGHT + FOOT,
        grid=tuple((_y(rank), f"#{rank}") for rank in GRID),
        columns=tuple(columns),
        dots=(*starts, *stops),
        lines=tuple(lines),
        told="Rank after each stage: " + ", ".join(_said(each) for each in (*legs, *later)),
    )


def _said(score: Row) -> str:
    return f"{score['stage']} #{score['rank']}" if score["rank"] else f"{score['stage']} not ranked"


def _y(rank: int) -> float:
    """Ranks on a logarithmic scale: from 1 to 3 is as far as from 10 to 30."""
    share = 1.0 if rank <= 0 else min(log(rank) / log(_LOWEST), 1.0)
    return round(TOP + HEIGHT * share, 1)
