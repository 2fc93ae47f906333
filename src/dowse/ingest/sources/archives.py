"""Members of zip and tar archives and their bytes, or the reason why an archive is not opened.

Archives are untrusted: names that lead out are refused, the size of each member and of all together is bounded while
unpacking, whatever the directory claims, and nothing is written to disk.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO, Any, NamedTuple, cast

import msgspec

from dowse.errors import BadRequestError

ZIP_EXTENSIONS = (".zip",)
TAR_EXTENSIONS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
MOST_MEMBERS = 200_000  # chosen: a large export has fewer
MOST_BYTES = 1 << 30  # of all members, unpacked; chosen
BOMB_RATIO = 200  # unpacked to packed; chosen: text packs to a tenth, a bomb to a thousandth
BOMB_LEAST_BYTES = 64 << 20  # below this any ratio is harmless
LONGEST_HEADER_BYTES = 1 << 20  # chosen: a name is shorter
UNPACK = "unpack it and index the folder"

_UNPACKERS: dict[bytes, Callable[[IO[bytes]], Any]] = {
    b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ": lzma.open,
}  # fmt: skip
_LARGER = "skipped: larger than the archive's directory claims"
_BROKEN = (
    zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, NotImplementedError,
    RuntimeError, ValueError, OverflowError,
)  # fmt: skip


class ArchiveMember(msgspec.Struct, frozen=True):
    """A file in an archive."""

    name: str  # as the archive spells it
    path: str  # normalised: forward slashes, no `..`
    size_bytes: int
    encrypted: bool = False


class _Listed(NamedTuple):
    """A regular file in the directory of an archive."""

    name: str
    size_bytes: int  # as the directory claims
    encrypted: bool
    read: Callable[[int], bytes]  # its first bytes


def is_archive(path: str) -> bool:
    return path.lower().endswith(ZIP_EXTENSIONS + TAR_EXTENSIONS)


def members(path: str) -> tuple[list[ArchiveMember], list[str]]:
    """List the files of an archive in its order, and the names that lead out of it.

    Raises BadRequestError if the archive is broken or too large.
    """
    found: list[ArchiveMember] = []
    escaping: list[str] = []
    total = 0
    with _reporting_damage():
        for each in _listed(path):
            inner = clean(each.name)
            if inner is None:
                escaping.append(each.name)
                continue
            total += each.size_bytes
            found.append(ArchiveMember(each.name, inner, each.size_bytes, each.encrypted))
            if len(found) > MOST_MEMBERS:
                raise BadRequestError(f"more than {MOST_MEMBERS:,} files in one archive; {UNPACK}")
            _check_total(total)
        packed = max(1, os.path.getsize(path))
    if total > BOMB_LEAST_BYTES and total > BOMB_RATIO * packed:
        raise BadRequestError(f"possible zip bomb: {packed:,} bytes unpack to {total:,}; {UNPACK}")
    return found, escaping


def member_bytes(path: str, wanted: Collection[str], max_bytes: int) -> Iterator[tuple[str, bytes | str]]:
    """Read the wanted members, in the archive's order, once each: bytes, or the reason why not.

    Sizes are counted while unpacking, whatever the directory claims. Raises BadRequestError if reading must stop.
    """
    left = set(wanted)
    total = 0
    with _reporting_damage():
        for each in _listed(path):
            if each.name not in left:
                continue
            data: bytes | str
            try:
                data = each.read(max_bytes + 1)
            except _BROKEN as err:
                if not _is_zip(path):
                    raise  # a tar is one stream: nothing behind the damage can be read
                data = f"cannot be unpacked: {err or type(err).__name__}"
            left.discard(each.name)
            total += len(data)
            _check_total(total)
            yield each.name, _LARGER if isinstance(data, bytes) and len(data) > max_bytes else data
            if not left:
                return


def clean(name: str) -> str | None:
    """Normalise a member's path; None if it leads out of the archive or is not text."""
    path = name.replace("\\", "/")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.startswith("/") or ".." in parts or not parts or (len(parts[0]) == 2 and parts[0][1] == ":"):
        return None
    if any(ord(char) < 32 or 0xD800 <= ord(char) < 0xE000 for char in path):
        return None
    return "/".join(parts)


@contextmanager
def _reporting_damage() -> Iterator[None]:
    try:
        yield
    except _BROKEN as err:
        raise BadRequestError(f"not a readable archive: {err or type(err).__name__}") from err


def _check_total(size_bytes: int) -> None:
    if size_bytes > MOST_BYTES:
        raise BadRequestError(f"the archive unpacks to more than {MOST_BYTES >> 20:,} MB; {UNPACK}")


def _is_zip(path: str) -> bool:
    return path.lower().endswith(ZIP_EXTENSIONS)


def _listed(path: str) -> Iterator[_Listed]:
    """List every regular file: no folders, links or sparse files."""
    if not _is_zip(path):
        with _tar(path) as tar:
            for entry in tar:
                _check_total(entry.offset_data + entry.size)  # of everything so far, links and folders included
                if entry.isfile() and not entry.issparse():
                    yield _Listed(entry.name, entry.size, False, partial(_tar_bytes, tar, entry))
        return
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            link = (info.external_attr >> 16) & 0o170000 == 0o120000
            if not info.is_dir() and not link:
                encrypted = bool(info.flag_bits & 1)
                yield _Listed(info.filename, info.file_size, encrypted, partial(_zip_bytes, archive, info))


def _zip_bytes(archive: zipfile.ZipFile, info: zipfile.ZipInfo, size: int) -> bytes:
    with archive.open(info) as file:
        return file.read(size)


def _tar_bytes(tar: tarfile.TarFile, entry: tarfile.TarInfo, size: int) -> bytes:
    file = tar.extractfile(entry)
    return file.read(size) if file else b""


@contextmanager
def _tar(path: str) -> Iterator[tarfile.TarFile]:
    """Open a tar as a stream: seeking in a packed one would unpack it again."""
    with open(path, "rb") as file:
        head = file.read(6)
        file.seek(0)
        unpack = next((unpack for magic, unpack in _UNPACKERS.items() if head.startswith(magic)), None)
        stream = cast(IO[bytes], unpack(file)) if unpack else file
        with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Header) as tar:
            yield tar


class _Header(tarfile.TarInfo):
    """Tar header with a bounded size: tarfile reads long names whole, whatever size they claim."""

    def _proc_member(self, tar: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type in _SPECIAL_TYPES and self.size > LONGEST_HEADER_BYTES:
            raise tarfile.ReadError(f"a header of {self.size:,} bytes")
        found: tarfile.TarInfo = super()._proc_member(tar)  # type: ignore[misc]
        return found


_SPECIAL_TYPES = (
    tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK,
)  # fmt: skip
