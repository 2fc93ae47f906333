"""Score trace of a hit: a row for each stage, and a chart of its ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import log
from typing import Any

from msgspec import Struct

from dowse.serve.plain_text import clean_line
from dowse.types import LEGS

Row = Mapping[str, Any]
Values = dict[str, Any]  # of a template

COLUMN, LEFT, TOP, HEIGHT, FOOT = 118, 52, 12, 104, 26  # of the chart, in its own units; chosen by eye
LEG_SHIFT = 16  # between legs, so that dots of equal ranks do not overlap
GRID = (1, 3, 10, 30, 100)
_LOWEST = 200  # lower ranks, and hits that a leg did not find, are drawn here


class ChartDot(Struct, frozen=True):
    """Rank after one stage."""

    x: float
    y: float
    label: str
    leg: str = ""


def top_scores(rows: Sequence[Row]) -> dict[str, float]:
    """Return the largest value of each stage: the scale for bars of BM25, which has no upper bound."""
    found: dict[str, float] = {}
    for row in rows:
        for score in row["scores"]:
            found[score["stage"]] = max(found.get(score["stage"], 0.0), score["value"])
    return found


def score_trace(scores: Sequence[Row], top: Mapping[str, float]) -> Values:
    return {"rows": [_row(score, top) for score in scores], "chart": _chart(scores)}


def _row(score: Row, top: Mapping[str, float]) -> Values:
    stage, value = str(score["stage"]), float(score["value"])
    leg = _leg(stage)
    whole = top.get(stage, 0.0) if leg.startswith("bm25") else 1.0
    return dict(
        stage=stage,
        leg=leg,  # "" for later stages
        value=f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}",
        rank=f"#{score['rank']}" if score["rank"] else "–",
        why=clean_line(score["why"]),
        bar=round(100 * min(max(value / whole, 0.0), 1.0), 1) if whole > 0 else 0.0,  # per cent
    )


def _leg(stage: str) -> str:
    """Return the leg of a stage; legs of query variants are named dense~1."""
    name = stage.partition("~")[0]
    return name if name in LEGS else ""


def _chart(scores: Sequence[Row]) -> Values | None:
    """Draw ranks by stage, best on top; the legs share the first column and join in fusion."""
    legs = [score for score in scores if _leg(score["stage"]) and "~" not in score["stage"]]
    later = [score for score in scores if not _leg(score["stage"])]
    if not legs or not later:
        return None
    starts = [
        ChartDot(LEFT + LEG_SHIFT * at, _y(each["rank"]), _label(each), _leg(each["stage"]))
        for at, each in enumerate(legs)
    ]
    stops = [ChartDot(LEFT + COLUMN * at, _y(each["rank"]), _label(each)) for at, each in enumerate(later, start=1)]
    lines = [(start, stops[0]) for start in starts] + list(pairwise(stops))
    columns = [(LEFT, "legs"), *((dot.x, str(each["stage"])) for dot, each in zip(stops, later, strict=True))]
    return dict(
        width=LEFT + COLUMN * len(later) + LEFT,
        height=TOP + HEIGHT + FOOT,
        grid=[(_y(rank), f"#{rank}") for rank in GRID],
        columns=columns,
        dots=[*starts, *stops],
        lines=lines,
        caption="Rank after each stage: " + ", ".join(_label(each) for each in (*legs, *later)),
    )


def _label(score: Row) -> str:
    return f"{score['stage']} #{score['rank']}" if score["rank"] else f"{score['stage']} not ranked"


def _y(rank: int) -> float:
    """Place a rank on a logarithmic scale: 1 to 3 is as far as 10 to 30."""
    share = 1.0 if rank <= 0 else min(log(rank) / log(_LOWEST), 1.0)
    return round(TOP + HEIGHT * share, 1)
