"""The chunk graph: hits go in as seeds, and come out joined by the chunks that edges lead to.

A discovered chunk gets its exact score in every leg, as Fuse would have given it, and so a place on the same scale as
the others. The `graph` profile takes the cosine instead and the formula of S4, word for word (C-32).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace

from dowse.identity import id_number
from dowse.ports import Ids, StoreReader, Values
from dowse.query.stages.paths import Path, PathFinder
from dowse.query.stages.sort import ranked_hits
from dowse.query.stages.state import Column, Fused, Hit, Slate
from dowse.types import Chunk, ChunkId, Edge, EdgeContext, Leg

# How a relation reads between two names; any other is read as it is spelled.
PHRASES: Mapping[str, str] = {
    "part_of": "is part of",
    "sequence": "comes before",
    "documents": "documents",
    "similar_to": "is similar to",
    "caused_by": "was caused by",
}


@dataclass(frozen=True)
class GraphOptions:
    """Defaults are those of S4-16, but for `slots` and `frontier` (chosen), which S4 did not have."""

    seeds: int = 10
    hops: int = 2
    decay: tuple[float, ...] = (1.0, 0.7, 0.5)  # by hop, 0 is a seed; beyond the list its last one holds (C-33)
    graph_weight: float = 0.3
    vector_weight: float = 0.7  # of the fusion value, or of the cosine
    relations: tuple[str, ...] = ()  # only these; empty: all
    min_weight: float = 0.0  # weaker edges are not followed
    bidirectional: bool = False
    slots: int = 2  # places among the hits that are kept for what the graph found (B-33)
    frontier: int = 200  # chunks a hop may reach, the best ones; bounds the work at a hub
    by_cosine: bool = False  # blend the cosine, and not the fusion value (B-35)
    literal: bool = False  # seeds w·v + g·1, discovered g·decay·last edge: the `graph` profile


@dataclass(frozen=True)
class Graph:
    """value = vector_weight · v + graph_weight · g for every hit, where g = decay[hop] · Π edge weights of the best
    path from another seed (C-34), 0 where there is none, and v the hit's fusion value, or cosine.

    Seeds are the best hits. Every chunk on a path passes the query's filter (B-34).
    """

    store: StoreReader
    options: GraphOptions
    name: str = "graph"

    def __call__(self, slate: Slate, /) -> Slate:
        if slate.fused is None or not slate.hits:
            return slate
        seeds = self._seeds(slate)
        finder = PathFinder(
            self.store,
            slate.query.where,
            self.options.relations,
            self.options.min_weight,
            self.options.decay,
            bidirectional=self.options.bidirectional,
            frontier=self.options.frontier,
            best=not self.options.literal,
        )
        paths = finder.best_paths([hit.chunk.id for hit in seeds], self.options.hops)
        pool = seeds if self.options.literal else slate.hits
        known = {hit.chunk.id for hit in pool}
        fused = extended(self.store, slate, [each for each in paths if each not in known])
        found = self._discovered(fused, paths, known)
        hits = self._blended(fused, (*pool, *found), paths, known)
        return slate.changed(fused=fused, hits=hits)

    def _seeds(self, slate: Slate) -> tuple[Hit, ...]:
        """In the literal formula only seeds and what they lead to are ranked: take as many as are asked for."""
        count = max(self.options.seeds, slate.query.k) if self.options.literal else self.options.seeds
        return slate.hits[:count]

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
        cosines = _cosines(fused) if self.options.by_cosine else None
        rows = []
        for hit in pool:
            seen, v = "fusion", hit.value
            if cosines is not None and hit.row is not None:
                seen, v = "cosine", float(cosines[hit.row])
            value, why = self._value(v, seen, paths.get(hit.chunk.id), seed=hit.chunk.id in known)
            rows.append((hit, value, why))
        return ranked_hits(self.name, rows)

    def _value(self, v: float, seen: str, path: Path | None, *, seed: bool) -> tuple[float, str]:
        own, graph = self.options.vector_weight, self.options.graph_weight
        if self.options.literal and seed:
            return own * v + graph, f"{own:g}·{v:.3f} {seen} + {graph:g}·1 as a seed"
        if self.options.literal and path is not None:
            last, decay = path.edges[-1].weight, path.decay
            return graph * decay * last, f"{graph:g}·{decay:g}·{last:g}, {path.told}"
        g = 0.0 if path is None else path.value
        told = "no path from a seed" if path is None else path.told
        return own * v + graph * g, f"{own:g}·{v:.3f} {seen} + {graph:g}·{g:.3f} graph, {told}"


@dataclass(frozen=True)
class GraphSlots:
    """Keeps the last places of the k for what the graph found, where it did not come so far by itself.

    Runs when nothing reorders any more. A promoted hit keeps its value, so that no score claims what a rule did.
    """

    slots: int
    name: str = "graph_slots"

    def __call__(self, slate: Slate, /) -> Slate:
        k = slate.query.k
        head, tail = slate.hits[:k], slate.hits[k:]
        missing = min(self.slots, k) - sum(bool(hit.graph) for hit in head)
        promoted = [hit for hit in tail if hit.graph][: max(missing, 0)]
        if not promoted:
            return slate
        leaving = [hit for hit in reversed(head) if not hit.graph][: len(promoted)]
        gone, come = {hit.chunk.id for hit in leaving}, {hit.chunk.id for hit in promoted}
        kept = [hit for hit in head if hit.chunk.id not in gone]
        rest = [hit for hit in (*reversed(leaving), *tail) if hit.chunk.id not in come]
        return slate.changed(hits=(*kept, *promoted, *rest))


def extended(store: StoreReader, slate: Slate, discovered: list[ChunkId]) -> Fused:
    """The fused arrays with further rows behind them: exact scores in every leg, and the value fusion would give.

    Their ranks are 0, because no leg brought them. The rows that are there keep their numbers and values.
    """
    fused = slate.fused
    if fused is None:
        raise ValueError("nothing is fused yet")
    there = set(fused.ids.tolist())
    ids = np.array([number for each in discovered if (number := id_number(each)) not in there], np.uint64)
    if not len(ids):
        return fused
    columns = [_longer(store, slate, column, ids) for column in fused.columns]
    weights = np.array([column.weight for column in columns], np.float64)
    queries = tuple(np.concatenate([each, np.zeros(len(ids), np.int64)]) for each in fused.queries)
    ranks = np.array(queries or [column.ranks for column in columns])
    parts = fused.method.parts(np.array([column.scores for column in columns]), ranks, weights)[:, len(fused.ids) :]
    raw = parts.sum(axis=0)
    added = np.zeros((len(columns), len(ids))) if queries else parts  # nested: a query's part is no leg's
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
        company=None if fused.company is None else np.concatenate([fused.company, np.zeros(len(ids))]),
    )


def _longer(store: StoreReader, slate: Slate, column: Column, ids: Ids) -> Column:
    """A column with these chunks' scores; its parts are still those of before."""
    asked = next(each for each in slate.lists if (each.leg, each.variant) == (column.leg, column.variant))
    leg: Leg = column.leg
    if asked.vector is None:
        scores = store.score_words({leg: asked.terms}, ids)[leg]
    else:
        scores = store.score_vectors(asked.vector, ids)
    return replace(
        column,
        scores=np.concatenate([column.scores, scores]),
        ranks=np.concatenate([column.ranks, np.zeros(len(ids), np.int64)]),
    )


def _cosines(fused: Fused) -> Values | None:
    """In [0,1]; 0 where there is no vector yet. None when the dense leg did not answer."""
    dense = next((each for each in fused.columns if each.leg == "dense" and each.variant == 0), None)
    return None if dense is None else np.clip(np.nan_to_num(dense.scores, nan=0.0), 0.0, 1.0)


def in_words(path: Path, chunks: Mapping[ChunkId, Chunk]) -> tuple[EdgeContext, ...]:
    """The edges of a path, from the seed on, each as a sentence."""
    return tuple(
        EdgeContext(
            start,
            edge.relation,
            sentence(edge, chunks),
            edge.weight,
            hops,
        )
        for hops, (start, edge) in enumerate(zip(path.starts, path.edges, strict=True), start=1)
    )


def sentence(edge: Edge, chunks: Mapping[ChunkId, Chunk]) -> str:
    """An edge in words: who, does what, to whom, and why we think so."""
    phrase = PHRASES.get(edge.relation, edge.relation.replace("_", " "))
    told = f"{_called(edge.source_id, chunks)} {phrase} {_called(edge.target_id, chunks)}"
    return f"{told}: {edge.description}" if edge.description else told


def _called(chunk_id: ChunkId, chunks: Mapping[ChunkId, Chunk]) -> str:
    chunk = chunks.get(chunk_id)
    if chunk is None:
        return chunk_id
    line = f":{chunk.start_line}" if chunk.start_line else ""
    place = f"{chunk.file_path or chunk.source_uri}{line}"
    section = (chunk.section_path or "").rpartition(" > ")[2].lstrip("# ")
    name = chunk.qualified_name or chunk.symbol_name or (f"“{section}”" if section else "")
    beside = [each for each in chunk.defines if not f"{each.qualified_name}.".startswith(f"{name}.")]
    told = f"{name} and {len(beside)} more" if name and beside else name
    return f"{told} ({place})" if told else place
