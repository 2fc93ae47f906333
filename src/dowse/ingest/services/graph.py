"""Service graph: facts about services enter; services and their connections with evidence leave.

An edge needs evidence of a connection: a setting in a manifest, an address passed to a client, a stub of a service that
another one offers. Permissions (network policies, ingress) and printed links are not edges.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from posixpath import basename, dirname

import msgspec

from dowse.ingest.services.addresses import PORTS, digest, short
from dowse.ports import StoreWriter
from dowse.types import ChunkId, Service, ServiceEdge, ServiceFact

# Abbreviations in names of services.
ABBREVIATIONS = {
    "svc": "service", "srv": "service", "svcs": "services", "db": "database", "pg": "postgres",
    "postgresql": "postgres", "mq": "queue", "gw": "gateway", "mgmt": "management", "mgr": "manager", "cfg": "config",
    "conf": "config", "msg": "message", "notif": "notification", "auth": "auth", "authn": "authentication",
    "authz": "authorization", "acct": "account", "addr": "address", "rec": "recommendation", "recs": "recommendations",
}  # fmt: skip
_POD = re.compile(r"(?P<set>[a-z0-9-]+)-[0-9]{1,4}\.(?P<service>(?P=set)[a-z0-9-]*(?:\..+)?)")  # of a stateful set
_SPLIT = re.compile(r"[^a-z0-9]+")


class ServiceNames(msgspec.Struct, frozen=True):
    """Known services by all their names."""

    exact: Mapping[str, str]
    words: Mapping[frozenset[str], frozenset[str]]
    namespaces: frozenset[str]
    digests: Mapping[str, str]

    def resolve(self, host: str) -> str | None:
        """Find a service by its name, its name in a cluster, or another spelling; None if two fit."""
        name = short(host.lower().rstrip("."))
        if found := self.exact.get(name):
            return found
        if pod := _POD.fullmatch(name):
            return self.resolve(pod["service"])
        first, dot, rest = name.partition(".")
        if dot and rest in self.namespaces and (found := self.exact.get(first)):
            return found
        if dot:
            return None
        fitting = self.words.get(word_set(name), frozenset())
        return next(iter(fitting)) if len(fitting) == 1 else None


def names_of(exact: Mapping[str, str], namespaces: Collection[str]) -> ServiceNames:
    """Index services by their spellings, which are in lower case."""
    words: dict[frozenset[str], set[str]] = {}
    for spelled, name in exact.items():
        words.setdefault(word_set(spelled), set()).add(name)
    fitting = {key: frozenset(value) for key, value in words.items()}
    digests = {digest(spelled): name for spelled, name in exact.items()}
    return ServiceNames(exact, fitting, frozenset(namespaces), digests)


def _end(alias: str, aliases: Mapping[str, str], services: Collection[str]) -> str:
    """Follow a chain of aliases to a service, at most as many steps as there are aliases."""
    name = alias
    for _ in aliases:
        name = aliases.get(name, name)
        if name in services:
            break
    return name


def word_set(name: str) -> frozenset[str]:
    """Return the words of a name, with abbreviations written out: `auth_svc` equals `auth-service`."""
    return frozenset(ABBREVIATIONS.get(word, word) for word in _SPLIT.split(name.lower()) if word)


MOST_EVIDENCE = 12  # chunks that an edge cites; chosen
UNKNOWN = "unknown"
_BEST_FIRST = ("sets", "calls", "stub", "names", "needs")


@dataclass
class _Link:
    """Evidence that one service uses another."""

    types: Counter[str] = field(default_factory=Counter)
    evidence: dict[ChunkId, None] = field(default_factory=dict)  # a set in order
    reasons: dict[str, None] = field(default_factory=dict)
    variables: set[str] = field(default_factory=set)


def service_graph(facts: Sequence[ServiceFact]) -> tuple[tuple[Service, ...], tuple[ServiceEdge, ...]]:
    """Build sorted services and edges; the order of the facts does not matter."""
    ordered = sorted(facts, key=_order)
    builder = _ServiceGraphBuilder(ordered)
    for fact in ordered:
        builder.add(fact)
    builder.cite_readers()
    return builder.services(), builder.edges()


def link_services(writer: StoreWriter) -> None:
    """Rebuild the graph if facts changed since, even in an interrupted run."""
    facts = writer.service_facts()
    if facts is not None:
        writer.put_services(*service_graph(facts))


def _order(fact: ServiceFact) -> tuple[object, ...]:
    """Sort the best evidence first: the description of an edge quotes it."""
    rank = _BEST_FIRST.index(fact.kind) if fact.kind in _BEST_FIRST else len(_BEST_FIRST)
    return (rank, fact.kind, fact.service, fact.name, fact.value, fact.type, fact.place, fact.chunk_id, fact.namespace)


class _ServiceGraphBuilder:
    """Builder of one graph."""

    def __init__(self, facts: Sequence[ServiceFact]) -> None:
        self._by_kind: dict[str, list[ServiceFact]] = defaultdict(list)
        for fact in facts:
            self._by_kind[fact.kind].append(fact)
        self._links: dict[tuple[str, str], _Link] = defaultdict(_Link)
        self._external: dict[str, list[ChunkId]] = {}
        self._names = self._known_names()
        self._nodes: dict[tuple[str, str], str | None] = {}
        self._stores = {name: fact.type for name, fact in self._owned("declares") if fact.type}
        self._port_types = {(name, fact.value): fact.type for name, fact in self._owned("port") if fact.type}
        self._offering: dict[str, set[str]] = defaultdict(set)
        for name, fact in self._owned("offers"):
            self._offering[fact.name].add(name)
        self._users: dict[tuple[str, str], list[str]] = defaultdict(list)
        for name, fact in self._owned("takes"):
            self._users[fact.repo, fact.name].append(name)

    def _known_names(self) -> Mapping[str, ServiceNames]:
        """Return the names that each repository sees: its own services, and those that only one other has.

        A name that two repositories declare is two services, each with its repository's name in front.
        """
        namespaces = {fact.namespace for fact in self._by_kind["declares"] if fact.namespace}
        repos = sorted({fact.repo for fact in chain.from_iterable(self._by_kind.values())})
        known = {repo: self._declared(repo) for repo in repos}
        count = Counter(name.lower() for services, _ in known.values() for name in services)
        self._shared = {name for name, repos in count.items() if repos > 1}
        spelled: dict[str, dict[str, str]] = {}
        for repo, (services, aliases) in known.items():
            nodes = {name: f"{repo}/{name}" if name.lower() in self._shared else name for name in services}
            ends = {alias.lower(): _end(alias, aliases, services) for alias in aliases}
            names = {alias: nodes[end] for alias, end in ends.items() if end in nodes}
            spelled[repo] = names | {name.lower(): node for name, node in nodes.items()}
        shown = {name: node for names in spelled.values() for name, node in names.items() if name not in self._shared}
        return {repo: names_of({**shown, **spelled[repo]}, namespaces) for repo in repos}

    def _declared(self, repo: str) -> tuple[set[str], dict[str, str]]:
        """Return the services of a repository and their aliases."""
        facts = [fact for fact in self._by_kind["declares"] if fact.service and fact.repo == repo]
        # A chart whose templates declare services of other names is not one itself.
        parts = [(fact.place.partition("/templates/"), fact.service) for fact in facts]
        charts = {folder for (folder, inside, _), name in parts if inside and basename(folder) != name}
        facts = [fact for fact in facts if fact.name != "Chart" or dirname(fact.place) not in charts]
        declared = {fact.service for fact in facts}
        found = [fact for fact in self._by_kind["alias"] if fact.service in declared and fact.repo == repo]
        aliases = {fact.name: fact.service for fact in found}
        # A workload that a Service selects under another name is that Service.
        own = {fact.service for fact in facts if fact.name in ("Service", "Compose")}
        return declared - {alias for alias, name in aliases.items() if alias != name and alias not in own}, aliases

    def _owned(self, kind: str) -> Iterator[tuple[str, ServiceFact]]:
        """Yield the facts of a kind with the nodes of their services."""
        for fact in self._by_kind.get(kind, ()):
            if own := self._own(fact):
                yield own, fact

    def _own(self, fact: ServiceFact) -> str | None:
        """Return the node of a fact's service."""
        key = fact.repo, fact.service
        if key not in self._nodes:
            self._nodes[key] = self._names[fact.repo].resolve(fact.service) if fact.service else None
        return self._nodes[key]

    def add(self, fact: ServiceFact) -> None:
        if fact.kind in ("sets", "calls", "names"):
            users = self._users.get((fact.repo, fact.service), [])
            for source in users or ([own] if (own := self._own(fact)) else []):
                self._connect(source, fact)
        elif own := self._own(fact):
            self._add_indirect(own, fact)

    def _connect(self, source: str, fact: ServiceFact) -> None:
        host, _, port = fact.value.partition(":")
        names = self._names[fact.repo]
        hidden = host.startswith("#")
        target = names.digests.get(host) if hidden else names.resolve(host)
        if target is None:
            link = fact.kind == "names" and fact.type not in ("db", "queue", "grpc")
            if hidden or link or short(host) in self._shared:
                return  # a value that must not be shown, a mere link, or a name that may be two services
            target = host
            self._external.setdefault(target, []).append(fact.chunk_id)
        kind = self._type(target, port, fact.type)
        shown = "by an environment file" if hidden else f"to {fact.value}"
        reason = f"calls {fact.value}" if fact.kind == "calls" else f"{fact.name} is set {shown}"
        self._link(source, target, kind, fact, f"{reason} ({fact.place})")
        if fact.kind == "sets":
            self._links[source, target].variables.add(fact.name)

    def _type(self, target: str, port: str, shown: str) -> str:
        """Return the type of the address; for plain HTTP to a store, and without one, the type of the target."""
        store = self._stores.get(target, "")
        if shown and not (shown == "http" and store):
            return shown
        known = int(port) if port.isdigit() else 0
        return store or self._port_types.get((target, port), "") or PORTS.get(known, "")

    def _add_indirect(self, source: str, fact: ServiceFact) -> None:
        """Add an edge to a service that must run first, or to the only service that offers its stub."""
        target = self._names[fact.repo].resolve(fact.value) if fact.kind == "needs" else None
        if target:
            self._link(source, target, self._stores.get(target, ""), fact, f"depends on {target} ({fact.place})")
        offering = self._offering.get(fact.name, set()) if fact.kind == "stub" else set()
        if len(offering) == 1:
            self._link(source, min(offering), "grpc", fact, f"has a gRPC stub of {fact.name} ({fact.place})")

    def _link(self, source: str, target: str, kind: str, fact: ServiceFact, reason: str) -> None:
        link = self._links[source, target]
        if kind:
            link.types[kind] += 1
        link.evidence[fact.chunk_id] = None
        link.reasons[reason] = None

    def cite_readers(self) -> None:
        """Cite code that reads a variable with the address of another service."""
        readers: dict[tuple[str, str], list[ServiceFact]] = defaultdict(list)
        for own, fact in self._owned("reads"):
            readers[own, fact.name].append(fact)
        for (source, _), link in self._links.items():
            for variable in sorted(link.variables):
                for fact in readers[source, variable]:
                    link.evidence[fact.chunk_id] = None
                    link.reasons[f"reads {variable} ({fact.place})"] = None

    def edges(self) -> tuple[ServiceEdge, ...]:
        """Return one edge for each type of connection; an unknown type only without a known one."""
        found: list[ServiceEdge] = []
        for (source, target), link in sorted(self._links.items(), key=itemgetter(0)):
            reasons, evidence = list(link.reasons), tuple(link.evidence)[:MOST_EVIDENCE]
            code = [each for each in reasons[1:] if each.startswith(("reads ", "calls ", "has a gRPC stub"))]
            shown = [*reasons[:1], *(code or reasons[1:])[:1]]  # a setting and the code that reads it say most
            more = f" and {len(reasons) - 2} more" if len(reasons) > 2 else ""
            text = f"{source} uses {target}: {'; '.join(shown)}{more}"
            kinds = sorted(link.types) or [UNKNOWN]
            found += [ServiceEdge(source, target, kind, evidence, text) for kind in kinds if source != target]
        return tuple(found)

    def services(self) -> tuple[Service, ...]:
        known = {name for names in self._names.values() for name in names.exact.values()}
        facts_of: dict[str, list[ServiceFact]] = defaultdict(list)
        for own, fact in chain.from_iterable(map(self._owned, self._by_kind)):
            facts_of[own].append(fact)
        found = [self._service(name, facts_of[name]) for name in known]
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
