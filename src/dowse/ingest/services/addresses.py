"""A setting's value, or a string in code, goes in; the hosts it points at come out, with the kind of connection."""

from __future__ import annotations

import re
from dataclasses import dataclass

_TYPES = {
    "http": "http https ws wss",
    "grpc": "grpc grpcs",
    "queue": "amqp amqps kafka nats mqtt mqtts stomp pulsar activemq",
    "db": "postgres postgresql mysql mysql2 mariadb mongodb mongodb+srv redis rediss valkey sqlserver oracle cassandra"
    " clickhouse cockroachdb neo4j bolt memcached memcache elasticsearch opensearch couchbase influxdb",
}
SCHEMES = {scheme: kind for kind, names in _TYPES.items() for scheme in names.split()}
_IMAGES = {
    "db": "postgres postgresql postgis mysql mariadb percona mongo mongodb redis valkey memcached cassandra scylla"
    " elasticsearch opensearch clickhouse clickhouse-server cockroach influxdb neo4j timescaledb couchdb dynamodb-local"
    " mssql etcd dragonfly keydb",
    "queue": "rabbitmq kafka cp-kafka redpanda nats activemq activemq-classic activemq-artemis pulsar"
    " eclipse-mosquitto mosquitto nsq",
}
IMAGES = {image: kind for kind, names in _IMAGES.items() for image in names.split()}
# Of a port's name in a manifest, where people write the protocol.
PORT_NAMES = SCHEMES | {"http2": "http", "web": "http", "mongo": "db", "rabbitmq": "queue", "pg": "db"}
# The ports that these systems are known by (IANA); only where neither the address nor the manifest says more.
PORTS = {
    5432: "db", 3306: "db", 27017: "db", 6379: "db", 11211: "db", 9042: "db", 1433: "db", 26257: "db",
    5672: "queue", 5671: "queue", 9092: "queue", 4222: "queue", 1883: "queue", 61616: "queue",
}  # fmt: skip
_HERE = frozenset(("localhost", "127.0.0.1", "0.0.0.0", "::1", "host.docker.internal", "example.com", "example.org"))

_ADDRESS = re.compile(
    r"(?<![A-Za-z0-9+.-])(?:jdbc:)?(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{1,20})://"
    r"(?P<authority>(?:\$\{[^{}\s]{0,128}\}|[^\s/?#\"'`<>\\)]){1,512})"
)
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})(?:\.[A-Za-z0-9][A-Za-z0-9-]{0,62}){0,10}\.?")
_BARE = re.compile(rf"(?P<host>{_HOST.pattern}):(?P<port>[0-9]{{2,5}})(?:/[^\s]*)?")
_DEFAULT = re.compile(r"\$\{[A-Za-z_][\w.]*:-?(?P<default>[^{}]*)\}")  # ${NAME:default}, ${NAME:-default}


@dataclass(frozen=True)
class Address:
    """Where something connects to."""

    host: str  # lower case
    port: int | None
    type: str  # of the connection; "" when the address does not tell


def addresses(value: str) -> tuple[Address, ...]:
    """All with a scheme, in order. This machine does not count, nor does a host that is left to a variable."""
    if "://" not in value:
        return ()
    if "${" in value:
        value = _DEFAULT.sub(lambda found: found["default"], value)
    found: list[Address] = []
    for match in _ADDRESS.finditer(value):
        scheme = match["scheme"].lower()
        if scheme not in SCHEMES and scheme not in ("tcp", "dns", "tls"):
            continue
        hosts = match["authority"].rpartition("@")[2]
        found += [address for each in hosts.split(",") if (address := _one(each, SCHEMES.get(scheme, "")))]
    return tuple(found)


def bare_addresses(value: str) -> tuple[Address, ...]:
    """`host:9090`, or several with commas between them: what a setting may hold without a scheme."""
    parts = [part.strip() for part in value.split(",")]
    matches = [_BARE.fullmatch(part) for part in parts]
    if not all(matches):
        return ()
    found = [_one(f"{match['host']}:{match['port']}", "") for match in matches if match]
    return tuple(address for address in found if address)


def host_alone(value: str) -> tuple[Address, ...]:
    """A lone host name, for settings whose name says that they hold one."""
    address = _one(value.strip(), "") if _HOST.fullmatch(value.strip()) else None
    return (address,) if address else ()


def short(host: str) -> str:
    """Without what a cluster adds: `auth.shop.svc.cluster.local` is `auth`."""
    name, dot, rest = host.partition(".")
    inside = rest.split(".")[1:2] == ["svc"] or rest == "svc" or rest.startswith("svc.")
    return name if dot and inside else host


def image_type(image: str) -> str:
    """db or queue for the image of a well-known store or broker, else ""."""
    name = image.strip("\"'").rpartition("/")[2].partition("@")[0].partition(":")[0]
    return IMAGES.get(name.lower(), "")


def _one(text: str, kind: str) -> Address | None:
    host, colon, port = text.partition(":")
    host = host.rstrip(".").lower()
    if not _HOST.fullmatch(host) or host in _HERE or host.isdigit():
        return None
    number = int(port) if colon and port.isdigit() and len(port) <= 5 else None
    return Address(host, number, kind)
