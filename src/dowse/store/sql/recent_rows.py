"""Recent rows of this process: rows and documents enter as they are written, rows beyond a key leave."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

from dowse.types import Chunk, ChunkId

MOST_RECENT_ROWS = 4096  # rows, and those of one `put`; chosen: some 20 MB


class Row(NamedTuple):
    """Row of a chunk."""

    key: int
    id: ChunkId
    content_hash: str
    chunk: Chunk


class RecentRows(NamedTuple):
    """Rows that this process wrote last, so that a publication need not read them again: 20 µs a chunk.

    They are all living rows from the first of them on; `gained` counts the documents since a change.
    """

    rows: tuple[Row, ...] = ()
    since: int = -1
    seq: int = -1  # the last change; if there is a later one, another process wrote, and these are obsolete
    gained: int = 0

    def with_more(self, seq: int, gained: int, rows: Sequence[Row], *, ended: bool) -> RecentRows:
        """Add the change `seq`. Earlier rows are dropped if it deleted any: they may be among those."""
        if self.seq != seq - 1:
            return RecentRows(tuple(rows), seq - 1, seq, gained)
        kept = (*(() if ended else self.rows), *rows)[
            -max(MOST_RECENT_ROWS, len(rows)) :
        ]  # the first are published already
        return RecentRows(kept, self.since, seq, self.gained + gained)

    def after(self, key: int, seq: int) -> list[Row] | None:
        """Return the rows beyond a key at a change; None where there may be others."""
        if seq != self.seq or not self.rows or key < self.rows[0].key - 1:
            return None
        return list(self.rows[bisect_right(self.rows, key, key=attrgetter("key")) :])
