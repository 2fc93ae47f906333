"""Connections enter one process and leave to several: each goes to the worker whose turn it is.

Where workers accept for themselves, chance decides: of 24 connections one has got 16, and then its core is full and
the other one idle. A worker says when it can take connections, and gets none before.
"""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from typing import Protocol

from dowse.errors import UnavailableError

_WATCH_S = 0.2
_REPLACED = 20  # workers that may die before it is clear that none will live; chosen
_READY, _HERE = b"r", b"c"  # a worker's word, and ours with a connection
_AT_ONCE = 64  # connections accepted before workers are looked at again


class Serves(Protocol):
    """What a worker process runs: it takes connections from a channel until it is told to stop."""

    def __call__(self, channel: socket.socket, /) -> None: ...


@dataclass
class Worker:
    """A process, our end of the channel to it, and whether it takes connections yet."""

    process: BaseProcess
    channel: socket.socket
    ready: bool = False


class Crew:
    """Keeps so many workers, and hands connections to those that are ready, in turn."""

    def __init__(self, wanted: int, serves: Serves, listening: socket.socket) -> None:
        self._wanted = wanted
        self._serves = serves
        self._listening = listening
        self._workers: list[Worker] = []
        self._spare = wanted + _REPLACED
        self._turn = 0
        self._held: list[socket.socket] = []  # taken when the last that was ready had just died

    def run(self, stop: Callable[[], bool], started: Callable[[], None]) -> None:
        """Until `stop`. UnavailableError when workers die as soon as they begin."""
        self._listening.setblocking(False)
        self._replace()
        started()
        while not stop() and self._spare >= 0:
            self._look()
            self._replace()
        if self._spare < 0:
            raise UnavailableError("worker processes end as soon as they begin; the lines above say why")

    def end(self, wait_s: float) -> None:
        """Every worker finishes what it is doing."""
        for each in self._workers:
            each.process.terminate()
        for each in self._workers:
            each.process.join(wait_s)
            each.channel.close()
        for connection in self._held:
            connection.close()

    def _look(self) -> None:
        """What there is to do, or nothing for a moment."""
        starting = [each.channel for each in self._workers if not each.ready]
        waiting = [self._listening] if len(starting) < len(self._workers) else []
        readable, _, _ = select.select([*starting, *waiting], [], [], _WATCH_S)
        for each in self._workers:
            each.ready = each.ready or (each.channel in readable and _said_ready(each.channel))
        held, self._held = self._held, []
        for connection in held:
            self._give(connection)
        if self._listening in readable:
            self._hand_out()

    def _hand_out(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                connection, _ = self._listening.accept()
            except OSError:  # there is none any more, or there are too many open files, and they wait
                return
            self._give(connection)

    def _give(self, connection: socket.socket) -> None:
        """To the next that takes it; one that died meanwhile is passed over. Nobody at all: it waits."""
        while ready := [each for each in self._workers if each.ready]:
            self._turn += 1
            chosen = ready[self._turn % len(ready)]
            try:
                socket.send_fds(chosen.channel, [_HERE], [connection.fileno()])
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
            process = get_context("spawn").Process(target=self._serves, args=(theirs,), daemon=True)
            process.start()
            theirs.close()
            self._workers.append(Worker(process, ours))


def _said_ready(channel: socket.socket) -> bool:
    try:
        return channel.recv(1) == _READY
    except ConnectionError:  # it died with connections that it had not taken yet
        return False


def take_connections(
    channel: socket.socket, protocol: Callable[[], asyncio.Protocol], gone: Callable[[], None]
) -> None:
    """A worker's side, in its loop: every connection that arrives gets a protocol, from now on. `gone` is called when
    whoever hands them out is no more.
    """
    loop = asyncio.get_running_loop()
    connecting: set[asyncio.Task[object]] = set()

    def arrived() -> None:
        try:
            word, found, _, _ = socket.recv_fds(channel, 1, 1)
        except BlockingIOError:
            return
        except ConnectionError:  # it ended without having read our word
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
    except ConnectionError:  # it is no more: `arrived` is about to be told so, too
        return
