"""Network addresses in settings and strings: hosts, ports and kinds of connection."""

from __future__ import annotations

import re
from hashlib import blake2b

import msgspec

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
# Names of ports in manifests, which often are the protocol.
PORT_NAMES = SCHEMES | {"http2": "http", "web": "http", "mongo": "db", "rabbitmq": "queue", "pg": "db"}
# Well-known ports (IANA), used if neither the address nor the manifest has a protocol.
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

# Connection strings of databases: `Host=db;Username=x`, `host=db user=x`.
_DSN = re.compile(r"(?:host|server|data source)\s*=\s*(?P<host>[\w.-]+)(?:[;\s]\s*\w[\w ]*=|$)", re.IGNORECASE)


class Address(msgspec.Struct, frozen=True):
    """Target of a connection."""

    host: str  # lower case
    port: int | None
    type: str  # of the connection; "" if unknown

    def __str__(self) -> str:
        return self.host if self.port is None else f"{self.host}:{self.port}"


def addresses(value: str) -> tuple[Address, ...]:
    """Return all addresses with a scheme, in order, without this machine and without hosts from variables."""
    if "://" not in value:
        found = _DSN.match(value)
        return host_alone(found["host"], "db") if found else ()
    if "${" in value:
        value = _DEFAULT.sub(lambda found: found["default"], value)
    seen: list[Address] = []
    for match in _ADDRESS.finditer(value):
        scheme = match["scheme"].lower()
        if scheme not in SCHEMES and scheme not in ("tcp", "dns", "tls"):
            continue
        hosts = match["authority"].rpartition("@")[2]
        seen += [address for each in hosts.split(",") if (address := _one(each, SCHEMES.get(scheme, "")))]
    return tuple(seen)


def bare_addresses(value: str) -> tuple[Address, ...]:
    """Return addresses without a scheme: `host:9090`, or several separated by commas."""
    matches = [_BARE.fullmatch(part.strip()) for part in value.split(",")]
    if not all(matches):
        return ()
    found = [_one(f"{match['host']}:{match['port']}", "") for match in matches if match]
    return tuple(address for address in found if address)


def host_alone(value: str, kind: str = "") -> tuple[Address, ...]:
    """Return the address of a bare host name, for settings that are named as a host."""
    address = _one(value.strip(), kind) if _HOST.fullmatch(value.strip()) else None
    return (address,) if address else ()


def short(host: str) -> str:
    """Strip the suffix of a cluster: `auth.shop.svc.cluster.local` is `auth`."""
    name, dot, rest = host.partition(".")
    return name if dot and "svc" in rest.split(".")[:2] else host


def digest(host: str) -> str:
    """Return a fingerprint of a host, which shows only whether it equals a known name."""
    return "#" + blake2b(short(host).lower().encode(), digest_size=12).hexdigest()


def image_type(image: str) -> str:
    """Return "db" or "queue" for the image of a well-known store or broker, else ""."""
    name = image.strip("\"'").rpartition("/")[2].partition("@")[0].partition(":")[0]
    return IMAGES.get(name.lower(), "")


def _one(text: str, kind: str) -> Address | None:
    host, colon, port = text.partition(":")
    host = host.rstrip(".").lower()
    if not _HOST.fullmatch(host) or host in _HERE or host.isdigit():
        return None
    number = int(port) if colon and port.isdigit() and len(port) <= 5 else None
    return Address(host, number, kind)
