"""SQLite connections: statements enter, rows leave, and a refusal becomes an error of Dowse."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from dowse.errors import CorruptIndexError, StorageError, UnavailableError
from dowse.store.files import Mark, mark

_BUSY_S = 30.0
_MAPPED_BYTES = 1 << 29  # at a million chunks 2 GB are 0.9 GB of RSS, and 256 MB cost a query some 0.1 ms
_READ_CACHE_KB, _WRITE_CACHE_KB = 1024, 32768  # chosen: what a search looks at, and what one transaction changes
_CHECKPOINT_PAGES = 16000  # chosen: some transactions, which touch many pages twice; 4000 cost 1 % more CPU of indexing
_FRAME_BYTES = 24 + 4096  # of a page in the log, which is never all zeros: it carries the page's number and a salt
_LOG_STEP_BYTES = 1 << 20  # chosen: what some four small updates write


class Connections:
    """Connections of a database, one a thread."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._path = path
        self._read_only = read_only
        self._local = threading.local()
        self.all: list[sqlite3.Connection] = []
        self._log = f"{path.absolute()}-wal"
        self._frozen = False  # a full disk: connections are made again when the files change
        self._log_bytes = 0  # as long as it was made ahead of what SQLite writes to it

    @property
    def own(self) -> sqlite3.Connection:
        """Connection of this thread."""
        found: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if found is None or (self._frozen and self._marks() != self._local.marks):
            found = self._local.connection = self._connect()
        return found

    def _marks(self) -> tuple[Mark | None, Mark | None]:
        return mark(str(self._path)), mark(self._log)

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        try:
            return self.own.execute(sql, parameters).fetchall()
        except sqlite3.DatabaseError:
            with sqlite_errors(self._path):  # only on failure: it costs as much as a small statement
                raise

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run a transaction: all or nothing; durable when it ends."""
        connection = self.own
        try:
            if not getattr(self._local, "writes", False):
                # With hashes for ids a transaction touches pages everywhere: these two make writing a fifth faster.
                connection.execute(f"PRAGMA cache_size = -{_WRITE_CACHE_KB}")
                connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
                self._local.writes = True
            connection.execute("BEGIN IMMEDIATE")
            self._lengthen_log()
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            with sqlite_errors(self._path):
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        for connection in self.all:
            connection.close()
        self.all.clear()

    def _lengthen_log(self) -> None:
        """Append zeros to the write-ahead log, once it has outgrown the last ones.

        A commit that makes the file longer changes the file system, too, and its fsync waits for that: 0.15 ms of CPU,
        a twentieth of a small update. SQLite reads the log up to the first page without the log's salt, so zeros end
        it, as the rest of an earlier round does. The caller holds SQLite's write lock.
        """
        with suppress(OSError):  # a full disk is for the transaction to find
            size = os.stat(self._log).st_size
            if size > self._log_bytes:
                handle = os.open(self._log, os.O_RDWR | os.O_CLOEXEC)
                try:
                    end = os.pread(handle, _FRAME_BYTES, max(size - _FRAME_BYTES, 0))
                    if any(end):  # else another process has made it longer
                        size += os.pwrite(handle, bytes(_LOG_STEP_BYTES), size)
                    self._log_bytes = size
                finally:
                    os.close(handle)

    def _connect(self) -> sqlite3.Connection:
        mode = "ro" if self._read_only else "rw"
        self._local.marks = self._marks()  # before it opens: files that change after this are noticed
        with sqlite_errors(self._path):
            connection = self._open(mode)
            try:
                connection.execute("SELECT 1 FROM sqlite_master").fetchone()
            except sqlite3.OperationalError as err:
                connection.close()
                log = mark(self._log)
                full = any(text in str(err) for text in ("full", "disk I/O")) and (log is None or not log[2])
                if os.access(self._path.parent, os.W_OK) and not full:
                    raise
                # A write-ahead log on a read-only medium, or no space for one: the checkpointed pages are readable.
                # Only there: an immutable connection never sees another process's writes.
                self._frozen = self._frozen or full
                connection = self._open("ro&immutable=1")
            connection.execute("PRAGMA synchronous = FULL")
            # Readers map the file's pages: a copy a thread would grow with every query.
            connection.execute(f"PRAGMA mmap_size = {_MAPPED_BYTES}")
            connection.execute(f"PRAGMA cache_size = -{_READ_CACHE_KB}")
        self.all.append(connection)
        return connection

    def _open(self, mode: str) -> sqlite3.Connection:
        uri = f"{self._path.absolute().as_uri()}?mode={mode}"
        return sqlite3.connect(uri, uri=True, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.OperationalError as err:
        text = str(err)
        if "full" in text or "disk I/O" in text:
            raise StorageError(f"cannot write {path}: {text}; free some space and run the command again") from err
        if "readonly" in text:
            raise StorageError(f"cannot write {path}: {text}") from err
        if "locked" in text or "busy" in text:
            raise UnavailableError(f"{path} is locked by another program; try again") from err
        if "no such" in text or "unable to open" in text:
            raise CorruptIndexError(f"{path}: {text}; check that --index names a Dowse index") from err
        if "decode to UTF-8" in text:
            raise CorruptIndexError(f"{path} is damaged ({text}); run `dowse doctor --verify`") from err
        raise
    except sqlite3.DatabaseError as err:
        if isinstance(err, sqlite3.IntegrityError | sqlite3.ProgrammingError):
            raise
        advice = f"restore a backup, or delete {path.parent} and run `dowse index PATH`"
        raise CorruptIndexError(f"{path} is damaged ({err}); {advice}") from err
