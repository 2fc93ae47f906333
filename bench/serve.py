"""A number of chunks goes in; one line per bar of the HTTP face comes out: rate, tail, memory, and what a stream adds.

    python -m bench.serve --quick              10,000 chunks, some seconds of load
    python -m bench.serve                      100,000 chunks, 60 s of load
    python -m bench.serve --long               and 50,000 questions for the growth of memory; up to an hour
    python -m bench.serve --words              without vectors: what the server itself can do

A real `dowse serve` with two worker processes, asked over loopback by a generator in this process that keeps a few
connections busy, but asks no more often than the bar wants. Every question is another one, so that no vector comes out
of a cache. The bar of the rate is 200 a second or what the CPU can give, whichever is lower: what it can give is the
time of both cores that other programs left, divided by what a question took of it, the generator's own part included.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from urllib.parse import quote

import msgspec

import dowse
from bench import cache, peers, queries, vectors
from bench.figures import Figure, percentile, save
from dowse.config import Config
from dowse.models.registry import DEFAULT

CHUNKS, QUICK_CHUNKS = 100_000, 10_000
RATE = 200.0  # a second; issue 7
CONNECTIONS = (
    24  # chosen: they fall to the workers by chance, and with 8 one of the two was left idle a third of the time
)
WORKERS = 2
LONG = 50_000  # questions; issue 7
WARM = 400  # questions before anything is measured: memories fill, maps are read in
STREAMS = 200
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Load:
    """What a stretch of asking brought."""

    latencies_s: list[float] = field(default_factory=list)
    errors: int = 0
    seconds: float = 0.0
    server_cpu_s: float = 0.0
    own_cpu_s: float = 0.0
    free_cpu_s: float = 0.0  # of all cores, that other programs left

    @property
    def rate(self) -> float:
        return len(self.latencies_s) / self.seconds

    @property
    def attainable(self) -> float:
        """Questions a second that the CPU could have given."""
        each = (self.server_cpu_s + self.own_cpu_s) / max(len(self.latencies_s), 1)
        return self.free_cpu_s / self.seconds / each


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.serve", description=__doc__.splitlines()[0])
    parser.add_argument("--chunks", type=int, default=None)
    parser.add_argument("--quick", action="store_true", help="10,000 chunks, a few seconds")
    parser.add_argument("--seconds", type=float, help="of load; 60, or 10 with --quick")
    parser.add_argument("--long", type=int, nargs="?", const=LONG, default=0, metavar="N", help="and N for memory")
    parser.add_argument("--words", action="store_true", help="without vectors: the server alone, not the model")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    options = parser.parse_args()
    chunks = options.chunks or (QUICK_CHUNKS if options.quick else CHUNKS)
    seconds = options.seconds or (10.0 if options.quick else 60.0)
    figures: list[Figure] = []
    model = "none" if options.words else DEFAULT
    for figure in _measured(chunks, model, seconds, options.long):
        print(figure.line, flush=True)
        figures.append(figure)
    kept = cache.folder("results") / f"serve-{chunks}{'-quick' * options.quick}{'-words' * options.words}.json"
    for place in {kept, options.json or kept}:
        save(place, chunks, figures, {}, {"dowse": dowse.__version__})


def _measured(chunks: int, model: str, seconds: float, many: int) -> Iterator[Figure]:
    index, texts = _index(chunks), _texts()
    with _server(index, model) as (process, port):
        pids = _family(process.pid)
        _ask(port, texts, pids, count=WARM)
        yield from _rate_figures(_ask(port, texts, pids, seconds=seconds))
        if many:
            yield from _growth_figures(port, pids, texts, many)
        yield Figure("RSS of all server processes", _rss_mb(pids), "MB")
        yield Figure("  of it their own, not mapped from files", _rss_mb(pids, "RssAnon"), "MB")
    with _server(index, model, workers=1) as (process, port):
        yield from _stream_figures(port, _family(process.pid), texts, _Alone(index, model))


def _rate_figures(load: Load) -> Iterator[Figure]:
    limit = min(RATE, load.attainable)
    # A paced generator misses a beat now and then; one in fifty is not the server's.
    yield Figure("stage-1 queries a second, two workers", load.rate, "/s", 0.98 * limit)
    yield Figure("  that the CPU could give, other programs aside", load.attainable, "/s")
    yield Figure("  CPU of the server a query", 1000 * load.server_cpu_s / len(load.latencies_s), "ms")
    yield Figure("  errors", load.errors, "", 0, at_most=True)
    p50, p99 = percentile(load.latencies_s, 0.5), percentile(load.latencies_s, 0.99)
    yield Figure("  p50", 1000 * p50, "ms")
    yield Figure("  p99", 1000 * p99, "ms")
    yield Figure("  p99 / p50", p99 / p50, "times", 5, at_most=True)


def _growth_figures(port: int, pids: list[int], texts: Iterator[str], many: int) -> Iterator[Figure]:
    """From the first fifth on: until then memories fill and the files of the index are mapped, page by page."""
    first = many // 5
    _ask(port, texts, pids, count=first, rate=10 * RATE)
    before, own = _rss_mb(pids), _rss_mb(pids, "RssAnon")
    _ask(port, texts, pids, count=many - first, rate=10 * RATE)
    tens = (many - first) / 10_000
    yield Figure("RSS growth per 10,000 queries, all processes", (_rss_mb(pids) - before) / tens, "MB", 1, at_most=True)
    yield Figure("  of it their own, not mapped from files", (_rss_mb(pids, "RssAnon") - own) / tens, "MB")


def _stream_figures(port: int, pids: list[int], texts: Iterator[str], alone: _Alone) -> Iterator[Figure]:
    """CPU of whole streams, which is above that of the first event, less what the engine takes for the same alone."""
    _ask(port, texts, pids, count=50, path="/v1/query/stream", connections=1)
    asked = [next(texts) for _ in range(STREAMS)]
    load = _ask(port, iter(asked), pids, count=STREAMS, path="/v1/query/stream", connections=1)
    streamed_ms = 1000 * load.server_cpu_s / STREAMS
    alone_ms = alone.cpu_ms([next(texts) for _ in range(50)], asked)
    yield Figure("SSE stream, CPU of the server", streamed_ms, "ms")
    yield Figure("  the same query by the engine alone", alone_ms, "ms")
    yield Figure("  over the engine's own", streamed_ms - alone_ms, "ms", 50, at_most=True)


# --- what is asked, and where -----------------------------------------------------------------------


def _index(chunks: int) -> Path:
    """A copy of the index that bench.engine makes, built if it was not."""
    made = cache.folder("indexes") / f"dowse-{chunks}"
    if not made.exists():
        with peers.Talk(peers.DOWSE) as talk:
            talk.ask("build", chunks=chunks, vectors=str(vectors.of_corpus(chunks)), folder=str(made))
    own = cache.folder("indexes") / f"serve-{chunks}"
    shutil.rmtree(own, ignore_errors=True)
    shutil.copytree(made, own)
    return own


def _texts() -> Iterator[str]:
    """The 200 questions of bench.queries with a word of another one added: 40,000 that differ, again and again."""
    rows = [each.text for each in msgspec.json.decode(queries.questions().read_bytes(), type=list[queries.Question])]
    pairs = list(product(range(len(rows)), repeat=2))
    pairs.sort(key=lambda pair: ((pair[0] + pair[1]) % len(rows), pair))
    while True:
        yield from (f"{rows[a]} {rows[b].split()[-1]}" for a, b in pairs)


@dataclass(frozen=True)
class _Alone:
    """The engine without a server."""

    index: Path
    model: str

    def cpu_ms(self, warming: list[str], asked: list[str]) -> float:
        """Of one query."""
        config = Config.load(Path.cwd(), os.environ, {"embedder": self.model, "threads": "1"})
        with dowse.open(self.index, read_only=True, create=False, config=config, embedder=self.model) as engine:
            for text in warming:
                engine.query(text)
            started = time.process_time()
            for text in asked:
                engine.query(text)
            return 1000 * (time.process_time() - started) / len(asked)


@contextmanager
def _server(index: Path, model: str, workers: int = WORKERS) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    command = [sys.executable, "-m", "dowse", "serve", "--index", str(index), "--port", "0", "--json", "-q"]
    process = subprocess.Popen(
        [*command, "--workers", str(workers), "--per-client", "1000"],
        stdout=subprocess.PIPE,
        env=os.environ | {"DOWSE_EMBEDDER": model, "DOWSE_THREADS": "1"},
    )
    try:
        assert process.stdout is not None
        port = int(json.loads(process.stdout.readline())["url"].rstrip("/").rsplit(":", 1)[1])
        asyncio.run(_until_ready(port))
        yield process, port
    finally:
        process.terminate()
        process.wait(60)


async def _until_ready(port: int) -> None:
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            status = await _exchange(reader, writer, "/readyz")
            writer.close()
            if status == 200:
                return
        except OSError:
            await asyncio.sleep(0.1)


# --- the generator ----------------------------------------------------------------------------------


def _ask(
    port: int,
    texts: Iterator[str],
    pids: list[int],
    *,
    count: int | None = None,
    seconds: float | None = None,
    rate: float = RATE,
    path: str = "/v1/search",
    connections: int = CONNECTIONS,
) -> Load:
    load = Load()
    busy, cpu, own = _busy_s(), _cpu_s(pids), time.process_time()
    began = time.perf_counter()
    ends = None if seconds is None else began + seconds

    async def ask_all() -> None:
        beat = iter(range(count)) if count is not None else iter(int, 1)
        await asyncio.gather(*(one(beat) for _ in range(connections)))

    async def one(beat: Iterator[int]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for sent, _ in enumerate(beat):
            due = began + sent * connections / rate
            await asyncio.sleep(max(due - time.perf_counter(), 0))
            if ends is not None and time.perf_counter() >= ends:
                break
            started = time.perf_counter()
            status = await _exchange(reader, writer, f"{path}?q={quote(next(texts))}")
            load.latencies_s.append(time.perf_counter() - started)
            load.errors += status != 200
        writer.close()

    asyncio.run(ask_all())
    load.seconds = time.perf_counter() - began
    load.server_cpu_s, load.own_cpu_s = _cpu_s(pids) - cpu, time.process_time() - own
    others = (_busy_s() - busy) - load.server_cpu_s - load.own_cpu_s
    load.free_cpu_s = max((os.cpu_count() or 1) * load.seconds - others, load.server_cpu_s + load.own_cpu_s)
    return load


async def _exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str) -> int:
    """One request over a connection that stays open; the status."""
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if b"transfer-encoding: chunked" in head:
        while (size := int(await reader.readline(), 16)) > 0:
            await reader.readexactly(size + 2)
        await reader.readline()
    else:
        await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r\n")[0]))
    return int(head.split(b" ", 2)[1])


# --- processes --------------------------------------------------------------------------------------


def _family(pid: int) -> list[int]:
    """A process and those that it started."""
    own = [pid]
    for each in own:
        file = Path(f"/proc/{each}/task/{each}/children")
        own += [int(child) for child in file.read_text().split()]
    return own


def _cpu_s(pids: list[int]) -> float:
    rows = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in pids]
    return sum(int(row[11]) + int(row[12]) for row in rows) / _TICKS


def _rss_mb(pids: list[int], kind: str = "VmRSS") -> float:
    rows = (Path(f"/proc/{pid}/status").read_text().split(f"{kind}:")[1].split()[0] for pid in pids)
    return sum(map(int, rows)) / 1024


def _busy_s() -> float:
    """CPU time of all programs on this machine, since it started; time that a host took away counts as theirs."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    return (user + nice + system + irq + softirq + steal) / _TICKS


if __name__ == "__main__":
    main()
