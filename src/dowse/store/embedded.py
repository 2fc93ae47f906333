"""The embedded store: a folder with the truth in SQLite and derived parts beside it, behind the store's port."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from dowse.errors import BadRequestError, BusyError, CorruptIndexError, NoIndexError
from dowse.store.files import replace_file, storing
from dowse.store.kernels.numpy_kernel import NUMPY, Kernel
from dowse.store.lock import WriterLock
from dowse.store.segments.arrays import Maps
from dowse.store.segments.generation import Generation, Stamp, current
from dowse.store.segments.parts import Shelf
from dowse.store.segments.state import States
from dowse.store.snapshot import Snapshot
from dowse.store.sql.database import Database, create_database
from dowse.store.sql.schema import DATABASE, DERIVED, LOCK
from dowse.store.sql.vector_cache import Embeddings, Model
from dowse.types import DocumentInfo, Source

if TYPE_CHECKING:
    from dowse.store.writer import EmbeddedWriter

_CREATE_WAIT_S = 30.0  # another process is making the same index, which takes milliseconds; chosen
_RETRIES = (
    20  # a reader meets a publication in the making; each try takes the newer one. 5 were too few beside busy cores
)


class EmbeddedStore:
    """Opened by any number of processes; written by one at a time."""

    def __init__(self, folder: Path, *, read_only: bool = False, create: bool = True, kernel: Kernel = NUMPY) -> None:
        self.folder = folder
        self._derived = folder / DERIVED
        self._lock_file = folder / LOCK
        self._read_only = read_only
        self._kernel = kernel
        self._shelf = Shelf()
        if not (folder / DATABASE).exists():
            if read_only or not create:
                raise NoIndexError(f"there is no index at {folder}; run `dowse index PATH` to make one")
            _create(folder)
        self.database = Database(folder / DATABASE, read_only=read_only)
        self._snapshot: Snapshot | None = None
        self._stamp: Stamp = ()
        self._maps = Maps()
        self._lock = Lock()
        if not read_only and self._behind():
            self._catch_up()

    def reader(self) -> Snapshot:
        """The newest published moment; the same object while nothing new is published."""
        with self._lock:
            if self._snapshot is None:
                self._snapshot, self._stamp = self._take(self._place())
            elif (stamp := self._snapshot.place.stamp()) != self._stamp:
                if stamp[0] == self._stamp[0]:  # of CURRENT
                    self._snapshot, self._stamp = self._take(self._snapshot.place, stamp)
                else:
                    self._snapshot, self._stamp = self._take(self._place())
            return self._snapshot

    def fact(self, key: str) -> str | None:
        """A small thing to remember that is not about a document."""
        return self.database.fact(key)

    def set_fact(self, key: str, value: str) -> None:
        self.database.set_fact(key, value)

    def writer(self, *, wait_s: float = 0.0) -> EmbeddedWriter:
        if self._read_only:
            raise BadRequestError(f"{self.folder} was opened read-only; open it without read_only to write")
        from dowse.store.writer import EmbeddedWriter  # a search does not write

        lock = WriterLock(self._lock_file, wait_s)
        try:
            return EmbeddedWriter(self._derived, self.database, lock, self.reader, self._shelf)
        except BaseException:
            lock.close()
            raise

    def sources(self) -> Sequence[Source]:
        return self.database.sources()

    def documents(self, source: str | None = None, under: str = "") -> Iterable[DocumentInfo]:
        return self.database.documents(source, under)

    def paths(self, source: str) -> Sequence[str]:
        return self.database.paths(source)

    def close(self) -> None:
        self._snapshot = None
        self._maps = Maps()
        self._shelf.close()
        self.database.close()

    def place(self) -> Generation:
        return self._place()

    def _place(self) -> Generation:
        found = current(self._derived)
        if found is None:
            raise CorruptIndexError(f"{self._derived} is missing; run `dowse rebuild`")
        return found

    def _take(self, place: Generation, stamp: Stamp | None = None) -> tuple[Snapshot, Stamp]:
        """`stamp` is the place's, where it was just looked at, and its CURRENT is known to mean this place."""
        for left in reversed(range(_RETRIES)):
            looked_at, stamp = stamp is not None, stamp or place.stamp()
            try:
                maps = Maps(self._maps)
                states = States(*map(self._shelf.published, stamp[1:]))
                snapshot = Snapshot(
                    place, self._model(place), self.database, self._kernel, maps, self._snapshot, states
                )
                maps.forget()
                self._maps = maps
                # A compaction forgets tombstones once its generation serves: without them the dead would rise.
                if (looked_at and place.still_serves(stamp)) or (newer := self._place()).number == place.number:
                    return snapshot, stamp
                place, stamp = newer, None
            except (CorruptIndexError, FileNotFoundError):
                # A file that a newer publication replaced is no damage; damage is the same at a second look.
                newer = self._place()
                if not left or (newer == place and newer.stamp() == stamp):
                    raise
                place, stamp = newer, None
        raise CorruptIndexError(f"{self._derived} changes faster than it can be read")

    def _model(self, place: Generation) -> Model | None:
        """The one that serves. A number always means the same model."""
        known = self._snapshot.model if self._snapshot is not None else None
        if known is not None and known.number == place.model:
            return known
        return next((model for model in Embeddings(self.database).models() if model.number == place.model), None)

    def _behind(self) -> bool:
        """Whether the derived parts lack something the truth has, or cannot be read."""
        try:
            return self.reader().seq != self.database.seq()
        except (CorruptIndexError, FileNotFoundError):
            return True

    def _catch_up(self) -> None:
        """Mend it, unless another process writes: a writer begins by mending."""
        with suppress(BusyError):
            self.writer(wait_s=0.0).close()


def _create(folder: Path) -> None:
    """Make an empty index, under the writer's lock: of two that begin at once, one must not replace the other's."""
    with storing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    lock = WriterLock(folder / LOCK, _CREATE_WAIT_S)
    try:
        if not (folder / DATABASE).exists():
            replace_file(folder / ".gitignore", b"*\n")
            create_database(folder / DATABASE)
    finally:
        lock.close()
