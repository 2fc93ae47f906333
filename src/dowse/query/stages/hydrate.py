"""Text is fetched once: fused ids go in, hits with their chunks come out."""

from __future__ import annotations

import msgspec

from dowse.filters import Filter
from dowse.identity import number_id
from dowse.ports import StoreReader
from dowse.query.stages.state import Fused, Hit, Slate


class Hydrate(msgspec.Struct, frozen=True):
    """Fetches the best `window` chunks. Ids that the store no longer has are counted, and the next best move
    up.

    Hits that are there already are kept, and fetching goes on behind them. Where `enough` is given, that many do,
    unless a chunk of the window passes the filter `unless`: such a one may move, and then others move into its place.
    Most questions show ten hits that nothing moves: a fifth of the fetching.
    """

    store: StoreReader
    window: int
    enough: int | None = None
    unless: Filter = ()
    name: str = "hydrate"

    def __call__(self, slate: Slate, /) -> Slate:
        fused = slate.fused
        if fused is None:
            return slate
        hits = list(slate.hits)
        row, count = len(hits) + slate.dropped, self._count(fused)
        while len(hits) < count and row < len(fused.ids):
            wanted = slice(row, row + count - len(hits))
            batch = [number_id(each) for each in fused.ids[wanted].tolist()]
            chunks = self.store.get(batch, None if fused.slots is None else fused.slots[wanted])
            values = fused.values[wanted].tolist()
            hits += [
                Hit(chunks[each], value, at)
                for at, (each, value) in enumerate(zip(batch, values, strict=True), start=row)
                if each in chunks
            ]
            row += len(batch)
        return slate.changed(hits=tuple(hits), dropped=row - len(hits))

    def _count(self, fused: Fused) -> int:
        if self.enough is None or self.enough >= self.window:
            return self.window
        slots = None if fused.slots is None else fused.slots[: self.window]
        moving = self.unless and self.store.passing(fused.ids[: self.window], self.unless, slots).any()
        return self.window if moving else self.enough
