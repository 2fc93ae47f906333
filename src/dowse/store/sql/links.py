"""Names and edges in SQLite: documents enter; chunks by name, edges and unlinked documents leave.

The functions over a connection keep the tables in step inside the transaction of a `put` or `remove`; those over a
Database serve the reader's and the writer's port.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from dowse.link_names import Name, named_chunks
from dowse.store.sql.codec import batches, id_row, marks, row_id
from dowse.types import Document, Edge

if TYPE_CHECKING:
    from dowse.store.sql.database import Database

# Relations inside one document; every chunk has some, so they do not count as connections.
STRUCTURAL = ("part_of", "sequence")
_LOOSE = "relation NOT IN ('part_of', 'sequence')"

EdgeKey = tuple[int, int, str, int]  # source, target, relation, document
EdgeRow = tuple[int, int, str, int, float, str, str]  # and weight, description, maker


class LinksBefore(NamedTuple):
    """Names, chunks and edge ends of a document before a change."""

    names: Mapping[tuple[str, str], tuple[int, int]] = {}  # by kind and name: its row and chunk
    chunks: frozenset[int] = frozenset()
    ties: frozenset[int] = frozenset()  # ends of its edges


class LinkChange(NamedTuple):
    """Names, chunks and edge ends of a document after a change, and those before it."""

    was: LinksBefore
    names: AbstractSet[tuple[str, str]] = frozenset()
    chunks: frozenset[int] = frozenset()
    ties: frozenset[int] = frozenset()

    @property
    def recounted(self) -> set[int]:
        """Chunks whose number of connections may have changed."""
        return {*self.was.ties, *self.ties, *(self.chunks & self.was.chunks)}


def read_links(connection: sqlite3.Connection, numbers: Collection[int]) -> dict[int, LinksBefore]:
    """Return names, chunks and edge ends by number of the document."""
    names: dict[int, dict[tuple[str, str], tuple[int, int]]] = {number: {} for number in numbers}
    chunks: dict[int, list[int]] = {number: [] for number in numbers}
    edges: dict[int, list[EdgeKey]] = {number: [] for number in numbers}
    for part in batches(list(numbers)):
        own = f"document IN ({marks(part)})"
        sql = f"SELECT document, kind, name, rowid, chunk FROM names WHERE {own}"
        for number, kind, name, row, chunk in connection.execute(sql, part):
            names[number][kind, name] = (row, chunk)
        for chunk, number in connection.execute(f"SELECT id, document FROM chunks WHERE {own} AND died IS NULL", part):
            chunks[number].append(chunk)
        for edge in connection.execute(f"SELECT source, target, relation, document FROM edges WHERE {own}", part):
            edges[edge[3]].append(edge)
    return {each: LinksBefore(names[each], frozenset(chunks[each]), _ends(edges[each])) for each in numbers}


def delete_links(connection: sqlite3.Connection, numbers: Sequence[int]) -> None:
    """Delete the edges of these documents, and mark them as unlinked."""
    for table in ("edges", "linked"):
        connection.execute(f"DELETE FROM {table} WHERE document IN ({marks(numbers)})", numbers)


def write_links(
    connection: sqlite3.Connection, documents: Sequence[tuple[int, Document, LinksBefore]]
) -> list[LinkChange]:
    """Write the names of documents and their readers' edges. A name that stays may get another chunk."""
    changes: list[LinkChange] = []
    names: list[tuple[str, str, int, int]] = []
    kept: list[tuple[int, int]] = []
    edges: list[EdgeRow] = []
    for number, document, was in documents:
        found = {key: id_row(chunk) for key, chunk in named_chunks(document).items()}
        names += sorted((*key, chunk, number) for key, chunk in found.items() if key not in was.names)
        kept += [(found[key], row) for key, (row, chunk) in was.names.items() if found.get(key, chunk) != chunk]
        own = _edge_rows(document.edges, number, "")
        edges += own
        chunks = frozenset([id_row(chunk.id) for chunk in document.chunks])
        changes.append(LinkChange(was, found.keys(), chunks, _ends(own)))
    connection.executemany("INSERT INTO names VALUES (?, ?, ?, ?)", names)
    connection.executemany("UPDATE names SET chunk = ? WHERE rowid = ?", kept)
    _insert_edges(connection, edges)
    return changes


def mark_unlinked(connection: sqlite3.Connection, changes: Sequence[LinkChange]) -> None:
    """Delete lost names, record changed ones, and mark documents with edges into deleted chunks as unlinked.

    Chunks that stay keep their ids, and so the edges into them.
    """
    gone = [(row,) for each in changes for key, (row, _) in each.was.names.items() if key not in each.names]
    connection.executemany("DELETE FROM names WHERE rowid = ?", gone)
    renamed = {name for each in changes for name in each.was.names.keys() ^ each.names}
    connection.executemany("INSERT OR IGNORE INTO renamed VALUES (?, ?)", sorted(renamed))
    lost = sorted(chunk for each in changes for chunk in each.was.chunks - each.chunks)
    for part in batches(lost):
        connection.execute(
            f"DELETE FROM linked WHERE document IN (SELECT document FROM edges WHERE target IN ({marks(part)}))", part
        )


def put_edges(database: Database, maker: str, edges: Mapping[str, Sequence[Edge]]) -> None:
    with database.transaction() as connection:
        numbers = document_numbers(connection, edges)  # without documents deleted in the meantime
        old: list[EdgeKey] = []
        for part in batches(list(numbers.values())):
            old += connection.execute(
                f"DELETE FROM edges WHERE document IN ({marks(part)}) AND maker = ?"
                " RETURNING source, target, relation, document",
                [*part, maker],
            )
        new = [row for each, number in numbers.items() for row in _edge_rows(edges[each], number, maker)]
        _insert_edges(connection, new)
        linked = [(number, maker) for number in numbers.values()]
        connection.executemany("INSERT OR IGNORE INTO linked VALUES (?, ?)", linked)
        write_connections(connection, count_connections(connection, _ends(old) | _ends(new)))


def document_numbers(connection: sqlite3.Connection, document_ids: Iterable[str]) -> dict[str, int]:
    """Return the numbers of the documents that exist."""
    found: dict[str, int] = {}
    for part in batches(list(document_ids)):
        found.update(connection.execute(f"SELECT id, number FROM documents WHERE id IN ({marks(part)})", part))
    return found


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
    """Fold a name as SQLite compares it: the case of ASCII letters does not count, that of others does."""
    return name.lower() if name.isascii() else "".join(char.lower() if char.isascii() else char for char in name)


def _names(database: Database, where: str, parameters: Sequence[object]) -> list[Name]:
    rows = database.query(
        "SELECT n.kind, n.name, n.chunk, d.id FROM names n JOIN documents d ON d.number = n.document"
        f" WHERE n.kind = ? AND {where}",
        parameters,
    )
    return [Name(kind, name, row_id(chunk), document) for kind, name, chunk, document in rows]


def _edge_rows(edges: Iterable[Edge], number: int, maker: str) -> list[EdgeRow]:
    return [
        (id_row(edge.source_id), id_row(edge.target_id), edge.relation, number, edge.weight, edge.description, maker)
        for edge in edges
    ]


def _insert_edges(connection: sqlite3.Connection, rows: Iterable[EdgeRow]) -> None:
    """Insert edges; of two equal ones the first written stays: the reader's, then the linker's.

    In the order of the table, so that SQLite looks up each page once.
    """
    connection.executemany(
        "INSERT OR IGNORE INTO edges (source, target, relation, document, weight, description, maker)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        sorted(rows, key=itemgetter(0)),
    )


def _ends(rows: Iterable[EdgeKey | EdgeRow]) -> frozenset[int]:
    return frozenset([end for row in rows if row[2] not in STRUCTURAL for end in row[:2]])


def count_connections(connection: sqlite3.Connection, chunks: Iterable[int]) -> dict[int, int]:
    """Count the other chunks that each of these is linked to."""
    found = dict.fromkeys(sorted(chunks), 0)
    for part in batches(list(found)):
        asked = ",".join(f"?{place}" for place in range(1, len(part) + 1))
        found.update(
            connection.execute(
                "SELECT own, count(*) FROM ("
                f"SELECT source AS own, target FROM edges WHERE source IN ({asked}) AND target != source AND {_LOOSE}"
                f" UNION SELECT target, source FROM edges WHERE target IN ({asked}) AND source != target AND {_LOOSE}"
                ") GROUP BY own",
                part,
            )
        )
    return found


def write_connections(connection: sqlite3.Connection, counts: Mapping[int, int]) -> None:
    """Write the number of connections. A row holds the chunk's text, so an unchanged one is not written."""
    connection.executemany(
        "UPDATE chunks SET connections = nullif(?2, 0) WHERE id = ?1 AND ifnull(connections, 0) != ?2", counts.items()
    )


def edge_order(edge: Edge) -> tuple[float, str, str, str]:
    """Sort key of edges, heaviest first; the order of every store."""
    return (-edge.weight, edge.source_id, edge.target_id, edge.relation)
