"""Service graph: services, their calls, and the neighbourhood of a query's hits."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from dowse.errors import NotFoundError
from dowse.filters import Filter
from dowse.ports import QuerySession
from dowse.query.stages.legs import passing
from dowse.query.stages.state import QueryState
from dowse.types import Chunk, ChunkId, Service, ServiceContext, ServiceEdge
from dowse.views import FrozenDict

MOST_SUGGESTED = 3  # names; chosen
_AFFIXES = re.compile(r"[^a-z0-9]+|(?:services?|svc|srv)$")


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

    def meant(self, name: str) -> tuple[str, ...]:
        """Return the services that a person calls so: `checkout` may be `checkoutservice` or `shop/checkout`."""
        names = [service.name for service in self.services]
        for spelled in (str, str.lower, _core):
            for last in (False, True):  # without the repository
                forms = [each.rpartition("/")[2] if last else each for each in names]
                if fitting := [each for each, form in zip(names, forms, strict=True) if spelled(form) == spelled(name)]:
                    return tuple(fitting)
        return ()

    def of(self, chunk: Chunk) -> str | None:
        """Return the service of a chunk; two repositories may have one of the same name."""
        own = chunk.service_name
        names = {service.name for service in self.services}
        full = (f"{repo}/{own}" for repo in (chunk.repo_name, chunk.document_source) if repo)
        return next((each for each in full if each in names), own)

    def _checked(self, name: str) -> str:
        names = [service.name for service in self.services]
        if name not in names:
            from difflib import get_close_matches

            near = [each for each in names if name.lower() in each.lower()] or get_close_matches(name, names)
            close = " or ".join((self.meant(name) or near)[:MOST_SUGGESTED])
            known = f"known services: {', '.join(names) or 'none yet; run `dowse index`'}"
            raise NotFoundError(f"no service {name!r}; {f'did you mean {close}?' if close else known}")
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
        graph = cited_graph(self.store, state.query.where)
        names = {name for hit in state.hits[: state.query.k] if (name := graph.of(hit.chunk))}
        return state.changed(service_context=graph.neighbourhood(names, self.depth))


def cited_graph(store: QuerySession, where: Filter) -> ServiceGraph:
    """Return the graph with the evidence that exists and passes the filter."""
    edges = store.service_edges()
    seen = set(passing(store, {each for edge in edges for each in edge.evidence}, where))
    cited = tuple(_citing(edge, seen, filtered=bool(where)) for edge in edges)
    return ServiceGraph(tuple(store.services()), cited)


def _citing(edge: ServiceEdge, seen: set[ChunkId], *, filtered: bool) -> ServiceEdge:
    """Return an edge with visible evidence. A description may quote any of it, so a filter must pass all of it."""
    kept = tuple(each for each in edge.evidence if each in seen)
    shown = kept == edge.evidence or (bool(kept) and not filtered)  # without a filter, the others are deleted chunks
    return replace(edge, evidence=kept, description=edge.description if shown else "")


def _core(name: str) -> str:
    """Return a name in lower case without signs and a word such as `service` at its end."""
    return _AFFIXES.sub("", name.lower()) or name.lower()


def _as_mapping(edge: ServiceEdge) -> FrozenDict[str]:
    names = ("source", "target", "type", "description")
    return FrozenDict({name: getattr(edge, name) for name in names}, evidence=" ".join(edge.evidence))
