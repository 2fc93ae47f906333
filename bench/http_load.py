"""Load generator for an HTTP server: latencies, errors and CPU time of both sides.

It uses plain sockets and one loop: streams of asyncio take more CPU, which the server lacks on shared cores.
"""

from __future__ import annotations

import os
import selectors
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

RATE = 200.0  # requests a second
CONNECTIONS = 24  # chosen: each worker always has a request waiting
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Load:
    """Result of a load run."""

    latencies_s: list[float] = field(default_factory=list)
    errors: int = 0
    seconds: float = 0.0
    server_cpu_s: float = 0.0
    own_cpu_s: float = 0.0
    free_cpu_s: float = 0.0  # of all cores, that other programs and this one left

    @property
    def rate(self) -> float:
        return len(self.latencies_s) / self.seconds

    def limit(self, engine_cpu_s: float) -> float:
        """Return the requests a second that an engine could answer in the CPU time that was left."""
        return self.free_cpu_s / self.seconds / engine_cpu_s


@dataclass
class _Connection:
    """Open connection with the part of a response that has arrived."""

    socket: socket.socket
    due: float  # time of the next request
    started: float | None = None  # None: no request is open
    came: bytes = b""
    wanted: int | None = None  # bytes of the whole response; 0 for a chunked one

    def ask(self, path: str) -> None:
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        self.started, self.came, self.wanted = time.perf_counter(), b"", None

    def read(self) -> int | None:
        """Read available bytes; return the status of a complete response."""
        piece = self.socket.recv(1 << 18)
        if not piece:
            raise ConnectionError("the server closed a connection in the middle of an answer")
        self.came += piece
        if self.wanted is None and (end := self.came.find(b"\r\n\r\n")) >= 0:
            head = self.came[:end].lower()
            chunked = b"transfer-encoding: chunked" in head
            length = 0 if chunked else int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
            self.wanted = 0 if chunked else end + 4 + length
        whole = self.wanted is not None and (
            len(self.came) >= self.wanted if self.wanted else self.came.endswith(b"\r\n0\r\n\r\n")
        )
        return int(self.came[9:12]) if whole else None


def ask(
    port: int,
    texts: Iterator[str],
    pids: list[int],
    *,
    count: int | None = None,
    seconds: float | None = None,
    rate: float = RATE,
    path: str | None = "/v1/search",
    connections: int = CONNECTIONS,
) -> Load:
    """Send requests over all connections at the given rate. Without a path, texts are paths."""
    busy, cpu, own, began = _busy_s(), cpu_s(pids), time.process_time(), time.perf_counter()
    with _connections(port, connections, began, connections / rate) as opened:
        load = _drive(
            opened, texts, path, _Limits(count, None if seconds is None else began + seconds, connections / rate)
        )
    load.seconds = time.perf_counter() - began
    load.server_cpu_s, load.own_cpu_s = cpu_s(pids) - cpu, time.process_time() - own
    others = (_busy_s() - busy) - load.server_cpu_s
    load.free_cpu_s = max((os.cpu_count() or 1) * load.seconds - others, load.server_cpu_s)
    return load


@dataclass(frozen=True)
class _Limits:
    """End of the run, and the time between two requests of a connection."""

    count: int | None
    ends: float | None
    every_s: float

    def more(self, asked: int) -> bool:
        return (self.count is None or asked < self.count) and (self.ends is None or time.perf_counter() < self.ends)


@contextmanager
def _connections(port: int, connections: int, began: float, every_s: float) -> Iterator[list[_Connection]]:
    sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(connections)]
    try:
        for each in sockets:
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield [_Connection(each, began + at * every_s / connections) for at, each in enumerate(sockets)]
    finally:
        for each in sockets:
            each.close()


def _drive(opened: Sequence[_Connection], texts: Iterator[str], path: str | None, limits: _Limits) -> Load:
    load, asked, open_ones = Load(), 0, 0
    with selectors.DefaultSelector() as selector:
        for each in opened:
            selector.register(each.socket, selectors.EVENT_READ, each)
        while open_ones or limits.more(asked):
            now = time.perf_counter()
            for each in opened:
                if each.started is None and each.due <= now and limits.more(asked):
                    text = next(texts)
                    each.ask(text if path is None else f"{path}?q={quote(text)}")
                    each.due += limits.every_s
                    asked, open_ones = asked + 1, open_ones + 1
            idle = [each.due for each in opened if each.started is None] if limits.more(asked) else []
            wait_s = max(min(idle) - time.perf_counter(), 0.0) if idle else None
            for key, _ in selector.select(wait_s):
                each = key.data
                status = each.read()
                if status is not None:
                    load.latencies_s.append(time.perf_counter() - each.started)
                    load.errors += status != 200
                    each.started, open_ones = None, open_ones - 1
    return load


def cpu_s(pids: list[int]) -> float:
    rows = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(row[11]) + int(row[12]) for row in rows) / _TICKS


def _busy_s() -> float:
    """Return the CPU time of all programs since boot; time stolen by the host counts too."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    return (user + nice + system + irq + softirq + steal) / _TICKS
