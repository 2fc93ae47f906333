"""Fake chat endpoint: a local HTTP server with good, slow, broken or endless replies."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-very-secret"


@dataclass
class FakeEndpoint:
    """Address of the fake endpoint and the requests it received."""

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    @property
    def prompts(self) -> list[str]:
        return [request["messages"][0]["content"] for request in self.requests]


Reply = Callable[[BaseHTTPRequestHandler, dict[str, Any], FakeEndpoint], None]


@contextmanager
def fake_llm(*replies: Reply) -> Iterator[FakeEndpoint]:
    """Start a fake endpoint: one reply for each request, the last one repeated."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with turn:
                reply = replies[min(len(endpoint.requests), len(replies) - 1)]
                endpoint.requests.append(body | {"path": self.path})
                endpoint.headers.append(dict(self.headers))
            try:
                reply(self, body, endpoint)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the client closed the connection

        def log_message(self, *args: Any) -> None:
            pass

    turn = threading.Lock()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    endpoint = FakeEndpoint(f"http://127.0.0.1:{server.server_port}/v1")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


def says(content: Any, finish_reason: str = "stop") -> Reply:
    """A chat completion with this content; anything but a string is encoded as JSON."""
    text = content if isinstance(content, str) else json.dumps(content)
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish_reason}
    return answers(200, {"object": "chat.completion", "choices": [choice]})


def scores_by(rule: Callable[[int], float]) -> Reply:
    """Score every passage of the prompt by a rule on its number."""

    def reply(handler: BaseHTTPRequestHandler, body: dict[str, Any], endpoint: FakeEndpoint) -> None:
        count = body["messages"][0]["content"].count(' id="P')
        says({"scores": [{"id": f"P{n}", "score": rule(n)} for n in range(1, count + 1)]})(handler, body, endpoint)

    return reply


def answers(status: int, body: Any, **extra_headers: str) -> Reply:
    def reply(handler: BaseHTTPRequestHandler, _: dict[str, Any], endpoint: FakeEndpoint) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        handler.send_response(status)
        for name, value in extra_headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return reply


def slow(handler: BaseHTTPRequestHandler, _: dict[str, Any], endpoint: FakeEndpoint) -> None:
    """Accept the request and never reply."""
    endpoint.closing.wait(30)
    handler.close_connection = True


def never_ending(handler: BaseHTTPRequestHandler, _: dict[str, Any], endpoint: FakeEndpoint) -> None:
    """Send a body that never ends."""
    handler.send_response(200)
    handler.end_headers()
    while not endpoint.closing.wait(0.02):
        handler.wfile.write(b" ")
        handler.wfile.flush()
    handler.close_connection = True


def never_ending_head(handler: BaseHTTPRequestHandler, _: dict[str, Any], endpoint: FakeEndpoint) -> None:
    """Send a header line that never ends, which no socket timeout catches."""
    handler.wfile.write(b"HTTP/1.0 200 OK\r\nX-Long: ")
    while not endpoint.closing.wait(0.02):
        handler.wfile.write(b"a")
        handler.wfile.flush()
    handler.close_connection = True


def cut_off(handler: BaseHTTPRequestHandler, _: dict[str, Any], endpoint: FakeEndpoint) -> None:
    """Announce a longer body than is sent."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')
    handler.close_connection = True
