"""A port and questions go in; what a stretch of asking brought comes out: latencies, errors, and whose CPU it took.

Plain sockets and one loop: asyncio's streams take more CPU, and take it from the server, which shares the
cores with whoever asks it.
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

RATE = 200.0  # a second; issue 7
CONNECTIONS = 24  # chosen: each worker always has a question waiting
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Load:
    """What a stretch of asking brought."""

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
        """Questions a second that an engine which takes so long for one would have answered in the CPU that was left
        to it."""
        return self.free_cpu_s / self.seconds / engine_cpu_s


@dataclass
class _Line:
    """One connection that stays open, and what has come of an answer."""

    socket: socket.socket
    due: float  # when it may ask again
    started: float | None = None  # None: nothing is asked
    came: bytes = b""
    wanted: int | None = None  # bytes of the whole answer; 0 where it comes in chunks

    def ask(self, path: str) -> None:
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        self.started, self.came, self.wanted = time.perf_counter(), b"", None

    def read(self) -> int | None:
        """The status, when the answer is complete."""
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
    """Each connection asks in its turn, as often as the rate allows it. Without a path, texts are paths."""
    busy, cpu, own, began = _busy_s(), cpu_s(pids), time.process_time(), time.perf_counter()
    with _lines(port, connections, began, connections / rate) as lines:
        load = _walk(
            lines, texts, path, _Limits(count, None if seconds is None else began + seconds, connections / rate)
        )
    load.seconds = time.perf_counter() - began
    load.server_cpu_s, load.own_cpu_s = cpu_s(pids) - cpu, time.process_time() - own
    others = (_busy_s() - busy) - load.server_cpu_s
    load.free_cpu_s = max((os.cpu_count() or 1) * load.seconds - others, load.server_cpu_s)
    return load


@dataclass(frozen=True)
class _Limits:
    """When asking ends, and how long a connection waits from one question to the next."""

    count: int | None
    ends: float | None
    every_s: float

    def more(self, asked: int) -> bool:
        return (self.count is None or asked < self.count) and (self.ends is None or time.perf_counter() < self.ends)


@contextmanager
def _lines(port: int, connections: int, began: float, every_s: float) -> Iterator[list[_Line]]:
    sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(connections)]
    try:
        for each in sockets:
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield [_Line(each, began + at * every_s / connections) for at, each in enumerate(sockets)]
    finally:
        for each in sockets:
            each.close()


def _walk(lines: Sequence[_Line], texts: Iterator[str], path: str | None, limits: _Limits) -> Load:
    load, asked, open_ones = Load(), 0, 0
    with selectors.DefaultSelector() as selector:
        for line in lines:
            selector.register(line.socket, selectors.EVENT_READ, line)
        while open_ones or limits.more(asked):
            now = time.perf_counter()
            for line in lines:
                if line.started is None and line.due <= now and limits.more(asked):
                    text = next(texts)
                    line.ask(text if path is None else f"{path}?q={quote(text)}")
                    line.due += limits.every_s
                    asked, open_ones = asked + 1, open_ones + 1
            idle = [line.due for line in lines if line.started is None] if limits.more(asked) else []
            wait_s = max(min(idle) - time.perf_counter(), 0.0) if idle else None
            for key, _ in selector.select(wait_s):
                line = key.data
                status = line.read()
                if status is not None:
                    load.latencies_s.append(time.perf_counter() - line.started)
                    load.errors += status != 200
                    line.started, open_ones = None, open_ones - 1
    return load


def cpu_s(pids: list[int]) -> float:
    rows = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(row[11]) + int(row[12]) for row in rows) / _TICKS


def _busy_s() -> float:
    """CPU time of all programs on this machine, since it started; time that a host took away counts as theirs."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    return (user + nice + system + irq + softirq + steal) / _TICKS
