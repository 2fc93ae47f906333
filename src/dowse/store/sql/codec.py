"""Codec of the values that SQLite keeps: a chunk as JSON, an id as a signed integer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from zlib import crc32

import msgspec

from dowse.errors import CorruptIndexError
from dowse.identity import number_id
from dowse.types import Chunk, ChunkId

_Written = msgspec.defstruct(
    "_Written",
    [
        (each.name, object) if each.required else (each.name, object, each.default)
        for each in msgspec.structs.fields(Chunk)
    ],
    omit_defaults=True,
)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Chunk).decode


def encoded(chunk: Chunk) -> bytes:
    """Return a chunk as JSON without the fields that hold their default: two thirds of the bytes."""
    return _encode(_Written(*msgspec.structs.astuple(chunk)))


def decoded(body: bytes, crc: int, connections: int | None = None) -> Chunk:
    """Return the chunk of a body; `connections` replaces its connection count, where the caller knows it better."""
    try:
        if crc32(body) != crc:
            raise CorruptIndexError("a stored chunk does not match its checksum; run `dowse doctor --verify`")
        chunk = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, TypeError) as err:  # a damaged row may hold any type
        raise CorruptIndexError(f"a stored chunk cannot be read ({err}); run `dowse doctor --verify`") from err
    return chunk if connections is None else msgspec.structs.replace(chunk, connection_count=connections)


IN_LIMIT = 500  # parameters per statement; chosen below SQLite's old limit of 999


def signed(number: int) -> int:
    """Return an id as SQLite stores it: its integers have 64 bits with a sign."""
    return number - (1 << 64) if number >= 1 << 63 else number


def unsigned(number: int) -> int:
    return number % (1 << 64)


def id_row(chunk_id: ChunkId) -> int:
    return signed(int(chunk_id, 16))


def row_id(number: int) -> ChunkId:
    return number_id(unsigned(number))


def batches(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Stretches for `IN (…)`. The last value is repeated up to a power of two, which changes no set: every thread's
    connection keeps its last 128 statements, and one for each length would fill that with copies of a few.
    """
    for start in range(0, len(values), IN_LIMIT):
        part = list(values[start : start + IN_LIMIT])
        yield part + part[-1:] * ((1 << (len(part) - 1).bit_length()) - len(part))


def marks(values: Sequence[Any]) -> str:
    """As many question marks as there are values."""
    return ",".join("?" * len(values))
