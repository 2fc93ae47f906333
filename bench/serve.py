"""Benchmark of `dowse serve`: request rate, latency, memory and cost of streams, one line per figure.

    python -m bench.serve --quick              10,000 chunks, some seconds of load
    python -m bench.serve                      100,000 chunks, 60 s of load
    python -m bench.serve --long               and 50,000 questions for the growth of memory; up to an hour
    python -m bench.serve --words              without vectors: the server without the model

A real `dowse serve` with two worker processes answers requests of a load generator in this process over loopback.
The generator keeps a few connections busy and sends at most the rate of the bar. All queries differ, so that no vector
is cached.

The bar is 200 requests a second or the CPU limit of two cores, whichever is lower: an overloaded server must
use at least 95 % of the cores. The output also shows the rate of the engine without a server in the CPU time that other
programs left; the difference is the cost of serving. The generator shares the two cores, so its CPU time is printed.
The CPU time of a query in the engine is measured with both cores busy, before and after: alone on one of two
hyperthreads an engine is faster.

Memory growth counts private (anonymous) memory. Mapped pages of the index files belong to the system cache and are
shown separately.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, product
from multiprocessing import get_context
from pathlib import Path

import msgspec

import dowse
from bench import cache, peers, queries, vectors
from bench.figures import Figure, percentile, save
from bench.http_load import RATE, Load, ask, cpu_s
from dowse.config import Config
from dowse.engine import Engine
from dowse.models.registry import DEFAULT

CHUNKS, QUICK_CHUNKS = 100_000, 10_000
SHARE = 0.95  # of the limit that must be reached
WORKERS = 2
ALONE_S = 10.0  # time of measuring the engine without a server, before and after
LONG = 50_000  # questions
FILL = 15_000  # before them; measured: the private memory of a worker grows by 10 MB in its first 5,000
WARM = 400  # queries before measuring: caches fill, mapped files are read
STREAMS = 200


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
    alone_s = min(ALONE_S, seconds)
    engine = [_on_all_cores(index, model, alone_s)]
    with _server(index, model) as (process, port):
        pids = _family(process.pid)
        _warm(port, texts, pids)
        load = ask(port, texts, pids, seconds=seconds)
        engine.append(_on_all_cores(index, model, alone_s))
        yield from _rate_figures(load, sum(engine) / len(engine))
        if many:
            yield from _growth_figures(port, pids, texts, many)
        yield Figure("RSS of all server processes", _rss_mb(pids), "MB")
        yield Figure("  of it their own, not mapped from files", _rss_mb(pids, "RssAnon"), "MB")
    with _server(index, model, workers=1) as (process, port):
        yield from _stream_figures(port, _family(process.pid), texts, _Alone(index, model))


def _rate_figures(load: Load, engine_cpu_s: float) -> Iterator[Figure]:
    asked = len(load.latencies_s)
    limit = load.limit(load.server_cpu_s / asked)
    yield Figure("stage-1 queries a second, two workers", load.rate, "/s", SHARE * min(RATE, limit))
    yield Figure("  the limit of the CPU that was left to it", limit, "/s")
    yield Figure("  that the engine alone would give on the same CPU", load.limit(engine_cpu_s), "/s")
    yield Figure("  CPU of the server a query", 1000 * load.server_cpu_s / asked, "ms")
    yield Figure("  CPU of the engine alone, both cores busy", 1000 * engine_cpu_s, "ms")
    yield Figure("  CPU of who asks, on the same cores", 1000 * load.own_cpu_s / asked, "ms")
    yield Figure("  CPU that was left and not used", 100 * (1 - load.server_cpu_s / load.free_cpu_s), "%")
    yield Figure("  errors", load.errors, "", 0, at_most=True)
    p50, p99 = percentile(load.latencies_s, 0.5), percentile(load.latencies_s, 0.99)
    yield Figure("  p50", 1000 * p50, "ms")
    yield Figure("  p99", 1000 * p99, "ms")
    yield Figure("  p99 / p50", p99 / p50, "times", 5, at_most=True)


def _growth_figures(port: int, pids: list[int], texts: Iterator[str], many: int) -> Iterator[Figure]:
    """Measure memory growth after the caches and the arenas of the allocator have filled."""
    ask(port, texts, pids, count=FILL, rate=10 * RATE)
    before, own = _rss_mb(pids), _rss_mb(pids, "RssAnon")
    ask(port, texts, pids, count=many, rate=10 * RATE)
    tens = many / 10_000
    grown = (_rss_mb(pids, "RssAnon") - own) / tens
    yield Figure("own memory, growth per 10,000 queries, all processes", grown, "MB", 1, at_most=True)
    yield Figure("  with pages mapped from the index", (_rss_mb(pids) - before) / tens, "MB")


def _stream_figures(port: int, pids: list[int], texts: Iterator[str], alone: _Alone) -> Iterator[Figure]:
    """Measure CPU of whole streams, minus that of the engine for the same queries."""
    ask(port, texts, pids, count=50, path="/v1/query/stream", connections=1)
    asked = [next(texts) for _ in range(STREAMS)]
    load = ask(port, iter(asked), pids, count=STREAMS, path="/v1/query/stream", connections=1)
    streamed_ms = 1000 * load.server_cpu_s / STREAMS
    alone_ms = alone.cpu_ms([next(texts) for _ in range(50)], asked)
    yield Figure("SSE stream, CPU of the server", streamed_ms, "ms")
    yield Figure("  the same query by the engine alone", alone_ms, "ms")
    yield Figure("  over the engine's own", streamed_ms - alone_ms, "ms", 50, at_most=True)


# --- queries and index ----------------------------------------------------------------------------


def _index(chunks: int) -> Path:
    """Copy the index of bench.engine; build it if needed."""
    made = cache.folder("indexes") / f"dowse-{chunks}"
    if not made.exists():
        with peers.PeerProcess(peers.DOWSE) as process:
            process.ask("build", chunks=chunks, vectors=str(vectors.of_corpus(chunks)), folder=str(made))
    own = cache.folder("indexes") / f"serve-{chunks}"
    shutil.rmtree(own, ignore_errors=True)
    shutil.copytree(made, own)
    return own


def _texts() -> Iterator[str]:
    """Yield the 200 queries of bench.queries, each with a word of another one: 40,000 in a cycle."""
    rows = [each.text for each in msgspec.json.decode(queries.questions().read_bytes(), type=list[queries.Question])]
    pairs = list(product(range(len(rows)), repeat=2))
    pairs.sort(key=lambda pair: ((pair[0] + pair[1]) % len(rows), pair))
    while True:
        yield from (f"{rows[a]} {rows[b].split()[-1]}" for a, b in pairs)


@dataclass(frozen=True)
class _Alone:
    """Engine without a server, opened as a server opens it."""

    index: Path
    model: str

    def cpu_ms(self, warming: list[str], asked: list[str]) -> float:
        """Measure CPU seconds of one query."""
        with self._engine() as engine:
            for text in warming:
                engine.query(text)
            started = time.process_time()
            for text in asked:
                engine.query(text)
            return 1000 * (time.process_time() - started) / len(asked)

    def spent(self, seconds: float, skipped: int) -> tuple[int, float]:
        """Run queries; return their number and CPU seconds."""
        texts = islice(_texts(), skipped, None)
        with self._engine() as engine:
            for text in islice(texts, WARM // 2):
                engine.query(text)
            count, ends, started = 0, time.perf_counter() + seconds, time.process_time()
            while time.perf_counter() < ends:
                engine.query(next(texts))
                count += 1
            return count, time.process_time() - started

    def _engine(self) -> Engine:
        config = Config.load(Path.cwd(), os.environ, {"embedder": self.model, "threads": "1"})
        return dowse.open(self.index, read_only=True, create=False, config=config, embedder=self.model)


def _on_all_cores(index: Path, model: str, seconds: float) -> float:
    """Measure CPU seconds of one query while all cores run such queries."""
    with ProcessPoolExecutor(WORKERS, get_context("spawn")) as pool:
        runs = [pool.submit(_Alone(index, model).spent, seconds, 5_000 * (1 + at)) for at in range(WORKERS)]
        counts, spent = zip(*(run.result() for run in runs), strict=True)
    engine_cpu_s: float = sum(spent) / sum(counts)
    return engine_cpu_s


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
        _until_ready(port)
        yield process, port
    finally:
        process.terminate()
        process.wait(60)


def _until_ready(port: int) -> None:
    while True:
        try:
            if ask(port, iter(["/readyz"]), [], count=1, path=None, connections=1).errors == 0:
                return
        except OSError:
            time.sleep(0.1)


def _warm(port: int, texts: Iterator[str], pids: list[int]) -> None:
    """Wait until every worker has answered its part of a round."""
    answering = 0
    while answering < WORKERS:
        before = [cpu_s([pid]) for pid in pids]
        ask(port, texts, pids, count=WARM)
        spent = [cpu_s([pid]) - was for pid, was in zip(pids, before, strict=True)]
        answering = sum(each > sum(spent) / (2 * WORKERS) for each in spent)


# --- processes --------------------------------------------------------------------------------------


def _family(pid: int) -> list[int]:
    """Return a process and its children."""
    own = [pid]
    for each in own:
        file = Path(f"/proc/{each}/task/{each}/children")
        own += [int(child) for child in file.read_text().split()]
    return own


def _rss_mb(pids: list[int], kind: str = "VmRSS") -> float:
    rows = (Path(f"/proc/{pid}/status").read_text().split(f"{kind}:")[1].split()[0] for pid in pids)
    return sum(map(int, rows)) / 1024


if __name__ == "__main__":
    main()
