"""Worker processes of the HTTP server: one process accepts connections and passes them to workers in turn.

Workers that accept for themselves share badly: one got 16 of 24 connections, which saturated its core and left the
other idle. A worker gets connections only after it has signalled that it is ready.
"""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.process import BaseProcess

from msgspec import Struct

from dowse.errors import UnavailableError

_WATCH_S = 0.2
_MOST_RESTARTS = 20  # of dead workers before the server gives up; chosen
_READY, _CONNECTION = b"r", b"c"  # messages of a worker, and of the parent with a connection
_AT_ONCE = 64  # connections accepted before the workers are polled again
WorkerMain = Callable[[socket.socket], None]  # of a worker: takes connections from a channel until it is terminated


class ServerWorker(Struct, eq=False):
    """Worker process, the parent's end of its channel, and whether it accepts connections yet."""

    process: BaseProcess
    channel: socket.socket
    ready: bool = False


class ServerWorkers:
    """Pool of workers of constant size that passes connections to the ready ones in turn."""

    def __init__(self, wanted: int, main: WorkerMain, listening: socket.socket) -> None:
        self._wanted = wanted
        self._main = main
        self._listening = listening
        self._workers: list[ServerWorker] = []
        self._spare = wanted + _MOST_RESTARTS
        self._turn = 0
        self._held: list[socket.socket] = []  # accepted while no worker was ready

    def run(self, stop: Callable[[], bool], started: Callable[[], None]) -> None:
        """Run until `stop`. UnavailableError when workers keep dying at start."""
        self._listening.setblocking(False)
        self._replace()
        started()
        while not stop() and self._spare >= 0:
            self._poll()
            self._replace()
        if self._spare < 0:
            raise UnavailableError("worker processes exit at start; see the messages above for the reason")

    def end(self, wait_s: float) -> None:
        """Stop all workers after their running requests."""
        for each in self._workers:
            each.process.terminate()
        for each in self._workers:
            each.process.join(wait_s)
            each.channel.close()
        for connection in self._held:
            connection.close()

    def _poll(self) -> None:
        """Wait a moment for ready workers and new connections."""
        starting = [each.channel for each in self._workers if not each.ready]
        waiting = [self._listening] if len(starting) < len(self._workers) else []
        readable, _, _ = select.select([*starting, *waiting], [], [], _WATCH_S)
        for each in self._workers:
            each.ready = each.ready or (each.channel in readable and _is_ready(each.channel))
        held, self._held = self._held, []
        for connection in held:
            self._pass(connection)
        if self._listening in readable:
            self._accept()

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, _ = self._listening.accept()
            except OSError:  # none left, or too many open files: the rest wait
                return
            self._pass(connection)

    def _pass(self, connection: socket.socket) -> None:
        """Pass a connection to the next ready worker; hold it while there is none."""
        while ready := [each for each in self._workers if each.ready]:
            self._turn += 1
            chosen = ready[self._turn % len(ready)]
            try:
                socket.send_fds(chosen.channel, [_CONNECTION], [connection.fileno()])
            except OSError:
                chosen.ready = False
                continue
            connection.close()
            return
        self._held.append(connection)

    def _replace(self) -> None:
        for each in [each for each in self._workers if not each.process.is_alive()]:
            each.channel.close()
            self._workers.remove(each)
        while len(self._workers) < self._wanted and self._spare >= 0:
            self._spare -= 1
            ours, theirs = socket.socketpair()
            process = get_context("spawn").Process(target=self._main, args=(theirs,), daemon=True)
            process.start()
            theirs.close()
            self._workers.append(ServerWorker(process, ours))


def _is_ready(channel: socket.socket) -> bool:
    try:
        return channel.recv(1) == _READY
    except ConnectionError:  # it died with connections that it had not received
        return False


def take_connections(
    channel: socket.socket, protocol: Callable[[], asyncio.Protocol], gone: Callable[[], None]
) -> None:
    """Serve the connections that arrive at a worker's channel. `gone` is called when the parent process has ended."""
    loop = asyncio.get_running_loop()
    connecting: set[asyncio.Task[object]] = set()

    def arrived() -> None:
        try:
            word, found, _, _ = socket.recv_fds(channel, 1, 1)
        except BlockingIOError:
            return
        except ConnectionError:  # the parent ended without reading our message
            word, found = b"", []
        if not word:
            loop.remove_reader(channel)
            gone()
        for number in found:
            task = loop.create_task(loop.connect_accepted_socket(protocol, socket.socket(fileno=number)))
            connecting.add(task)
            task.add_done_callback(connecting.discard)

    channel.setblocking(False)
    loop.add_reader(channel, arrived)
    try:
        channel.send(_READY)
    except ConnectionError:  # the parent has ended: `arrived` will notice
        return
