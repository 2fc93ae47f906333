"""Several processes behind one port: connections are handed out evenly, and a worker that dies is replaced."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from dowse.serve.http.workers import take_connections
from http_server import WAIT_S, Client, server_process

FILES = {"a.md": "# Retry\n\nretry payments\n"}


def workers(pid: int) -> list[int]:
    """Processes that hold a connection or could: the children of a server that load its index."""
    found = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return [child for child in found if b"resource_tracker" not in Path(f"/proc/{child}/cmdline").read_bytes()]


def runs(pid: int) -> bool:
    """Whether it is there, and not only remembered until its parent has looked.

    A killed one holds its sockets until its last thread has gone, and its first may go before.
    """
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        return len(threads) > 1 or Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def open_sockets(pid: int) -> set[str]:
    links = [os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir() if os.path.lexists(each)]
    return {each.removeprefix("socket:[").removesuffix("]") for each in links if each.startswith("socket:")}


def accepted(port: int) -> set[str]:
    """The server's ends of established connections to a port, by inode."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {row[9] for row in rows if int(row[1].split(":")[1], 16) == port and row[3] == "01"}


def until(fact: Callable[[], bool]) -> None:
    ends = time.monotonic() + WAIT_S
    while not fact():
        assert time.monotonic() < ends, "it did not come about"
        time.sleep(0.02)


def connected(client: Client) -> socket.socket:
    """A connection that a worker has taken and answered on."""
    raw = socket.create_connection(("127.0.0.1", client.port), WAIT_S)
    raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert raw.recv(1000).startswith(b"HTTP/1.1 200")
    return raw


def holding(client: Client, pids: list[int]) -> Counter[int]:
    """How many connections each process has."""
    return Counter(pid for pid in pids for _ in accepted(client.port) & open_sockets(pid))


def answers(client: Client) -> bool:
    return client.get("/readyz").status == 200


pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="tells processes apart by /proc")


def test_connections_are_shared_out_evenly(index: Path) -> None:
    with server_process(index, "--workers", "2") as (process, client), ExitStack() as stack:
        assert answers(client)
        pids = workers(process.pid)
        while len(holding(client, pids)) < len(pids):  # one may begin to serve a little later
            stack.enter_context(connected(client))
        before = holding(client, pids)
        for _ in range(12):
            stack.enter_context(connected(client))
        assert holding(client, pids) - before == dict.fromkeys(pids, 12 // 2)


def test_a_worker_that_dies_is_replaced_and_the_others_answer(index: Path) -> None:
    with server_process(index, "--workers", "2") as (process, client):
        assert answers(client)
        first = workers(process.pid)
        os.kill(first[0], signal.SIGKILL)
        until(lambda: not runs(first[0]))
        for _ in range(10):
            assert client.get("/v1/search?q=retry").status == 200
        until(lambda: len(set(workers(process.pid)) - set(first)) == 1)
        assert answers(client)


def test_workers_end_when_who_started_them_is_killed(index: Path) -> None:
    with server_process(index, "--workers", "2") as (process, client):
        assert answers(client)
        pids = workers(process.pid)
        process.kill()
        process.wait(WAIT_S)
        until(lambda: not any(map(runs, pids)))


@pytest.mark.parametrize("when", ["before a worker is ready", "before its word was read"])
def test_a_worker_learns_that_who_hands_out_connections_is_gone(when: str) -> None:
    """A word that nobody reads turns the end of a channel into an error."""

    async def told() -> None:
        ours, theirs = socket.socketpair()
        gone = asyncio.Event()
        if when == "before a worker is ready":
            ours.close()
        take_connections(theirs, asyncio.Protocol, gone.set)
        ours.close()
        await asyncio.wait_for(gone.wait(), WAIT_S)
        theirs.close()

    asyncio.run(told())
