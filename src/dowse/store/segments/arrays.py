"""Append-only files of numbers, published together: rows enter, mapped arrays leave.

A part is a folder of such files and a state with the published bytes of each. Writers append and then publish a
state, so a reader sees all of a publication or nothing of it. The next writer overwrites bytes beyond the state.
Files end with a hole that takes no space, so that the reader of the next snapshot has them mapped already. Writers use
`pwrite`, never a map: a full disk is an error, not a bus error. The state has a CRC-32 of every block. A reader checks
a block before it first reads it, so damage is an error and never a wrong answer.

A publication is not forced to the disk, because a part can be rebuilt from SQLite. `sync` does that when the writer
ends, and notes the bytes in `synced.json`. A state names the boot in which it was written. A reader in another boot
checks the bytes that were not synced: a power failure may have lost them, a killed process cannot.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Iterator, Mapping
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

BLOCK_BYTES = 1 << 20  # chosen: the state of a million chunks has 2,000 checksums, and an error names the megabyte
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
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):  # without it, all files are checked
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

    def array(self, name: str, dtype: Any, first: int = 0) -> NDArray[Any]:
        """Map a file with the bytes not published yet; checked from an item on: no damage gets a new checksum."""
        files = {name: self._files[name].state()} if name in self._files else {}
        reader = PartReader(self.folder, PartState(0, 0, files=files))
        found = reader.unchecked(name, dtype)
        reader.check_items([name], np.array([first]), np.array([len(found)]))
        return found

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


class _Mapping:
    """Mapped file of a snapshot: its numbers, and the blocks of it that were not checked yet.

    A file grows from snapshot to snapshot. The checksum of a block that was checked up to some byte goes on from there,
    so a small update costs the check of what it appended.
    """

    __slots__ = ("_data", "_known", "_map", "_resume", "left", "rows")

    def __init__(self, path: str, known: FileState, dtype: Any, before: _Mapping | None = None) -> None:
        self._known = known
        self._resume = (0, 0)  # the byte from which the last known block is to be checked, the checksum up to there
        whole, first = -(-known.bytes // BLOCK_BYTES), 0
        self.left: set[int] = set()
        if before is not None:
            first = before._known.bytes // BLOCK_BYTES
            self.left = set(before.left)
            if first not in before.left:
                self._resume = before._known.bytes, before._known.tail
        self.left.update(range(first, whole))
        fits = before is not None and len(before._map) >= known.bytes
        self._map: mmap.mmap = before._map if before is not None and fits else _mapped(path, known.bytes)
        self._data = memoryview(self._map)
        # np.frombuffer over mmap, not np.memmap: every slice of a memmap pays for the subclass.
        self.rows: NDArray[Any] = np.frombuffer(self._map, dtype, known.bytes // np.dtype(dtype).itemsize)

    def still(self, known: FileState) -> bool:
        return self._known == known

    def damaged(self, blocks: Iterable[int]) -> Iterator[int]:
        """Check some blocks; yield those that fail their checksum."""
        for number in blocks:
            start, end, found = number * BLOCK_BYTES, min((number + 1) * BLOCK_BYTES, self._known.bytes), 0
            if start <= self._resume[0] < end:
                start, found = self._resume
            sums = self._known.blocks
            if crc32(self._data[start:end], found) == (sums[number] if number < len(sums) else self._known.tail):
                self.left.discard(number)
            else:
                yield number


class MappedFiles:
    """Mapped files of a snapshot, which the next one takes over: to map thirty files takes a millisecond.

    A publication makes files longer and a generation never replaces one, so a mapping stays valid.
    """

    def __init__(self, before: MappedFiles | None = None) -> None:
        self._before = {} if before is None else before._now
        self._now: dict[str, _Mapping] = {}  # by path

    def forget(self) -> None:
        """Release the mappings of the snapshot before that this one did not use."""
        self._before = {}

    def file(self, path: str, known: FileState, dtype: Any) -> _Mapping:
        """Return the first bytes of a file as numbers, always of the same type."""
        found = self._now.get(path) or self._before.get(path)
        if found is None or not found.still(known):
            found = _Mapping(path, known, dtype, found)
        self._now[path] = found
        return found


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
        self._mapped: dict[str, _Mapping] = {}
        if self.state.boot not in ("", _boot()):
            for lost in self.damaged(unsynced=True):
                raise CorruptIndexError(f"{lost} was lost when the machine stopped; run `dowse rebuild`")

    def array(self, name: str, dtype: Any, *shape: int) -> NDArray[Any]:
        """Return the file as an array of rows, checked; empty when it does not exist."""
        found = self.unchecked(name, dtype, *shape)
        self.check([name])
        return found

    def unchecked(self, name: str, dtype: Any, *shape: int) -> NDArray[Any]:
        """Return the file as an array of rows, for a caller that checks what it reads."""
        known = self.state.files.get(name)
        if known is None or not known.bytes:
            return np.empty((0, *shape), dtype)
        mapped = self._mapped[name] = self._maps.file(self._files + name, known, dtype)
        return mapped.rows.reshape(-1, *shape) if shape else mapped.rows

    def check(self, names: Iterable[str]) -> None:
        """Check the blocks of files that were not checked yet."""
        for name in names:
            file = self._mapped.get(name)
            if file is not None and file.left:
                self._refuse(name, file.damaged(sorted(file.left)))

    def check_items(self, names: Iterable[str], firsts: NDArray[Any], ends: NDArray[Any]) -> None:
        """Check the blocks of files that hold these ranges of items, if they were not checked yet."""
        for name in names:
            file = self._mapped.get(name)
            if file is None or not file.left:
                continue
            some, size = ends > firsts, file.rows.itemsize
            low, high = firsts[some] * size // BLOCK_BYTES, (ends[some] * size - 1) // BLOCK_BYTES
            spans = set(zip(low.tolist(), high.tolist(), strict=True))
            touched = {block for first, last in spans for block in range(first, last + 1)}
            self._refuse(name, file.damaged(sorted(touched & file.left)))

    def unread(self, names: Iterable[str]) -> bool:
        """Return whether one of the files has blocks that were not checked yet."""
        return any(name in self._mapped and self._mapped[name].left for name in names)

    def damaged(self, *, unsynced: bool = False) -> Iterator[str]:
        """Yield the names of files and blocks that fail their checksum; of all, or of those not synced."""
        synced = _synced(self.folder) if unsynced else {}
        for name, known in self.state.files.items():
            if known.bytes > synced.get(name, 0):
                file = _Mapping(self._files + name, known, np.uint8)
                first = synced.get(name, 0) // BLOCK_BYTES
                for number in file.damaged(range(first, -(-known.bytes // BLOCK_BYTES))):
                    yield self._place(name, number)

    def _refuse(self, name: str, damaged: Iterator[int]) -> None:
        for number in damaged:
            raise CorruptIndexError(f"{self.folder.parent / self._place(name, number)} is damaged; run `dowse rebuild`")

    def _place(self, name: str, number: int) -> str:
        return f"{self.folder.name}/{name}, megabyte {number}"
