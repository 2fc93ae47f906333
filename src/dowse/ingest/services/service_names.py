"""A host, as settings and code write it, goes in; the service that is meant comes out, or none where that is a guess.

Never by a part of a name: `user` is not `user-billing` (B-18).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from dowse.ingest.services.addresses import short

# What people write short in the names of services (B-18).
ABBREVIATIONS = {
    "svc": "service", "srv": "service", "svcs": "services", "db": "database", "pg": "postgres",
    "postgresql": "postgres", "mq": "queue", "gw": "gateway", "mgmt": "management", "mgr": "manager", "cfg": "config",
    "conf": "config", "msg": "message", "notif": "notification", "auth": "auth", "authn": "authentication",
    "authz": "authorization", "acct": "account", "addr": "address", "rec": "recommendation", "recs": "recommendations",
}  # fmt: skip
_POD = re.compile(r"(?P<set>[a-z0-9-]+)-[0-9]{1,4}\.(?P<service>(?P=set)[a-z0-9-]*(?:\..+)?)")  # of a stateful set
_SPLIT = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class Names:
    """The known services, by every name they go by."""

    exact: Mapping[str, str]
    words: Mapping[frozenset[str], frozenset[str]]
    namespaces: frozenset[str]

    def resolve(self, host: str) -> str | None:
        """By the whole name, the name within a cluster, another spelling of it; None where two would fit."""
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


def names_of(services: Iterable[str], aliases: Mapping[str, str], namespaces: Collection[str]) -> Names:
    known = list(services)
    own = set(known)
    exact = {alias.lower(): _end(alias, aliases, own) for alias in aliases} | {name.lower(): name for name in known}
    words: dict[frozenset[str], set[str]] = {}
    for spelled, name in exact.items():
        words.setdefault(word_set(spelled), set()).add(name)
    return Names(exact, {key: frozenset(value) for key, value in words.items()}, frozenset(namespaces))


def _end(alias: str, aliases: Mapping[str, str], services: Collection[str]) -> str:
    """Where a chain of aliases ends: at a service, or after as many steps as there are aliases."""
    name = alias
    for _ in aliases:
        name = aliases.get(name, name)
        if name in services:
            break
    return name


def word_set(name: str) -> frozenset[str]:
    """The words of a name without their order, abbreviations written out: `auth_svc` is `auth-service`."""
    return frozenset(ABBREVIATIONS.get(word, word) for word in _SPLIT.split(name.lower()) if word)
