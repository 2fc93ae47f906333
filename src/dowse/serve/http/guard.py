"""Access guard: checks of Host, Origin and token before the application, and security headers on every answer.

- Host: a page of another site can make a browser call 127.0.0.1 under a name that it controls (DNS rebinding). The
  guard refuses such a name. A numeric address cannot be rebound.
- Origin: the guard refuses requests from pages of other origins, except those given with --cors.
- Fetch metadata: the guard refuses what a browser marks as caused by another site, even without an Origin, except that
  a person may follow a link to a page. The other site cannot read or frame that page.
- Token: compared in constant time; a bearer token, or the password of Basic authentication for browsers.
"""

from __future__ import annotations

import binascii
import hmac
import socket
from base64 import b64decode
from http import HTTPStatus
from urllib.parse import urlsplit

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dowse.serve.http.options import ServerOptions, address_of, is_loopback
from dowse.serve.http.problems import RefusedError, refusal

OPEN = ("/healthz", "/readyz")  # probes have no token, and the answer is only yes or no
API_POLICY = b"default-src 'none'; frame-ancestors 'none'"
HEADERS = (
    (b"content-security-policy", API_POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)
_PREFLIGHT = [
    (b"access-control-allow-methods", b"GET, POST, PUT, DELETE"),
    (b"access-control-allow-headers", b"authorization, content-type"),
    (b"access-control-max-age", b"600"),
]


class Guard(msgspec.Struct, frozen=True):
    """Outermost middleware of the application."""

    app: ASGIApp
    options: ServerOptions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        allowed = origin if origin in self.options.cors else None

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                message["headers"] = [*message["headers"], *(each for each in HEADERS if each[0] not in given)]
                if allowed is not None:
                    found = MutableHeaders(scope=message)
                    found["access-control-allow-origin"] = allowed
                    found["cross-origin-resource-policy"] = "cross-origin"
                    found.add_vary_header("Origin")
            await send(message)

        try:
            self._check_host(headers)
            self._check_origin(headers)
            if allowed is not None and _is_preflight(scope, headers):
                await _send_preflight(send_guarded)
                return
            if scope["path"] not in OPEN:
                self._check_token(headers)
        except RefusedError as error:
            await refusal(error)(scope, receive, send_guarded)
            return
        await self.app(scope, receive, send_guarded)

    def _check_host(self, headers: Headers) -> None:
        hosts = headers.getlist("host")
        name = _host_name(hosts[0]) if len(hosts) == 1 else None
        if name is None or not self._is_ours(name):
            raise RefusedError(
                HTTPStatus.MISDIRECTED_REQUEST,
                "unknown host name; restart the server with --allow-host NAME to accept it",
            )

    def _is_ours(self, name: str) -> bool:
        if name in self.options.allow_hosts or is_loopback(name):
            return True
        if self.options.on_loopback:
            return False
        return name in (self.options.host.lower(), socket.gethostname().lower()) or address_of(name) is not None

    def _check_origin(self, headers: Headers) -> None:
        origin = headers.get("origin")
        if origin in self.options.cors:
            return
        if headers.get("sec-fetch-site", "none").lower() not in ("none", "same-origin") and not _is_link(headers):
            raise RefusedError(HTTPStatus.FORBIDDEN, "refused: the browser reports a request of another site")
        if origin is None:
            return
        if urlsplit(origin).netloc != headers.get("host") or not origin.startswith(("http://", "https://")):
            raise RefusedError(
                HTTPStatus.FORBIDDEN,
                "this origin is not allowed; restart the server with --cors ORIGIN to allow it",
            )

    def _check_token(self, headers: Headers) -> None:
        token = self.options.token
        if token is not None and not hmac.compare_digest(_given_token(headers).encode(), token.encode()):
            raise RefusedError(
                HTTPStatus.UNAUTHORIZED,
                "missing or wrong token; send `Authorization: Bearer TOKEN`, or the token as password",
            )


def _is_link(headers: Headers) -> bool:
    return headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"


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
    """Return the name in lower case without the port; None for an invalid header."""
    try:
        split = urlsplit(f"//{header}")
        _ = split.port
    except ValueError:
        return None
    return split.hostname if split.netloc == header and "@" not in header else None


def _is_preflight(scope: Scope, headers: Headers) -> bool:
    return scope["method"] == "OPTIONS" and "access-control-request-method" in headers


async def _send_preflight(send: Send) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": list(_PREFLIGHT)})
    await send({"type": "http.response.body", "body": b""})
