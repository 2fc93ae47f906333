"""All facts about services go in; the service graph comes out: who there is, who uses whom, how, and what shows it.

An edge needs evidence that a connection is made: a setting that a manifest gives to a service, an address handed to a
client, a stub of a service that another one offers. Who may talk to whom (network policies, ingress) and links that
are only printed are no edges.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from dowse.ingest.services.addresses import PORTS
from dowse.ingest.services.service_names import Names, names_of
from dowse.ports import StoreWriter
from dowse.types import ChunkId, Service, ServiceEdge, ServiceFact

MOST_EVIDENCE = 12  # chunks that an edge cites; chosen
UNKNOWN = "unknown"
_BEST_FIRST = ("sets", "calls", "stub", "names", "needs")


@dataclass
class _Link:
    """What is known of one service's use of another."""

    types: Counter[str] = field(default_factory=Counter)
    evidence: dict[ChunkId, None] = field(default_factory=dict)  # a set in order
    reasons: dict[str, None] = field(default_factory=dict)
    variables: set[str] = field(default_factory=set)


def service_graph(facts: Sequence[ServiceFact]) -> tuple[tuple[Service, ...], tuple[ServiceEdge, ...]]:
    """Services and edges, sorted; the same facts in any order give the same graph."""
    ordered = sorted(facts, key=_order)
    maker = _Maker(ordered)
    for fact in ordered:
        maker.take(fact)
    maker.cite_readers()
    return maker.services(), maker.edges()


def link_services(writer: StoreWriter) -> None:
    """Make the graph anew if what documents say of services changed since, be it in a run that was cut short."""
    facts = writer.service_facts()
    if facts is not None:
        writer.put_services(*service_graph(facts))


def _order(fact: ServiceFact) -> tuple[object, ...]:
    """What shows an edge best comes first, for that is what its description quotes."""
    rank = _BEST_FIRST.index(fact.kind) if fact.kind in _BEST_FIRST else len(_BEST_FIRST)
    return (rank, fact.kind, fact.service, fact.name, fact.value, fact.type, fact.place, fact.chunk_id, fact.namespace)


class _Maker:
    """Makes one graph."""

    def __init__(self, facts: Sequence[ServiceFact]) -> None:
        self._by_kind: dict[str, list[ServiceFact]] = defaultdict(list)
        for fact in facts:
            self._by_kind[fact.kind].append(fact)
        self._links: dict[tuple[str, str], _Link] = defaultdict(_Link)
        self._external: dict[str, list[ChunkId]] = {}
        self._names = self._known_names()
        self._nodes: dict[str, str | None] = {}
        self._stores = self._types_of(self._by_kind["declares"])
        self._spoken = {
            (name, fact.value): fact.type
            for fact in self._by_kind["port"]
            if fact.type and (name := self._own(fact.service))
        }
        self._offering: dict[str, set[str]] = defaultdict(set)
        for fact in self._by_kind["offers"]:
            self._offering[fact.name] |= {name} if (name := self._own(fact.service)) else set()
        self._takers: dict[str, list[str]] = defaultdict(list)
        for fact in self._by_kind["takes"]:
            self._takers[fact.name] += [name] if (name := self._own(fact.service)) else []

    def _known_names(self) -> Names:
        declared = {fact.service for fact in self._by_kind["declares"] if fact.service}
        aliases = {fact.name: fact.service for fact in self._by_kind["alias"] if fact.service in declared}
        # A workload that a Service selects under another name is that Service.
        own = {fact.service for fact in self._by_kind["declares"] if fact.name in ("Service", "Compose")}
        services = declared - {alias for alias, name in aliases.items() if alias != name and alias not in own}
        namespaces = {fact.namespace for fact in self._by_kind["declares"] if fact.namespace}
        return names_of(sorted(services), aliases, namespaces)

    def _types_of(self, declared: Iterable[ServiceFact]) -> dict[str, str]:
        return {name: fact.type for fact in declared if fact.type and (name := self._own(fact.service))}

    def _own(self, service: str) -> str | None:
        """The node that a fact's service is."""
        if service not in self._nodes:
            self._nodes[service] = self._names.resolve(service) if service else None
        return self._nodes[service]

    # --- edges --------------------------------------------------------------------------------------

    def take(self, fact: ServiceFact) -> None:
        if fact.kind in ("sets", "calls", "names"):
            takers = self._takers.get(fact.service, [])
            for source in takers or ([own] if (own := self._own(fact.service)) else []):
                self._connect(source, fact)
        elif fact.kind == "needs":
            self._need(fact)
        elif fact.kind == "stub":
            self._stub(fact)

    def _connect(self, source: str, fact: ServiceFact) -> None:
        host, _, port = fact.value.partition(":")
        target = self._names.resolve(host)
        if target is None:
            if fact.kind == "names" and fact.type not in ("db", "queue", "grpc"):
                return  # an address that is only written down
            target = host
            self._external.setdefault(target, []).append(fact.chunk_id)
        kind = self._type(target, port, fact.type)
        verb = "calls" if fact.kind == "calls" else "is set to"
        reason = f"{fact.name} {verb} {fact.value}" if fact.kind != "calls" else f"calls {fact.value}"
        self._link(source, target, kind, fact, f"{reason} ({fact.place})")
        if fact.kind == "sets":
            self._links[source, target].variables.add(fact.name)

    def _type(self, target: str, port: str, shown: str) -> str:
        """What the address says, unless it says only HTTP and the other end is a store; then what its manifest says."""
        store = self._stores.get(target, "")
        if shown and not (shown == "http" and store):
            return shown
        known = int(port) if port.isdigit() else 0
        return store or self._spoken.get((target, port), "") or PORTS.get(known, "")

    def _need(self, fact: ServiceFact) -> None:
        """Waiting for a store at the start means using it; waiting for another service may mean anything."""
        source, target = self._own(fact.service), self._names.resolve(fact.value)
        if source and target and self._stores.get(target):
            self._link(source, target, self._stores[target], fact, f"waits for {target} ({fact.place})")

    def _stub(self, fact: ServiceFact) -> None:
        source = self._own(fact.service)
        offering = self._offering.get(fact.name, set())
        if source and len(offering) == 1:
            self._link(source, next(iter(offering)), "grpc", fact, f"has a gRPC stub of {fact.name} ({fact.place})")

    def _link(self, source: str, target: str, kind: str, fact: ServiceFact, reason: str) -> None:
        link = self._links[source, target]
        if kind:
            link.types[kind] += 1
        link.evidence[fact.chunk_id] = None
        link.reasons[reason] = None

    def cite_readers(self) -> None:
        """Code that reads a variable which points at another service shows the edge, too."""
        readers: dict[tuple[str, str], list[ServiceFact]] = defaultdict(list)
        for fact in self._by_kind["reads"]:
            if own := self._own(fact.service):
                readers[own, fact.name].append(fact)
        for (source, _), link in self._links.items():
            for variable in sorted(link.variables):
                for fact in readers[source, variable]:
                    link.evidence[fact.chunk_id] = None
                    link.reasons[f"reads {variable} ({fact.place})"] = None

    # --- what comes out -----------------------------------------------------------------------------

    def edges(self) -> tuple[ServiceEdge, ...]:
        return tuple(sorted(self._edges(), key=lambda each: (each.source, each.target, each.type)))

    def _edges(self) -> Iterator[ServiceEdge]:
        """One for each type of connection that was seen; a type that is not shown gives way to one that is."""
        for (source, target), link in self._links.items():
            if source == target:
                continue
            for kind in sorted(link.types) or [UNKNOWN]:
                reasons = list(link.reasons)
                more = f" and {len(reasons) - 2} more" if len(reasons) > 2 else ""
                yield ServiceEdge(
                    source,
                    target,
                    kind,
                    tuple(link.evidence)[:MOST_EVIDENCE],
                    f"{source} uses {target}: {'; '.join(reasons[:2])}{more}",
                )

    def services(self) -> tuple[Service, ...]:
        known = set(self._names.exact.values())
        told: dict[str, list[ServiceFact]] = defaultdict(list)
        for fact in (each for facts in self._by_kind.values() for each in facts):
            if own := self._own(fact.service):
                told[own].append(fact)
        found = [self._service(name, told[name]) for name in known]
        used = {target for source, target in self._links if source != target}
        found += [
            Service(name, chunk_ids=tuple(dict.fromkeys(chunks))[:MOST_EVIDENCE], external=True)
            for name, chunks in self._external.items()
            if name in used and name not in known
        ]
        return tuple(sorted(found, key=lambda each: each.name))

    def _service(self, name: str, facts: Sequence[ServiceFact]) -> Service:
        declared = [fact for fact in facts if fact.kind == "declares"]
        ports = {int(fact.value) for fact in facts if fact.kind == "port"}
        languages = Counter(fact.language for fact in facts if fact.language)
        namespaces = sorted({fact.namespace for fact in declared if fact.namespace})
        repos = sorted({fact.repo for fact in declared if fact.repo})
        return Service(
            name,
            repo_name=repos[0] if repos else None,
            language=min(languages, key=lambda each: (-languages[each], each)) if languages else None,
            namespace=namespaces[0] if namespaces else None,
            ports=tuple(sorted(ports)),
            chunk_ids=tuple(dict.fromkeys(fact.chunk_id for fact in declared if fact.chunk_id)),
        )
