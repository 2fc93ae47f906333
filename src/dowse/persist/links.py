"""Names and edges in SQLite: what documents call their chunks and how these are tied goes in; who bears a name, and
which documents wait to be linked, comes out.

The functions over a connection keep the tables in step inside the transaction of a `put` or `remove`; those over a
Database serve the reader's and the writer's port.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dowse.names import bearers
from dowse.persist.sqlite_rows import batches, id_row, marks, row_id
from dowse.types import Document, Edge, Name

if TYPE_CHECKING:
    from dowse.persist.database import Database

# Of the structure of one document; every chunk has some, so they say nothing of how much it is used.
STRUCTURAL = ("part_of", "sequence")
_LOOSE = "relation NOT IN ('part_of', 'sequence')"


class Before(NamedTuple):
    """What a document was for others, before it changed."""

    names: frozenset[tuple[str, str]]
    chunks: frozenset[int]
    ties: frozenset[int]  # ends of its edges


def before(connection: sqlite3.Connection, document_id: str) -> Before:
    found = connection.execute("SELECT number FROM documents WHERE id = ?", [document_id]).fetchone()
    if found is None:
        return Before(frozenset(), frozenset(), frozenset())
    names = connection.execute("SELECT DISTINCT kind, name FROM names WHERE document = ?", found).fetchall()
    chunks = connection.execute("SELECT id FROM chunks WHERE document = ? AND died IS NULL", found).fetchall()
    return Before(frozenset(names), frozenset(row[0] for row in chunks), _ties(connection, found[0]))


def forget(connection: sqlite3.Connection, number: int) -> None:
    """Take out what a document told of itself and of others."""
    for table in ("edges", "names", "linked"):
        connection.execute(f"DELETE FROM {table} WHERE document = ?", [number])


def tell(connection: sqlite3.Connection, document: Document, number: int) -> frozenset[tuple[str, str]]:
    """Write a document's names and its reader's edges. The names, each with its kind."""
    found = bearers(document)
    rows = sorted((kind, name, chunk) for (kind, name), chunk in found.items())
    connection.executemany(
        "INSERT INTO names VALUES (?, ?, ?, ?)", [(kind, name, id_row(chunk), number) for kind, name, chunk in rows]
    )
    _insert_edges(connection, document.edges, number, "")
    return frozenset(found)


def settle(
    connection: sqlite3.Connection,
    was: Before,
    document: Document | None = None,
    names: frozenset[tuple[str, str]] = frozenset(),
) -> None:
    """After the change, to a document with these names or to none: who spoke of chunks that are gone is to be linked
    anew, and so is who may speak of new names.

    Chunks that stayed keep the edges of others into them, for their ids are the same.
    """
    chunks = {id_row(chunk.id) for chunk in document.chunks} if document else set()
    connection.executemany("INSERT OR IGNORE INTO renamed VALUES (?, ?)", names ^ was.names)
    lost = sorted(was.chunks - chunks)
    for part in batches(lost):
        connection.execute(
            f"DELETE FROM linked WHERE document IN (SELECT document FROM edges WHERE target IN ({marks(part)}))", part
        )
    ties = {id_row(end) for edge in document.edges for end in (edge.source_id, edge.target_id)} if document else set()
    _count(connection, was.ties | ties | (chunks & was.chunks))


# --- for the ports ------------------------------------------------------------------------------------


def put_edges(database: Database, maker: str, edges: Mapping[str, Sequence[Edge]]) -> None:
    with database.transaction() as connection:
        touched: set[int] = set()
        for document_id, own in edges.items():
            found = connection.execute("SELECT number FROM documents WHERE id = ?", [document_id]).fetchone()
            if found is None:
                continue  # it went while it was being linked
            touched |= _ties(connection, found[0])
            connection.execute("DELETE FROM edges WHERE document = ? AND maker = ?", [found[0], maker])
            _insert_edges(connection, own, found[0], maker)
            connection.execute("INSERT OR IGNORE INTO linked VALUES (?, ?)", [found[0], maker])
            touched |= _ties(connection, found[0])
        _count(connection, touched)


def unlinked(database: Database, maker: str) -> list[str]:
    rows = database.query(
        "SELECT id FROM documents WHERE number NOT IN (SELECT document FROM linked WHERE maker = ?) ORDER BY number",
        [maker],
    )
    return [row[0] for row in rows]


def renamed(database: Database) -> list[tuple[str, str]]:
    return [(kind, name) for kind, name in database.query("SELECT kind, name FROM renamed ORDER BY kind, name")]


def relink(database: Database, maker: str, document_ids: Collection[str]) -> None:
    with database.transaction() as connection:
        for part in batches(sorted(document_ids)):
            connection.execute(
                f"DELETE FROM linked WHERE maker = ? AND document IN"
                f" (SELECT number FROM documents WHERE id IN ({marks(part)}))",
                [maker, *part],
            )
        connection.execute("DELETE FROM renamed")


def named(database: Database, kind: str, names: Collection[str]) -> list[Name]:
    found: list[Name] = []
    for part in batches(sorted(names)):
        found += _names(database, f"n.name COLLATE NOCASE IN ({marks(part)})", [kind, *part])
    return sorted(set(found), key=name_order)


def names_from(database: Database, kind: str, prefix: str, limit: int) -> list[Name]:
    pattern = prefix.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"
    where = (
        "n.name COLLATE NOCASE BETWEEN ? AND ? AND n.name LIKE ? ESCAPE '\\'"
        " ORDER BY n.name COLLATE NOCASE, n.name, n.chunk + 0 < 0, n.chunk LIMIT ?"
    )
    return _names(database, where, [kind, prefix, prefix + chr(0x10FFFF), pattern, limit])


def name_order(name: Name) -> tuple[str, str, str, str]:
    return (name.kind, folded(name.name), name.name, name.chunk_id)


def folded(name: str) -> str:
    """As SQLite compares names: the case of ASCII letters does not count, that of others does."""
    return "".join(char.lower() if char.isascii() else char for char in name)


def _names(database: Database, where: str, parameters: Sequence[object]) -> list[Name]:
    rows = database.query(
        "SELECT n.kind, n.name, n.chunk, d.id FROM names n JOIN documents d ON d.number = n.document"
        f" WHERE n.kind = ? AND {where}",
        parameters,
    )
    return [Name(kind, name, row_id(chunk), document) for kind, name, chunk, document in rows]


# --- rows ---------------------------------------------------------------------------------------------


def _insert_edges(connection: sqlite3.Connection, edges: Iterable[Edge], number: int, maker: str) -> None:
    """Of two edges that say the same, the first one written stays: the reader's, then the linker's."""
    connection.executemany(
        "INSERT OR IGNORE INTO edges (source, target, relation, document, weight, description, maker)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (id_row(edge.source_id), id_row(edge.target_id), edge.relation, number, edge.weight, edge.description,
             maker)
            for edge in edges
        ],
    )  # fmt: skip


def _ties(connection: sqlite3.Connection, number: int) -> frozenset[int]:
    rows = connection.execute(f"SELECT source, target FROM edges WHERE document = ? AND {_LOOSE}", [number])
    return frozenset(end for row in rows for end in row)


def _count(connection: sqlite3.Connection, chunks: Iterable[int]) -> None:
    """Count anew how many other chunks these are tied to."""
    wanted = sorted(chunks)
    others = (
        f"SELECT target FROM edges WHERE source = :id AND target != :id AND {_LOOSE}"
        f" UNION SELECT source FROM edges WHERE target = :id AND source != :id AND {_LOOSE}"
    )
    connection.executemany(
        f"UPDATE chunks SET connections = nullif((SELECT count(*) FROM ({others})), 0) WHERE id = :id",
        [{"id": each} for each in wanted],
    )


def edge_order(edge: Edge) -> tuple[float, str, str, str]:
    """Heaviest first; the order in which every store gives edges."""
    return (-edge.weight, edge.source_id, edge.target_id, edge.relation)
