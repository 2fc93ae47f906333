"""The service graph: services and their edges go in as a whole, and come out sorted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from dowse.errors import BadRequestError, CorruptIndexError
from dowse.persist.database import Database
from dowse.types import Service, ServiceEdge

_encode = msgspec.json.Encoder().encode
_decode_service = msgspec.json.Decoder(Service).decode
_decode_edge = msgspec.json.Decoder(ServiceEdge).decode


def checked(
    services: Sequence[Service], edges: Sequence[ServiceEdge]
) -> tuple[tuple[Service, ...], tuple[ServiceEdge, ...]]:
    """Sorted, without edges from a service to itself. The same edge given twice keeps the evidence of both."""
    names = Counter(service.name for service in services)
    for name, times in names.items():
        if times > 1:
            raise BadRequestError(f"the service {name!r} is given twice; merge the two")
    merged: dict[tuple[str, str, str], ServiceEdge] = {}
    for edge in edges:
        if lost := [end for end in (edge.source, edge.target) if end not in names]:
            raise BadRequestError(
                f"the edge {edge.source} → {edge.target} ends at {lost[0]!r}, which is no service; "
                "add it, as external if nothing declares it"
            )
        if edge.source != edge.target:
            key = (edge.source, edge.target, edge.type)
            merged[key] = _merged(merged[key], edge) if key in merged else edge
    return tuple(sorted(services, key=lambda each: each.name)), tuple(merged[key] for key in sorted(merged))


def _merged(first: ServiceEdge, second: ServiceEdge) -> ServiceEdge:
    evidence = tuple(dict.fromkeys((*first.evidence, *second.evidence)))
    return replace(first, evidence=evidence, description=first.description or second.description)


def replace_graph(database: Database, services: Sequence[Service], edges: Sequence[ServiceEdge]) -> None:
    nodes, links = checked(services, edges)
    with database.transaction() as connection:
        connection.execute("DELETE FROM services")
        connection.execute("DELETE FROM service_edges")
        connection.executemany("INSERT INTO services VALUES (?, ?)", [(each.name, _encode(each)) for each in nodes])
        connection.executemany(
            "INSERT INTO service_edges VALUES (?, ?, ?, ?)",
            [(each.source, each.target, each.type, _encode(each)) for each in links],
        )


def read_services(database: Database) -> list[Service]:
    rows = database.query("SELECT body FROM services ORDER BY name")
    try:
        return [_decode_service(body) for (body,) in rows]
    except msgspec.DecodeError as err:
        raise _damaged(err) from err


def read_edges(database: Database) -> list[ServiceEdge]:
    rows = database.query("SELECT body FROM service_edges ORDER BY source, target, type")
    try:
        return [_decode_edge(body) for (body,) in rows]
    except msgspec.DecodeError as err:
        raise _damaged(err) from err


def _damaged(err: msgspec.DecodeError) -> CorruptIndexError:
    return CorruptIndexError(f"the stored service graph cannot be read ({err}); run `dowse doctor --verify`")
