"""Service map: layered layout, and boxes and arrows with links, roles and tooltips.

Callers are left of the services they call, except in cycles. Within a column, the barycentre method puts each service
near its neighbours. The web page and the SVG export of `dowse services` draw it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any
from urllib.parse import quote

from msgspec import Struct

from dowse.serve.plain_text import clean_line

Row = Mapping[str, Any]
TYPES = ("http", "grpc", "queue", "db")  # types with a colour of their own
Point = tuple[float, float]
Call = tuple[str, str]  # caller, called

WIDTH, HEIGHT = 156, 38  # of a box; chosen by eye, as the gaps
GAP_X, GAP_Y, MARGIN = 78, 20, 16
NAME_CHARS = 20  # fit into a box
_ARROW_HEAD = 7
_LANE_HEIGHT = 10  # of a long arrow in the columns that it crosses
_SWEEPS = 8  # of the barycentre method (Sugiyama 1981); a few suffice for small graphs


class ServiceBox(Struct, frozen=True):
    """Service on the map."""

    name: str
    label: str
    href: str
    x: float
    y: float
    kind: str  # service or external
    role: str  # chosen, caller (depends on the chosen one), called (the chosen one depends on it) or ""
    about: str


class CallArrow(Struct, frozen=True):
    """Call between two services."""

    source: str
    target: str
    type: str
    curve: str
    is_lit: bool
    about: str


class ServiceMap(Struct, frozen=True):
    """Values of the template services.html."""

    width: float
    height: float
    boxes: tuple[ServiceBox, ...]
    arrows: tuple[CallArrow, ...]
    types: tuple[str, ...]
    box_width: int = WIDTH
    box_height: int = HEIGHT


def service_map(row: Row, chosen: Row | None = None) -> ServiceMap:
    """Make the map; the dependents and dependencies of the chosen service are highlighted."""
    services, edges = row["services"], row["edges"]
    layout = layout_services([each["name"] for each in services], [(each["source"], each["target"]) for each in edges])
    name = chosen["service"]["name"] if chosen else ""
    callers, called = (set(chosen["blast_radius"]), set(chosen["downstream"])) if chosen else (set(), set())
    arrows = [_arrow(each, layout, name, callers, called) for each in edges]
    return ServiceMap(
        width=layout.width,
        height=layout.height,
        boxes=tuple(_box(each, layout, name, callers, called) for each in services),
        arrows=tuple(sorted(arrows, key=lambda arrow: arrow.is_lit)),  # highlighted ones are drawn over the others
        types=tuple(sorted({arrow.type for arrow in arrows})),
    )


def _box(row: Row, layout: ServiceLayout, chosen: str, callers: Collection[str], called: Collection[str]) -> ServiceBox:
    name = row["name"]
    x, y = layout.boxes[name]
    role = "chosen" if name == chosen else "caller" if name in callers else "called" if name in called else ""
    facts = (row["language"], row["namespace"], *(f"port {each}" for each in row["ports"]))
    label = clean_line(name)
    return ServiceBox(
        name=label,
        label=label if len(label) <= NAME_CHARS else label[: NAME_CHARS - 1] + "…",
        href=f"/services/{quote(name, safe='', errors='replace')}",
        x=x,
        y=y,
        kind="external" if row["external"] else "service",
        role=role,
        about=clean_line(", ".join(each for each in (name, *facts) if each)),
    )


def _arrow(
    row: Row, layout: ServiceLayout, chosen: str, callers: Collection[str], called: Collection[str]
) -> CallArrow:
    source, target = row["source"], row["target"]
    upward = source in callers and (target in callers or target == chosen)
    downward = target in called and (source in called or source == chosen)
    return CallArrow(
        source=clean_line(source),
        target=clean_line(target),
        type=row["type"] if row["type"] in TYPES else "unknown",
        curve=layout.curve(source, target),
        is_lit=upward or downward,
        about=clean_line(row["description"]) or f"{clean_line(source)} → {clean_line(target)}",
    )


class Lane(Struct, frozen=True):
    """Space for a long arrow in a column that it crosses."""

    source: str
    target: str
    column: int


class ServiceLayout(Struct, frozen=True):
    """Positions of boxes by name and of lanes, as upper left corners, and the size of the drawing."""

    boxes: Mapping[str, Point]
    lanes: Mapping[Lane, Point]

    @property
    def width(self) -> float:
        return max((x for x, _ in self.boxes.values()), default=0) + WIDTH + MARGIN

    @property
    def height(self) -> float:
        bottoms = [HEIGHT + y for _, y in self.boxes.values()] + [_LANE_HEIGHT + y for _, y in self.lanes.values()]
        return max(bottoms, default=0) + MARGIN

    def curve(self, source: str, target: str) -> str:
        """Draw an arrow as an SVG path, horizontal at its ends and in the columns that it crosses."""
        points = self._points(source, target)
        drawn = f"M{points[0][0]:g} {points[0][1]:g}"
        for (x1, y1), (x2, y2) in pairwise(points):
            bend = (x2 - x1) / 2 if x2 > x1 else -60
            drawn += f" C{x1 + bend:g} {y1:g} {x2 - bend:g} {y2:g} {x2:g} {y2:g}"
        return drawn

    def _points(self, source: str, target: str) -> list[Point]:
        (x1, y1), (x2, y2) = self.boxes[source], self.boxes[target]
        y1, y2 = y1 + HEIGHT / 2, y2 + HEIGHT / 2
        if x2 <= x1:  # backwards, or within a column: around the sides
            return [(x1, y1), (x2 + WIDTH + _ARROW_HEAD, y2)]
        between = sorted(point for lane, point in self.lanes.items() if (lane.source, lane.target) == (source, target))
        through = [side for x, y in between for side in ((x, y), (x + WIDTH, y))]
        return [(x1 + WIDTH, y1), *through, (x2 - _ARROW_HEAD, y2)]


def layout_services(names: Sequence[str], calls: Sequence[Call]) -> ServiceLayout:
    """Compute the positions of services and the lanes of their calls."""
    ties = sorted({(source, target) for source, target in calls if source != target})
    levels = _levels(names, ties)
    at = {name: x for x, level in enumerate(levels) for name in level}
    columns: list[list[str | Lane]] = [list(level) for level in levels]
    steps: list[tuple[str | Lane, str | Lane]] = []
    for source, target in ties:
        lanes = [Lane(source, target, x) for x in range(at[source] + 1, at[target])]
        for lane in lanes:
            columns[lane.column].append(lane)
        steps += pairwise((source, *lanes, target))
    found: dict[str | Lane, Point] = {}
    columns = _untangled(columns, steps)
    tallest = max((_height(column) for column in columns), default=0.0)
    for x, column in enumerate(columns):
        y = MARGIN + (tallest - _height(column)) / 2
        for each in column:
            found[each] = (MARGIN + x * (WIDTH + GAP_X), y if isinstance(each, str) else y + _LANE_HEIGHT / 2)
            y += (HEIGHT if isinstance(each, str) else _LANE_HEIGHT) + GAP_Y
    boxes = {each: point for each, point in found.items() if isinstance(each, str)}
    return ServiceLayout(boxes, {each: point for each, point in found.items() if not isinstance(each, str)})


def _height(column: Sequence[str | Lane]) -> float:
    return sum((HEIGHT if isinstance(each, str) else _LANE_HEIGHT) + GAP_Y for each in column) - GAP_Y


def _levels(names: Sequence[str], ties: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Group services by the longest path from an uncalled service; calls that close a cycle do not count."""
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
    """Sort names topologically, callers first; calls that close a cycle are ignored."""
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


def _untangled(
    columns: list[list[str | Lane]], steps: Sequence[tuple[str | Lane, str | Lane]]
) -> list[list[str | Lane]]:
    """Order each column by the mean position of the neighbours, so that fewer arrows cross."""
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
