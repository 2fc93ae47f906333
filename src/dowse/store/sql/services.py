"""Service graph in SQLite: services and edges enter as a whole and leave sorted.

The facts of each document are stored, too, so that a changed file rebuilds the graph without reading other files.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec.structs import replace

from dowse.errors import BadRequestError, CorruptIndexError
from dowse.store.sql.codec import marks
from dowse.types import Document, Service, ServiceEdge, ServiceFact

if TYPE_CHECKING:
    from dowse.store.sql.database import Database

_encode = msgspec.json.Encoder().encode
Stored = TypeVar("Stored")
_DUE = "services_due"  # facts changed since the graph was last written


def checked(
    services: Sequence[Service], edges: Sequence[ServiceEdge]
) -> tuple[tuple[Service, ...], tuple[ServiceEdge, ...]]:
    """Return the graph sorted, without edges from a service to itself. Equal edges are merged with their evidence."""
    names = Counter(service.name for service in services)
    for name, times in names.items():
        if times > 1:
            raise BadRequestError(f"the service {name!r} is given twice; merge the two")
    merged: dict[tuple[str, str, str], ServiceEdge] = {}
    for edge in edges:
        if lost := [end for end in (edge.source, edge.target) if end not in names]:
            raise BadRequestError(
                f"the edge {edge.source} → {edge.target} ends at {lost[0]!r}, which is not a service; "
                "add it, as external if nothing declares it"
            )
        if edge.source != edge.target:
            key = (edge.source, edge.target, edge.type)
            if first := merged.get(key):
                evidence = tuple(dict.fromkeys((*first.evidence, *edge.evidence)))
                edge = replace(first, evidence=evidence, description=first.description or edge.description)
            merged[key] = edge
    return tuple(sorted(services, key=lambda each: each.name)), tuple(merged[key] for key in sorted(merged))


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


def write_facts(connection: sqlite3.Connection, document: Document, number: int) -> None:
    if document.facts:
        connection.execute("INSERT INTO service_facts VALUES (?, ?)", [number, _encode(document.facts)])
        connection.execute("INSERT OR REPLACE INTO meta VALUES (?, '1')", [_DUE])


def delete_facts(connection: sqlite3.Connection, numbers: Sequence[int]) -> None:
    if connection.execute(f"DELETE FROM service_facts WHERE document IN ({marks(numbers)})", numbers).rowcount:
        connection.execute("INSERT OR REPLACE INTO meta VALUES (?, '1')", [_DUE])


def read_facts(database: Database) -> list[ServiceFact] | None:
    """Return the facts of all documents; None when the graph was built from them already."""
    if database.fact(_DUE) is None:
        return None
    facts = _read(database, "service_facts ORDER BY document", tuple[ServiceFact, ...])
    return [fact for of_document in facts for fact in of_document]


def read_services(database: Database) -> list[Service]:
    return _read(database, "services ORDER BY name", Service)


def read_edges(database: Database) -> list[ServiceEdge]:
    return _read(database, "service_edges ORDER BY source, target, type", ServiceEdge)


def _read(database: Database, rows: str, kind: type[Stored]) -> list[Stored]:
    decode = msgspec.json.Decoder(kind).decode
    try:
        return [decode(body) for (body,) in database.query(f"SELECT body FROM {rows}")]
    except (msgspec.DecodeError, UnicodeDecodeError) as err:
        raise CorruptIndexError(
            f"the stored service graph cannot be read ({err}); run `dowse doctor --verify`"
        ) from err
