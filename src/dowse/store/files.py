"""The border to the file system: small files go in whole and come out whole, and what it refuses becomes an error that
says what to do.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dowse.errors import StorageError

Mark = tuple[int, int, int]  # when a file was changed, which one it is, its bytes


@contextmanager
def storing(folder: Path, name: str = "") -> Iterator[None]:
    """What the file system refuses becomes a StorageError."""
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


def sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_file(folder: Path, name: str) -> bytes:
    """A small file. Without pathlib and buffers: a third of the time, and an update reads some of them."""
    with open(f"{folder}/{name}", "rb", buffering=0) as file:
        return file.read()


def write_at(handle: int, data: bytes | memoryview, at: int) -> None:
    """All of it, however many calls that takes."""
    while written := os.pwrite(handle, data, at):
        if written == len(data):
            return
        data, at = data[written:], at + written


def mark(path: str) -> Mark | None:
    """Changes when a file is replaced or grows; None where there is none."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return (found.st_mtime_ns, found.st_ino, found.st_size)
