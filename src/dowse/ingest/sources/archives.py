"""A zip or tar archive goes in; its members and their bytes come out, or the reason why it is not opened.

An archive may come from anyone: no name leads out of it, no member is larger than a file may be, all together are
bounded, whatever the directory claims, and nothing is ever written to disk.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Protocol, cast

from dowse.errors import BadRequestError

ZIP_EXTENSIONS = (".zip",)
TAR_EXTENSIONS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
MOST_MEMBERS = 200_000  # chosen: a large export has fewer
MOST_BYTES = 1 << 30  # of all members, unpacked; chosen
BOMB_RATIO = 200  # unpacked to packed; chosen: text packs to a tenth, a bomb to a thousandth
BOMB_LEAST_BYTES = 64 << 20  # below this any ratio is harmless
LONGEST_HEADER_BYTES = 1 << 20  # chosen: a name is shorter
UNPACK = "unpack it yourself and index the folder"

_LARGER = "larger than the archive's directory says; it was not read"
_BROKEN = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, NotImplementedError,
    RuntimeError, ValueError, OverflowError,
)  # fmt: skip


@dataclass(frozen=True)
class Member:
    """A file in an archive."""

    name: str  # as the archive spells it
    path: str  # clean: forward slashes, no way out
    size_bytes: int
    encrypted: bool = False


def is_archive(path: str) -> bool:
    return path.lower().endswith(ZIP_EXTENSIONS + TAR_EXTENSIONS)


def members(path: str) -> tuple[list[Member], list[str]]:
    """The files of an archive in its order, and the names of those that lead out of it.

    BadRequestError when it is broken or too much.
    """
    found: list[Member] = []
    escaping: list[str] = []
    total = 0
    try:
        for name, size, encrypted in _listed(path):
            inner = clean(name)
            if inner is None:
                escaping.append(name)
                continue
            total += size
            found.append(Member(name, inner, size, encrypted))
            if len(found) > MOST_MEMBERS:
                raise BadRequestError(f"more than {MOST_MEMBERS:,} files in one archive; {UNPACK}")
            if total > MOST_BYTES:
                raise BadRequestError(f"it would unpack to more than {MOST_BYTES >> 20:,} MB; {UNPACK}")
    except _BROKEN as err:
        raise BadRequestError(f"not a readable archive: {err or type(err).__name__}") from err
    packed = _size_bytes(path)
    if total > BOMB_LEAST_BYTES and total > BOMB_RATIO * packed:
        raise BadRequestError(f"looks like a bomb: {packed:,} bytes would unpack to {total:,}; {UNPACK}")
    return found, escaping


def contents(path: str, wanted: Collection[str], max_bytes: int) -> Iterator[tuple[str, bytes | str]]:
    """The wanted members, in the archive's order, once each: their bytes, or the reason why not.

    Sizes are those of the bytes, not those that the directory claims. BadRequestError when the rest cannot be had.
    """
    left = set(wanted)
    total = 0
    try:
        for name, data in (_zip_contents if _is_zip(path) else _tar_contents)(path, left, max_bytes):
            left.discard(name)
            total += len(data)
            if total > MOST_BYTES:
                raise BadRequestError(f"it unpacks to more than {MOST_BYTES >> 20:,} MB; {UNPACK}")
            yield name, data
            if not left:
                return
    except _BROKEN as err:
        raise BadRequestError(f"not a readable archive: {err or type(err).__name__}") from err


def clean(name: str) -> str | None:
    """A member's path without tricks; None when it would lead out of the archive or is no text."""
    path = name.replace("\\", "/")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts or not parts or (len(parts[0]) == 2 and parts[0][1] == ":"):
        return None
    if any(ord(char) < 32 or 0xD800 <= ord(char) < 0xE000 for char in path):
        return None
    return "/".join(parts)


def _is_zip(path: str) -> bool:
    return path.lower().endswith(ZIP_EXTENSIONS)


def _size_bytes(path: str) -> int:
    with open(path, "rb") as file:
        return max(1, file.seek(0, 2))


def _listed(path: str) -> Iterator[tuple[str, int, bool]]:
    """Name, claimed size and whether a password is needed, of every regular file."""
    if _is_zip(path):
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                link = (info.external_attr >> 16) & 0o170000 == 0o120000
                if not info.is_dir() and not link:
                    yield info.filename, info.file_size, bool(info.flag_bits & 1)
        return
    with _tar(path) as tar:
        for entry in tar:
            if entry.isfile() and not entry.issparse():
                yield entry.name, entry.size, False


def _zip_contents(path: str, wanted: Collection[str], max_bytes: int) -> Iterator[tuple[str, bytes | str]]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if info.filename not in wanted or info.is_dir():
                continue
            try:
                with archive.open(info) as file:
                    data = file.read(max_bytes + 1)
            except _BROKEN as err:
                yield info.filename, f"cannot be unpacked: {err or type(err).__name__}"
                continue
            yield info.filename, data if len(data) <= max_bytes else _LARGER


def _tar_contents(path: str, wanted: Collection[str], max_bytes: int) -> Iterator[tuple[str, bytes | str]]:
    with _tar(path) as tar:
        for entry in tar:
            if entry.name in wanted and entry.isfile() and not entry.issparse():
                file = tar.extractfile(entry)
                data = file.read(max_bytes + 1) if file else b""
                yield entry.name, data if len(data) <= max_bytes else _LARGER


@contextmanager
def _tar(path: str) -> Iterator[tarfile.TarFile]:
    """Read from front to end only: to seek in a packed stream is to unpack it again."""
    with open(path, "rb") as file:
        head = file.read(6)
        file.seek(0)
        stream = cast(IO[bytes], _Bounded(_unpacked(head, file)))
        with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Header) as tar:
            yield tar


def _unpacked(head: bytes, file: IO[bytes]) -> _Readable:
    if head.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=file)
    if head.startswith(b"BZh"):
        return bz2.BZ2File(file)
    return lzma.LZMAFile(file) if head.startswith(b"\xfd7zXZ") else file


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Bounded:
    """A stream that ends in an error where a bomb goes on."""

    def __init__(self, stream: _Readable) -> None:
        self._stream = stream
        self._left = MOST_BYTES

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise BadRequestError(f"it unpacks to more than {MOST_BYTES >> 20:,} MB; {UNPACK}")
        return data


class _Header(tarfile.TarInfo):
    """tarfile reads a long name or a table of attributes whole, whatever its size says; ours says how long is long."""

    def _proc_member(self, tar: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type in _SPECIAL_TYPES and self.size > LONGEST_HEADER_BYTES:
            raise tarfile.ReadError(f"a header of {self.size:,} bytes")
        found: tarfile.TarInfo = super()._proc_member(tar)  # type: ignore[misc]
        return found


_SPECIAL_TYPES = (
    tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK,
)  # fmt: skip
