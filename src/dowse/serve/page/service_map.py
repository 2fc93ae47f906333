"""Services and their edges enter, as the wire format has them; places and curves of a map leave.

Callers stand left of what they call, as far as circles allow; within a column, each stands near those it talks to.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import quote

from dowse.serve.plain_text import clean_line

Row = Mapping[str, Any]
Point = tuple[float, float]

WIDTH, HEIGHT = 156, 38  # of a box; chosen by eye, as the gaps
GAP_X, GAP_Y, MARGIN = 78, 20, 16
NAME_CHARS = 20  # as many fit a box
TYPES = ("http", "grpc", "queue", "db")  # that have a colour; others are drawn as unknown
_HEAD = 7  # of an arrow
LANE = 10  # height of what a long arrow takes in the columns that it crosses
_SWEEPS = 8  # of the barycentre method (Sugiyama 1981); a few settle small graphs


@dataclass(frozen=True)
class Lane:
    """Room for a long arrow in a column that it crosses."""

    source: str
    target: str
    column: int


@dataclass(frozen=True)
class Box:
    name: str
    label: str
    href: str
    x: float
    y: float
    kind: str  # service or external
    role: str  # chosen, caller (in the blast radius), called (needed by it) or ""
    about: str


@dataclass(frozen=True)
class Arrow:
    source: str
    target: str
    type: str
    curve: str
    is_lit: bool
    about: str


@dataclass(frozen=True)
class Map:
    width: float
    height: float
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    types: tuple[str, ...]
    box_width: int = WIDTH
    box_height: int = HEIGHT


def service_map(row: Row, chosen: Row | None = None) -> Map:
    """`chosen` is what a backend tells of one service: its blast radius and what it needs are lit."""
    places, lanes = _places(row["services"], row["edges"])
    name = chosen["service"]["name"] if chosen else ""
    callers, called = (set(chosen["blast_radius"]), set(chosen["downstream"])) if chosen else (set(), set())
    boxes = [_box(each, places, name, callers, called) for each in row["services"]]
    arrows = [_arrow(each, _points(each, places, lanes), name, callers, called) for each in row["edges"]]
    return Map(
        width=max((box.x for box in boxes), default=0) + WIDTH + MARGIN,
        height=max([HEIGHT + box.y for box in boxes] + [LANE + y for _, y in lanes.values()], default=0) + MARGIN,
        boxes=tuple(boxes),
        arrows=tuple(sorted(arrows, key=lambda arrow: arrow.is_lit)),  # lit ones are drawn over the others
        types=tuple(sorted({arrow.type for arrow in arrows})),
    )


def service_address(name: str) -> str:
    return f"/services/{quote(name, safe='', errors='replace')}"


def _box(row: Row, places: Mapping[str, tuple[float, float]], chosen: str, callers: Any, called: Any) -> Box:
    name = row["name"]
    x, y = places[name]
    role = "chosen" if name == chosen else "caller" if name in callers else "called" if name in called else ""
    facts = (row["language"], row["namespace"], *(f"port {each}" for each in row["ports"]))
    label = clean_line(name)
    return Box(
        name=label,
        label=label if len(label) <= NAME_CHARS else label[: NAME_CHARS - 1] + "…",
        href=service_address(name),
        x=x,
        y=y,
        kind="external" if row["external"] else "service",
        role=role,
        about=clean_line(", ".join(each for each in (name, *facts) if each)),
    )


def _arrow(row: Row, points: Sequence[Point], chosen: str, callers: Collection[str], called: Collection[str]) -> Arrow:
    source, target = row["source"], row["target"]
    upward = source in callers and (target in callers or target == chosen)
    downward = target in called and (source in called or source == chosen)
    return Arrow(
        source=clean_line(source),
        target=clean_line(target),
        type=row["type"] if row["type"] in TYPES else "unknown",
        curve=_curve(points),
        is_lit=upward or downward,
        about=clean_line(row["description"]) or f"{clean_line(source)} → {clean_line(target)}",
    )


def _points(row: Row, places: Mapping[str, Point], lanes: Mapping[Lane, Point]) -> tuple[Point, ...]:
    """From the side of one box to the side of the other, through the lanes between them."""
    (x1, y1), (x2, y2) = places[row["source"]], places[row["target"]]
    y1, y2 = y1 + HEIGHT / 2, y2 + HEIGHT / 2
    if x2 <= x1:  # backwards, or within a column: around the sides
        return (x1, y1), (x2 + WIDTH + _HEAD, y2)
    ends = (row["source"], row["target"])
    between = sorted(point for lane, point in lanes.items() if (lane.source, lane.target) == ends)
    through = [side for x, y in between for side in ((x, y), (x + WIDTH, y))]
    return (x1 + WIDTH, y1), *through, (x2 - _HEAD, y2)


def _curve(points: Sequence[Point]) -> str:
    """Level where it leaves and where it arrives, and across the columns between."""
    drawn = f"M{points[0][0]:g} {points[0][1]:g}"
    for (x1, y1), (x2, y2) in pairwise(points):
        bend = (x2 - x1) / 2 if x2 > x1 else -60
        drawn += f" C{x1 + bend:g} {y1:g} {x2 - bend:g} {y2:g} {x2:g} {y2:g}"
    return drawn


def _places(services: Sequence[Row], edges: Sequence[Row]) -> tuple[dict[str, Point], dict[Lane, Point]]:
    ties = sorted({(each["source"], each["target"]) for each in edges if each["source"] != each["target"]})
    levels = _levels([each["name"] for each in services], ties)
    at = {name: x for x, level in enumerate(levels) for name in level}
    columns: list[list[str | Lane]] = [list(level) for level in levels]
    steps: list[tuple[str | Lane, str | Lane]] = []
    for source, target in ties:
        lanes = [Lane(source, target, x) for x in range(at[source] + 1, at[target])]
        for lane in lanes:
            columns[lane.column].append(lane)
        steps += pairwise((source, *lanes, target))
    found: dict[str | Lane, Point] = {}
    columns = _settled(columns, steps)
    tallest = max((_height(column) for column in columns), default=0.0)
    for x, column in enumerate(columns):
        y = MARGIN + (tallest - _height(column)) / 2
        for each in column:
            found[each] = (MARGIN + x * (WIDTH + GAP_X), y if isinstance(each, str) else y + LANE / 2)
            y += (HEIGHT if isinstance(each, str) else LANE) + GAP_Y
    boxes = {each: point for each, point in found.items() if isinstance(each, str)}
    return boxes, {each: point for each, point in found.items() if not isinstance(each, str)}


def _height(column: Sequence[str | Lane]) -> float:
    return sum((HEIGHT if isinstance(each, str) else LANE) + GAP_Y for each in column) - GAP_Y


def _levels(names: Sequence[str], ties: Sequence[tuple[str, str]]) -> list[list[str]]:
    """By the longest way from a caller that nobody calls; ties that close a circle do not count."""
    calls: dict[str, list[str]] = {name: [] for name in sorted(names)}
    for source, target in ties:
        calls[source].append(target)
    is_called = {target for _, target in ties}
    order = _callers_first(sorted(calls, key=lambda name: (name in is_called, name)), calls)
    at = {name: number for number, name in enumerate(order)}
    depth = dict.fromkeys(order, 0)
    for name in order:
        for target in calls[name]:
            if at[target] > at[name]:
                depth[target] = max(depth[target], depth[name] + 1)
    return [[name for name in calls if depth[name] == each] for each in sorted(set(depth.values()))]


def _callers_first(starts: Sequence[str], calls: Mapping[str, Sequence[str]]) -> list[str]:
    """Every name once; a caller before whom it calls, but where that is a circle."""
    done: list[str] = []
    seen: set[str] = set()
    for start in starts:
        path = [] if start in seen else [(start, iter(calls[start]))]
        seen.add(start)
        while path:
            name, rest = path[-1]
            following = next((each for each in rest if each not in seen), None)
            if following is None:
                done.append(name)
                path.pop()
            else:
                seen.add(following)
                path.append((following, iter(calls[following])))
    return done[::-1]


def _settled(columns: list[list[str | Lane]], steps: Sequence[tuple[str | Lane, str | Lane]]) -> list[list[str | Lane]]:
    """Each near the middle of those it is tied to, so that fewer lines cross. Equals keep their order."""
    near: dict[str | Lane, list[str | Lane]] = {each: [] for column in columns for each in column}
    for source, target in steps:
        near[source].append(target)
        near[target].append(source)
    for _ in range(_SWEEPS):
        at = {each: y - (len(column) - 1) / 2 for column in columns for y, each in enumerate(column)}
        middle = {
            each: sum(at[other] for other in near[each]) / len(near[each]) if near[each] else at[each] for each in at
        }
        columns = [sorted(column, key=lambda each: middle[each]) for column in columns]
    return columns
