"""Every request enters here first; those from whom we trust go on, and every answer leaves with the headers that keep
browsers careful.

- Host: a page of another site can make a browser ask 127.0.0.1 under a name that it controls (DNS rebinding); such a
  name is refused. An address in numbers cannot be rebound.
- Origin: a request that a page of another origin makes is refused, unless the operator named that origin.
- Token: compared in constant time; as a bearer token, or as the password of Basic authentication for people.
"""

from __future__ import annotations

import binascii
import hmac
import ipaddress
import socket
from base64 import b64decode
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dowse.serve.http.options import ServerOptions, is_loopback
from dowse.serve.http.problems import RefusedError, refusal

OPEN = ("/healthz", "/readyz")  # they say nothing but yes or no, to probes that have no token
API_POLICY = "default-src 'none'; frame-ancestors 'none'"
HEADERS = (
    ("content-security-policy", API_POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cache-control", "no-store"),
)
_HEADERS = tuple((name.encode(), value.encode()) for name, value in HEADERS)  # as ASGI has them
_PREFLIGHT = (
    ("access-control-allow-methods", "GET, POST"),
    ("access-control-allow-headers", "authorization, content-type"),
    ("access-control-max-age", "600"),
)


@dataclass(frozen=True)
class Guard:
    """The outermost layer of the application."""

    app: ASGIApp
    options: ServerOptions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        allowed = origin if origin in self.options.cors else None

        async def careful(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(each for each in _HEADERS if each[0] not in given)]
                if allowed is not None:
                    found = MutableHeaders(scope=message)
                    found["access-control-allow-origin"] = allowed
                    found["cross-origin-resource-policy"] = "cross-origin"
                    found.add_vary_header("Origin")
            await send(message)

        try:
            self._check_host(headers)
            self._check_origin(headers, scope)
            if allowed is not None and _is_preflight(scope, headers):
                await _empty(careful)
                return
            if scope["path"] not in OPEN:
                self._check_token(headers)
        except RefusedError as error:
            await refusal(error)(scope, receive, careful)
            return
        await self.app(scope, receive, careful)

    def _check_host(self, headers: Headers) -> None:
        hosts = headers.getlist("host")
        name = _host_name(hosts[0]) if len(hosts) == 1 else None
        if name is None or not self._is_ours(name):
            raise RefusedError(
                HTTPStatus.MISDIRECTED_REQUEST,
                "this server does not answer to that name; start it with --allow-host NAME if it should",
            )

    def _is_ours(self, name: str) -> bool:
        if name in self.options.allow_hosts or is_loopback(name):
            return True
        if self.options.on_loopback:
            return False
        return name in (self.options.host.lower(), socket.gethostname().lower()) or _is_address(name)

    def _check_origin(self, headers: Headers, scope: Scope) -> None:
        origin = headers.get("origin")
        if origin is None or origin in self.options.cors:
            return
        if urlsplit(origin).netloc != headers.get("host") or not origin.startswith(("http://", "https://")):
            raise RefusedError(
                HTTPStatus.FORBIDDEN,
                "pages of another origin may not ask this server; start it with --cors ORIGIN if they should",
            )

    def _check_token(self, headers: Headers) -> None:
        token = self.options.token
        if token is not None and not hmac.compare_digest(_given_token(headers).encode(), token.encode()):
            raise RefusedError(
                HTTPStatus.UNAUTHORIZED, "a token is needed; send it as `Authorization: Bearer TOKEN`, or as a password"
            )


def _given_token(headers: Headers) -> str:
    scheme, _, value = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() == "basic":
        try:
            return b64decode(value, validate=True).decode("utf-8", "replace").partition(":")[2]
        except binascii.Error:
            return ""
    return ""


def _host_name(header: str) -> str | None:
    """Without the port, in lower case; None for what is no host at all."""
    try:
        split = urlsplit(f"//{header}")
        _ = split.port
    except ValueError:
        return None
    return split.hostname if split.netloc == header and "@" not in header else None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_preflight(scope: Scope, headers: Headers) -> bool:
    return scope["method"] == "OPTIONS" and "access-control-request-method" in headers


async def _empty(send: Send) -> None:
    headers: Iterable[tuple[bytes, bytes]] = [(name.encode(), value.encode()) for name, value in _PREFLIGHT]
    await send({"type": "http.response.start", "status": 204, "headers": list(headers)})
    await send({"type": "http.response.body", "body": b""})
