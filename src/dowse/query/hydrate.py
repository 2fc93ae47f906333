"""Text is fetched once: fused ids go in, hits with their chunks come out."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dowse.identity import number_id
from dowse.ports import StoreReader
from dowse.query.slate import Hit, Slate


@dataclass(frozen=True)
class Hydrate:
    """Fetches the best `window` chunks. Ids that the store no longer has are counted, and the next best move
    up.
    """

    store: StoreReader
    window: int
    name: str = "hydrate"

    def __call__(self, slate: Slate, /) -> Slate:
        fused = slate.fused
        if fused is None:
            return slate
        hits: list[Hit] = []
        row = 0
        while len(hits) < self.window and row < len(fused.ids):
            batch = [number_id(each) for each in fused.ids[row : row + self.window - len(hits)].tolist()]
            chunks = self.store.get(batch)
            hits += [
                Hit(chunks[each], float(fused.values[at]), at)
                for at, each in enumerate(batch, start=row)
                if each in chunks
            ]
            row += len(batch)
        return replace(slate, hits=tuple(hits), dropped=slate.dropped + row - len(hits))
