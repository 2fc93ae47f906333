"""Embedded store: a folder with SQLite as the source of truth and derived search segments beside it."""

from __future__ import annotations

import logging
from contextlib import closing, suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from dowse.errors import BadRequestError, BusyError, CorruptIndexError, NoIndexError, StorageError
from dowse.store.files import replace_file, storing
from dowse.store.kernels.numpy_kernel import NUMPY, Kernel
from dowse.store.lock import WriterLock
from dowse.store.segments.arrays import MappedFiles
from dowse.store.segments.generation import GENERATION, UNPUBLISHED, Generation, Stamp, current
from dowse.store.segments.parts import WriterCache
from dowse.store.snapshot import Snapshot
from dowse.store.sql.database import Database, create_database
from dowse.store.sql.schema import DATABASE, DERIVED, LOCK
from dowse.store.sql.vector_cache import Model, VectorCache

if TYPE_CHECKING:
    from dowse.store.writer import EmbeddedWriter

_log = logging.getLogger("dowse")
_CREATE_WAIT_S = 30.0  # while another process creates the same index, which takes milliseconds; chosen
_RETRIES = 20  # of a reader that meets publications in the making; 5 were too few beside busy cores


class EmbeddedStore:
    """Store in one folder; any number of processes read it, one at a time writes. Satisfies `ports.Store`."""

    def __init__(self, folder: Path, *, read_only: bool = False, create: bool = True, kernel: Kernel = NUMPY) -> None:
        self.folder = folder
        self._derived = folder / DERIVED
        self._read_only = read_only
        self._kernel = kernel
        self._cache = WriterCache()
        if not (folder / DATABASE).exists():
            if read_only or not create:
                raise NoIndexError(f"no index at {folder}; create one with: dowse index PATH --index {folder}")
            _create(folder)
        self.database = Database(folder / DATABASE, read_only=read_only)
        self.fact, self.set_fact = self.database.fact, self.database.set_fact
        self.sources, self.documents, self.paths = self.database.sources, self.database.documents, self.database.paths
        self._snapshot: Snapshot | None = None
        self._stamp: Stamp = ()
        self._maps = MappedFiles()
        self._lock = Lock()
        if not read_only:
            self._catch_up()

    def reader(self) -> Snapshot:
        """Return the newest published snapshot; the same object while nothing new is published."""
        with self._lock:
            if self._snapshot is None or self._snapshot.place.stamp() != self._stamp:
                self._snapshot, self._stamp = self._take(self.place())
            return self._snapshot

    def writer(self, *, wait_s: float = 0.0) -> EmbeddedWriter:
        if self._read_only:
            raise BadRequestError(f"{self.folder} was opened read-only; open it without read_only to write")
        from dowse.store.writer import EmbeddedWriter  # a search does not write

        lock = WriterLock(self.folder / LOCK, wait_s)
        try:
            return EmbeddedWriter(self._derived, self.database, lock, self.reader, self._cache)
        except BaseException:
            lock.close()
            raise

    def close(self) -> None:
        self._snapshot = None
        self._maps = MappedFiles()
        self._cache.close()
        self.database.close()

    def place(self) -> Generation:
        """Return the generation that serves; an empty one before the first publication."""
        found = current(self._derived)
        if found is None and self.database.fact(GENERATION) is not None:
            raise CorruptIndexError(f"{self._derived} is missing; run `dowse rebuild`")
        return found or Generation(self._derived, UNPUBLISHED)

    def _take(self, place: Generation) -> tuple[Snapshot, Stamp]:
        """Map a snapshot of this generation, or of a newer one that serves by then."""
        for left in reversed(range(_RETRIES)):
            stamp = place.stamp()
            try:
                maps = MappedFiles(self._maps)
                snapshot = Snapshot(place, self._model(place), self.database, self._kernel, maps, self._snapshot)
                maps.forget()
                self._maps = maps
                # A compaction deletes tombstones when its generation serves: without them deleted chunks reappear.
                newer = self.place()
                if newer == place:
                    return snapshot, stamp
            except (CorruptIndexError, FileNotFoundError):
                # A file that a newer publication replaced is no damage. Real damage is still there at a second try.
                newer = self.place()
                if not left or (newer == place and newer.stamp() == stamp):
                    raise
            place = newer
        raise CorruptIndexError(f"{self._derived} changed during every read; run the command again")

    def _model(self, place: Generation) -> Model | None:
        """Return the model that serves. A number always means the same model."""
        known = self._snapshot.model if self._snapshot is not None else None
        if known is not None and known.number == place.model:
            return known
        models = {model.number: model for model in VectorCache(self.database).models()}
        if place.model is not None and place.model not in models:
            raise CorruptIndexError(f"the model of {place.folder} is not in {DATABASE}; run `dowse rebuild`")
        return models.get(place.model) if place.model is not None else None

    def _catch_up(self) -> None:
        """Publish rows that the segments lack, and repair them, unless another process writes: its writer does."""
        with suppress(CorruptIndexError, FileNotFoundError):
            if self.reader().seq == self.database.seq():
                return
        try:
            self.writer().close()
        except BusyError:
            pass
        except StorageError as err:  # a full disk can be read from
            with suppress(CorruptIndexError, FileNotFoundError):
                self.reader()
                _log.warning("dowse: %s; answers come from what was published before", err)
                return
            raise


def create_folder(folder: Path) -> None:
    """Create the folder of an index, which only its owner can read."""
    with storing(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)  # it holds text of private files; chmod opens it to a group


def hide_from_git(folder: Path) -> None:
    """Keep the index out of git. The caller holds the writer's lock: two processes must not replace one file."""
    replace_file(folder / ".gitignore", b"*\n")


def _create(folder: Path) -> None:
    """Create an empty index under the writer's lock, so that two processes do not replace each other's."""
    create_folder(folder)
    with closing(WriterLock(folder / LOCK, _CREATE_WAIT_S)):
        if not (folder / DATABASE).exists():
            hide_from_git(folder)
            create_database(folder / DATABASE)
