"""A real HTTP server on this machine that plays a chat endpoint: well-behaved, slow, broken or without end."""

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
class Stage:
    """What the server was asked, and the address to ask it at."""

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    @property
    def prompts(self) -> list[str]:
        return [request["messages"][0]["content"] for request in self.requests]


Act = Callable[[BaseHTTPRequestHandler, dict[str, Any], Stage], None]


@contextmanager
def playing(*acts: Act) -> Iterator[Stage]:
    """One act a request, the last one over and over."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with turn:
                act = acts[min(len(stage.requests), len(acts) - 1)]
                stage.requests.append(body | {"path": self.path})
                stage.headers.append(dict(self.headers))
            try:
                act(self, body, stage)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the audience left

        def log_message(self, *args: Any) -> None:
            pass

    turn = threading.Lock()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    stage = Stage(f"http://127.0.0.1:{server.server_port}/v1")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield stage
    finally:
        stage.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


def says(content: Any, finish_reason: str = "stop") -> Act:
    """A reply with this content; what is not text is written as JSON."""
    text = content if isinstance(content, str) else json.dumps(content)
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish_reason}
    return answers(200, {"object": "chat.completion", "choices": [choice]})


def scores_by(rule: Callable[[int], float]) -> Act:
    """Rates every passage of the prompt by a rule on its number, as asked."""

    def act(handler: BaseHTTPRequestHandler, body: dict[str, Any], stage: Stage) -> None:
        count = body["messages"][0]["content"].count(' id="P')
        says({"scores": [{"id": f"P{n}", "score": rule(n)} for n in range(1, count + 1)]})(handler, body, stage)

    return act


def answers(status: int, body: Any, **extra_headers: str) -> Act:
    def act(handler: BaseHTTPRequestHandler, _: dict[str, Any], stage: Stage) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        handler.send_response(status)
        for name, value in extra_headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return act


def slow(handler: BaseHTTPRequestHandler, _: dict[str, Any], stage: Stage) -> None:
    """Accepts and then says nothing."""
    stage.closing.wait(30)
    handler.close_connection = True


def never_ending(handler: BaseHTTPRequestHandler, _: dict[str, Any], stage: Stage) -> None:
    """A body that drips for ever."""
    handler.send_response(200)
    handler.end_headers()
    while not stage.closing.wait(0.02):
        handler.wfile.write(b" ")
        handler.wfile.flush()
    handler.close_connection = True


def never_ending_head(handler: BaseHTTPRequestHandler, _: dict[str, Any], stage: Stage) -> None:
    """A header line that drips for ever: no timeout of a socket sees that."""
    handler.wfile.write(b"HTTP/1.0 200 OK\r\nX-Long: ")
    while not stage.closing.wait(0.02):
        handler.wfile.write(b"a")
        handler.wfile.flush()
    handler.close_connection = True


def cut_off(handler: BaseHTTPRequestHandler, _: dict[str, Any], stage: Stage) -> None:
    """Announces more than it sends."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')
    handler.close_connection = True
