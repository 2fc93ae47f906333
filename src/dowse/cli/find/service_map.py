"""Service map for files: services and edges enter, Mermaid text or an SVG picture leaves.

The layout is the one of the web page; only the drawing differs, since a file has no style sheet.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from types import MappingProxyType

from dowse.serve.page.service_map import HEIGHT, MARGIN, WIDTH, service_map
from dowse.serve.wire.result import plain
from dowse.types import Service, ServiceEdge

COLOURS = MappingProxyType(
    {"http": "#2563eb", "grpc": "#7c3aed", "queue": "#d97706", "db": "#059669", "unknown": "#6b7280"}
)
_DASHES = MappingProxyType({"external": ' stroke-dasharray="5 4"', "service": ""})
_LEGEND_HEIGHT = 24


def mermaid(services: Sequence[Service], edges: Sequence[ServiceEdge]) -> str:
    """Draw a flowchart; external systems are rounded."""
    ids = {service.name: f"s{number}" for number, service in enumerate(services)}
    lines = ["flowchart LR"]
    for service in services:
        label = service.name.replace('"', "'")
        lines.append(f'  {ids[service.name]}(["{label}"])' if service.external else f'  {ids[service.name]}["{label}"]')
    lines += [f"  {ids[edge.source]} -->|{edge.type}| {ids[edge.target]}" for edge in edges]
    return "\n".join(lines)


def svg(services: Sequence[Service], edges: Sequence[ServiceEdge]) -> str:
    """Draw callers left of the services they call; the colour of an arrow is its type."""
    drawn = service_map({"services": plain(services), "edges": plain(edges)})
    width, height = f"{drawn.width:g}", f"{drawn.height + _LEGEND_HEIGHT:g}"
    heads = [
        f'<marker id="to-{kind}" viewBox="0 0 8 8" refX="2" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0 L8 4 L0 8 z" fill="{COLOURS[kind]}"/></marker>'
        for kind in COLOURS
    ]
    arrows = [
        f'<path d="{arrow.curve}" fill="none" stroke="{COLOURS[arrow.type]}" stroke-width="1.4" '
        f'marker-end="url(#to-{arrow.type})"><title>{escape(arrow.about)}</title></path>'
        for arrow in drawn.arrows
    ]
    boxes = [
        f'<g><title>{escape(box.name)}</title><rect x="{box.x:g}" y="{box.y:g}" width="{WIDTH}" height="{HEIGHT}" '
        f'rx="6" fill="#f8fafc" stroke="#334155"{_DASHES[box.kind]}/>'
        f'<text x="{box.x + WIDTH / 2:g}" y="{box.y + HEIGHT / 2 + 4:g}" text-anchor="middle" fill="#0f172a">'
        f"{escape(box.label)}</text></g>"
        for box in drawn.boxes
    ]
    legend = [
        f'<text x="{MARGIN + number * 80}" y="{drawn.height + 10:g}" fill="{COLOURS[kind]}">→ {escape(kind)}</text>'
        for number, kind in enumerate(drawn.types)
    ]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            'font-family="system-ui, sans-serif" font-size="13">',
            "<title>Services and the calls between them</title>",
            "<defs>",
            *heads,
            "</defs>",
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
            *arrows,
            *boxes,
            *legend,
            "</svg>",
        ]
    )
