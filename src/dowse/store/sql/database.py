"""SQLite database, the source of truth: documents enter by transaction, rows leave; a commit acknowledges."""

from __future__ import annotations

import os
import sqlite3
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from importlib.resources import files
from itertools import count
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import msgspec

from dowse.errors import CorruptIndexError
from dowse.identity import document_id
from dowse.store.files import file_mode, storing, sync_folder
from dowse.store.sql import links, services
from dowse.store.sql.codec import batches, decoded, encoded, id_row, marks, row_id
from dowse.store.sql.connections import Connections, sqlite_errors
from dowse.store.sql.schema import SCHEMA_VERSION, check_version, upgradable, upgrade
from dowse.types import Chunk, ChunkId, Document, DocumentInfo, Edge, Source

_encode = msgspec.json.Encoder().encode
_decode_meta = msgspec.json.Decoder(tuple[tuple[str, str], ...]).decode

MOST_RECENT_ROWS = 4096  # rows, and those of one `put`; chosen: some 20 MB


class Row(NamedTuple):
    """Row of a chunk."""

    key: int
    id: ChunkId
    content_hash: str
    chunk: Chunk


class RecentRows(NamedTuple):
    """Rows that this process wrote last, so that a publication need not read them again: 20 µs a chunk.

    They are all living rows from the first of them on; `gained` counts the documents since a change.
    """

    rows: tuple[Row, ...] = ()
    since: int = -1
    seq: int = -1  # the last change; if there is a later one, another process wrote, and these are obsolete
    gained: int = 0

    def with_more(self, seq: int, gained: int, rows: Sequence[Row], *, ended: bool) -> RecentRows:
        """Add the change `seq`. Earlier rows are dropped if it deleted any: they may be among those."""
        if self.seq != seq - 1:
            return RecentRows(tuple(rows), seq - 1, seq, gained)
        most = max(MOST_RECENT_ROWS, len(rows))  # the first are published already
        kept = (*(() if ended else self.rows), *rows)[-most:]
        return RecentRows(kept, self.since, seq, self.gained + gained)

    def after(self, key: int, seq: int) -> list[Row] | None:
        """Return the rows beyond a key at a change; None where there may be others."""
        if seq != self.seq or not self.rows or key < self.rows[0].key - 1:
            return None
        return list(self.rows[bisect_right(self.rows, key, key=attrgetter("key")) :])


class Database:
    """Tables of an index."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.connections = Connections(path, read_only=read_only)
        self.query, self.transaction = self.connections.query, self.connections.transaction
        self.close = self.connections.close
        self._recent_rows = RecentRows()
        version = self.fact("schema_version")
        if not read_only and upgradable(version):
            with self.transaction() as connection:
                upgrade(connection)
        else:
            check_version(version, path.parent)

    def seq(self) -> int:
        """Return the number of the last change to the searchable rows."""
        return self.number("seq")

    def fact(self, key: str) -> str | None:
        found = self.query("SELECT value FROM meta WHERE key = ?", [key])
        return str(found[0][0]) if found else None

    def number(self, key: str) -> int:
        """Return a fact that is a number; 0 where it is not known, but for the number of the last change."""
        text = self.fact(key) or ("" if key == "seq" else "0")
        if not text.isdecimal():
            raise CorruptIndexError(f"dowse.db has no usable {key!r} ({text!r}); run `dowse doctor --verify`")
        return int(text)

    def set_fact(self, key: str, value: str) -> None:
        with self.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", [key, value])

    def sources(self) -> list[Source]:
        return [Source(*row) for row in self.query("SELECT name, root FROM sources ORDER BY name")]

    def add_source(self, source: Source) -> None:
        with self.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO sources VALUES (?, ?)", [source.name, source.root])

    def remove_source(self, name: str) -> None:
        with self.transaction() as connection:
            connection.execute("DELETE FROM sources WHERE name = ?", [name])

    def put(self, documents: Sequence[Document]) -> None:
        now = datetime.now(UTC).isoformat()
        given = {each.id: each for each in documents}  # of two with one id, the last counts
        with self.transaction() as connection:
            seq = _next_seq(connection)
            stored = links.document_numbers(connection, given)
            was = links.read_links(connection, stored.values())
            _end(connection, list(stored.values()), seq)
            rows = _insert(connection, list(given.values()), stored, was, now)
        self._recent_rows = self._recent_rows.with_more(seq, len(given) - len(stored), rows, ended=bool(stored))

    def remove(self, document_ids: Collection[str]) -> int:
        with self.transaction() as connection:
            seq = _next_seq(connection)
            removed = _remove(connection, document_ids, seq)
        self._recent_rows = self._recent_rows.with_more(seq, -removed, (), ended=True)
        return removed

    def documents(self, source: str | None = None, under: str = "") -> Iterable[DocumentInfo]:
        where, parameters = ("", []) if source is None else (" WHERE source = ?", [source])
        if under:  # a file, a folder or an archive: each is a range of the index over paths
            where += " AND (path = ? OR path > ? AND path < ? OR path > ? AND path < ?)"
            parameters += [under, f"{under}/", f"{under}0", f"{under}!/", f"{under}!0"]
        rows = self.query(f"SELECT {_INFO} FROM documents{where} ORDER BY source, path", parameters)
        return [_info(row) for row in rows]

    def paths(self, source: str) -> list[str]:
        return [row[0] for row in self.query("SELECT path FROM documents WHERE source = ?", [source])]

    def documents_of(self, document_ids: Collection[str]) -> list[DocumentInfo]:
        found: list[DocumentInfo] = []
        for part in batches(list(document_ids)):
            found += map(_info, self.query(f"SELECT {_INFO} FROM documents WHERE id IN ({marks(part)})", part))
        for each in found:
            if document_id(each.source, each.path) != each.id:
                raise CorruptIndexError(f"document {each.id} has a damaged path; run `dowse doctor --verify`")
        return found

    def document(self, document_id: str) -> DocumentInfo | None:
        return next(iter(self.documents_of([document_id])), None)

    def document_chunks(self, document_id: str) -> list[Chunk]:
        rows = self.query(
            "SELECT body, crc, connections FROM chunks"
            " WHERE document = (SELECT number FROM documents WHERE id = ?) AND died IS NULL ORDER BY key",
            [document_id],
        )
        return [decoded(*row) for row in rows]

    def chunks(self, ids: Collection[ChunkId], seq: int) -> dict[ChunkId, Chunk]:
        """Return chunks by id that were not deleted by that change; of two rows with one id, the living one."""
        found: dict[ChunkId, Chunk] = {}
        by_row = {id_row(each): each for each in ids}
        for part in batches(list(by_row)):
            rows = self.query(
                f"SELECT id, body, crc, connections FROM chunks WHERE id IN ({marks(part)}) AND ifnull(died > ?, 1)"
                " ORDER BY died IS NULL, key",
                [*part, seq],
            )
            for row, body, crc, connections in rows:
                chunk = found[by_row[row]] = decoded(body, crc, connections)
                if chunk.id != by_row[row]:
                    raise CorruptIndexError(f"chunk {by_row[row]} has the row of another; run `dowse doctor --verify`")
        return {each: found[each] for each in ids if each in found}  # in the order asked for, not of SQLite

    def count_documents(self, known: float, since: int, seq: int) -> int:
        """Count the documents at a change; `known` is the count at the change `since`."""
        latest = self._recent_rows
        self._recent_rows = latest._replace(since=latest.seq, gained=0)
        if (latest.since, latest.seq) == (since, seq):
            return int(known) + latest.gained
        return int(self.query("SELECT count(*) FROM documents")[0][0])

    def rows_after(self, key: int, limit: int, seq: int = -1) -> list[Row]:
        """Return living searchable rows by key; from memory, if `seq` is the last change and this process made it."""
        known = self._recent_rows.after(key, seq) if seq >= 0 else None
        if known is not None:
            return known[:limit]
        rows = self.query(
            "SELECT key, id, content_hash, body, crc FROM chunks WHERE key > ? AND searchable AND died IS NULL"
            " ORDER BY key LIMIT ?",
            [key, limit],
        )
        return [_row(row) for row in rows]

    def rows(self, keys: Sequence[int]) -> list[Row]:
        """Return rows by key, in order of key, without deleted ones."""
        found: list[Row] = []
        for part in batches(keys):
            sql = f"SELECT key, id, content_hash, body, crc FROM chunks WHERE key IN ({marks(part)}) ORDER BY key"
            found += [_row(row) for row in self.query(sql, part)]
        return found

    def count_tombstones(self, after: int, up_to: int) -> tuple[int, int]:
        """Return how many chunks were deleted in these changes, and the sum of their keys."""
        sql = "SELECT count(*), ifnull(sum(key), 0) FROM tombstones WHERE seq > ? AND seq <= ?"
        count, total = self.query(sql, [after, up_to])[0]
        return count, total

    def tombstones(self, after: int, up_to: int) -> list[int]:
        """Return the keys of the chunks deleted in these changes."""
        return [row[0] for row in self.query("SELECT key FROM tombstones WHERE seq > ? AND seq <= ?", [after, up_to])]

    def purge(self, up_to_seq: int, *, tombstones: bool) -> None:
        """Delete rows whose deletion is published; their tombstones too, after a compaction."""
        dead = self.query("SELECT EXISTS (SELECT 1 FROM chunks WHERE died <= ?)", [up_to_seq])[0][0]
        if not dead and not tombstones:
            return
        with self.transaction() as connection:
            connection.execute("DELETE FROM chunks WHERE died <= ?", [up_to_seq])
            if tombstones:
                connection.execute("DELETE FROM tombstones WHERE seq <= ?", [up_to_seq])

    def edges(self, ids: Collection[ChunkId], *, incoming: bool) -> list[Edge]:
        found: list[Edge] = []
        end = "target" if incoming else "source"
        for part in batches([id_row(each) for each in ids]):
            rows = self.query(
                "SELECT DISTINCT source, target, relation, weight, description FROM edges"
                f" WHERE {end} IN ({marks(part)})",
                part,
            )
            found += [Edge(row_id(r[0]), row_id(r[1]), r[2], r[3], r[4]) for r in rows]
        return found


def create_database(path: Path) -> None:
    """Create all tables in a file that gets its name when it is complete. The caller holds the writer's lock."""
    script = files("dowse.store.sql").joinpath("schema.sql").read_text("utf-8")
    temporary = path.with_name(path.name + ".new")
    with sqlite_errors(path), storing(path):
        for leftover in path.parent.glob(temporary.name + "*"):
            leftover.unlink()
        os.close(os.open(temporary, os.O_CREAT | os.O_WRONLY, file_mode(path.parent)))  # the log gets the same mode
        with closing(sqlite3.connect(temporary, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(script)
            connection.execute("INSERT INTO meta VALUES ('schema_version', ?), ('seq', '0')", [str(SCHEMA_VERSION)])
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        temporary.rename(path)
        sync_folder(path.parent)


_INFO = "id, source, path, title, content_hash, chunk_count, size_bytes, modified_ns, indexed_at, meta"
# Columns of a stored document that change. Its id stays, and so do source and path, of which it is made.
_CHANGING = ", ".join(f"{each} = excluded.{each}" for each in _INFO.split(", ")[3:])


def _next_seq(connection: sqlite3.Connection) -> int:
    """Return the number of this change to the searchable rows."""
    return int(connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'seq' RETURNING value").fetchone()[0])


def _insert(
    connection: sqlite3.Connection,
    documents: Sequence[Document],
    stored: Mapping[str, int],
    was: Mapping[int, links.LinksBefore],
    now: str,
) -> list[Row]:
    """Write documents, stored ones under the numbers they have; return their searchable rows, in order of key."""
    last = dict(connection.execute("SELECT name, seq FROM sqlite_sequence WHERE name IN ('chunks', 'documents')"))
    unused = count(last.get("documents", 0) + 1)
    numbers = (stored[each.id] if each.id in stored else next(unused) for each in documents)
    numbered = [
        (number, each, was.get(number, links.LinksBefore())) for number, each in zip(numbers, documents, strict=True)
    ]
    _insert_documents(connection, numbered, now)
    changes = links.write_links(connection, numbered)
    counts = links.count_connections(connection, {chunk for each in changes for chunk in each.recounted})
    rows: list[Row] = []
    values: list[tuple[object, ...]] = []
    for key, (number, chunk) in enumerate(
        ((number, chunk) for number, document, _ in numbered for chunk in document.chunks), last.get("chunks", 0) + 1
    ):
        own, body, searchable = id_row(chunk.id), encoded(chunk), chunk.level == "chunk"
        content_hash = bytes.fromhex(chunk.content_hash)
        values.append((key, own, number, searchable, content_hash, crc32(body), body, counts.pop(own, 0) or None))
        if searchable:
            rows.append(Row(key, chunk.id, chunk.content_hash, chunk))
    connection.executemany(
        "INSERT INTO chunks (key, id, document, searchable, content_hash, crc, body, connections)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        values,
    )
    links.write_connections(connection, counts)  # of chunks of other documents
    links.mark_unlinked(connection, changes)
    for number, document, _ in numbered:
        services.write_facts(connection, document, number)
    return rows


def _insert_documents(
    connection: sqlite3.Connection, documents: Sequence[tuple[int, Document, links.LinksBefore]], now: str
) -> None:
    connection.executemany(
        f"INSERT INTO documents (number, {_INFO}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        f" ON CONFLICT (number) DO UPDATE SET {_CHANGING}",
        [
            (number, each.id, each.source, each.path, each.title, each.content_hash,
             [chunk.level for chunk in each.chunks].count("chunk"), each.size_bytes, each.modified_ns, now,
             _encode(each.meta).decode())
            for number, each, _ in documents
        ],
    )  # fmt: skip


def _remove(connection: sqlite3.Connection, document_ids: Collection[str], seq: int) -> int:
    numbers = list(links.document_numbers(connection, document_ids).values())
    changes = [links.LinkChange(was) for was in links.read_links(connection, numbers).values()]
    _end(connection, numbers, seq)
    for part in batches(numbers):
        connection.execute(f"DELETE FROM documents WHERE number IN ({marks(part)})", part)
    links.mark_unlinked(connection, changes)
    links.write_connections(
        connection, links.count_connections(connection, {chunk for each in changes for chunk in each.recounted})
    )
    return len(numbers)


def _end(connection: sqlite3.Connection, numbers: Sequence[int], seq: int) -> None:
    """Delete the chunks and edges of documents."""
    for part in batches(numbers):
        own = f"document IN ({marks(part)})"
        connection.execute(
            f"INSERT INTO tombstones SELECT key, ? FROM chunks WHERE {own} AND searchable AND died IS NULL",
            [seq, *part],
        )
        connection.execute(f"UPDATE chunks SET died = ? WHERE {own} AND died IS NULL", [seq, *part])
        links.delete_links(connection, part)
        services.delete_facts(connection, part)


def _info(row: Sequence[Any]) -> DocumentInfo:
    """Make the info of a row; there may be a million, so empty metadata is not decoded."""
    try:
        meta = () if row[9] == "[]" else _decode_meta(row[9])
        return DocumentInfo(*row[:8], datetime.fromisoformat(row[8]), meta)  # type: ignore[call-arg]  # eight and two
    except (msgspec.DecodeError, ValueError, TypeError) as err:
        raise CorruptIndexError(f"a stored document cannot be read ({err}); run `dowse doctor --verify`") from err


def _row(row: Sequence[Any]) -> Row:
    chunk = decoded(row[3], row[4])
    return Row(row[0], chunk.id, chunk.content_hash, chunk)
