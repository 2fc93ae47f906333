"""What an operator decides about a server: flags and variables enter, one frozen ServerOptions leaves, or an error."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dowse.errors import BadRequestError
from dowse.serve.backend import Access
from dowse.serve.jobs import TOKEN_VARIABLE

SHORTEST_TOKEN = 16  # characters; chosen: what people make up themselves is shorter
PORT = 8765
LONGEST_HEADERS_BYTES = 32 * 1024  # chosen; a question in a URL fits
EDITOR = "vscode://file{path}:{line}"
_BROWSERS_OWN = ("about", "blob", "data", "file", "ftp", "http", "https", "javascript", "vbscript", "view-source")
_MAKE_ONE = "python3 -c 'import secrets; print(secrets.token_urlsafe(32))' > token && chmod 600 token"


@dataclass(frozen=True)
class Limits:
    """How much at once. All but the first are per process."""

    workers: int = 1  # processes
    concurrency: int = 4  # requests that work at the same time; chosen: two per core of a small machine
    queue: int = 64  # that wait for those; more are told 503
    per_client: int = 48  # of one address, working or waiting; more are told 429
    body_bytes: int = 256 * 1024  # a question and its filters are a few hundred bytes
    body_s: float = 10.0  # until a body has arrived
    request_s: float = 30.0  # until an answer has been found
    shutdown_s: float = 20.0  # for requests under way when the server is told to stop
    connections: int = 512


@dataclass(frozen=True)
class ServerOptions:
    """Where to listen, whom to trust, how much to do."""

    host: str = "127.0.0.1"
    port: int = PORT
    token: str | None = field(default=None, repr=False)
    access: Access = field(default_factory=Access)
    allow_hosts: tuple[str, ...] = ()  # names that a Host header may have, besides this machine's own
    cors: tuple[str, ...] = ()  # origins whose pages may ask
    limits: Limits = field(default_factory=Limits)
    mcp: bool = True  # answer agents at /mcp, where the SDK for it is installed
    editor: str = EDITOR  # how the page links to a line of a file; shown where absolute paths are

    @property
    def on_loopback(self) -> bool:
        return is_loopback(self.host)


def checked(options: ServerOptions) -> ServerOptions:
    """The same, or an error that says what to change."""
    if not options.on_loopback and options.token is None:
        raise BadRequestError(
            f"{options.host} can be reached from other machines, so a token is needed; make one and name it: "
            f"{_MAKE_ONE}; dowse serve --host {options.host} --token-file token"
        )
    for origin in options.cors:
        scheme, _, rest = origin.partition("://")
        if scheme not in ("http", "https") or not rest or "/" in rest:
            raise BadRequestError(f"--cors {origin!r} is no origin; write it as https://app.example.com")
    _check_editor(options.editor)
    limits = options.limits
    if limits.workers > 1 and options.access.write:
        raise BadRequestError("--allow-write goes with one process, which knows all jobs; leave out --workers")
    return options


def _check_editor(link: str) -> None:
    """A link of a program on the reader's machine: one that a browser itself would follow or run is refused."""
    scheme, colon, _ = link.partition(":")
    known = colon and scheme.isascii() and scheme.replace("+", "").replace("-", "").isalnum()
    if link and (not known or scheme.lower() in _BROWSERS_OWN or "{path}" not in link):
        raise BadRequestError(f"--editor {link!r} is no editor's link; write it as {EDITOR}, or '' for none")


def token_from(file: Path | None, env: Mapping[str, str]) -> str | None:
    """From a file, else from DOWSE_TOKEN; None when neither is given."""
    if file is not None:
        try:
            text, where = file.read_text("utf-8").strip(), str(file)
        except (OSError, UnicodeDecodeError) as err:
            raise BadRequestError(f"cannot read a token from {file}: {err}; make one: {_MAKE_ONE}") from err
    else:
        text, where = env.get(TOKEN_VARIABLE, "").strip(), TOKEN_VARIABLE
        if not text:
            return None
    if len(text) < SHORTEST_TOKEN or not text.isascii() or not text.isprintable() or " " in text:
        raise BadRequestError(
            f"the token in {where} needs {SHORTEST_TOKEN} ASCII characters, no blanks; make one: {_MAKE_ONE}"
        )
    return text


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it. A name other than localhost may mean anything."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
