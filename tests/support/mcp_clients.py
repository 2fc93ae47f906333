"""Connected MCP clients for tests: in memory, over stdio and over HTTP."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import anyio
import uvicorn
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

import dowse
from dowse.config import Config
from dowse.serve.backend import Access, Backend
from dowse.serve.http.app import create_app
from dowse.serve.http.options import ServerOptions
from dowse.serve.mcp.server import LazyBackend, server

SOURCE = Path(dowse.__file__).parents[1]
Work = Callable[[Client], Awaitable[Any]]


def opened(folder: Path, access: Access | None = None) -> LazyBackend:
    return LazyBackend(lambda: Backend.open(folder, Config(embedder="none"), access))


def ask(folder: Path, work: Work, *, allow_write: bool = False, absolute_paths: bool = False) -> Any:
    """Connect the real server and the real client in memory, and run `work`."""

    async def run() -> Any:
        backend = opened(folder, Access(allow_write, absolute_paths))
        try:
            async with Client(server(backend, allow_write=allow_write)) as client:
                return await work(client)
        finally:
            backend.close()

    return anyio.run(run)


def call(folder: Path, name: str, /, **arguments: Any) -> Any:
    """Call one tool."""
    return ask(folder, lambda client: client.call_tool(name, arguments))


def command(*arguments: str) -> tuple[list[str], dict[str, str]]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DOWSE_")}
    environment |= {"PYTHONPATH": str(SOURCE), "DOWSE_EMBEDDER": "none", "PYTHONWARNINGS": "error"}
    return [sys.executable, "-m", "dowse", "mcp", *arguments], environment


@asynccontextmanager
async def over_stdio(folder: Path, *arguments: str, mode: str = "legacy") -> AsyncIterator[Client]:
    """Start the server in a separate process, as an agent does."""
    words, environment = command("--index", str(folder), *arguments)
    parameters = StdioServerParameters(command=words[0], args=words[1:], env=environment)
    async with Client(stdio_client(parameters), mode=mode) as client:
        yield client


@contextmanager
def over_http(folder: Path, *, allow_write: bool = False, token: str | None = None) -> Iterator[str]:
    """Serve HTTP on loopback and yield the address of `/mcp`."""
    access = Access(allow_write)
    options = ServerOptions(access=access, token=token)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()  # connections made before uvicorn is up wait in the queue
        app = create_app(Backend.open(folder, Config(embedder="none"), access), options)
        running = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on"))
        thread = Thread(target=running.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        finally:
            running.should_exit = True
            thread.join(10)
