"""Codec of the values that SQLite keeps: a chunk as JSON, an id as a signed integer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from dowse.errors import CorruptIndexError
from dowse.identity import number_id
from dowse.types import Chunk, ChunkId, Document

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


def decoded(body: bytes, connections: int | None = None) -> Chunk:
    """Return the chunk of a body; `connections` replaces its connection count, where the caller knows it better."""
    try:
        chunk = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as err:
        raise CorruptIndexError(f"a stored chunk cannot be read ({err}); run `dowse doctor --verify`") from err
    return chunk if connections is None else msgspec.structs.replace(chunk, connection_count=connections)


IN_LIMIT = 500  # parameters per statement; chosen below SQLite's old limit of 999
_SIGN = 1 << 63  # SQLite's integers are signed: an id is stored minus 2^64 where it is larger than 2^63


def signed(number: int) -> int:
    return number - 2 * _SIGN if number >= _SIGN else number


def unsigned(number: int) -> int:
    return number + 2 * _SIGN if number < 0 else number


def id_row(chunk_id: ChunkId) -> int:
    number = int(chunk_id, 16)  # `signed(id_number(…))` without the calls: it is asked for ten times a chunk
    return number - 2 * _SIGN if number >= _SIGN else number


def row_id(number: int) -> ChunkId:
    return number_id(unsigned(number))


def batches(values: Sequence[Any], size: int = IN_LIMIT) -> Iterator[Sequence[Any]]:
    """Stretches for `IN (…)`. The last value is repeated up to a power of two, which changes no set: every thread's
    connection keeps its last 128 statements, and one for each length would fill that with copies of a few.
    """
    for start in range(0, len(values), size):
        part = list(values[start : start + size])
        yield part + part[-1:] * ((1 << (len(part) - 1).bit_length()) - len(part))


def marks(values: Sequence[Any]) -> str:
    """As many question marks as there are values."""
    return ",".join("?" * len(values))


def distinct(documents: Iterable[Document]) -> Iterator[dict[str, Document]]:
    """By id, in order; a document that is given twice replaces itself in a later group."""
    group: dict[str, Document] = {}
    for document in documents:
        if document.id in group:
            yield group
            group = {}
        group[document.id] = document
    yield group
