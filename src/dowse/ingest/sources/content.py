"""A file's path goes in; its bytes and the moment they are from come out, or the reason why not."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from dowse.ingest.sources.encoding import wide

SNIFF_BYTES = 8192  # where git looks for a NUL, too
_TRIES = 2
_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")


@dataclass(frozen=True)
class Contents:
    """All bytes of a file, unchanged from the first to the last."""

    data: bytes
    modified_ns: int


@dataclass(frozen=True)
class Unread:
    """Why a file was not read."""

    reason: str


@dataclass(frozen=True)
class Binary:
    """The first bytes are not those of a text."""


def read_contents(path: str, max_bytes: int, *, sniff: bool) -> Contents | Unread | Binary:
    """Read a regular file whole. With `sniff`, one that starts like a binary is left after its first block."""
    for _ in range(_TRIES):
        try:
            found = _read_once(path, max_bytes, sniff=sniff)
        except OSError as err:
            return Unread(f"cannot be read: {err.strerror}")
        if found is not None:
            return found
    return Unread("changed while it was read; run `dowse index` again")


def is_binary(head: bytes) -> bool:
    """A NUL byte tells; but UTF-16 and UTF-32 are full of them, and say so at the start or show it all along."""
    return b"\0" in head and not head.startswith(_BYTE_ORDER_MARKS) and wide(head) is None


def _read_once(path: str, max_bytes: int, *, sniff: bool) -> Contents | Unread | Binary | None:
    """None when the file changed meanwhile."""
    # Non-blocking: the name may have become a FIFO since it was found, and opening that would wait for ever.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb", buffering=0) as file:
        before = os.fstat(handle)
        if not stat.S_ISREG(before.st_mode):
            return Unread("not a regular file")
        if before.st_size > max_bytes:
            return Unread(too_large(before.st_size, max_bytes))
        head = file.read(SNIFF_BYTES)
        if sniff and is_binary(head):
            return Binary()
        data = head + _rest(file.fileno(), before.st_size - len(head))
        after = os.fstat(handle)
    same = (before.st_size, before.st_mtime_ns, before.st_ctime_ns) == (
        after.st_size, after.st_mtime_ns, after.st_ctime_ns,
    )  # fmt: skip
    return Contents(data, after.st_mtime_ns) if same and len(data) == after.st_size else None


def too_large(size_bytes: int, max_bytes: int) -> str:
    return f"too large: {size_bytes:,} bytes, the limit is {max_bytes:,}; raise it with --max-file-size"


def _rest(handle: int, size_bytes: int) -> bytes:
    """What follows, up to one byte more than expected: that one shows that the file grew."""
    parts: list[bytes] = []
    left = size_bytes + 1
    while left > 0 and (part := os.read(handle, left)):
        parts.append(part)
        left -= len(part)
    return b"".join(parts)
