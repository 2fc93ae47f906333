"""Options of the HTTP server: address, token, access and limits, validated."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from dowse.errors import BadRequestError
from dowse.serve.backend import Access
from dowse.serve.jobs import TOKEN_VARIABLE

SHORTEST_TOKEN = 16  # characters; chosen: hand-made passwords are shorter
PORT = 8765
LONGEST_HEADERS_BYTES = 32 * 1024  # chosen; a query in a URL fits
HEAD_S = 10.0  # to receive a request head; chosen, as for a body
EDITOR = "vscode://file{path}:{line}"
_BROWSERS_OWN = ("about", "blob", "data", "file", "ftp", "http", "https", "javascript", "vbscript", "view-source")
_MAKE_ONE = "python3 -c 'import secrets; print(secrets.token_urlsafe(32))' > token && chmod 600 token"


class ServerLimits(Struct, frozen=True):
    """Limits of a server. All except `workers` hold for each process."""

    workers: int = 1  # processes
    concurrency: int = 4  # requests that run in parallel; chosen: two per core of a small machine
    queue: int = 64  # requests that wait; more get 503
    per_client: int = 48  # requests of one address, running or waiting; more get 429
    body_bytes: int = 256 * 1024  # a query with its filters has a few hundred bytes
    documents_bytes: int = 16 * 1024 * 1024  # of documents in one request; chosen: held in memory
    body_s: float = 10.0  # to receive a body
    request_s: float = 30.0  # to compute an answer
    shutdown_s: float = 20.0  # for running requests when the server stops
    connections: int = 512


class ServerOptions(Struct, frozen=True):
    """Address, trust and limits of a server."""

    host: str = "127.0.0.1"
    port: int = PORT
    token: str | None = None
    access: Access = field(default_factory=Access)
    allow_hosts: tuple[str, ...] = ()  # accepted Host names besides those of this machine
    cors: tuple[str, ...] = ()  # origins whose pages may call the API
    limits: ServerLimits = field(default_factory=ServerLimits)
    mcp: bool = True  # serve MCP at /mcp if its SDK is installed
    editor: str = EDITOR  # link template of the page for a line of a file; used with absolute paths

    def __repr__(self) -> str:
        """Leave out the token, so that no log shows it."""
        return f"ServerOptions({self.host}:{self.port})"

    @property
    def on_loopback(self) -> bool:
        return is_loopback(self.host)


def checked(options: ServerOptions) -> ServerOptions:
    """Return valid options; BadRequestError names the flag to change."""
    if not options.on_loopback and options.token is None:
        raise BadRequestError(
            f"{options.host} is reachable from other machines and needs a token; create one and pass it: "
            f"{_MAKE_ONE}; dowse serve --host {options.host} --token-file token"
        )
    for origin in options.cors:
        scheme, _, rest = origin.partition("://")
        if scheme not in ("http", "https") or not rest or "/" in rest:
            raise BadRequestError(f"--cors {origin!r} is not an origin; write it as https://app.example.com")
    _check_editor(options.editor)
    limits = options.limits
    if limits.workers > 1 and options.access.write:
        raise BadRequestError("--allow-write requires a single process; remove --workers")
    return options


def _check_editor(link: str) -> None:
    """Refuse links that a browser itself follows or runs; an editor registers its own scheme."""
    scheme, colon, _ = link.partition(":")
    known = colon and scheme.isascii() and scheme.replace("+", "").replace("-", "").isalnum()
    if link and (not known or scheme.lower() in _BROWSERS_OWN or "{path}" not in link):
        raise BadRequestError(f"--editor {link!r} is not an editor link; write it as {EDITOR}, or '' for none")


def token_from(file: Path | None, env: Mapping[str, str]) -> str | None:
    """Read the token from a file or from DOWSE_TOKEN; None without either."""
    if file is not None:
        try:
            text, where = file.read_text("utf-8").strip(), str(file)
        except (OSError, UnicodeDecodeError) as err:
            raise BadRequestError(f"cannot read the token file {file}: {err}; create one: {_MAKE_ONE}") from err
    else:
        text, where = env.get(TOKEN_VARIABLE, "").strip(), TOKEN_VARIABLE
        if not text:
            return None
    if len(text) < SHORTEST_TOKEN or not text.isascii() or not text.isprintable() or " " in text:
        raise BadRequestError(
            f"the token in {where} needs {SHORTEST_TOKEN} or more ASCII characters, no spaces; create one: {_MAKE_ONE}"
        )
    return text


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach the host. A name other than localhost may resolve to anything."""
    address = address_of(host)
    return host.lower() == "localhost" if address is None else address.is_loopback


def address_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parse a numeric address; None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
