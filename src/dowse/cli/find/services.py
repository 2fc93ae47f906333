"""`dowse services`: the name of a service enters, or none; the graph leaves as text, JSON or a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dowse.cli.options import option
from dowse.cli.session import CommandSession, SessionCommand
from dowse.errors import BadRequestError
from dowse.serve.plain_text import clean
from dowse.serve.wire.result import Exit, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dowse.query.stages.services import ServiceGraph
    from dowse.types import Service, ServiceEdge


@click.command(cls=SessionCommand)
@click.argument("name", required=False)
@option("--blast-radius", is_flag=True, help="Show all direct and indirect callers of NAME.")
@option("--downstream", is_flag=True, help="Show all direct and indirect dependencies of NAME.")
@option("--depth", type=click.IntRange(min=1), metavar="N",
        help="Follow up to N calls [default: 1; unlimited with the two flags above].")  # fmt: skip
@option("--mermaid", is_flag=True, group="Output", help="Print a Mermaid flowchart.")
@option("--svg", is_flag=True, group="Output", help="Print an SVG picture.")
def services(
    session: CommandSession,
    name: str | None,
    blast_radius: bool,
    downstream: bool,
    depth: int | None,
    mermaid: bool,
    svg: bool,
) -> int:
    """List services and the calls between them.

    \b
    dowse services
    dowse services booking-api --blast-radius
    dowse services --svg > services.svg

    Dowse reads services and calls from manifests, Compose files and code. Every call has a type and cites its source.
    """
    if blast_radius and downstream:
        raise BadRequestError("--blast-radius and --downstream cannot be combined; choose one")
    if (blast_radius or downstream) and name is None:
        raise BadRequestError("missing service name; run: dowse services NAME --blast-radius")
    if sum((session.as_json, mermaid, svg)) > 1:
        raise BadRequestError("--json, --mermaid and --svg cannot be combined; choose one")
    with session.open_reader() as engine:
        graph = engine.services()
    far = blast_radius or downstream
    shown = graph
    if name is not None and graph.services:
        shown = graph.around(name, callers=not downstream, called=not blast_radius, depth=depth if far or depth else 1)
    if not graph.services:
        session.note(
            "no services in the index; index a folder with manifests, Compose files or Dockerfiles: dowse index ."
        )
    if mermaid or svg:
        from dowse.cli.find import service_map

        session.emit((service_map.mermaid if mermaid else service_map.svg)(shown.services, shown.edges))
    elif session.as_json:
        session.emit_json({"services": plain(shown.services), "edges": plain(shown.edges)})
    else:
        for line in _about(shown, name) if name and graph.services else _overview(shown):
            session.emit(clean(line))
    return Exit.HITS if graph.services else Exit.NOTHING


def _overview(graph: ServiceGraph) -> Iterator[str]:
    for service in graph.services:
        uses = [f"{edge.target} ({edge.type})" for edge in graph.edges if edge.source == service.name]
        yield f"{service.name}{_facts(service)}"
        if uses:
            yield f"  uses {', '.join(uses)}"


def _facts(service: Service) -> str:
    """Format the properties of a service."""
    parts = ["external"] if service.external else []
    parts += [service.language] if service.language else []
    parts += [f"namespace {service.namespace}"] if service.namespace else []
    parts += [f"port {', '.join(map(str, service.ports))}"] if service.ports else []
    return f"  [{'; '.join(parts)}]" if parts else ""


def _about(graph: ServiceGraph, name: str) -> Iterator[str]:
    """Format one service: its neighbours, nearest first, each with the source of the call."""
    found = next(service for service in graph.services if service.name == name)
    yield f"{name}{_facts(found)}"
    others = [service.name for service in graph.services if service.name != name]
    if others:
        yield f"  {len(others)} related services: {', '.join(others)}"
    for edge in graph.edges:
        yield f"  {_arrow(edge, name)}"
        yield f"      {edge.description.partition(': ')[2] or edge.description}"
    if not graph.edges:
        yield "  no calls found in this direction"


def _arrow(edge: ServiceEdge, name: str) -> str:
    if edge.source == name:
        return f"uses {edge.target} ({edge.type})"
    if edge.target == name:
        return f"is used by {edge.source} ({edge.type})"
    return f"{edge.source} uses {edge.target} ({edge.type})"
