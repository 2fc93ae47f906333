"""Charts of the report as SVG; the page defines their colours as variables.

Every mark has its figures as a title, which a browser shows as a tooltip.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import ceil, sqrt

import msgspec

WIDTH = 720
COLOURS = 6  # --c0 … --c5 are defined by the page
_ROW = 15  # height of a bar with its gap
Points = Sequence[tuple[float, float]]


class Bar(msgspec.Struct, frozen=True):
    """Bar with its interval."""

    label: str
    value: float
    low: float
    high: float
    colour: int


class LabelledPoint(msgspec.Struct, frozen=True):
    """Point with its name."""

    label: str
    x: float
    y: float
    colour: int


class _Frame(msgspec.Struct, frozen=True):
    """Rectangle with two axes in the units of the data."""

    left: int
    top: int
    right: int
    bottom: int
    x: tuple[float, float]
    y: tuple[float, float]

    def at(self, x: float, y: float) -> tuple[float, float]:
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        return self.left + across * (self.right - self.left), self.bottom - up * (self.bottom - self.top)

    def axes(self, x_name: str, y_name: str) -> Iterator[str]:
        for tick in _ticks(*self.x):
            across = self.at(tick, self.y[0])[0]
            yield _line(across, self.top, across, self.bottom, "grid")
            yield _text(across, self.bottom + 16, f"{tick:.4g}", "middle")
        for tick in _ticks(*self.y):
            up = self.at(self.x[0], tick)[1]
            yield _line(self.left, up, self.right, up, "grid")
            yield _text(self.left - 6, up + 4, f"{tick:.4g}", "end")
        yield _text((self.left + self.right) / 2, self.bottom + 34, x_name, "middle", "name")
        yield _text(self.left - 6, self.top - 10, y_name, "start", "name")


def bars(groups: Sequence[tuple[str, Sequence[Bar]]], name: str) -> str:
    """Draw grouped bars with intervals, from 0, so that lengths can be compared."""
    most = max((bar.high for _, own in groups for bar in own), default=1.0)
    rows = sum(len(own) + 1 for _, own in groups)
    frame = _Frame(150, 26, WIDTH - 60, 26 + rows * _ROW, (0.0, _above(most)), (0.0, 1.0))
    parts = []
    for tick in _ticks(*frame.x):
        across = frame.at(tick, 0)[0]
        parts.append(_line(across, frame.top, across, frame.bottom, "grid"))
        parts.append(_text(across, frame.top - 8, f"{tick:.4g}", "middle"))
    up = float(frame.top)
    for label, own in groups:
        parts.append(_text(frame.left - 8, up + _ROW - 3 + (len(own) - 1) * _ROW / 2, label, "end", "name"))
        for bar in own:
            parts += _bar(frame, bar, up)
            up += _ROW
        up += _ROW
    return _svg(frame.bottom + 8, parts, name)


def bubbles(points: Points, x_name: str, y_name: str) -> str:
    """Draw a scatter in [0,1]; points within a twentieth share a bubble, whose area is their number."""
    frame = _Frame(60, 30, 520, 490, (0.0, 1.0), (0.0, 1.0))
    parts = [*frame.axes(x_name, y_name)]
    parts.append(_line(*frame.at(0, 0), *frame.at(1, 1), "guide"))
    counted = Counter((round(20 * x) / 20, round(20 * y) / 20) for x, y in points)
    most = max(counted.values(), default=1)
    for (x, y), count in sorted(counted.items()):
        across, up = frame.at(x, y)
        colour = 0 if y > x else 1 if y < x else 5
        radius = 2 + 12 * sqrt(count / most)
        parts.append(_circle(across, up, radius, colour, f"{count} queries: {y:.2f} against {x:.2f}"))
    return _svg(540, parts, f"{y_name} against {x_name}")


def lines(series: Mapping[str, Points], x_name: str, y_name: str) -> str:
    """Draw curves over a share, each with its name at its end."""
    values = [y for points in series.values() for _, y in points]
    frame = _Frame(60, 30, WIDTH - 130, 330, (0.0, 1.0), _span(values))
    parts = [*frame.axes(x_name, y_name)]
    ends = _apart([frame.at(*points[-1])[1] for points in series.values()], 14)
    for number, ((label, points), end) in enumerate(zip(series.items(), ends, strict=True)):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (frame.at(*point) for point in points))
        colour = number % COLOURS
        parts.append(f'<polyline class="curve" points="{path}" stroke="var(--c{colour})"/>')
        parts.append(_text(frame.right + 8, end + 4, label, "start", f"t{colour}"))
    return _svg(376, parts, f"{y_name} by {x_name}")


def labelled(marks: Sequence[LabelledPoint], x_name: str, y_name: str) -> str:
    """Draw points with their names; x from 0."""
    widest = _above(max((mark.x for mark in marks), default=1.0))
    frame = _Frame(60, 30, WIDTH - 170, 390, (0.0, widest), _span([mark.y for mark in marks]))
    parts = [*frame.axes(x_name, y_name)]
    order = sorted(marks, key=lambda mark: -mark.y)
    ups = _apart([frame.at(mark.x, mark.y)[1] for mark in order], 13)
    for mark, label_up in zip(order, ups, strict=True):
        across, up = frame.at(mark.x, mark.y)
        parts.append(_circle(across, up, 5, mark.colour, f"{mark.label}: {mark.y:.4f} at {mark.x:.1f}"))
        parts.append(_line(across + 6, up, frame.right + 4, label_up, "leader"))
        parts.append(_text(frame.right + 8, label_up + 4, mark.label, "start"))
    return _svg(436, parts, f"{y_name} against {x_name}")


def _bar(frame: _Frame, bar: Bar, up: float) -> list[str]:
    start, end = frame.at(0, 0)[0], frame.at(bar.value, 0)[0]
    low, high = frame.at(bar.low, 0)[0], frame.at(bar.high, 0)[0]
    middle = up + _ROW / 2 - 1
    title = escape(f"{bar.label}: {bar.value:.4f} [{bar.low:.4f}, {bar.high:.4f}]")
    return [
        f'<rect x="{start:.1f}" y="{up:.1f}" width="{end - start:.1f}" height="{_ROW - 3}" rx="2"'
        f' fill="var(--c{bar.colour})"><title>{title}</title></rect>',
        _line(low, middle, high, middle, "whisker"),
        _line(low, middle - 3, low, middle + 3, "whisker"),
        _line(high, middle - 3, high, middle + 3, "whisker"),
        _text(high + 6, up + _ROW - 4, f"{bar.value:.3f}", "start"),
    ]


def _svg(height: float, parts: Sequence[str], name: str) -> str:
    body = "\n".join(parts)
    return f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(name)}">\n{body}\n</svg>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str, kind: str = "tick") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _circle(x: float, y: float, radius: float, colour: int, title: str) -> str:
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="var(--c{colour})">'
        f"<title>{escape(title)}</title></circle>"
    )


def _ticks(low: float, high: float) -> list[float]:
    """Choose about five round numbers."""
    step = next((s for s in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100) if (high - low) / s <= 6), high)
    first = ceil(low / step - 1e-9)
    return [number * step for number in range(first, int((high + 1e-9) / step) + 1)]


def _above(value: float) -> float:
    step = next((s for s in (0.1, 0.5, 1, 5, 10, 50, 100) if value / s <= 10), 1000.0)
    return max(ceil(value / step), 1) * step


def _span(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values, default=0.0), max(values, default=1.0)
    room = max((high - low) * 0.08, 0.01)
    return low - room, high + room


def _apart(places: Sequence[float], least: float) -> list[float]:
    """Move places down where two would overlap; keep their order."""
    moved = list(places)
    last = -1e9
    for number in sorted(range(len(places)), key=places.__getitem__):
        last = moved[number] = max(places[number], last + least)
    return moved
