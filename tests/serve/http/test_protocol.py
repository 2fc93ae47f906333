"""Requests on the wire: request heads are bounded whichever parser reads them, and requests are counted by route."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import dowse
from dowse.serve.backend import Backend
from dowse.serve.http.options import LONGEST_HEADERS_BYTES, ServerLimits
from http_server import WAIT_S, Client, running_server

FILES = {"a.md": "# Retry\n\nretry payments\n", "b.py": "def charge(card):\n    return post(card)\n"}
FILLER = b"X-Filler: " + b"x" * 1000 + b"\r\n"
END = b"Connection: close\r\n\r\n"


@pytest.fixture(params=["httptools", "h11"])
def client(index: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    if request.param == "h11":
        monkeypatch.setattr("dowse.serve.http.server.find_spec", lambda _name: None)
    else:
        pytest.importorskip("httptools")
    with running_server(index) as client:
        yield client


def sent(client: Client, *pieces: bytes) -> list[bytes]:
    """The status of every answer to what is sent, piece by piece.

    Where it is too much, the last piece must be the one that makes it so: what is sent to a closed connection is
    answered with a reset, which would take the answer with it.
    """
    with socket.create_connection(("127.0.0.1", client.port), WAIT_S) as raw:
        for piece in pieces:
            raw.sendall(piece)
        return re.findall(rb"HTTP/1\.1 (\d{3}) ", raw.makefile("rb").read())


def head(path: str = "/healthz", *more: bytes) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n".encode() + b"".join(more)


def test_a_head_that_is_long_but_not_too_long_is_read(client: Client) -> None:
    assert sent(client, head("/healthz", FILLER * 30, END)) == [b"200"]


def test_many_headers_that_are_too_much_together_are_refused(client: Client) -> None:
    assert sent(client, head(), *[FILLER] * (LONGEST_HEADERS_BYTES // 1000 + 1)) == [b"400"]


def test_they_are_refused_when_they_come_in_one_piece_too(index: Path) -> None:
    pytest.importorskip("httptools")
    with running_server(index) as client:
        assert sent(client, head("/healthz", FILLER * (LONGEST_HEADERS_BYTES // 1000 + 1), END)) == [b"400"]


def test_one_header_without_end_is_refused(client: Client) -> None:
    assert sent(client, head("/healthz", b"X-Filler: "), *[b"x" * 1000] * (LONGEST_HEADERS_BYTES // 1000 + 1)) == [
        b"400"
    ]


def test_an_address_without_end_is_refused(client: Client) -> None:
    assert sent(client, b"GET /" + b"x" * 1000, *[b"x" * 1000] * (LONGEST_HEADERS_BYTES // 1000)) == [b"400"]


def test_requests_that_follow_a_long_body_at_once_are_answered(client: Client) -> None:
    """Only heads are counted: the piece that ends one request and begins the next is longer than a head may be."""
    body = json.dumps({"text": "retry", "service_filter": ["x" * 2 * LONGEST_HEADERS_BYTES]}).encode()
    post = b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    whole = post + b"Content-Length: %d\r\n\r\n" % len(body) + body
    ends = head("/healthz", END)
    assert sent(client, whole + whole + ends[:20], ends[20:]) == [b"200", b"200", b"200"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/search?q=retry", 200),
        ("POST", "/v1/search", 405),
        ("PATCH", "/v1/query", 405),
        ("PUT", "/v1/query", 405),
        ("HEAD", "/v1/status", 405),
    ],
)
def test_requests_are_counted_by_route(index: Path, method: str, path: str, status: int) -> None:
    with running_server(index) as client:
        assert client.send(method, path).status == status
        counted = client.get("/metrics").body.decode()
    shown = "other" if method == "PATCH" else method
    row = f'method="{shown}",route="{path.partition("?")[0]}",status="{status}"'
    assert f"dowse_requests_total{{{row}}} 1.0" in counted


def test_a_bug_is_reported_without_its_message(
    index: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_arguments: object) -> None:
        raise ZeroDivisionError("a secret of ours")

    backend = Backend(dowse.open(index, read_only=True, create=False, embedder="hash"))
    monkeypatch.setattr(backend.engine, "query", broken)
    with running_server(index, backend=backend) as client:
        answer = client.get("/v1/search?q=retry")
        assert answer.status == 500
        assert "a bug in Dowse" in answer.json["detail"]
        assert b"secret" not in answer.body
        assert client.get("/healthz").status == 200
    assert "a secret of ours" in caplog.text


def test_a_deeply_nested_body_is_refused(index: Path) -> None:
    with running_server(index) as client:
        for path in ("/v1/query", "/v1/stream", "/v1/context", "/v1/explain", "/v1/judgments", "/v1/index"):
            for depth in (500, 1_500, 20_000):
                body = b'{"text": ' + b"[" * depth + b"]" * depth + b"}"
                answer = client.send("POST", path, body, {"Content-Type": "application/json"})
                assert 400 <= answer.status < 500, (path, depth)


def test_a_head_that_does_not_end_is_cut_off(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("httptools")
    monkeypatch.setattr("dowse.serve.http.protocol.HEAD_S", 0.2)
    with running_server(index) as client:
        for begun in (b"", b"GET /healthz HTTP/1.1\r\nHost: loc", head() + END + head()):
            with socket.create_connection(("127.0.0.1", client.port), WAIT_S) as raw:
                raw.sendall(begun)
                while raw.recv(1000):  # ends, or the socket's own limit of time is an error
                    pass


def test_slow_heads_lock_nobody_out(index: Path) -> None:
    """More connections than the limit, none with a complete head: another client is answered at once."""
    pytest.importorskip("httptools")
    limits = ServerLimits(connections=16)
    with running_server(index, limits=limits) as client, ExitStack() as opened:
        for _ in range(3 * limits.connections):
            raw = opened.enter_context(socket.create_connection(("127.0.0.1", client.port), WAIT_S))
            raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        for _ in range(5):
            assert sent(client, head("/healthz", END)) == [b"200"]
