"""Verification of the embedded store: a store enters, checks leave; nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from zlib import crc32

import numpy as np

from dowse.errors import CorruptIndexError
from dowse.identity import embedded_text, searchable_text, text_hash
from dowse.reports import Check
from dowse.store.embedded import EmbeddedStore
from dowse.store.segments.arrays import PartReader
from dowse.store.segments.forward import WORD_LEGS, hash_term
from dowse.store.segments.vectors import rounding_error
from dowse.store.snapshot import Snapshot
from dowse.store.sql.database import Database, Row
from dowse.store.sql.vector_cache import Model, VectorCache
from dowse.tokenizer import Tokenizer

_REBUILD = "dowse rebuild"
_BATCH = 1000


def verify(store: EmbeddedStore, *, deep: bool) -> Iterator[Check]:
    """Run quick checks; with `deep` check every row, every checksum and the agreement of all parts."""
    yield _database(store.database, deep=deep)
    stored = _rows(store.database) if deep else None
    if stored:
        yield stored
        yield _embeddings(store.database)
    try:
        snapshot = store.reader()
    except CorruptIndexError as err:
        yield Check("derived", "fail", str(err), _REBUILD)
        return
    yield _published(store, snapshot)
    yield _agreement(store.database, snapshot)
    if stored:
        bytes_found = _checksums(store, snapshot)
        yield bytes_found
        if stored.state == bytes_found.state == "ok":  # damaged bytes may not even be readable
            yield _terms(store.database, snapshot)
            if snapshot.model:
                yield _vectors(store.database, snapshot, snapshot.model)


def verify_rows(path: Path) -> Iterator[Check]:
    """Check a database alone: its pages, and every stored chunk and vector."""
    database = Database(path, read_only=True)
    try:
        yield _database(database, deep=True)
        yield _rows(database)
        yield _embeddings(database)
    finally:
        database.close()


def _result(name: str, problems: list[str], fine: str, fix: str) -> Check:
    if not problems:
        return Check(name, "ok", fine)
    more = f" and {len(problems) - 3} more" if len(problems) > 3 else ""
    return Check(name, "fail", "; ".join(problems[:3]) + more, fix)


def _database(database: Database, *, deep: bool) -> Check:
    found = [row[0] for row in database.query("PRAGMA integrity_check" if deep else "PRAGMA quick_check")]
    problems = [] if found == ["ok"] else found
    fix = "restore a backup, or delete the index folder and run: dowse index PATH"
    return _result("database", problems, "no damage found", fix)


def _rows(database: Database) -> Check:
    """Check every chunk's bytes against their checksum, and its text against its hash."""
    count, damaged = _damaged(database, "chunks", "key", "body")
    problems = [f"chunk row {key} does not match its checksum" for key in damaged]
    if not problems:
        chunks = (row.chunk for row in _all_rows(database))
        wrong = (each for each in chunks if text_hash(embedded_text(each)) != each.content_hash)
        problems = [f"chunk {each.id} does not match its hash" for each in wrong]
    fix = "restore a backup, or delete the index folder and run: dowse index PATH"
    return _result("chunks", problems, f"{count} rows match their checksums", fix)


def _damaged(database: Database, table: str, key: str, data: str) -> tuple[int, list[int]]:
    """Count the rows of a table, and return the keys of those that fail their checksum."""
    sql = f"SELECT {key}, crc, {data} FROM {table} WHERE {key} > ? ORDER BY {key} LIMIT {_BATCH}"
    damaged, last, count = [], 0, 0
    while rows := database.query(sql, [last]):
        damaged += [number for number, crc, stored in rows if crc32(stored) != crc]
        last, count = rows[-1][0], count + len(rows)
    return count, damaged


def _all_rows(database: Database) -> Iterator[Row]:
    last = 0
    while rows := database.rows_after(last, _BATCH):
        yield from rows
        last = rows[-1].key


def _embeddings(database: Database) -> Check:
    count, damaged = _damaged(database, "embeddings", "number", "vector")
    problems = [f"vector {number} does not match its checksum" for number in damaged]
    astray = database.query(
        "SELECT count(*) FROM embedded k LEFT JOIN embeddings e"
        " ON e.number = k.number AND e.model = k.model AND e.content_hash = k.content_hash WHERE e.number IS NULL"
    )[0][0]
    problems += [f"{astray} content hashes have no stored vector"] if astray else []
    return _result("embeddings", problems, f"{count} vectors match their checksums", "dowse reembed MODEL")


def _published(store: EmbeddedStore, snapshot: Snapshot) -> Check:
    if snapshot.seq == store.database.seq():
        return Check("published", "ok", "every stored document is searchable")
    return Check(
        "published", "warn", "stored documents are not searchable yet; a writer is running or crashed", "dowse index"
    )


def _agreement(database: Database, snapshot: Snapshot) -> Check:
    """Check that the database and the segments hold the same living chunks."""
    truth = [row[0] for row in database.query("SELECT key FROM chunks WHERE searchable AND died IS NULL ORDER BY key")]
    derived = snapshot.keys[snapshot.alive].tolist()
    if snapshot.seq != database.seq():
        truth = [key for key in truth if key in set(derived)]
    problems = [] if truth == derived else [f"{len(truth)} chunks are stored, {len(derived)} are searchable"]
    return _result("agreement", problems, f"{len(truth)} chunks in the database and in the search structures", _REBUILD)


def _checksums(store: EmbeddedStore, snapshot: Snapshot) -> Check:
    place = store.place()
    problems = list(PartReader(place.rows).damaged()) if place.number else []
    if snapshot.model:
        problems += PartReader(place.vectors(snapshot.model.number)).damaged()
    return _result("checksums", problems, "every block matches its checksum", _REBUILD)


def _published_rows(database: Database, snapshot: Snapshot) -> Iterator[tuple[int, Row]]:
    """Yield the rows that have a slot, with it."""
    slot_of = {int(key): slot for slot, key in enumerate(snapshot.keys)}
    return ((slot_of[row.key], row) for row in _all_rows(database) if row.key in slot_of)


def _terms(database: Database, snapshot: Snapshot) -> Check:
    """Check the forward index against the chunks' tokenized text, and the inverted index against the forward one."""
    tokenizer, problems = Tokenizer(), []
    for slot, row in _published_rows(database, snapshot):
        terms = tokenizer(searchable_text(row.chunk))
        of_leg = dict(zip(WORD_LEGS, (terms.code, [*terms.prose, *terms.stops]), strict=True))
        wanted = sorted({hash_term(term, leg) for leg, found in of_leg.items() for term in found})
        if snapshot.forward.terms_of(np.array([slot])).tolist() != wanted:
            problems.append(f"the terms of chunk {row.id} differ from the forward index")
    runs = snapshot.inverted.disagreeing(snapshot.forward.entries)
    problems += [f"the {each} differ from the forward index" for each in runs]
    return _result("terms", problems, "the word index matches the chunks", _REBUILD)


def _vectors(database: Database, snapshot: Snapshot, model: Model) -> Check:
    """Check every served vector against the one in the database."""
    problems, embeddings, rows = [], VectorCache(database), _published_rows(database, snapshot)
    while batch := list(islice(rows, _BATCH)):
        known = embeddings.get(model, [row.content_hash for _, row in batch])
        served, exist = snapshot.vectors(snapshot.ids[[slot for slot, _ in batch]])
        for (_, row), own, exists in zip(batch, served, exist, strict=True):
            true = known.get(row.content_hash)
            if exists and (true is None or np.abs(own - true).max() > rounding_error(true)):
                problems.append(f"the vector of chunk {row.id} differs from the database")
    return _result("vectors", problems, "the search vectors match the database", _REBUILD)
