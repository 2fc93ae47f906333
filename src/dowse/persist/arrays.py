"""Append-only files of numbers, published together: rows go in, mapped arrays come out.

A part is a folder of such files and a `state.json` that says how many bytes of each count. Writers append and then
replace the state atomically, so a reader sees all of a publication or nothing of it, and what a crashed writer left
beyond the state is written over. Files are longer than what counts, with a hole that takes no space: so a reader of the
next moment finds them mapped already. They are written, never stored into through a map: a full disk is an error at
`pwrite`, not a bus error. The state carries a CRC-32 of every block, by which `verify` finds a flipped bit.

A publication is not forced to the disk: the truth was, and a part can be made again from it. `sync` does that, when
the writer ends, and notes how far in `synced.json`. A state says in which run of the machine it was written, and
whoever opens the part in another one checks what was not synced: a power failure may have lost it, a killed process
cannot.
"""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache, cached_property
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import numpy as np
from numpy.typing import NDArray

from dowse.errors import CorruptIndexError, StorageError

BLOCK_BYTES = 1 << 20  # chosen: a verification names the damaged megabyte
_LEAST_ROOM = 1 << 16  # for a file to grow before it is mapped anew; chosen
STATE = "state.json"
SYNCED = "synced.json"
FORMAT = 3  # 2: the inverted index is ours, and its runs lie beside the rows; 3: a vector is kept in 16 bits


class FileState(msgspec.Struct, frozen=True):
    """How much of a file counts: the checksums of its whole blocks and of the part of a block at its end."""

    bytes: int = 0
    blocks: tuple[int, ...] = ()
    tail: int = 0


class PartState(msgspec.Struct, frozen=True):
    """What is published."""

    rows: int
    seq: int  # the last change of the truth that is in it
    format: int = FORMAT
    files: dict[str, FileState] = {}
    facts: dict[str, float] = {}  # small numbers that belong to the rows
    boot: str = ""  # the run of the machine that it was written in; empty: all of it was forced to the disk before


_decode_state = msgspec.json.Decoder(PartState).decode


@contextmanager
def storing(folder: Path, name: str = "") -> Iterator[None]:
    """The border to the file system: what it refuses becomes a StorageError."""
    try:
        yield
    except OSError as err:
        what = folder / name
        if err.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageError(
                f"no space left for {what}; free some and run the command again, nothing is lost"
            ) from err
        if err.errno in (errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO):
            raise StorageError(f"cannot write {what}: {err.strerror}") from err
        raise


def replace_file(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Write a small file so that it is wholly old or wholly new after any crash; of the machine, too, if synced."""
    temporary = f"{path}.new"
    with storing(path):
        with open(temporary, "wb") as file:
            file.write(data)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
        if sync:
            sync_folder(path.parent)


@cache
def _boot() -> str:
    """Names this run of the machine; empty where the system has no such name, and everything is synced at once."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def _synced(folder: Path) -> dict[str, int]:
    """By file, the bytes that were forced to the disk, as far as it is known."""
    try:
        return msgspec.json.decode(read_file(folder, SYNCED), type=dict[str, int])
    except (FileNotFoundError, msgspec.DecodeError):  # it says what need not be checked; without it, all is
        return {}


def sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_file(folder: Path, name: str) -> bytes:
    """A small file. Without pathlib and buffers: a third of the time, and an update reads ten of them."""
    with open(f"{folder}/{name}", "rb", buffering=0) as file:
        return file.read()


def read_state(folder: Path) -> PartState:
    try:
        state = _decode_state(read_file(folder, STATE))
    except FileNotFoundError as err:
        raise CorruptIndexError(f"{folder} has no {STATE}; run `dowse rebuild`") from err
    except msgspec.DecodeError as err:
        raise CorruptIndexError(f"{folder / STATE} cannot be read ({err}); run `dowse rebuild`") from err
    if state.format != FORMAT:
        raise CorruptIndexError(f"{folder} has format {state.format}, not {FORMAT}; run `dowse rebuild`")
    return state


class PartWriter:
    """Appends to the files of a part. Nothing counts until `publish`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if os.path.exists(f"{folder}/{STATE}"):
            self.state = read_state(folder)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            self.state = PartState(0, 0)
        self._sizes = {name: each.bytes for name, each in self.state.files.items()}
        self._sums = {name: (list(each.blocks), each.tail) for name, each in self.state.files.items()}
        self._open: dict[str, int] = {}
        self._room: dict[str, int] = {}  # bytes of an open file, with the hole at its end

    @cached_property
    def _synced(self) -> dict[str, int]:
        return _synced(self.folder)

    def size(self, name: str) -> int:
        """Bytes of a file, with what is not published yet."""
        return self._sizes.get(name, 0)

    def append(self, name: str, values: NDArray[Any]) -> None:
        data = memoryview(np.ascontiguousarray(values).data).cast("B") if values.size else memoryview(b"")
        if not len(data):
            return
        start = self.size(name)
        end = start + len(data)
        try:
            handle = self._handle(name)
            if end > self._room[name]:
                self._room[name] = end + max(end // 8, _LEAST_ROOM)
                os.ftruncate(handle, self._room[name])
            self._write(handle, data, start)
        except OSError:
            with storing(self.folder, name):  # entered only now: an update appends to thirty files
                raise
        self._sizes[name] = end
        self._checksum(name, data)

    def pad(self, name: str, to_bytes: int) -> None:
        """Zeros up to a size: rows that an optional file has no value for."""
        missing = to_bytes - self.size(name)
        while missing > 0:
            self.append(name, np.zeros(min(missing, BLOCK_BYTES), np.uint8))
            missing = to_bytes - self.size(name)

    def array(self, name: str, dtype: Any) -> NDArray[Any]:
        """A file as it is now, mapped, with what is not published yet."""
        return PartReader(self.folder, PartState(0, 0, files={name: FileState(self.size(name))})).array(name, dtype)

    def last(self, name: str, dtype: str) -> int:
        """The last number of a file, 0 if it has none."""
        if not self.size(name):
            return 0
        size = np.dtype(dtype).itemsize
        return int(np.frombuffer(os.pread(self._handle(name), size, self.size(name) - size), dtype)[0])

    def drop(self, name: str) -> None:
        """Leave a file out of the next publication; it is deleted then, or now if it never was in one."""
        if name not in self.state.files:
            (self.folder / name).unlink(missing_ok=True)
        self._sizes.pop(name, None)
        self._sums.pop(name, None)
        if name in self._open:
            os.close(self._open.pop(name))

    def publish(self, rows: int, seq: int, facts: Mapping[str, float] | None = None) -> None:
        """What was appended counts from here on."""
        gone = set(self.state.files) - set(self._sizes)
        files = {
            name: FileState(self._sizes[name], tuple(self._sums[name][0]), self._sums[name][1]) for name in self._sizes
        }
        self.state = PartState(rows, seq, FORMAT, files, dict(self.state.facts) | dict(facts or {}), _boot())
        if not _boot():
            self._force()
        replace_file(self.folder / STATE, msgspec.json.encode(self.state), sync=not _boot())
        for name in gone:
            (self.folder / name).unlink(missing_ok=True)

    def sync(self) -> None:
        """What is published is on the disk from here on. The state stays as it is, and so do its readers."""
        sizes = {name: each.bytes for name, each in self.state.files.items()}
        if sizes == self._synced:
            return
        self._force()
        with storing(self.folder, STATE), open(self.folder / STATE, "rb") as file:
            os.fsync(file.fileno())
        self._synced = sizes
        replace_file(self.folder / SYNCED, msgspec.json.encode(sizes))

    def _force(self) -> None:
        with storing(self.folder):
            for name, size in sorted(self._sizes.items()):
                if size != self._synced.get(name, 0):
                    os.fsync(self._handle(name))
                    self._synced[name] = size

    def close(self) -> None:
        while self._open:
            os.close(self._open.popitem()[1])

    def _handle(self, name: str) -> int:
        if name not in self._open:
            handle = os.open(f"{self.folder}/{name}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            room = os.fstat(handle).st_size
            if room < self.size(name):
                os.close(handle)
                raise CorruptIndexError(f"{self.folder / name} is shorter than its state says; run `dowse rebuild`")
            self._open[name], self._room[name] = handle, room
        return self._open[name]

    @staticmethod
    def _write(handle: int, data: memoryview, at: int) -> None:
        while len(data):
            written = os.pwrite(handle, data, at)
            data, at = data[written:], at + written

    def _checksum(self, name: str, data: memoryview) -> None:
        """Block checksums go on where the last append stopped, so an append costs what it appends."""
        blocks, tail = self._sums.get(name, ([], 0))
        filled = (self._sizes[name] - len(data)) % BLOCK_BYTES
        while len(data):
            piece = data[: BLOCK_BYTES - filled]
            tail = crc32(piece, tail)
            filled += len(piece)
            data = data[len(piece) :]
            if filled == BLOCK_BYTES:
                blocks.append(tail)
                tail, filled = 0, 0
        self._sums[name] = (blocks, tail)


class Maps:
    """Files that a moment has mapped, of which the next one may keep what it needs: a publication makes thirty files a
    little longer, and mapping them anew takes a millisecond.
    """

    def __init__(self, before: Maps | None = None) -> None:
        self._before = {} if before is None else before._now
        self._now: dict[str, tuple[int, mmap.mmap]] = {}  # by path: which file it was, and its bytes

    def forget(self) -> None:
        """Let go of what was not asked for."""
        self._before = {}

    def get(self, path: str, size: int) -> mmap.mmap:
        """At least so many bytes of a file."""
        try:
            found = os.stat(path)
        except FileNotFoundError as err:
            raise CorruptIndexError(f"{path} is missing; run `dowse rebuild`") from err
        if found.st_size < size:
            raise CorruptIndexError(f"{path} is shorter than its state says; run `dowse rebuild`")
        file, mapped = self._now.get(path) or self._before.get(path) or (0, None)
        if mapped is None or file != found.st_ino or len(mapped) < size:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                mapped = mmap.mmap(handle, found.st_size, access=mmap.ACCESS_READ)
            finally:
                os.close(handle)
        self._now[path] = (found.st_ino, mapped)
        return mapped


class PartReader:
    """The published rows of a part, mapped."""

    def __init__(self, folder: Path, state: PartState | None = None, maps: Maps | None = None) -> None:
        self.folder = folder
        self.state = state or read_state(folder)
        self._maps = maps or Maps()
        if self.state.boot not in ("", _boot()):
            for lost in self.damaged(unsynced=True):
                raise CorruptIndexError(f"{lost} was lost when the machine stopped; run `dowse rebuild`")

    def array(self, name: str, dtype: Any, *shape: int) -> NDArray[Any]:
        """The file as an array of rows; empty when it does not exist."""
        known = self.state.files.get(name)
        size = known.bytes if known else 0
        if not size:
            return np.empty((0, *shape), dtype)
        # np.frombuffer over mmap, not np.memmap: every slice of a memmap pays for the subclass.
        mapped = self._maps.get(f"{self.folder}/{name}", size)
        found: NDArray[Any] = np.frombuffer(mapped, dtype, size // np.dtype(dtype).itemsize)
        return found.reshape(-1, *shape) if shape else found

    def damaged(self, *, unsynced: bool = False) -> Iterator[str]:
        """Names of files and blocks whose bytes are not those that were written; of all, or of those not synced."""
        synced = _synced(self.folder) if unsynced else {}
        for name, known in self.state.files.items():
            if known.bytes <= synced.get(name, 0):
                continue
            data = memoryview(self._maps.get(f"{self.folder}/{name}", known.bytes))[: known.bytes]
            sums = [*known.blocks, *([known.tail] if known.bytes % BLOCK_BYTES else [])]
            first = synced.get(name, 0) // BLOCK_BYTES
            for number, wanted in enumerate(sums[first:], first):
                if crc32(data[number * BLOCK_BYTES : (number + 1) * BLOCK_BYTES]) != wanted:
                    yield f"{self.folder.name}/{name}, megabyte {number}"
