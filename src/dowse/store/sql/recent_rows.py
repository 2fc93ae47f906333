"""What this process wrote last goes in; its rows beyond a key, and how many documents it brought, come out unread."""

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
    """What this process wrote last, so that it need not be read again to be published, which takes 20 µs a chunk: all
    rows that live beyond the first of them, and by how many documents the index grew since a change.
    """

    rows: tuple[Row, ...] = ()
    since: int = -1
    seq: int = -1  # the last change; where there is a later one, another process wrote, and none of this counts
    gained: int = 0

    def with_more(self, seq: int, gained: int, rows: Sequence[Row], *, ended: bool) -> Latest:
        """After the change `seq`. Rows of earlier ones are not kept if it ended any: they may be among those."""
        if self.seq != seq - 1:
            return Latest(tuple(rows), seq - 1, seq, gained)
        kept = (*(() if ended else self.rows), *rows)[-max(MOST_LATEST, len(rows)) :]  # the first are published by now
        return Latest(kept, self.since, seq, self.gained + gained)

    def after(self, key: int, seq: int) -> list[Row] | None:
        """The rows beyond a key at a change; None where there may be others."""
        if seq != self.seq or not self.rows or key < self.rows[0].key - 1:
            return None
        return list(self.rows[bisect_right(self.rows, key, key=attrgetter("key")) :])
