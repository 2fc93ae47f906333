"""File system access: small files are read and written whole, and a refusal becomes a StorageError."""

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
    """Turn a refusal of the file system into a StorageError."""
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
        with open(temporary, "wb", opener=lambda name, flags: os.open(name, flags, file_mode(path.parent))) as file:
            file.write(data)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
        if sync:
            sync_folder(path.parent)


def file_mode(folder: str | Path) -> int:
    """Return the mode of a new file: read and write for those who may enter the folder."""
    return os.stat(folder).st_mode & 0o666


def make_folder(folder: Path) -> None:
    """Create a folder with the mode of the one above it; one that exists stays as it is."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode=os.stat(folder.parent).st_mode & 0o777, exist_ok=True)


def sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_at(handle: int, data: bytes | memoryview, at: int) -> None:
    """Write all of it, in as many calls as it takes."""
    while written := os.pwrite(handle, data, at):
        if written == len(data):
            return
        data, at = data[written:], at + written


def mark(path: str) -> Mark | None:
    """Return a value that changes when a file is replaced or grows; None where there is none."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return (found.st_mtime_ns, found.st_ino, found.st_size)
