"""`dowse services`: a service's name enters, or none; who uses whom leaves, in words, as JSON or as a map."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from dowse.cli.session import Session, shared_options
from dowse.errors import BadRequestError
from dowse.serve.wire.result import Exit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dowse.query.stages.services import ServiceGraph
    from dowse.types import Service, ServiceEdge


@click.command()
@click.argument("name", required=False)
@click.option(
    "--blast-radius", is_flag=True, help="Whoever uses NAME, directly or through others: what breaks with it."
)
@click.option("--downstream", is_flag=True, help="Whatever NAME uses, directly or through others: what it needs.")
@click.option(
    "--depth",
    type=click.IntRange(min=1),
    metavar="N",
    help="At most N steps away.  [default: 1, or any with the two above]",
)
@click.option("--mermaid", is_flag=True, help="Print a Mermaid flowchart.")
@click.option("--svg", is_flag=True, help="Print an SVG picture.")
@shared_options
def services(
    session: Session,
    name: str | None,
    blast_radius: bool,
    downstream: bool,
    depth: int | None,
    mermaid: bool,
    svg: bool,
) -> int:
    """Say which services there are and who uses whom.

    \b
    dowse services
    dowse services booking-api --blast-radius
    dowse services --svg > services.svg

    The graph is read off manifests, Compose files and code while they are indexed; every edge has a type and cites
    what shows it.
    """
    if blast_radius and downstream:
        raise BadRequestError("--blast-radius and --downstream look in opposite directions; choose one")
    if (blast_radius or downstream) and name is None:
        raise BadRequestError("of which service? Type its name, too: dowse services NAME --blast-radius")
    if sum((session.as_json, mermaid, svg)) > 1:
        raise BadRequestError("--json, --mermaid and --svg are three forms of one answer; choose one")
    with session.open_reader() as engine:
        graph = engine.services()
    far = blast_radius or downstream
    shown = graph
    if name is not None and graph.services:
        shown = graph.around(name, callers=not downstream, called=not blast_radius, depth=depth if far or depth else 1)
    if not graph.services:
        session.note("no service is known; index a folder with manifests, Compose files or Dockerfiles: dowse index .")
    _print(session, shown, name if graph.services else None, as_map="mermaid" if mermaid else "svg" if svg else "")
    return Exit.HITS if graph.services else Exit.NOTHING


def _print(session: Session, graph: ServiceGraph, name: str | None, *, as_map: str) -> None:
    from dowse.cli.find import service_map
    from dowse.serve.plain_text import clean
    from dowse.serve.wire.result import plain

    if as_map:
        draw = service_map.mermaid if as_map == "mermaid" else service_map.svg
        session.emit(draw(graph.services, graph.edges))
    elif session.as_json:
        session.emit_json({"services": plain(graph.services), "edges": plain(graph.edges)})
    else:
        for line in _about(graph, name) if name else _overview(graph):
            session.emit(clean(line))


def _overview(graph: ServiceGraph) -> Iterator[str]:
    for service in graph.services:
        uses = [f"{edge.target} ({edge.type})" for edge in graph.edges if edge.source == service.name]
        yield f"{service.name}{_facts(service)}"
        if uses:
            yield f"  uses {', '.join(uses)}"


def _facts(service: Service) -> str:
    """What is known of a service beside its name."""
    parts = ["external"] if service.external else []
    parts += [service.language] if service.language else []
    parts += [f"namespace {service.namespace}"] if service.namespace else []
    parts += [f"port {', '.join(map(str, service.ports))}"] if service.ports else []
    return f"  [{'; '.join(parts)}]" if parts else ""


def _about(graph: ServiceGraph, name: str) -> Iterator[str]:
    """One service: its neighbours, nearest first, each with what shows the edge."""
    found = next(service for service in graph.services if service.name == name)
    yield f"{name}{_facts(found)}"
    others = [service.name for service in graph.services if service.name != name]
    if others:
        yield f"  {len(others)} around it: {', '.join(others)}"
    for edge in graph.edges:
        yield f"  {_arrow(edge, name)}"
        yield f"      {edge.description.partition(': ')[2] or edge.description}"
    if not graph.edges:
        yield "  nothing is known of its neighbours in this direction"


def _arrow(edge: ServiceEdge, name: str) -> str:
    if edge.source == name:
        return f"uses {edge.target} ({edge.type})"
    if edge.target == name:
        return f"is used by {edge.source} ({edge.type})"
    return f"{edge.source} uses {edge.target} ({edge.type})"
