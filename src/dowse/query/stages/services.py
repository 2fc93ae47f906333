"""Service graph: services, their calls, and the neighbourhood of a query's hits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from dowse.errors import NotFoundError
from dowse.filters import Filter
from dowse.identity import id_number
from dowse.ports import QuerySession
from dowse.query.stages.state import QueryState
from dowse.types import ChunkId, Service, ServiceContext, ServiceEdge
from dowse.views import FrozenDict


class ServiceGraph(msgspec.Struct, frozen=True):
    """Services and the edges between them. All results are sorted."""

    services: tuple[Service, ...]
    edges: tuple[ServiceEdge, ...]

    def neighbourhood(self, names: Iterable[str], depth: int = 1) -> FrozenDict[ServiceContext]:
        """Return by service its callees and callers within `depth` steps, and the edges. Unknown names are omitted."""
        known = {service.name for service in self.services}
        return FrozenDict((name, self._context(name, depth)) for name in sorted(set(names) & known))

    def blast_radius(self, name: str, depth: int | None = None) -> tuple[str, ...]:
        """Return all direct and indirect callers: services that may break with it."""
        return self._reached(self._checked(name), depth, callers=True)[0]

    def downstream(self, name: str, depth: int | None = None) -> tuple[str, ...]:
        """Return all direct and indirect callees: services that it needs."""
        return self._reached(self._checked(name), depth, callers=False)[0]

    def around(self, name: str, *, callers: bool = True, called: bool = True, depth: int | None = 1) -> ServiceGraph:
        """Return the graph within `depth` steps of a service: callers, callees or both."""
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
            raise NotFoundError(f"no service {name!r}; known services: {known}")
        return name

    def _context(self, name: str, depth: int) -> ServiceContext:
        calls, outward = self._reached(name, depth, callers=False)
        called_by, inward = self._reached(name, depth, callers=True)
        edges = sorted({*outward, *inward}, key=lambda each: (each.source, each.target, each.type))
        return ServiceContext(name, calls, called_by, tuple(_as_mapping(edge) for edge in edges))

    def _reached(self, name: str, depth: int | None, *, callers: bool) -> tuple[tuple[str, ...], set[ServiceEdge]]:
        """Return the services within `depth` steps in one direction, without the start, and the edges."""
        seen, frontier, walked = {name}, {name}, set[ServiceEdge]()
        while frontier and (depth is None or depth > 0):
            step = {each for each in self.edges if (each.target if callers else each.source) in frontier}
            walked |= step
            frontier = {each.source if callers else each.target for each in step} - seen
            seen |= frontier
            depth = None if depth is None else depth - 1
        return tuple(sorted(seen - {name})), walked


class AddServices(msgspec.Struct, frozen=True):
    """Stage that adds the neighbourhood of the services of shown hits. Changes no hit."""

    store: QuerySession
    depth: int = 1  # steps
    name: str = "services"

    def __call__(self, state: QueryState, /) -> QueryState:
        names = {name for hit in state.hits[: state.query.k] if (name := hit.chunk.service_name)}
        edges = self._cited(self.store.service_edges(), state.query.where)
        graph = ServiceGraph(tuple(self.store.services()), edges)
        return state.changed(service_context=graph.neighbourhood(names, self.depth))

    def _cited(self, edges: Sequence[ServiceEdge], where: Filter) -> tuple[ServiceEdge, ...]:
        """Return edges with the evidence that exists and passes the filter."""
        ids = list({each for edge in edges for each in edge.evidence})
        passes = self.store.passing(np.array([id_number(each) for each in ids], np.uint64), where)
        seen = {each for each, ok in zip(ids, passes.tolist(), strict=True) if ok}
        return tuple(_citing(edge, seen, filtered=bool(where)) for edge in edges)


def _citing(edge: ServiceEdge, seen: set[ChunkId], *, filtered: bool) -> ServiceEdge:
    """Return an edge with visible evidence. A description may quote any of it, so a filter must pass all of it."""
    kept = tuple(each for each in edge.evidence if each in seen)
    shown = kept == edge.evidence or (bool(kept) and not filtered)  # without a filter, the others are deleted chunks
    return replace(edge, evidence=kept, description=edge.description if shown else "")


def _as_mapping(edge: ServiceEdge) -> FrozenDict[str]:
    return FrozenDict(
        source=edge.source,
        target=edge.target,
        type=edge.type,
        description=edge.description,
        evidence=" ".join(edge.evidence),
    )
