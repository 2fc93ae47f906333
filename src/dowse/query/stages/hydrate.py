"""Hydration: fetch the chunks of the best fused ids, once; and the ids of chunks as the store reads them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from dowse.filters import Filter
from dowse.identity import id_number, number_id
from dowse.ports import ChunkReader, Ids
from dowse.query.stages.state import Hit, QueryState
from dowse.types import ChunkId


def numbers(ids: Iterable[ChunkId]) -> Ids:
    return np.array([id_number(each) for each in ids], np.uint64)


def passing(store: ChunkReader, ids: Iterable[ChunkId], where: Filter) -> list[ChunkId]:
    """Return the ids of the chunks that exist and pass the filter, in order."""
    wanted = list(ids)
    passes = store.passing(numbers(wanted), where)
    return [each for each, ok in zip(wanted, passes.tolist(), strict=True) if ok]


class Hydrate(msgspec.Struct, frozen=True):
    """Stage that fetches the best `window` chunks. It counts ids that the store no longer has; the next best follow.

    Earlier hits stay, and fetching continues after them. With `enough`, it fetches only that many, unless a chunk of
    the window passes the filter `unless`: a later stage may reorder such a chunk. Most queries show ten hits that no
    stage moves: a fifth of the fetching.
    """

    store: ChunkReader
    window: int
    enough: int | None = None
    unless: Filter = ()
    name: str = "hydrate"

    def __call__(self, state: QueryState, /) -> QueryState:
        fused = state.fused
        if fused is None:
            return state
        hits = list(state.hits)
        row, count = len(hits) + state.dropped, min(self.enough or self.window, self.window)
        if count < self.window and self.unless and self.store.passing(fused.ids[: self.window], self.unless).any():
            count = self.window
        while len(hits) < count and row < len(fused.ids):
            wanted = slice(row, row + count - len(hits))
            batch = [number_id(each) for each in fused.ids[wanted].tolist()]
            chunks = self.store.get(batch)
            values = fused.values[wanted].tolist()
            hits += [
                Hit(chunks[each], value, at)
                for at, (each, value) in enumerate(zip(batch, values, strict=True), start=row)
                if each in chunks
            ]
            row += len(batch)
        return state.changed(hits=tuple(hits), dropped=row - len(hits))
