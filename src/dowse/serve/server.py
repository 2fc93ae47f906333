"""A server's life: an index and options enter; it listens, answers, and ends without breaking off what is under way."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep
from types import FrameType

import uvicorn

from dowse.config import Config
from dowse.errors import BadRequestError, UnavailableError
from dowse.serve.backend import Backend
from dowse.serve.http import create_app
from dowse.serve.http_face import Stopping
from dowse.serve.http_metrics import SHARED_FOLDER
from dowse.serve.http_options import ServerOptions
from dowse.tracing import LOGGER

LONGEST_HEADERS_BYTES = 32 * 1024  # chosen; a question in a URL fits
KEEP_ALIVE_S = 15
_WATCH_S = 0.2
_REPLACED = 20  # workers that may die before it is clear that none will live; chosen


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
    # uvicorn raises a signal once more when it has ended well; then it shall mean nothing.
    with _handling(lambda _number, _frame: None):
        asyncio.run(until_stopped(server_for(service), listening, ready))


def server_for(service: Service, backend: Backend | None = None) -> uvicorn.Server:
    """A server over the index, or over a backend that is open already; not started yet."""
    stopping = Stopping()
    backend = backend or Backend.open(service.index, service.config, service.options.access, lives_on=True)
    server = uvicorn.Server(_settings(service, create_app(backend, service.options, stopping)))
    stopping.asked = lambda: server.should_exit
    return server


async def until_stopped(server: uvicorn.Server, listening: socket.socket, ready: Callable[[], None]) -> None:
    task = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started and not task.done():
        await asyncio.sleep(0.01)
    if server.started:
        ready()
    await task


def _settings(service: Service, app: object) -> uvicorn.Config:
    limits = service.options.limits
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        http="h11",  # the other one takes headers without end
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


def _log(*, verbose: bool) -> None:
    """To stderr, as all notes. Each request is a line of it only when asked for."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="dowse: %(message)s")
    logging.getLogger("uvicorn.access").setLevel(logging.INFO if verbose else logging.WARNING)
    # A query that lost a stage is a warning in a library; the answer itself says so to the one who asked.
    logging.getLogger(LOGGER).setLevel(logging.INFO if verbose else logging.ERROR)


# --- several processes ------------------------------------------------------------------------------


def _serve_with_workers(service: Service, listening: socket.socket, ready: Callable[[], None]) -> None:
    """Every worker takes requests from the same socket. One that dies is replaced; a signal ends them all well."""
    context, wanted = get_context("spawn"), service.options.limits.workers
    stop, spare = False, wanted + _REPLACED

    def ask_to_stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal stop
        stop = True

    with _shared_metrics(), _handling(ask_to_stop):
        workers: list[BaseProcess] = []
        while not stop and spare >= 0:
            workers = [each for each in workers if each.is_alive()]
            while len(workers) < wanted and spare >= 0:
                spare -= 1
                workers.append(context.Process(target=_work, args=(service, listening), daemon=True))
                workers[-1].start()
                if spare == _REPLACED:
                    ready()
            sleep(_WATCH_S)
        for each in workers:
            each.terminate()
        for each in workers:
            each.join(service.options.limits.shutdown_s + 5.0)
    if not stop:
        raise UnavailableError("worker processes end as soon as they begin; the lines above say why")


def _work(service: Service, listening: socket.socket) -> None:
    _serve_here(service, listening, lambda: None)


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
