"""Index writers for crash tests: each job runs in a fork that a test can kill at any moment.

`CrashWriters` is the side of the tests, `main` the side of the writers.

stdin:   JOB SEED FOLDER
stdout:  start PID | try WHAT… | ack WHAT… | fail ERROR… | dead PID

A fork costs milliseconds where a fresh interpreter costs half a second, so that hundreds of kills are affordable. Lines
are shorter than the buffer of a pipe and are written in one call each, so a kill never cuts one.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from dowse.identity import document_id
from dowse.store.embedded import EmbeddedStore
from dowse.store.segments import inverted
from dowse.store.writer import EmbeddedWriter
from dowse.types import Document
from factories import document, vectors

DIMENSION = 16
PATHS = 8


def versioned(path: str, version: int) -> Document:
    """A document whose chunks name their version and the number of chunks."""
    count = 1 + (version * 7 + int(path)) % 5
    return document(path, *(f"name{path} version{version} part{part}of{count} text" for part in range(count)))


def emit(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


class CrashWriters:
    """Parent of the forked writers: starts and kills them."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        self._asked = self._dead = 0
        self._living: set[int] = set()

    def start(self, job: str, seed: int, folder: Path) -> int:
        """Start a job and return its process id."""
        self.ask(job, seed, folder)
        started, process = self.line()
        assert started == "start"
        return int(process)

    def ask(self, job: str, seed: int, folder: Path) -> None:
        """Start a job beside others; their lines interleave."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{job} {seed} {folder}\n")
        self._process.stdin.flush()
        self._asked += 1

    def line(self) -> list[str]:
        """Read the next line, split into words."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline().split()
        assert line, "the process of the writers died"
        if line[0] == "start":
            self._living.add(int(line[1]))
        elif line[0] == "dead":
            self._living.discard(int(line[1]))
            self._dead += 1
        return line

    def kill(self, process: int) -> list[list[str]]:
        """Kill a writer as a power cut would, and return its unread lines."""
        os.kill(process, signal.SIGKILL)
        return self.until_dead(process)

    def until_dead(self, process: int) -> list[list[str]]:
        """Read the lines of a writer until its death is reported."""
        unread = []
        while (line := self.line()) != ["dead", str(process)]:
            unread.append(line)
        return unread

    def kill_all(self) -> None:
        """Kill the writers that a test left running and drain their lines, for the next test."""
        while self._dead < self._asked:
            for process in self._living:
                with suppress(ProcessLookupError):  # dead already, and its line not read yet
                    os.kill(process, signal.SIGKILL)
            self.line()

    def close(self) -> None:
        self._process.communicate()


def _mixed(writer: EmbeddedWriter, rng: random.Random) -> None:
    """Write, replace, remove and publish."""
    version = rng.randrange(10**6)
    group = rng.sample(range(PATHS), rng.randint(1, 3))
    if rng.random() < 0.75:
        emit("try", "put", version, *group)
        writer.put([versioned(str(path), version) for path in group])
        emit("ack", "put", version, *group)
    else:
        emit("try", "remove", 0, *group)
        writer.remove([document_id("docs", str(path)) for path in group])
        emit("ack", "remove", 0, *group)
    if rng.random() < 0.6:
        writer.publish()
        emit("ack", "publish")


def _compact(writer: EmbeddedWriter, rng: random.Random) -> None:
    if rng.random() < 0.3:
        _mixed(writer, rng)
    writer.compact()
    emit("ack", "compact")


def _vectors(writer: EmbeddedWriter, rng: random.Random) -> None:
    _mixed(writer, rng)
    writer.publish()
    writer.use_model("test-model", DIMENSION)
    hashes = [each.content_hash for each in writer.pending(rng.randint(1, 8))]
    for each in hashes:
        emit("try", "vector", each)
    writer.put_vectors(hashes, vectors(hashes, DIMENSION))
    for each in hashes:
        emit("ack", "vector", each)
    if rng.random() < 0.2:
        writer.compact()


def _swap(writer: EmbeddedWriter, rng: random.Random) -> None:
    """Replace one document again and again; compact now and then."""
    writer.put([versioned("0", rng.randrange(10**6))])
    writer.publish()
    if rng.random() < 0.1:
        writer.compact()
    emit("ack", "swap")


def _hold(writer: EmbeddedWriter, rng: random.Random) -> None:
    """Hold the lock and an open transaction."""
    with writer._database.transaction() as connection:
        connection.execute("UPDATE meta SET value = value WHERE key = 'seq'")
        emit("ack", "hold")
        signal.pause()


JOBS = {"mixed": _mixed, "compact": _compact, "vectors": _vectors, "swap": _swap, "hold": _hold}


def _work(job: str, seed: int, folder: Path) -> None:
    rng = random.Random(seed)
    store = EmbeddedStore(folder)
    if job == "once":  # many at once: each waits for its turn, writes one document and goes
        writer = store.writer(wait_s=60.0)
        writer.put([versioned(str(seed), 1)])
        writer.close()
        emit("ack", "once", seed)
        return
    writer = store.writer()
    emit("ack", "open")
    while True:
        JOBS[job](writer, rng)


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers are not waited for
    inverted._TAIL_ROWS = 3  # so that kills fall into the making and merging of runs, too
    for line in sys.stdin:
        job, seed, folder = line.rstrip("\n").split(" ", 2)
        if not os.fork():
            _keep(job, int(seed), Path(folder))


def _keep(job: str, seed: int, folder: Path) -> NoReturn:
    """Start the writer, wait for its end and report it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    writer = os.fork()
    if writer:
        os.waitpid(writer, 0)
        emit("dead", writer)
        os._exit(0)
    emit("start", os.getpid())
    try:
        _work(job, seed, folder)
    finally:  # a fork must not continue as a second parent, whatever happened
        err = sys.exc_info()[1]
        if err is not None:
            emit("fail", type(err).__name__, str(err).replace("\n", " "))
        os._exit(0)


if __name__ == "__main__":
    main()
