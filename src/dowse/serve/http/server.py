"""HTTP server: listening, start of workers, and graceful shutdown."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, Literal

import uvicorn
from msgspec import Struct

from dowse.config import Config
from dowse.errors import BadRequestError, DowseError
from dowse.serve.backend import Backend
from dowse.serve.http.app import create_app
from dowse.serve.http.metrics import SHARED_FOLDER
from dowse.serve.http.options import LONGEST_HEADERS_BYTES, ServerOptions
from dowse.serve.http.workers import ServerWorkers, take_connections
from dowse.tracing import LOGGER
from dowse.types import QueryRequest

KEEP_ALIVE_S = 15
_EXIT_S = 5.0  # for a worker to exit after its last request


class ServerSetup(Struct, frozen=True):
    """Arguments of a server process; worker processes receive a copy."""

    index: Path
    config: Config
    options: ServerOptions
    verbose: bool = False


def listen(options: ServerOptions) -> socket.socket:
    """Open the listening socket first, so that a port in use is reported at once."""
    try:
        family = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server(
            (options.host, options.port),
            family=family,
            backlog=min(options.limits.connections, 1024),
            dualstack_ipv6=family == socket.AF_INET6 and socket.has_dualstack_ipv6(),
        )
    except (OSError, OverflowError) as err:
        raise BadRequestError(
            f"cannot listen on {options.host} port {options.port}: {err}; choose another port: dowse serve --port 8766"
        ) from err


def serve(setup: ServerSetup, listening: socket.socket, ready: Callable[[], None] = lambda: None) -> None:
    """Serve until a signal arrives. `ready` is called when the server accepts requests."""
    if setup.options.limits.workers > 1:
        _serve_with_workers(setup, listening, ready)
    else:
        _log(verbose=setup.verbose)
        _run(server_for(setup, _warmed(setup)), listening, ready)


def _warmed(setup: ServerSetup) -> Backend:
    """Open a backend and run one query, which loads the model and the compiled loops.

    The objects alive by then stay, so the garbage collector may skip them.
    """
    backend = Backend.open(setup.index, setup.config, setup.options.access)
    with suppress(DowseError):  # a damaged index is served, too: the pages show the error
        backend.query(QueryRequest("warm-up", cache=False))
    gc.collect()
    gc.freeze()
    return backend


def _run(server: uvicorn.Server, listening: socket.socket | None, ready: Callable[[], None]) -> None:
    # uvicorn raises the signal again after a clean shutdown; this handler ignores it.
    with (
        _handling(lambda _number, _frame: None),
        asyncio.Runner(loop_factory=server.config.get_loop_factory()) as runner,
    ):
        runner.run(until_stopped(server, listening, ready))


def server_for(setup: ServerSetup, backend: Backend | None = None) -> uvicorn.Server:
    """Make a server, not yet started, over the index or over an open backend."""
    backend = backend or Backend.open(setup.index, setup.config, setup.options.access)
    app = create_app(backend, setup.options, lambda: server.should_exit)
    server = uvicorn.Server(_settings(setup, app))
    return server


async def until_stopped(server: uvicorn.Server, listening: socket.socket | None, ready: Callable[[], None]) -> None:
    """Run the server. `ready` is called in the loop after start; without a socket, it supplies the connections."""
    task = asyncio.create_task(server.serve(sockets=[] if listening is None else [listening]))
    while not server.started and not task.done():
        await asyncio.sleep(0.01)
    if server.started:
        ready()
    await task


def _settings(setup: ServerSetup, app: object) -> uvicorn.Config:
    limits = setup.options.limits
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        http=_protocol(),
        log_config=None,
        access_log=setup.verbose,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=int(limits.shutdown_s),
        limit_concurrency=limits.connections,
        h11_max_incomplete_event_size=LONGEST_HEADERS_BYTES,
        lifespan="on",
        ws="none",
    )


def _protocol() -> type[asyncio.Protocol] | Literal["h11"]:
    if find_spec("httptools") is None:
        return "h11"
    from dowse.serve.http.protocol import BoundedHttpProtocol

    return BoundedHttpProtocol


def _log(*, verbose: bool) -> None:
    """Log to stderr; requests only with `verbose`."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="dowse: %(message)s")
    logging.getLogger("uvicorn.access").setLevel(logging.INFO if verbose else logging.WARNING)
    # A skipped stage is a warning in the library; on a server the answer itself reports it.
    logging.getLogger(LOGGER).setLevel(logging.INFO if verbose else logging.ERROR)


def _serve_with_workers(setup: ServerSetup, listening: socket.socket, ready: Callable[[], None]) -> None:
    """Run worker processes. A dead one is replaced; a signal stops them all gracefully."""
    stop = False

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        nonlocal stop
        stop = True

    limits = setup.options.limits
    workers = ServerWorkers(limits.workers, partial(_work, setup), listening)
    with _shared_metrics(), _handling(on_signal):
        try:
            workers.run(lambda: stop, ready)
        finally:
            workers.end(limits.shutdown_s + _EXIT_S)


def _work(setup: ServerSetup, channel: socket.socket) -> None:
    _log(verbose=setup.verbose)
    server = server_for(setup, _warmed(setup))

    def protocol() -> asyncio.Protocol:
        kind: Any = server.config.http_protocol_class
        made: asyncio.Protocol = kind(
            config=server.config, server_state=server.server_state, app_state=server.lifespan.state
        )
        return made

    def stop() -> None:
        server.should_exit = True

    _run(server, None, lambda: take_connections(channel, protocol, gone=stop))


@contextmanager
def _handling(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


@contextmanager
def _shared_metrics() -> Iterator[None]:
    with TemporaryDirectory(prefix="dowse-metrics-") as folder:
        os.environ[SHARED_FOLDER] = folder
        try:
            yield
        finally:
            del os.environ[SHARED_FOLDER]
