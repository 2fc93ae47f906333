"""Append-only files of numbers, published together: rows enter, mapped arrays leave.

A part is a folder of such files and a state with the published bytes of each. Writers append and then publish a
state, so a reader sees all of a publication or nothing of it. The next writer overwrites bytes beyond the state.
Files end with a hole that takes no space, so that the reader of the next snapshot has them mapped already. Writers use
`pwrite`, never a map: a full disk is an error, not a bus error. The state has a CRC-32 of every block for `verify`.

A publication is not forced to the disk, because a part can be rebuilt from SQLite. `sync` does that when the writer
ends, and notes the bytes in `synced.json`. A state names the boot in which it was written. A reader in another boot
checks the bytes that were not synced: a power failure may have lost them, a killed process cannot.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import numpy as np
from numpy.typing import NDArray

from dowse.errors import CorruptIndexError
from dowse.store.files import file_mode, make_folder, replace_file, storing, write_at
from dowse.store.segments.state import FORMAT, STATE, FileState, PartState, StateFile, read_state

BLOCK_BYTES = 1 << 20  # chosen: a verification names the damaged megabyte
_LEAST_ROOM = 1 << 16  # for a file to grow before it needs a new mapping; chosen
SYNCED = "synced.json"


@cache
def _boot() -> str:
    """Return the id of this boot; empty where the system has none, and every publication is synced."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def _synced(folder: Path) -> dict[str, int]:
    """Return the bytes of each file that were forced to the disk, as far as known."""
    try:
        return msgspec.json.decode((folder / SYNCED).read_bytes(), type=dict[str, int])
    except (FileNotFoundError, msgspec.DecodeError):  # without it, all files are checked
        return {}


class _Growing:
    """File that grows by appending."""

    __slots__ = ("_blocks", "_tail", "handle", "path", "room", "size")

    def __init__(self, path: str, known: FileState) -> None:
        self.path = path
        self.handle = -1  # not open yet
        self.room = 0  # its bytes, with the hole at its end
        self.size = known.bytes  # its bytes, with what is not published yet
        self._blocks = list(known.blocks)
        self._tail = known.tail

    def open(self) -> int:
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, file_mode(os.path.dirname(self.path)))
        self.room = os.fstat(handle).st_size
        if self.room < self.size:
            os.close(handle)
            raise CorruptIndexError(f"{self.path} is truncated; run `dowse rebuild`")
        self.handle = handle
        return handle

    def append(self, data: memoryview) -> None:
        handle = self.handle if self.handle >= 0 else self.open()
        end = self.size + len(data)
        if end > self.room:
            self.room = end + max(end // 8, _LEAST_ROOM)
            os.ftruncate(handle, self.room)
        write_at(handle, data, self.size)
        # Block checksums go on where the last append stopped, so an append costs what it appends.
        filled = self.size % BLOCK_BYTES
        while filled + len(data) >= BLOCK_BYTES:
            self._blocks.append(crc32(data[: BLOCK_BYTES - filled], self._tail))
            data = data[BLOCK_BYTES - filled :]
            self._tail, filled = 0, 0
        self._tail = crc32(data, self._tail)
        self.size = end

    def state(self) -> FileState:
        return FileState(self.size, tuple(self._blocks), self._tail)

    def close(self) -> None:
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1


class PartWriter:
    """Writer of the files of a part. Readers see nothing of it until `publish`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._states = StateFile(folder)
        if self._states.mark is None:  # nothing was published yet
            make_folder(folder)
        self.state = PartState(0, 0) if self._states.mark is None else read_state(folder)
        self.still = self._states.still
        self._files = {name: _Growing(f"{folder}/{name}", each) for name, each in self.state.files.items()}

    @cached_property
    def _synced(self) -> dict[str, int]:
        return _synced(self.folder)

    def size(self, name: str) -> int:
        """Return the bytes of a file, with those not published yet."""
        found = self._files.get(name)
        return found.size if found else 0

    def append(self, name: str, values: NDArray[Any]) -> None:
        if not values.size:
            return
        try:
            if name not in self._files:
                self._files[name] = _Growing(f"{self.folder}/{name}", FileState())
            self._files[name].append(memoryview(values.tobytes()))  # a slice of a view copies nothing
        except OSError:
            with storing(self.folder, name):  # only on failure: an update appends to thirty files
                raise

    def pad(self, name: str, to_bytes: int) -> None:
        """Append zeros up to a size, for rows without a value in an optional file."""
        self.append(name, np.zeros(max(to_bytes - self.size(name), 0), np.uint8))

    def array(self, name: str, dtype: Any) -> NDArray[Any]:
        """Map a file with the bytes not published yet."""
        return PartReader(self.folder, PartState(0, 0, files={name: FileState(self.size(name))})).array(name, dtype)

    def last(self, name: str, dtype: str) -> int:
        """Return the last number of a file, 0 if it has none."""
        file = self._files.get(name)
        if file is None or not file.size:
            return 0
        size = np.dtype(dtype).itemsize
        handle = file.handle if file.handle >= 0 else file.open()
        return int(np.frombuffer(os.pread(handle, size, file.size - size), dtype)[0])

    def drop(self, name: str) -> None:
        """Leave a file out of the next publication; it is deleted then, or now if it never was in one."""
        if name not in self.state.files:
            (self.folder / name).unlink(missing_ok=True)
        if name in self._files:
            self._files.pop(name).close()

    def publish(self, rows: int, seq: int, facts: Mapping[str, float] | None = None) -> None:
        """Show readers the rows appended so far."""
        gone = self.state.files.keys() - self._files.keys()
        files = {name: each.state() for name, each in self._files.items()}
        self.state = PartState(rows, seq, FORMAT, files, self.state.facts | dict(facts or {}), _boot())
        if not _boot():
            self._force()
        self._states.write(self.state, sync=not _boot())
        for name in gone:
            (self.folder / name).unlink(missing_ok=True)

    def sync(self) -> None:
        """Force the published bytes to the disk. The state does not change."""
        sizes = {name: each.bytes for name, each in self.state.files.items()}
        if sizes == self._synced:
            return
        self._force()
        with storing(self.folder, STATE), open(self.folder / STATE, "rb") as file:
            os.fsync(file.fileno())
        self._synced = sizes
        replace_file(self.folder / SYNCED, msgspec.json.encode(sizes))

    def close(self) -> None:
        self._states.close()
        for each in self._files.values():
            each.close()

    def _force(self) -> None:
        with storing(self.folder):
            for name, file in sorted(self._files.items()):
                if file.size != self._synced.get(name, 0):
                    os.fsync(file.handle if file.handle >= 0 else file.open())
                    self._synced[name] = file.size


class MappedFiles:
    """Mapped files of a snapshot, which the next one takes over: to map thirty files takes a millisecond.

    A publication makes files longer and a generation never replaces one, so a mapping stays valid.
    """

    def __init__(self, before: MappedFiles | None = None) -> None:
        self._before = {} if before is None else before._now
        self._now: dict[str, tuple[mmap.mmap, int, NDArray[Any]]] = {}  # by path: its bytes, those that count, as rows

    def forget(self) -> None:
        """Release the mappings of the snapshot before that this one did not use."""
        self._before = {}

    def array(self, path: str, size: int, dtype: Any) -> NDArray[Any]:
        """Return the first bytes of a file as numbers, always of the same type."""
        mapped, known, found = self._now.get(path) or self._before.get(path) or (None, 0, _NO_ROWS)
        if mapped is None or len(mapped) < size:
            mapped = _mapped(path, size)
        if known != size:
            # np.frombuffer over mmap, not np.memmap: every slice of a memmap pays for the subclass.
            found = np.frombuffer(mapped, dtype, size // np.dtype(dtype).itemsize)
        self._now[path] = (mapped, size, found)
        return found


_NO_ROWS = np.empty(0, np.uint8)


def _mapped(path: str, size: int) -> mmap.mmap:
    """Map at least so many bytes of a file."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError as err:
        raise CorruptIndexError(f"{path} is missing; run `dowse rebuild`") from err
    try:
        room = os.fstat(handle).st_size
        if room < size:
            raise CorruptIndexError(f"{path} is truncated; run `dowse rebuild`")
        return mmap.mmap(handle, room, access=mmap.ACCESS_READ)
    finally:
        os.close(handle)


class PartReader:
    """Reader of the published rows of a part, mapped."""

    def __init__(self, folder: Path, state: PartState | None = None, maps: MappedFiles | None = None) -> None:
        self.folder = folder
        self.state = state or read_state(folder)
        self._files = f"{folder}/"
        self._maps = maps or MappedFiles()
        if self.state.boot not in ("", _boot()):
            for lost in self.damaged(unsynced=True):
                raise CorruptIndexError(f"{lost} was lost when the machine stopped; run `dowse rebuild`")

    def array(self, name: str, dtype: Any, *shape: int) -> NDArray[Any]:
        """Return the file as an array of rows; empty when it does not exist."""
        known = self.state.files.get(name)
        if known is None or not known.bytes:
            return np.empty((0, *shape), dtype)
        found = self._maps.array(self._files + name, known.bytes, dtype)
        return found.reshape(-1, *shape) if shape else found

    def damaged(self, *, unsynced: bool = False) -> Iterator[str]:
        """Yield the names of files and blocks that fail their checksum; of all, or of those not synced."""
        synced = _synced(self.folder) if unsynced else {}
        for name, known in self.state.files.items():
            if known.bytes <= synced.get(name, 0):
                continue
            data = memoryview(_mapped(self._files + name, known.bytes))[: known.bytes]
            sums = [*known.blocks, *([known.tail] if known.bytes % BLOCK_BYTES else [])]
            first = synced.get(name, 0) // BLOCK_BYTES
            for number, wanted in enumerate(sums[first:], first):
                if crc32(data[number * BLOCK_BYTES : (number + 1) * BLOCK_BYTES]) != wanted:
                    yield f"{self.folder.name}/{name}, megabyte {number}"
