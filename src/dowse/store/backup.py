"""Backup of an index: a live index enters, one checked file leaves, and a restored index leaves that file.

The file is a zip archive of SQLite's database and a manifest with its SHA-256. Search structures are rebuilt from the
database, which has the vectors, too: nothing is read or embedded again.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import msgspec

from dowse.errors import BadRequestError, CorruptIndexError, NotFoundError
from dowse.store.embedded import EmbeddedStore, create_folder, hide_from_git
from dowse.store.files import storing, sync_folder
from dowse.store.lock import WriterLock
from dowse.store.sql.connections import sqlite_errors
from dowse.store.sql.schema import DATABASE, LOCK, check_version, upgradable
from dowse.store.verify import verify_rows

_MANIFEST, _FORMAT = "dowse-backup.json", 1
_PIECE_BYTES = 1 << 20
_MANIFEST_BYTES = 1 << 16  # chosen: a manifest has a few hundred


class BackupManifest(msgspec.Struct, frozen=True):
    """Content of a backup, and what proves it."""

    format: int
    schema: str
    created_at: str
    documents: int
    chunks: int
    vectors: int
    size_bytes: int  # of the database
    sha256: str  # of the database


def back_up(folder: Path, target: Path) -> BackupManifest:
    """Write the index in a folder to one file. Writers may go on; it has what was stored when it began."""
    if target.exists() and not zipfile.is_zipfile(target):
        raise BadRequestError(f"{target} exists and is not a backup; give another file name")
    copy, archive = target.with_name(f".{target.name}.db"), target.with_name(f".{target.name}.new")
    try:
        with storing(target), sqlite_errors(folder / DATABASE):
            for path in (copy, archive):
                path.unlink(missing_ok=True)
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            manifest = _copied(folder, copy)
            with archive.open("r+b") as file:
                with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as written:
                    written.writestr(_MANIFEST, msgspec.json.encode(manifest))
                    written.write(copy, DATABASE)
                file.flush()
                os.fsync(file.fileno())
            archive.replace(target)
            sync_folder(target.absolute().parent)
    finally:
        copy.unlink(missing_ok=True)
        archive.unlink(missing_ok=True)
    return manifest


def _copied(folder: Path, copy: Path) -> BackupManifest:
    """Copy the database as of one moment, and check every row of the copy."""
    store = EmbeddedStore(folder, read_only=True)
    try:
        with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            store.database.connections.own.backup(connection)
            connection.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
            documents, chunks, vectors = (
                connection.execute(f"SELECT count(*) FROM {each}").fetchone()[0]
                for each in ("documents", "chunks WHERE searchable AND died IS NULL", "embeddings")
            )
        schema = store.fact("schema_version") or ""
    finally:
        store.close()
    _check_rows(copy)
    with copy.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return BackupManifest(_FORMAT, schema, now, documents, chunks, vectors, copy.stat().st_size, digest)


def restore(source: Path, folder: Path) -> BackupManifest:
    """Make an index in a folder from a backup, and rebuild its search structures."""
    if (folder / DATABASE).exists():
        raise BadRequestError(f"{folder} already has an index; give another folder with --index, or delete it first")
    with _opened(source) as (archive, manifest):
        create_folder(folder)
        fresh = folder / f"{DATABASE}.new"
        with closing(WriterLock(folder / LOCK)):
            hide_from_git(folder)
            try:
                with storing(fresh), archive.open(DATABASE) as packed:
                    _unpack(packed, fresh, manifest, source)
                    with sqlite_errors(fresh), closing(sqlite3.connect(fresh, isolation_level=None)) as connection:
                        connection.execute("PRAGMA journal_mode = WAL")
                    fresh.rename(folder / DATABASE)
                    sync_folder(folder)
            finally:
                fresh.unlink(missing_ok=True)
    EmbeddedStore(folder).close()  # rebuilds the search structures
    return manifest


@contextmanager
def _opened(source: Path) -> Iterator[tuple[zipfile.ZipFile, BackupManifest]]:
    """Open a backup of this version. Every damage to the archive is a CorruptIndexError."""
    if not source.is_file():
        raise NotFoundError(f"no such file: {source}")
    try:
        with zipfile.ZipFile(source) as archive:
            try:
                if archive.getinfo(_MANIFEST).file_size > _MANIFEST_BYTES:
                    raise BadRequestError(f"{source} is a zip file, but not a backup of Dowse")
                manifest = msgspec.json.decode(archive.read(_MANIFEST), type=BackupManifest)
            except (KeyError, msgspec.DecodeError) as err:
                raise BadRequestError(f"{source} is a zip file, but not a backup of Dowse") from err
            if manifest.format != _FORMAT:
                raise BadRequestError(f"{source} has backup format {manifest.format}; install a newer Dowse")
            if not upgradable(manifest.schema):
                check_version(manifest.schema, source)
            yield archive, manifest
    except (zipfile.BadZipFile, zipfile.zlib.error, EOFError, KeyError) as err:  # type: ignore[attr-defined]
        if not zipfile.is_zipfile(source):
            raise BadRequestError(f"{source} is not a backup of Dowse, or is cut short") from err
        raise CorruptIndexError(f"{source} is damaged ({err}); use another backup") from err


def _unpack(packed: IO[bytes], fresh: Path, manifest: BackupManifest, source: Path) -> None:
    """Write the database, no more bytes than the manifest promises, and check its hash."""
    found, left = hashlib.sha256(), manifest.size_bytes
    with open(fresh, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        while left >= 0 and (piece := packed.read(_PIECE_BYTES)):
            found.update(piece)
            left -= len(piece)
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    if left or found.hexdigest() != manifest.sha256:
        raise CorruptIndexError(f"{source} is damaged: its database does not match its SHA-256; use another backup")


def _check_rows(copy: Path) -> None:
    """Refuse to back up damage: the last good backup would be replaced by it."""
    for check in verify_rows(copy):
        if check.state == "fail":
            raise CorruptIndexError(f"the index is damaged ({check.detail}); {check.fix}")
