"""Bytes of found files, from disk, archives and commits, or the reason why a file is not read."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from dowse.errors import BadRequestError, UnavailableError
from dowse.ingest.sources import git
from dowse.ingest.sources.archives import member_bytes
from dowse.ingest.sources.encoding import wide
from dowse.ingest.sources.requests import MARK
from dowse.ports import SourceFile

if TYPE_CHECKING:
    from dowse.ingest.sources.walk import FoundFile

SNIFF_BYTES = 8192  # the block in which git, too, searches for a NUL
LARGEST_SIBLING_BYTES = 64 << 20  # chosen: the user list of a very large Slack export
BINARY = "binary file; no reader for it is installed"
_TRIES = 2
_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")


class FileContent(msgspec.Struct, frozen=True):
    """All bytes of a file, from one moment."""

    data: bytes
    modified_ns: int


class Unread(msgspec.Struct, frozen=True):
    """Reason why a file was not read."""

    reason: str
    binary: bool = False  # its first bytes are not text


def read_content(path: str, max_bytes: int, *, sniff: bool) -> FileContent | Unread:
    """Read a whole regular file. With `sniff`, stop after the first block of a binary file."""
    for _ in range(_TRIES):
        try:
            found = _read_once(path, max_bytes, sniff=sniff)
        except OSError as err:
            return Unread(f"cannot be read: {err.strerror}")
        if found is not None:
            return found
    return Unread("the file changed during reading; run `dowse index` again")


def is_binary(head: bytes) -> bool:
    """Test for a NUL byte outside of UTF-16 and UTF-32, which hold many."""
    return b"\0" in head and not head.startswith(_BYTE_ORDER_MARKS) and wide(head) is None


def _read_once(path: str, max_bytes: int, *, sniff: bool) -> FileContent | Unread | None:
    """Read a file; None if it changed meanwhile."""
    # Non-blocking: the path may have become a FIFO since the walk, and opening one waits for a writer.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb") as file:
        before = os.fstat(handle)
        if not stat.S_ISREG(before.st_mode):
            return Unread("not a regular file")
        if before.st_size > max_bytes:
            return Unread(too_large(before.st_size, max_bytes))
        head = file.read(SNIFF_BYTES)
        if sniff and is_binary(head):
            return Unread(BINARY, binary=True)
        data = head + file.read(max(before.st_size + 1 - len(head), 0))  # one byte more shows that the file grew
        after = os.fstat(handle)
    same = (before.st_mtime_ns, before.st_ctime_ns) == (after.st_mtime_ns, after.st_ctime_ns)
    return FileContent(data, after.st_mtime_ns) if same and before.st_size == len(data) == after.st_size else None


def too_large(size_bytes: int, max_bytes: int) -> str:
    return f"too large: {size_bytes:,} bytes, the limit is {max_bytes:,}; raise it with --max-file-size"


def held_bytes(files: Sequence[FoundFile], max_bytes: int) -> Iterator[tuple[FoundFile, bytes | Unread | None]]:
    """Pair each file with its bytes if an archive or a commit holds them, else with None.

    Each archive is opened once and read front to end, in its own order; each repository needs one process.
    """
    holders = groupby(files, key=lambda file: (file.full_path if file.member or file.blob else "", bool(file.blob)))
    for (path, blob), group in holders:
        if not path:
            yield from ((file, None) for file in group)
        elif blob:
            yield from _from_commit(path, list(group))
        else:
            yield from _from_archive(path, list(group), max_bytes)


def _from_archive(path: str, files: Sequence[FoundFile], max_bytes: int) -> Iterator[tuple[FoundFile, bytes | Unread]]:
    left = {file.member: file for file in files if file.member is not None}
    try:
        for name, data in member_bytes(path, [*left], max_bytes):
            yield left.pop(name), Unread(data) if isinstance(data, str) else data
        reason = "no longer in the archive; run `dowse index` again"
    except BadRequestError as err:
        reason = str(err)
    for file in left.values():
        yield file, Unread(reason)


def _from_commit(repository: str, files: Sequence[FoundFile]) -> Iterator[tuple[FoundFile, bytes | Unread]]:
    done = 0
    try:
        for file, data in zip(files, git.blobs(repository, [file.blob or "" for file in files]), strict=True):
            done += 1
            yield file, Unread("git has no such object; run `git fetch --refetch`") if data is None else data
    except UnavailableError as err:
        for file in files[done:]:
            yield file, Unread(str(err))


def sibling_bytes(file: SourceFile, path: str) -> bytes | None:
    """Read another file of the same source, by its path inside the source."""
    if not file.full_path or ".." in path.split("/"):
        return None
    if MARK in file.path:
        archive, inner = file.full_path.split(MARK)[0], path.partition(MARK)[2]
        return _sibling_member(archive, inner) if inner and os.path.isfile(archive) else None
    if not file.full_path.endswith("/" + file.path):
        return None  # a symlink: the siblings of its target are not those of the link
    found = read_content(file.full_path[: -len(file.path)] + path, LARGEST_SIBLING_BYTES, sniff=False)
    return found.data if isinstance(found, FileContent) else None


def _sibling_member(archive: str, inner: str) -> bytes | None:
    try:
        _, data = next(member_bytes(archive, [inner, f"./{inner}"], LARGEST_SIBLING_BYTES), ("", None))
    except BadRequestError:
        return None  # the run reports the archive itself
    return data if isinstance(data, bytes) else None
