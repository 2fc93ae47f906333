"""Values as SQLite takes them: ids go in as signed numbers, lists as batches, and ids come out again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dowse.identity import id_number, number_id
from dowse.types import ChunkId

IN_LIMIT = 500  # parameters per statement; chosen below SQLite's old limit of 999
_SIGN = 1 << 63  # SQLite's integers are signed: an id is stored minus 2^64 where it is larger than 2^63


def signed(number: int) -> int:
    return number - 2 * _SIGN if number >= _SIGN else number


def unsigned(number: int) -> int:
    return number + 2 * _SIGN if number < 0 else number


def id_row(chunk_id: ChunkId) -> int:
    return signed(id_number(chunk_id))


def row_id(number: int) -> ChunkId:
    return number_id(unsigned(number))


def batches(values: Sequence[Any], size: int = IN_LIMIT) -> Iterator[Sequence[Any]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]


def marks(values: Sequence[Any]) -> str:
    """As many question marks as there are values."""
    return ",".join("?" * len(values))
