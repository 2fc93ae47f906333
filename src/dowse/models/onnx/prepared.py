"""Arrays by name go into a file and come out of it mapped: what is made of a model's weights is made once.

A file holds a magic word, the length of a header, the header (key, and of every array its name, type, shape and place)
and the arrays. It is replaced as a whole, so there is no half of one; one that is not whole, or of another key, counts
as none.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections.abc import Mapping
from contextlib import suppress
from math import prod
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Arrays = Mapping[str, NDArray[Any]]

_MAGIC = b"DOWSEARR"
_START = struct.Struct("<8sQ")
_ALIGNED = 64  # bytes: a cache line, and enough for any instruction that onnxruntime uses


def keep(file: Path, key: str, arrays: Arrays) -> None:
    """A folder that cannot be written to keeps nothing; the arrays are then made again at the next start."""
    header, at = {"key": key, "arrays": {}, "bytes": 0}, 0
    rows: dict[str, Any] = header["arrays"]  # type: ignore[assignment]
    for name, array in arrays.items():
        rows[name] = [array.dtype.str, array.shape, at]
        at += _padded(array.nbytes)
    header["bytes"] = at
    text = json.dumps(header).encode()
    text += b" " * (_padded(_START.size + len(text)) - _START.size - len(text))
    scratch = file.with_name(f".{file.name}.{os.getpid()}-{get_ident()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with scratch.open("wb") as out:
            out.write(_START.pack(_MAGIC, len(text)) + text)
            for array in arrays.values():
                out.write(array.tobytes() + bytes(_padded(array.nbytes) - array.nbytes))
            out.flush()
            os.fsync(out.fileno())  # a name that outlives a crash must not stand for zeros
        scratch.replace(file)
    except OSError:
        with suppress(OSError):
            scratch.unlink()


def kept(file: Path, key: str) -> dict[str, NDArray[Any]] | None:
    """The arrays of that key, for reading only; None where there are none."""
    import numpy as np

    try:
        with file.open("rb") as stream:
            data = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError):  # none, or an empty one
        return None
    if len(data) < _START.size:
        return None
    magic, length = _START.unpack_from(data)
    if magic != _MAGIC or _START.size + length > len(data):
        return None
    try:
        header = json.loads(bytes(data[_START.size : _START.size + length]))
    except ValueError:  # of another program, or damaged
        return None
    body = data[_START.size + length :]
    if header["key"] != key or header["bytes"] != len(body):
        return None
    return {
        name: np.frombuffer(body, kind, prod(shape), at).reshape(shape)
        for name, (kind, shape, at) in header["arrays"].items()
    }


def state(files: tuple[Path, ...]) -> list[list[int]]:
    """What tells that files are still those they were, without reading them."""
    found = [file.stat() for file in files]
    return [[each.st_size, each.st_mtime_ns, each.st_ctime_ns, each.st_ino] for each in found]


def _padded(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED
