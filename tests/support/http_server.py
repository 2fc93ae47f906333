"""Dowse HTTP server on loopback and a plain client, for tests of the HTTP service."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlencode

import dowse
from dowse.config import Config
from dowse.serve.backend import Access
from dowse.serve.http.options import ServerLimits, ServerOptions
from dowse.serve.http.server import ServerSetup, listen, server_for, until_stopped

WAIT_S = 200.0  # what a loaded machine may take; nothing waits for it when all is well


@dataclass(frozen=True)
class Answer:
    """HTTP response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[tuple[str, Any]]:
        """Server-sent events as (name, data)."""
        rows = [
            dict(line.split(": ", 1) for line in part.split("\n")) for part in self.body.decode().split("\n\n") if part
        ]
        return [(row["event"], json.loads(row["data"])) for row in rows if "event" in row]


@dataclass(frozen=True)
class Client:
    """HTTP client of one server; opens a new connection for each request."""

    port: int
    host: str = "127.0.0.1"
    headers: dict[str, str] = field(default_factory=dict)

    def get(self, path: str, parameters: Any = None, **headers: str) -> Answer:
        query = f"?{urlencode(parameters, doseq=True)}" if parameters else ""
        return self.send("GET", path + query, headers=headers)

    def post(self, path: str, row: Any, **headers: str) -> Answer:
        return self.send("POST", path, json.dumps(row).encode(), {"Content-Type": "application/json"} | headers)

    def send(self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> Answer:
        connection = HTTPConnection(self.host, self.port, timeout=WAIT_S)
        try:
            connection.request(method, path, body, self.headers | (headers or {}))
            found = connection.getresponse()
            return Answer(found.status, {k.lower(): v for k, v in found.getheaders()}, found.read())
        finally:
            connection.close()


def indexed(index: Path, root: Path, files: dict[str, str], embedder: str | None = "hash") -> Path:
    """Write the files and index them."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    with dowse.open(index, embedder=embedder) as engine:
        engine.index([root])
    return index


@contextmanager
def running_server(
    index: Path,
    *,
    access: Access | None = None,
    limits: ServerLimits | None = None,
    config: Config | None = None,
    backend: Any = None,
    **options: Any,
) -> Iterator[Client]:
    """Run the server in a thread of this process; stop it as a signal does."""
    chosen = ServerOptions(
        port=0, access=access or Access(), limits=limits or ServerLimits(), **({"mcp": False} | options)
    )
    server = server_for(ServerSetup(index, config or Config(embedder="hash"), chosen), backend)
    with listen(chosen) as listening:
        thread = Thread(target=lambda: asyncio.run(until_stopped(server, listening, lambda: None)))
        thread.start()
        try:
            while not server.started:
                thread.join(0.01)
                assert thread.is_alive(), "the server did not start"
            yield Client(listening.getsockname()[1])
        finally:
            server.should_exit = True
            thread.join(WAIT_S)
            assert not thread.is_alive(), "the server did not stop"


@contextmanager
def server_process(index: Path, *flags: str, **variables: str) -> Iterator[tuple[subprocess.Popen[str], Client]]:
    """Run `dowse serve` in a separate process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dowse", "serve", "--index", str(index), "--port", "0", "--json", *flags],
        env=environment(DOWSE_EMBEDDER="hash", **variables),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, process.stderr.read() if process.stderr else ""
        port = int(json.loads(line)["url"].rstrip("/").rsplit(":", 1)[1])
        yield process, Client(port)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.communicate(timeout=WAIT_S)


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `dowse ARGUMENTS` to its end."""
    command: Sequence[str] = [sys.executable, "-m", "dowse", *arguments]
    return subprocess.run(
        command, env=environment(DOWSE_EMBEDDER="hash", **variables), capture_output=True, text=True, timeout=WAIT_S
    )


def environment(**variables: str) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(Path(dowse.__file__).parents[1])} | variables
