"""Server of a peer: requests and replies as JSON lines.

Only the standard library, because every environment runs it. A request is `{"do": NAME, …arguments}`; the reply is the
result of the method of that name, with `cpu_s`, the CPU time of all threads of this process meanwhile.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from typing import Any

OUT = "out"


def serve(engine: object) -> None:
    """Answer requests until the input ends.

    Output of the engine goes to stderr, so that replies stay clean.
    """
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        before = time.process_time()
        value = getattr(engine, request.pop("do"))(**request)
        reply = {"value": value, "cpu_s": time.process_time() - before, "rss_mb": rss_mb()}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def each_timed(call: Callable[[Any], Any], asked: Sequence[Any]) -> dict[str, list[Any]]:
    """Return CPU and wall milliseconds of each call, and its result."""
    cpu, wall, found = [], [], []
    for item in asked:
        wall_started, cpu_started = time.perf_counter(), time.process_time()
        value = call(item)
        cpu.append(1000 * (time.process_time() - cpu_started))
        wall.append(1000 * (time.perf_counter() - wall_started))
        found.append(value)
    return {"cpu_ms": cpu, "wall_ms": wall, "found": found}


def rows(file: str) -> Iterator[dict[str, str]]:
    """Yield the rows of the corpus."""
    with open(file, encoding="utf-8") as stream:
        for line in stream:
            yield json.loads(line)


def read(file: str) -> Any:
    with open(file, encoding="utf-8") as stream:
        return json.load(stream)


def rss_mb() -> float:
    """Return the current resident memory, not the peak."""
    with open("/proc/self/statm", encoding="ascii") as stream:
        return int(stream.read().split()[1]) * resource.getpagesize() / 1e6


def size_mb(folder: str) -> float:
    return sum(os.path.getsize(os.path.join(at, name)) for at, _, names in os.walk(folder) for name in names) / 1e6


def versions(*names: str) -> dict[str, str]:
    return {name: version(name) for name in names}
