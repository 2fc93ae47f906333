"""Graph expansion: chunks that edges connect to the best hits join the ranking.

A discovered chunk gets its exact score in every leg, and so a value on the scale of fusion. The `graph` profile uses
the cosine instead, and the literal formula of the system that it reproduces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

import msgspec
import numpy as np
from msgspec.structs import replace

from dowse.filters import Filter
from dowse.identity import id_number
from dowse.ports import Ids, QuerySession
from dowse.query.stages.fusion import exact_scores
from dowse.query.stages.legs import passing
from dowse.query.stages.sort import ranked_hits
from dowse.query.stages.state import Column, Fused, Hit, QueryState
from dowse.types import Chunk, ChunkId, Edge, EdgeContext

Count = Annotated[int, msgspec.Meta(ge=1)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


# Phrases for relations between two names; others are used as they are spelled.
PHRASES: Mapping[str, str] = {
    "part_of": "is part of",
    "sequence": "comes before",
    "documents": "documents",
    "similar_to": "is similar to",
    "caused_by": "was caused by",
}


class GraphOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Knobs of graph expansion; the defaults are chosen."""

    seeds: Count = 10
    hops: Count = 2
    decay: tuple[Share, ...] = (1.0, 0.7, 0.5)  # by hop; 0 is a seed, and the last one holds beyond
    graph_weight: Share = 0.3
    vector_weight: Share = 0.7  # of the fusion value, or of the cosine
    relations: tuple[str, ...] = ()  # empty: all
    min_weight: Share = 0.0  # weaker edges are not followed
    bidirectional: bool = False
    slots: Annotated[int, msgspec.Meta(ge=0)] = 2  # reserved ranks among the hits
    frontier: Count = 200  # best chunks per hop; bounds the work at a hub
    by_cosine: bool = False  # blend the cosine instead of the fusion value
    literal: bool = False  # seeds w·v + g·1, discovered g·decay·last edge: the `graph` profile


class Path(msgspec.Struct, frozen=True):
    """A path from a seed, without cycles."""

    starts: tuple[ChunkId, ...]  # the chunk at which each edge was entered
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
    def text(self) -> str:
        """The path as `calls 0.9 → part_of 1, 2 hops`."""
        edges = " → ".join(f"{edge.relation} {edge.weight:g}" for edge in self.edges)
        return f"{edges}, {len(self.edges)} hop{'s' if len(self.edges) > 1 else ''}"

    @property
    def order(self) -> tuple[float, int, tuple[ChunkId, ...], tuple[str, ...]]:
        """Sort key: best first; equal values by length and ids."""
        return (-self.value, len(self.edges), self.ends, tuple(edge.relation for edge in self.edges))


class PathFinder(msgspec.Struct, frozen=True):
    """Search for paths whose chunks all pass the filter; one batch of edges per hop."""

    store: QuerySession
    where: Filter
    options: GraphOptions  # with `literal`, the first path found stays, and none leads to a seed

    def best_paths(self, seeds: Sequence[ChunkId]) -> dict[ChunkId, Path]:
        """Return the best path by chunk, best first. A seed is reached from other seeds only."""
        reached: dict[ChunkId, Path] = {}
        frontier = [Path((), (), seed, 1.0, self._decay(0)) for seed in seeds]
        for hop in range(1, self.options.hops + 1):
            frontier = self._onward(frontier, hop)
            if self.options.literal:
                frontier = [each for each in frontier if each.target not in reached and each.target not in seeds]
            for path in frontier:
                known = reached.get(path.target)
                if known is None or (not self.options.literal and path.order < known.order):
                    reached[path.target] = path
        return {path.target: path for path in sorted(reached.values(), key=lambda path: path.order)}

    def _onward(self, frontier: list[Path], hop: int) -> list[Path]:
        """Return paths longer by one edge: the best allowed one for each seed and chunk."""
        by_target: dict[ChunkId, list[Path]] = {}
        for path in frontier:
            by_target.setdefault(path.target, []).append(path)
        decay = self._decay(hop)
        longer = [
            Path((*path.starts, start), (*path.edges, edge), end, path.product * min(edge.weight, 1.0), decay)
            for start, end, edge in self._steps(by_target)
            for path in by_target[start]
            if end not in path.ends
        ]
        # Paths to a chunk from two seeds are both kept: a path from a seed to itself does not count.
        kept: dict[tuple[ChunkId, ChunkId], Path] = {}
        for path in sorted(longer, key=lambda path: path.order):
            kept.setdefault((path.starts[0], path.target), path)
        return self._passing(list(kept.values()))

    def _steps(self, frontier: dict[ChunkId, list[Path]]) -> Iterator[tuple[ChunkId, ChunkId, Edge]]:
        options = self.options
        for incoming in (False, True) if options.bidirectional else (False,):
            for edge in self.store.neighbours(list(frontier), incoming=incoming):
                if edge.weight >= options.min_weight and (not options.relations or edge.relation in options.relations):
                    ends = edge.source_id, edge.target_id
                    yield (*(ends[::-1] if incoming else ends), edge)

    def _passing(self, paths: list[Path]) -> list[Path]:
        kept = set(passing(self.store, dict.fromkeys(path.target for path in paths), self.where))
        return [path for path in paths if path.target in kept][: self.options.frontier]

    def _decay(self, hop: int) -> float:
        decay = self.options.decay
        return decay[min(hop, len(decay) - 1)]


class Graph(msgspec.Struct, frozen=True):
    """Stage that sets value = vector_weight · v + graph_weight · g for every hit and discovered chunk.

    g = decay[hop] · Π edge weights of the best path from another seed, 0 without one; v is the fusion value or cosine.
    Seeds are the best hits. Every chunk on a path passes the filter of the query.
    """

    store: QuerySession
    options: GraphOptions
    name: str = "graph"

    def __call__(self, state: QueryState, /) -> QueryState:
        if state.fused is None or not state.hits:
            return state
        count = max(self.options.seeds, state.query.k) if self.options.literal else self.options.seeds
        seeds = state.hits[:count]  # the literal formula ranks only seeds and their neighbours
        finder = PathFinder(self.store, state.query.where, self.options)
        paths = finder.best_paths([hit.chunk.id for hit in seeds])
        pool = seeds if self.options.literal else state.hits
        known = {hit.chunk.id for hit in pool}
        fused = extended(self.store, state, [each for each in paths if each not in known])
        found = self._discovered(fused, paths, known)
        hits = self._blended(fused, (*pool, *found), paths, known)
        return state.changed(fused=fused, hits=hits)

    def _discovered(self, fused: Fused, paths: Mapping[ChunkId, Path], known: set[ChunkId]) -> list[Hit]:
        wanted = [each for each in paths if each not in known]
        chunks = self.store.get({*wanted, *(end for each in wanted for end in paths[each].ends)})
        rows = {number: row for row, number in enumerate(fused.ids.tolist())}
        return [
            Hit(chunks[each], float(fused.values[row]), row, graph=in_words(paths[each], chunks))
            for each in wanted
            if each in chunks
            for row in [rows[id_number(each)]]
        ]

    def _blended(
        self, fused: Fused, pool: tuple[Hit, ...], paths: Mapping[ChunkId, Path], known: set[ChunkId]
    ) -> tuple[Hit, ...]:
        dense = next((each for each in fused.columns if each.leg == "dense" and each.variant == 0), None)
        rows = []
        for hit in pool:
            seen, v = "fusion", hit.value
            if self.options.by_cosine and dense is not None and hit.row is not None:  # 0 without a vector
                seen, v = "cosine", float(np.clip(np.nan_to_num(dense.scores[hit.row]), 0.0, 1.0))
            value, why = self._value(v, seen, paths.get(hit.chunk.id), seed=hit.chunk.id in known)
            rows.append((hit, value, why))
        return ranked_hits(self.name, rows)

    def _value(self, v: float, seen: str, path: Path | None, *, seed: bool) -> tuple[float, str]:
        own, graph = self.options.vector_weight, self.options.graph_weight
        if self.options.literal and seed:
            return own * v + graph, f"{own:g}·{v:.3f} {seen} + {graph:g}·1 as a seed"
        if self.options.literal and path is not None:
            last, decay = path.edges[-1].weight, path.decay
            return graph * decay * last, f"{graph:g}·{decay:g}·{last:g}, {path.text}"
        g = 0.0 if path is None else path.value
        text = "no path from a seed" if path is None else path.text
        return own * v + graph * g, f"{own:g}·{v:.3f} {seen} + {graph:g}·{g:.3f} graph, {text}"


class GraphSlots(msgspec.Struct, frozen=True):
    """Stage that reserves the last of the k ranks for discovered chunks, if too few rank high enough.

    It runs after all stages that reorder. A promoted hit keeps its value: the rule is no score.
    """

    slots: int
    name: str = "graph_slots"

    def __call__(self, state: QueryState, /) -> QueryState:
        k = state.query.k
        head, tail = state.hits[:k], state.hits[k:]
        missing = min(self.slots, k) - sum(bool(hit.graph) for hit in head)
        promoted = [hit for hit in tail if hit.graph][: max(missing, 0)]
        if not promoted:
            return state
        leaving = [hit for hit in reversed(head) if not hit.graph][: len(promoted)]
        gone, come = {hit.chunk.id for hit in leaving}, {hit.chunk.id for hit in promoted}
        kept = [hit for hit in head if hit.chunk.id not in gone]
        rest = [hit for hit in (*reversed(leaving), *tail) if hit.chunk.id not in come]
        return state.changed(hits=(*kept, *promoted, *rest))


def extended(store: QuerySession, state: QueryState, discovered: list[ChunkId]) -> Fused:
    """Return the fused arrays with further rows at the end: exact scores in every leg, and the value of fusion.

    Their ranks are 0, because no leg found them. Earlier rows keep their numbers and values.
    """
    fused = state.fused
    if fused is None:
        raise ValueError("nothing is fused yet")
    there = set(fused.ids.tolist())
    ids = np.array([number for each in discovered if (number := id_number(each)) not in there], np.uint64)
    if not len(ids):
        return fused
    columns = [_longer(store, state, column, ids) for column in fused.columns]
    weights = np.array([column.weight for column in columns], np.float64)
    queries = tuple(np.concatenate([each, np.zeros(len(ids), np.int64)]) for each in fused.queries)
    ranks = np.array(queries or [column.ranks for column in columns])
    parts = fused.method.parts(np.array([column.scores for column in columns]), ranks, weights)[:, len(fused.ids) :]
    raw = parts.sum(axis=0)
    added = np.zeros((len(columns), len(ids))) if queries else parts  # nested: addends belong to queries, not to legs
    return replace(
        fused,
        ids=np.concatenate([fused.ids, ids]),
        raw=np.concatenate([fused.raw, raw]),
        values=np.concatenate([fused.values, fused.method.unit(raw, weights)]),
        columns=tuple(
            replace(column, parts=np.concatenate([column.parts, own]))
            for column, own in zip(columns, added, strict=True)
        ),
        queries=queries,
        smoothing=None if fused.smoothing is None else np.concatenate([fused.smoothing, np.zeros(len(ids))]),
    )


def _longer(store: QuerySession, state: QueryState, column: Column, ids: Ids) -> Column:
    """Return a column with the scores of these chunks; its parts are still the old ones."""
    asked = next(each for each in state.lists if (each.leg, each.variant) == (column.leg, column.variant))
    return replace(
        column,
        scores=np.concatenate([column.scores, exact_scores(store, [asked], ids)[0]]),
        ranks=np.concatenate([column.ranks, np.zeros(len(ids), np.int64)]),
    )


def in_words(path: Path, chunks: Mapping[ChunkId, Chunk]) -> tuple[EdgeContext, ...]:
    """Return the edges of a path, from the seed on, each as a sentence."""
    return tuple(
        EdgeContext(start, edge.relation, sentence(edge, chunks), edge.weight, hops)
        for hops, (start, edge) in enumerate(zip(path.starts, path.edges, strict=True), start=1)
    )


def sentence(edge: Edge, chunks: Mapping[ChunkId, Chunk]) -> str:
    """Return an edge as a sentence: source, relation, target, and the reason."""
    phrase = PHRASES.get(edge.relation, edge.relation.replace("_", " "))
    text = f"{_called(edge.source_id, chunks)} {phrase} {_called(edge.target_id, chunks)}"
    return f"{text}: {edge.description}" if edge.description else text


def _called(chunk_id: ChunkId, chunks: Mapping[ChunkId, Chunk]) -> str:
    chunk = chunks.get(chunk_id)
    if chunk is None:
        return chunk_id
    place = f"{chunk.file_path or chunk.source_uri}{f':{chunk.start_line}' if chunk.start_line else ''}"
    section = (chunk.section_path or "").rpartition(" > ")[2].lstrip("# ")
    name = chunk.qualified_name or chunk.symbol_name or (f"“{section}”" if section else "")
    others = [each for each in chunk.defines if not f"{each.qualified_name}.".startswith(f"{name}.")]
    title = f"{name} and {len(others)} more" if name and others else name
    return f"{title} ({place})" if title else place
