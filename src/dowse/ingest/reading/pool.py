"""Tasks go in; their outcomes come out in the same order, read in this process or by a crew of worker processes.

A worker is a process of its own and not of `multiprocessing`: that would run the caller's main module again, and a
pool of it is lost as a whole when one member is ended. A worker that takes too long or dies costs its file and
nothing else.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from signal import Signals
from time import monotonic
from typing import IO

import msgspec

from dowse.ingest.reading.limits import FILE_S, WORKER_BYTES, OverdueError, at_most, overdue
from dowse.ingest.reading.read_file import Outcome, Taker, Task
from dowse.ingest.reading.worker import LENGTH_BYTES, OUT_OF_MEMORY, write_frame
from dowse.ingest.sources.git import stream

BATCH_TASKS = 16  # asked of a worker at once; chosen: few enough to fit a pipe, which nobody empties meanwhile
_AHEAD = 4  # batches under way or done, for each worker; bounds what waits for the writer
_TOLD_BYTES = 8192  # of a worker's last words
_START_S = 60.0  # a worker that has not begun by then never will; chosen
_SCRIPT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from dowse.ingest.reading.worker import main; main({})"
)


@dataclass(frozen=True)
class Limits:
    """What one file may take."""

    file_s: float = FILE_S
    worker_bytes: int = WORKER_BYTES


def alone(take: Taker, tasks: Iterable[Task], limits: Limits) -> Iterator[tuple[Task, Outcome]]:
    """In this process, which must be in its main thread: an alarm is what ends a file that takes too long."""
    for task in tasks:
        try:
            with at_most(limits.file_s):
                outcome = take(task)
        except OverdueError:
            outcome = Outcome(problem=overdue(limits.file_s))
        yield task, outcome


def together(workers: int, tasks: Iterable[Task], limits: Limits) -> Iterator[tuple[Task, Outcome]]:
    """By several worker processes, each led by a thread. They end with the iteration, however it ends."""
    idle: SimpleQueue[_Worker] = SimpleQueue()
    crew = [_Worker(limits) for _ in range(workers)]
    for worker in crew:
        idle.put(worker)

    def read(batch: Sequence[Task]) -> list[Outcome]:
        worker = idle.get()
        try:
            return worker.read(batch)
        finally:
            idle.put(worker)

    pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="dowse-read")
    try:
        under_way: deque[tuple[Sequence[Task], Future[list[Outcome]]]] = deque()
        for batch in _batches(tasks):
            under_way.append((batch, pool.submit(read, batch)))
            if len(under_way) >= _AHEAD * workers:
                first, future = under_way.popleft()
                yield from zip(first, future.result(), strict=True)
        for first, future in under_way:
            yield from zip(first, future.result(), strict=True)
    finally:
        for worker in crew:
            worker.stop()
        pool.shutdown(wait=True, cancel_futures=True)
        for worker in crew:
            worker.close()


def _batches(tasks: Iterable[Task]) -> Iterator[list[Task]]:
    """A task that carries bytes goes alone: it may fill the pipe."""
    batch: list[Task] = []
    for task in tasks:
        batch.append(task)
        if task.data is not None or len(batch) >= BATCH_TASKS:
            yield batch
            batch = []
    if batch:
        yield batch


class _EndedError(Exception):
    """The worker's output came to an end."""


class _Worker:
    """One process, started when it is first needed and again when it was lost. One thread at a time leads it."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self._stopped = False
        self._decoder = msgspec.msgpack.Decoder(Outcome)

    def read(self, batch: Sequence[Task]) -> list[Outcome]:
        """One outcome a task; fewer when the worker was stopped meanwhile."""
        outcomes: list[Outcome] = []
        while len(outcomes) < len(batch) and not self._stopped:
            self._attempt(batch[len(outcomes) :], outcomes)
        return outcomes

    def stop(self) -> None:
        """From another thread: the one that leads this worker is woken."""
        self._stopped = True
        process = self._process
        if process is not None:
            process.kill()

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            with self._process:
                self._process = None
        if self._errors is not None:
            self._errors.close()
            self._errors = None

    def _attempt(self, batch: Sequence[Task], outcomes: list[Outcome]) -> None:
        """Adds outcomes up to the first file that loses the worker, that one included."""
        process = self._process or self._start()
        before = len(outcomes)
        try:
            for task in batch:
                write_frame(stream(process.stdin), msgspec.msgpack.encode(task))
            for _ in batch:
                outcomes.append(self._decoder.decode(_frame(process, self._limits.file_s)))
                if outcomes[-1].problem == OUT_OF_MEMORY:  # it has left by itself
                    self.close()
                    return
        except OverdueError:
            self.close()
            outcomes.append(Outcome(problem=overdue(self._limits.file_s)))
        except (_EndedError, BrokenPipeError):
            if not self._stopped:
                outcomes.append(self._lost(process, batch[len(outcomes) - before]))

    def _lost(self, process: subprocess.Popen[bytes], task: Task) -> Outcome:
        code, told = process.wait(), self._told()
        self.close()
        if code >= 0:
            raise RuntimeError(f"while reading {task.full_path}, a reader failed, which is a bug in it:\n{told}")
        return Outcome(problem=f"its reader was ended by signal {-code} ({Signals(-code).name}); it was skipped")

    def _start(self) -> subprocess.Popen[bytes]:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        self._process = process = subprocess.Popen(
            [sys.executable, "-c", _SCRIPT.format(self._limits.worker_bytes), json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
        )
        try:
            _frame(process, _START_S)
        except (_EndedError, OverdueError) as err:
            if not self._stopped:
                process.kill()
                raise RuntimeError(f"a worker process cannot start; try --workers 0\n{self._told()}") from err
        return process

    def _told(self) -> str:
        if self._errors is None:
            return ""
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - _TOLD_BYTES))
        return self._errors.read().decode("utf-8", "replace")


def _frame(process: subprocess.Popen[bytes], limit_s: float) -> bytes:
    until = monotonic() + limit_s
    length = int.from_bytes(_bytes(process, LENGTH_BYTES, until), "little")
    return _bytes(process, length, until)


def _bytes(process: subprocess.Popen[bytes], size: int, until: float) -> bytes:
    handle = stream(process.stdout).fileno()
    parts: list[bytes] = []
    while size > 0:
        if not select.select([handle], [], [], max(0.0, until - monotonic()))[0]:
            raise OverdueError
        part = os.read(handle, size)
        if not part:
            raise _EndedError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
