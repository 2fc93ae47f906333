"""Settings go in, as manifests give them to a service; what they say of the services it uses comes out."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dowse.ingest.services.addresses import Address, addresses, bare_addresses, host_alone, short
from dowse.types import ServiceFact

# How the name of a setting that holds an address ends. `_NAME`, `_PATH` and the like hold other things.
_ENDS = (
    "URL|URI|URLS|ADDR|ADDRS|ADDRESS|ADDRESSES|ENDPOINT|ENDPOINTS|DSN|SERVER|SERVERS|BROKER|BROKERS|TARGET|UPSTREAM"
    "|BASE|HOST|HOSTS|HOSTNAME|SERVICE"
)
HOLDS_ADDRESS = re.compile(rf"(?:.*[_.-])?(?:{_ENDS})", re.IGNORECASE)
_HOLDS_HOST = re.compile(r"(?:.*[_.-])?(?:HOST|HOSTS|HOSTNAME|SERVER|ADDR|ADDRESS)", re.IGNORECASE)


def environment_facts(service: str, settings: Iterable[tuple[str, str]]) -> tuple[ServiceFact, ...]:
    """Of variables that a manifest sets for a service: every address in them is one that it connects to."""
    return tuple(
        _fact("sets", service, name, address) for name, value in settings for address in _pointed_at(name, value)
    )


def config_facts(service: str, settings: Iterable[tuple[str, str]]) -> tuple[ServiceFact, ...]:
    """Of a settings file beside code: an address in it may be meant for others, as a link that is only printed.

    Whether it counts is decided when all services are known.
    """
    return tuple(_fact("names", service, name, each) for name, value in settings for each in addresses(value))


def hosts(facts: Iterable[ServiceFact]) -> tuple[str, ...]:
    """The hosts that settings point at, each once; what `calls_out` of their chunk says."""
    return tuple(dict.fromkeys(short(each.value.partition(":")[0]) for each in facts if each.kind == "sets"))


def _pointed_at(name: str, value: str) -> tuple[Address, ...]:
    if found := addresses(value):
        return found
    if HOLDS_ADDRESS.fullmatch(name) and (bare := bare_addresses(value)):
        return bare
    return host_alone(value) if _HOLDS_HOST.fullmatch(name) else ()


def _fact(kind: str, service: str, name: str, address: Address) -> ServiceFact:
    value = address.host if address.port is None else f"{address.host}:{address.port}"
    return ServiceFact(kind, service, name, value, address.type)
