"""Requests on the wire: heads have an end whichever parser reads them, and the straight way answers as the long one."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dowse
from dowse.serve.backend import Backend
from dowse.serve.http import fast_path as http_direct
from dowse.serve.http.options import LONGEST_HEADERS_BYTES, Limits
from http_server import WAIT_S, Answer, Client, serving

FILES = {"a.md": "# Retry\n\nretry payments\n", "b.py": "def charge(card):\n    return post(card)\n"}
FILLER = b"X-Filler: " + b"x" * 1000 + b"\r\n"
END = b"Connection: close\r\n\r\n"


@pytest.fixture(params=["httptools", "h11"])
def client(index: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    if request.param == "h11":
        monkeypatch.setattr("dowse.serve.http.server.find_spec", lambda _name: None)
    else:
        pytest.importorskip("httptools")
    with serving(index) as client:
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
    with serving(index) as client:
        assert sent(client, head("/healthz", FILLER * (LONGEST_HEADERS_BYTES // 1000 + 1), END)) == [b"400"]


def test_one_header_without_end_is_refused(client: Client) -> None:
    assert sent(client, head("/healthz", b"X-Filler: "), *[b"x" * 1000] * (LONGEST_HEADERS_BYTES // 1000 + 1)) == [
        b"400"
    ]


def test_an_address_without_end_is_refused(client: Client) -> None:
    assert sent(client, b"GET /" + b"x" * 1000, *[b"x" * 1000] * (LONGEST_HEADERS_BYTES // 1000)) == [b"400"]


def test_requests_that_follow_a_long_body_at_once_are_answered(client: Client) -> None:
    """Only heads are counted: the piece that ends one request and begins the next is longer than a head may be."""
    body = json.dumps({"text": "retry", "path_filter": ["x" * 2 * LONGEST_HEADERS_BYTES]}).encode()
    post = b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    whole = post + b"Content-Length: %d\r\n\r\n" % len(body) + body
    ends = head("/healthz", END)
    assert sent(client, whole + whole + ends[:20], ends[20:]) == [b"200", b"200", b"200"]


ASKED: list[tuple[str, str, Any]] = [
    ("GET", "/v1/search?q=retry&top_k=2", None),
    ("GET", "/v1/search", None),
    ("GET", "/v1/search?q=retry&nonsense=1", None),
    ("POST", "/v1/query", {"text": "retry", "facets": True}),
    ("POST", "/v1/query", {"text": ""}),
    ("POST", "/v1/query", {"text": "x" * 2000}),
    ("POST", "/v1/search", {"text": "x"}),
    ("PUT", "/v1/query", {"text": "x"}),
]


def asked(client: Client, method: str, path: str, body: Any) -> Answer:
    data = None if body is None else json.dumps(body).encode()
    return client.send(method, path, data, {"Content-Type": "application/json"})


def told(answer: Answer) -> tuple[int, dict[str, str], Any]:
    """An answer without what differs from one moment to the next."""
    row = answer.json
    row.pop("query_metadata", None)
    headers = {name: value for name, value in answer.headers.items() if name not in ("date", "content-length")}
    return answer.status, headers, row


@pytest.mark.parametrize(("method", "path", "body"), ASKED)
def test_the_straight_way_answers_as_the_long_one(
    index: Path, monkeypatch: pytest.MonkeyPatch, method: str, path: str, body: Any
) -> None:
    limits = Limits(body_bytes=1000)
    with serving(index, limits=limits) as client:
        straight = asked(client, method, path, body)
        counted = client.get("/metrics").body
    monkeypatch.setattr(http_direct, "PATHS", ())
    with serving(index, limits=limits) as client:
        assert told(straight) == told(asked(client, method, path, body))
        routes = [line.split(b"}")[0] for line in counted.splitlines() if line.startswith(b"dowse_requests_total")]
        others = client.get("/metrics").body.splitlines()
        assert routes == [line.split(b"}")[0] for line in others if line.startswith(b"dowse_requests_total")]


@pytest.mark.parametrize("paths", [http_direct.PATHS, ()])
def test_a_bug_is_told_as_one_and_not_what_it_was(
    index: Path, monkeypatch: pytest.MonkeyPatch, paths: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_arguments: object) -> None:
        raise ZeroDivisionError("a secret of ours")

    monkeypatch.setattr(http_direct, "PATHS", paths)
    backend = Backend(dowse.open(index, read_only=True, create=False, embedder="hash"))
    monkeypatch.setattr(backend.engine, "query", broken)
    with serving(index, backend=backend) as client:
        answer = client.get("/v1/search?q=retry")
        assert answer.status == 500
        assert "a bug in Dowse" in answer.json["detail"]
        assert b"secret" not in answer.body
        assert client.get("/healthz").status == 200
    assert "a secret of ours" in caplog.text
