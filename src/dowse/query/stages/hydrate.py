"""Hydration: fetch the chunks of the best fused ids, once.

Separate, as each stage is a module of its own.
"""

from __future__ import annotations

import msgspec

from dowse.filters import Filter
from dowse.identity import number_id
from dowse.ports import ChunkReader
from dowse.query.stages.state import Hit, QueryState


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
        few = self.enough is not None and self.enough < self.window
        if few and self.unless and self.store.passing(fused.ids[: self.window], self.unless).any():
            few = False  # a later stage may move such a chunk
        row, count = len(hits) + state.dropped, self.enough if few and self.enough is not None else self.window
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
