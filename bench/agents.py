"""Benchmark of `dowse mcp`: CPU time until `initialize`, of the first search and of a warm one.

    python -m bench.agents                  the sample project, by words only
    python -m bench.agents --index DIR      an index of yours, with its model

CPU seconds of the server process, all threads, the least of several runs: more than that is the load of others on
the shared core and its caches.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import dowse
from bench import peers
from bench.commands import MAIN
from bench.figures import Figure, machine

INITIALIZE_BAR_S = 1.5  # an agent host starts the server on every session and waits for it
RUNS, WARM = 5, 30
QUESTIONS = ("how are retries limited", "RetryBudget", "who is called at night", "deploy the route planner")
_TICKS = os.sysconf("SC_CLK_TCK")
_HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


class Served:
    """Client of a `dowse mcp` process, in plain JSON."""

    def __init__(self, index: Path, embedder: str) -> None:
        environment = os.environ | {"PYTHONPATH": str(peers.ROOT / "src"), "DOWSE_EMBEDDER": embedder}
        words = [sys.executable, "-c", MAIN, "mcp", "--index", str(index)]
        self.process = subprocess.Popen(
            words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        self._asked = 0

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._asked += 1
        self.tell(method, params, id=self._asked)
        assert self.process.stdout
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        if answer.get("result", {}).get("isError") or "error" in answer:
            raise SystemExit(f"{method} failed: {answer}")
        return answer

    def tell(self, method: str, params: dict[str, Any], **more: int) -> None:
        assert self.process.stdin
        self.process.stdin.write(
            json.dumps({"jsonrpc": "2.0", "method": method, "params": params} | more).encode() + b"\n"
        )
        self.process.stdin.flush()

    def search(self, query: str) -> None:
        self.ask("tools/call", {"name": "search", "arguments": {"query": query}})

    @property
    def cpu_s(self) -> float:
        """User and system time so far: fields 14 and 15 of /proc/PID/stat, after the name in brackets."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait(30)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.agents", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--index", type=Path, help="an index; default: the sample project, by words")
    chosen = parser.parse_args().index
    with tempfile.TemporaryDirectory() as folder:
        index = chosen or _sample(Path(folder) / "index")
        rows = [_measured(index, "auto" if chosen else "none") for _ in range(RUNS)]
    print(" ".join(f"{name}={value}" for name, value in machine().items()))
    ready, first, warm = (min(column) for column in zip(*rows, strict=True))
    for figure in (
        Figure("dowse mcp answers initialize, CPU", ready, "s", INITIALIZE_BAR_S, 1.0, at_most=True),
        Figure("first search after that, CPU", first * 1000, "ms"),
        Figure("warm search, CPU of the server's process", warm * 1000, "ms"),
    ):
        print(figure.line)


def _measured(index: Path, embedder: str) -> tuple[float, float, float]:
    """Measure CPU seconds until `initialize` is answered, of the first search and of a warm one."""
    served = Served(index, embedder)
    try:
        served.ask("initialize", _HELLO)
        ready = served.cpu_s
        served.tell("notifications/initialized", {})
        served.search(QUESTIONS[0])
        first = served.cpu_s - ready
        start = served.cpu_s
        for number in range(WARM):
            served.search(QUESTIONS[number % len(QUESTIONS)])
        return ready, first, (served.cpu_s - start) / WARM
    finally:
        served.close()


def _sample(place: Path) -> Path:
    with dowse.open(place, embedder="none") as engine:
        engine.index([Path(dowse.__file__).parent / "sample" / "acme"])
    return place


if __name__ == "__main__":
    main()
