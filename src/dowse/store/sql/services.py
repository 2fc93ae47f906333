"""The service graph: services and their edges go in as a whole, and come out sorted.

What documents say of services is kept beside it, so that a changed file makes the graph anew without a look at others.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from dowse.errors import BadRequestError, CorruptIndexError
from dowse.store.sql.codec import marks
from dowse.types import Document, Service, ServiceEdge, ServiceFact

if TYPE_CHECKING:
    from dowse.store.sql.database import Database

_encode = msgspec.json.Encoder().encode
_decode_service = msgspec.json.Decoder(Service).decode
_decode_edge = msgspec.json.Decoder(ServiceEdge).decode
_decode_facts = msgspec.json.Decoder(tuple[ServiceFact, ...]).decode
_DUE = "services_due"  # facts came or went since the graph was last put


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
        was = {name for (name,) in connection.execute("SELECT name FROM services")}
        changed = [("service", name) for name in was ^ {each.name for each in nodes}]
        connection.executemany("INSERT OR IGNORE INTO renamed VALUES (?, ?)", changed)
        connection.execute("DELETE FROM services")
        connection.execute("DELETE FROM service_edges")
        connection.execute("DELETE FROM meta WHERE key = ?", [_DUE])
        connection.executemany("INSERT INTO services VALUES (?, ?)", [(each.name, _encode(each)) for each in nodes])
        connection.executemany(
            "INSERT INTO service_edges VALUES (?, ?, ?, ?)",
            [(each.source, each.target, each.type, _encode(each)) for each in links],
        )


def tell_facts(connection: sqlite3.Connection, document: Document, number: int) -> None:
    if document.facts:
        connection.execute("INSERT INTO service_facts VALUES (?, ?)", [number, _encode(document.facts)])
        connection.execute("INSERT OR REPLACE INTO meta VALUES (?, '1')", [_DUE])


def forget_facts(connection: sqlite3.Connection, numbers: Sequence[int]) -> None:
    if connection.execute(f"DELETE FROM service_facts WHERE document IN ({marks(numbers)})", numbers).rowcount:
        connection.execute("INSERT OR REPLACE INTO meta VALUES (?, '1')", [_DUE])


def read_facts(database: Database) -> list[ServiceFact] | None:
    """None when the graph was made from them already."""
    if database.fact(_DUE) is None:
        return None
    rows = database.query("SELECT body FROM service_facts ORDER BY document")
    try:
        return [fact for (body,) in rows for fact in _decode_facts(body)]
    except msgspec.DecodeError as err:
        raise _damaged(err) from err


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
