"""A server's life: an index and options enter; it listens, answers, and ends without breaking off what is under way."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, Literal

import uvicorn

from dowse.config import Config
from dowse.errors import BadRequestError, DowseError
from dowse.serve.backend import Backend
from dowse.serve.http.app import create_app
from dowse.serve.http.context import Stopping
from dowse.serve.http.metrics import SHARED_FOLDER
from dowse.serve.http.options import LONGEST_HEADERS_BYTES, ServerOptions
from dowse.serve.http.workers import Crew, take_connections
from dowse.tracing import LOGGER
from dowse.types import QueryRequest

KEEP_ALIVE_S = 15
_M_ARENA_MAX = -8  # of malloc.h
_MORE_S = 5.0  # for a worker to end, besides what its requests may take


@dataclass(frozen=True)
class Service:
    """All that a process needs to serve; it travels to worker processes."""

    index: Path
    config: Config
    options: ServerOptions
    verbose: bool = False


def listen(options: ServerOptions) -> socket.socket:
    """A socket that is ready, so that a port in use is told before anything else is done."""
    try:
        family = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM)[0][0]
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((options.host, options.port))
            found.listen(min(options.limits.connections, 1024))
        except OSError:
            found.close()
            raise
    except (OSError, OverflowError) as err:
        raise BadRequestError(
            f"cannot listen on {options.host} port {options.port}: {err}; choose another: dowse serve --port 8766"
        ) from err
    return found


def serve(service: Service, listening: socket.socket, ready: Callable[[], None] = lambda: None) -> None:
    """Answer until a signal says stop. `ready` is called when the first request can be answered."""
    if service.options.limits.workers > 1:
        _serve_with_workers(service, listening, ready)
    else:
        _serve_here(service, listening, ready)


def _serve_here(service: Service, listening: socket.socket, ready: Callable[[], None]) -> None:
    _log(verbose=service.verbose)
    _run(server_for(service, _warmed(service)), listening, ready)


def _warmed(service: Service) -> Backend:
    """Asked once, so that the first who asks need not wait for the model and the compiled loops.

    All that is there by then stays, and need not be looked through for garbage again and again.
    """
    backend = Backend.open(service.index, service.config, service.options.access, lives_on=True)
    with suppress(DowseError):  # an index that cannot be asked is served, too: its pages say what is wrong
        backend.query(QueryRequest("first question", cache=False))
    gc.collect()
    gc.freeze()
    return backend


def _share_memory() -> None:
    """Threads take memory from two arenas instead of one each: in an arena of its own, what a thread gives back lies
    idle until that thread needs it again. Measured after 10,000 queries: 144 MB instead of 150. Only glibc has
    arenas.
    """
    limit = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if limit is not None:
        limit(_M_ARENA_MAX, 2)


def _run(server: uvicorn.Server, listening: socket.socket | None, ready: Callable[[], None]) -> None:
    _share_memory()
    # uvicorn raises a signal once more when it has ended well; then it shall mean nothing.
    with _handling(lambda _number, _frame: None), asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(until_stopped(server, listening, ready))


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """uvloop where it is installed: less CPU for what the loop does about a request."""
    if find_spec("uvloop") is None:
        return asyncio.new_event_loop
    from uvloop import new_event_loop

    return new_event_loop


def server_for(service: Service, backend: Backend | None = None) -> uvicorn.Server:
    """A server over the index, or over a backend that is open already; not started yet."""
    stopping = Stopping()
    backend = backend or Backend.open(service.index, service.config, service.options.access, lives_on=True)
    server = uvicorn.Server(_settings(service, create_app(backend, service.options, stopping)))
    stopping.asked = lambda: server.should_exit
    return server


async def until_stopped(server: uvicorn.Server, listening: socket.socket | None, ready: Callable[[], None]) -> None:
    """`ready` is called in the loop, when connections can be taken. Without a socket, it says where they come from."""
    task = asyncio.create_task(server.serve(sockets=[] if listening is None else [listening]))
    while not server.started and not task.done():
        await asyncio.sleep(0.01)
    if server.started:
        ready()
    await task


def _settings(service: Service, app: object) -> uvicorn.Config:
    limits = service.options.limits
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        http=_protocol(),
        log_config=None,
        access_log=service.verbose,
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
    from dowse.serve.http.protocol import Bounded

    return Bounded


def _log(*, verbose: bool) -> None:
    """To stderr, as all notes. Each request is a line of it only when asked for."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="dowse: %(message)s")
    logging.getLogger("uvicorn.access").setLevel(logging.INFO if verbose else logging.WARNING)
    # A query that lost a stage is a warning in a library; the answer itself says so to the one who asked.
    logging.getLogger(LOGGER).setLevel(logging.INFO if verbose else logging.ERROR)


# --- several processes ------------------------------------------------------------------------------


def _serve_with_workers(service: Service, listening: socket.socket, ready: Callable[[], None]) -> None:
    """Connections are handed to workers in turn. One that dies is replaced; a signal ends them all well."""
    stop = False

    def ask_to_stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal stop
        stop = True

    limits = service.options.limits
    crew = Crew(limits.workers, partial(_work, service), listening)
    with _shared_metrics(), _handling(ask_to_stop):
        try:
            crew.run(lambda: stop, ready)
        finally:
            crew.end(limits.shutdown_s + _MORE_S)


def _work(service: Service, channel: socket.socket) -> None:
    _log(verbose=service.verbose)
    server = server_for(service, _warmed(service))

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
