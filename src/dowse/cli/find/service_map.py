"""Services and their edges enter; a map of them leaves, as Mermaid text or as an SVG picture."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from types import MappingProxyType

from dowse.types import Service, ServiceEdge

COLOURS = MappingProxyType(
    {"http": "#2563eb", "grpc": "#7c3aed", "queue": "#d97706", "db": "#059669", "unknown": "#6b7280"}
)
_BOX_WIDTH, _BOX_HEIGHT = 190, 34
_GAP_X, _GAP_Y, _MARGIN = 110, 18, 20
_LONGEST_NAME_CHARS = 26  # as many fit a box


def mermaid(services: Sequence[Service], edges: Sequence[ServiceEdge]) -> str:
    """A flowchart; external systems are rounded."""
    ids = {service.name: f"s{number}" for number, service in enumerate(services)}
    lines = ["flowchart LR"]
    for service in services:
        label = service.name.replace('"', "'")
        lines.append(f'  {ids[service.name]}(["{label}"])' if service.external else f'  {ids[service.name]}["{label}"]')
    lines += [f"  {ids[edge.source]} -->|{edge.type}| {ids[edge.target]}" for edge in edges]
    return "\n".join(lines)


def svg(services: Sequence[Service], edges: Sequence[ServiceEdge]) -> str:
    """Callers stand left of what they call, as far as circles allow; arrows have the colour of their type."""
    columns = _columns(services, edges)
    places = {
        name: (_MARGIN + x * (_BOX_WIDTH + _GAP_X), _MARGIN + y * (_BOX_HEIGHT + _GAP_Y))
        for x, column in enumerate(columns)
        for y, name in enumerate(column)
    }
    width = 2 * _MARGIN + len(columns) * (_BOX_WIDTH + _GAP_X) - _GAP_X
    height = 2 * _MARGIN + max(map(len, columns), default=0) * (_BOX_HEIGHT + _GAP_Y) + 24
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        ' font-family="system-ui, sans-serif" font-size="13">',
        "<title>Services and how they use each other</title>",
        "<defs>",
        *(_arrow_head(kind, colour) for kind, colour in COLOURS.items()),
        "</defs>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        *(_arrow(edge, places) for edge in edges),
        *(_box(service, places[service.name]) for service in services),
        *_legend(sorted({edge.type for edge in edges}), height),
        "</svg>",
    ]
    return "\n".join(parts)


def _columns(services: Sequence[Service], edges: Sequence[ServiceEdge]) -> list[list[str]]:
    """By the longest way from a caller that nobody calls; in a circle, the first by name stands left."""
    depth = {service.name: 0 for service in services}
    order = sorted(depth)
    for _ in order:  # a way has no more steps than there are services
        moved = False
        for edge in edges:
            back = order.index(edge.source) > order.index(edge.target) and _calls(edges, edge.target, edge.source)
            if not back and depth[edge.target] < depth[edge.source] + 1 < len(order):
                depth[edge.target] = depth[edge.source] + 1
                moved = True
        if not moved:
            break
    used = sorted(set(depth.values()))
    return [[name for name in order if depth[name] == each] for each in used]


def _calls(edges: Sequence[ServiceEdge], source: str, target: str) -> bool:
    """Whether there is a way from one to the other."""
    seen, frontier = {source}, {source}
    while frontier:
        frontier = {edge.target for edge in edges if edge.source in frontier} - seen
        seen |= frontier
    return target in seen


def _arrow_head(kind: str, colour: str) -> str:
    return (
        f'<marker id="to-{kind}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0 L8 4 L0 8 z" fill="{colour}"/></marker>'
    )


def _arrow(edge: ServiceEdge, places: dict[str, tuple[int, int]]) -> str:
    kind = edge.type if edge.type in COLOURS else "unknown"
    (x1, y1), (x2, y2) = places[edge.source], places[edge.target]
    middle1, middle2 = y1 + _BOX_HEIGHT // 2, y2 + _BOX_HEIGHT // 2
    if x2 > x1:
        start, stop, bend = x1 + _BOX_WIDTH, x2, (_GAP_X // 2)
        curve = f"M{start} {middle1} C{start + bend} {middle1} {stop - bend} {middle2} {stop} {middle2}"
    else:  # back to the left, or down within a column: around the left side
        bend = _GAP_X // 2
        curve = f"M{x1} {middle1} C{x1 - bend} {middle1} {x2 + _BOX_WIDTH + bend} {middle2} {x2 + _BOX_WIDTH} {middle2}"
    return (
        f'<path d="{curve}" fill="none" stroke="{COLOURS[kind]}" stroke-width="1.4" marker-end="url(#to-{kind})">'
        f"<title>{escape(edge.description or f'{edge.source} → {edge.target}')}</title></path>"
    )


def _box(service: Service, place: tuple[int, int]) -> str:
    x, y = place
    name = service.name
    if len(name) > _LONGEST_NAME_CHARS:
        name = name[: _LONGEST_NAME_CHARS - 1] + "…"
    dashes = ' stroke-dasharray="5 4"' if service.external else ""
    return (
        f'<g><title>{escape(service.name)}</title><rect x="{x}" y="{y}" width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}" '
        f'rx="6" fill="#f8fafc" stroke="#334155"{dashes}/><text x="{x + _BOX_WIDTH // 2}" '
        f'y="{y + _BOX_HEIGHT // 2 + 4}" text-anchor="middle" fill="#0f172a">{escape(name)}</text></g>'
    )


def _legend(kinds: Sequence[str], height: int) -> list[str]:
    return [
        f'<text x="{_MARGIN + number * 80}" y="{height - 10}" fill="{COLOURS.get(kind, COLOURS["unknown"])}">'
        f"→ {escape(kind)}</text>"
        for number, kind in enumerate(kinds)
    ]
