"""Ways through the chunk graph: seeds go in, the best path to every chunk within reach comes out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dowse.filters import Filter
from dowse.identity import id_number
from dowse.ports import StoreReader
from dowse.types import ChunkId, Edge


@dataclass(frozen=True)
class Path:
    """A way from a seed, with no chunk in it twice."""

    starts: tuple[ChunkId, ...]  # the chunk that each edge was followed from
    edges: tuple[Edge, ...]
    target: ChunkId
    product: float  # of the edges' weights
    decay: float  # of its length

    @property
    def value(self) -> float:
        return self.decay * self.product

    @property
    def ends(self) -> tuple[ChunkId, ...]:
        return (*self.starts, self.target)

    @property
    def told(self) -> str:
        """As `calls 0.9 → part_of 1, 2 hops`."""
        ways = " → ".join(f"{edge.relation} {edge.weight:g}" for edge in self.edges)
        return f"{ways}, {len(self.edges)} hop{'s' if len(self.edges) > 1 else ''}"

    @property
    def order(self) -> tuple[float, int, tuple[ChunkId, ...], tuple[str, ...]]:
        """Best first; equals by length and ids, so that they never flicker (B-36)."""
        return (-self.value, len(self.edges), self.ends, tuple(edge.relation for edge in self.edges))


@dataclass(frozen=True)
class PathFinder:
    """Every chunk on a path passes the filter; the ends of an edge are asked for in one batch a hop (C-45)."""

    store: StoreReader
    where: Filter
    relations: tuple[str, ...]
    min_weight: float
    decay: tuple[float, ...]
    bidirectional: bool
    frontier: int
    best: bool  # False: the first way found stays, seeds are not reached again (S4-14)

    def best_paths(self, seeds: Sequence[ChunkId], hops: int) -> dict[ChunkId, Path]:
        """By chunk, best first. A seed is reached from other seeds only."""
        reached: dict[ChunkId, Path] = {}
        frontier = [Path((), (), seed, 1.0, self._decay(0)) for seed in seeds]
        for hop in range(1, hops + 1):
            frontier = self._onward(frontier, hop)
            if not self.best:
                frontier = [each for each in frontier if each.target not in reached and each.target not in seeds]
            for path in frontier:
                known = reached.get(path.target)
                if known is None or (self.best and path.order < known.order):
                    reached[path.target] = path
        return {path.target: path for path in sorted(reached.values(), key=lambda path: path.order)}

    def _onward(self, frontier: list[Path], hop: int) -> list[Path]:
        """One edge further: for each seed and each chunk the best way, of those that may be gone."""
        by_target: dict[ChunkId, list[Path]] = {}
        for path in frontier:
            by_target.setdefault(path.target, []).append(path)
        longer = [
            Path(
                (*path.starts, start), (*path.edges, edge), end, path.product * min(edge.weight, 1.0), self._decay(hop)
            )
            for start, end, edge in self._steps(by_target)
            for path in by_target[start]
            if end not in path.ends
        ]
        # Two ways to a chunk from two seeds are both kept: the way from a seed to itself does not count for it.
        kept: dict[tuple[ChunkId, ChunkId], Path] = {}
        for path in sorted(longer, key=lambda path: path.order):
            kept.setdefault((path.starts[0], path.target), path)
        return self._passing(list(kept.values()))

    def _steps(self, frontier: dict[ChunkId, list[Path]]) -> Iterator[tuple[ChunkId, ChunkId, Edge]]:
        """Where an edge is entered, where it leads, and the edge."""
        for edge in self.store.neighbours(list(frontier)):
            if self._allowed(edge):
                yield edge.source_id, edge.target_id, edge
        if self.bidirectional:
            for edge in self.store.neighbours(list(frontier), incoming=True):
                if self._allowed(edge):
                    yield edge.target_id, edge.source_id, edge

    def _allowed(self, edge: Edge) -> bool:
        return edge.weight >= self.min_weight and (not self.relations or edge.relation in self.relations)

    def _passing(self, paths: list[Path]) -> list[Path]:
        targets = list(dict.fromkeys(path.target for path in paths))
        passes = self.store.passing(np.array([id_number(each) for each in targets], np.uint64), self.where)
        kept = {each for each, ok in zip(targets, passes.tolist(), strict=True) if ok}
        return [path for path in paths if path.target in kept][: self.frontier]

    def _decay(self, hop: int) -> float:
        return self.decay[min(hop, len(self.decay) - 1)]
