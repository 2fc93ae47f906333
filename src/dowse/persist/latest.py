"""Rows that were just written go in; those beyond a key come out, without reading them again."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from dowse.types import Chunk, ChunkId

MOST_LATEST = 4096  # rows, and what one `put` brings; chosen: some 20 MB


class Row(NamedTuple):
    """A chunk's row."""

    key: int
    id: ChunkId
    content_hash: str
    chunk: Chunk


class Latest(NamedTuple):
    """The rows that were written last, and all that are there beyond the first of them: what was just written need not
    be read again to be published, which takes 20 µs a chunk.
    """

    rows: tuple[Row, ...] = ()

    def with_more(self, rows: Sequence[Row]) -> Latest:
        return Latest((*self.rows, *rows)[-max(MOST_LATEST, len(rows)) :])  # the first of them are published by now

    def after(self, key: int) -> list[Row] | None:
        """None where there may be others."""
        if not self.rows or key < self.rows[0].key - 1:
            return None
        return list(self.rows[bisect_right(self.rows, key, key=attrgetter("key")) :])
