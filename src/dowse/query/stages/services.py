"""The service graph around an answer: the services of the best hits go in, who calls whom comes out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dowse.errors import NotFoundError
from dowse.filters import Filter
from dowse.identity import id_number
from dowse.ports import StoreReader
from dowse.query.stages.state import Slate
from dowse.types import ChunkId, Service, ServiceContext, ServiceEdge


@dataclass(frozen=True)
class ServiceGraph:
    """Services by name and the edges between them; everything it returns is sorted (B-23)."""

    services: tuple[Service, ...]
    edges: tuple[ServiceEdge, ...]

    def neighbourhood(self, names: Iterable[str], depth: int = 1) -> tuple[tuple[str, ServiceContext], ...]:
        """By service: whom it calls and who calls it within `depth` steps, and the edges walked. Unknown names are
        left out (R-08).
        """
        known = {service.name for service in self.services}
        return tuple((name, self._context(name, depth)) for name in sorted(set(names) & known))

    def blast_radius(self, name: str, depth: int | None = None) -> tuple[str, ...]:
        """All who call it, directly or through others: what may break when it does."""
        return self._reached(self._checked(name), depth, callers=True)[0]

    def downstream(self, name: str, depth: int | None = None) -> tuple[str, ...]:
        """All whom it calls, directly or through others: what it needs to work."""
        return self._reached(self._checked(name), depth, callers=False)[0]

    def around(self, name: str, *, callers: bool = True, called: bool = True, depth: int | None = 1) -> ServiceGraph:
        """The part of the graph within `depth` steps of a service: those who call it, those it calls, or both."""
        self._checked(name)
        names, walked = {name}, set[ServiceEdge]()
        for backwards in [way for way, wanted in ((True, callers), (False, called)) if wanted]:
            reached, edges = self._reached(name, depth, callers=backwards)
            names.update(reached)
            walked |= edges
        return ServiceGraph(
            tuple(each for each in self.services if each.name in names),
            tuple(each for each in self.edges if each in walked),
        )

    def _checked(self, name: str) -> str:
        if all(service.name != name for service in self.services):
            known = ", ".join(service.name for service in self.services) or "none yet; run `dowse index`"
            raise NotFoundError(f"no service {name!r}; known are {known}")
        return name

    def _context(self, name: str, depth: int) -> ServiceContext:
        calls, outward = self._reached(name, depth, callers=False)
        called_by, inward = self._reached(name, depth, callers=True)
        edges = sorted({*outward, *inward}, key=lambda each: (each.source, each.target, each.type))
        return ServiceContext(name, calls, called_by, tuple(_as_pairs(edge) for edge in edges))

    def _reached(self, name: str, depth: int | None, *, callers: bool) -> tuple[tuple[str, ...], set[ServiceEdge]]:
        """Everyone within `depth` steps in one direction, without the service itself, and the edges walked."""
        seen, frontier, walked = {name}, {name}, set[ServiceEdge]()
        while frontier and (depth is None or depth > 0):
            step = {each for each in self.edges if (each.target if callers else each.source) in frontier}
            walked |= step
            frontier = {each.source if callers else each.target for each in step} - seen
            seen |= frontier
            depth = None if depth is None else depth - 1
        return tuple(sorted(seen - {name})), walked


@dataclass(frozen=True)
class AddServices:
    """Puts the services of the hits that are returned into their surroundings. Changes no hit."""

    store: StoreReader
    depth: int = 1  # steps; S0-15 has direct neighbours
    name: str = "services"

    def __call__(self, slate: Slate, /) -> Slate:
        names = {name for hit in slate.hits[: slate.query.k] if (name := hit.chunk.service_name)}
        edges = self._cited(self.store.service_edges(), slate.query.where)
        graph = ServiceGraph(tuple(self.store.services()), edges)
        return slate.changed(service_context=graph.neighbourhood(names, self.depth))

    def _cited(self, edges: Sequence[ServiceEdge], where: Filter) -> tuple[ServiceEdge, ...]:
        """With the evidence that the query may see: chunks that are still there and pass its filter (B-34)."""
        ids = list({each for edge in edges for each in edge.evidence})
        passes = self.store.passing(np.array([id_number(each) for each in ids], np.uint64), where)
        seen = {each for each, ok in zip(ids, passes.tolist(), strict=True) if ok}
        return tuple(_citing(edge, seen) for edge in edges)


def _citing(edge: ServiceEdge, seen: set[ChunkId]) -> ServiceEdge:
    """A description quotes its evidence: it goes when none of that may be seen."""
    kept = tuple(each for each in edge.evidence if each in seen)
    return replace(edge, evidence=kept, description="" if edge.evidence and not kept else edge.description)


def _as_pairs(edge: ServiceEdge) -> tuple[tuple[str, str], ...]:
    return (
        ("source", edge.source),
        ("target", edge.target),
        ("type", edge.type),
        ("description", edge.description),
        ("evidence", " ".join(edge.evidence)),
    )
