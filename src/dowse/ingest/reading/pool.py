"""Pool of worker processes: tasks enter; results leave in the same order. Also reads in this process.

A worker is a plain process, not a `multiprocessing.Process`: that would run the caller's main module again, and a pool
of those is lost as a whole when one worker dies. A worker that takes too long or dies costs its file and nothing else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from signal import Signals
from typing import IO, TYPE_CHECKING

import msgspec

from dowse.ingest.reading.limits import FILE_S, WORKER_BYTES, OverdueError, at_most, in_order, overdue
from dowse.ingest.reading.read_file import FileReader, ReadResult, Task
from dowse.ingest.reading.worker import OUT_OF_MEMORY

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

BATCH_TASKS = 16  # sent to a worker at once; chosen: few enough to fit the buffer of a socket
_AHEAD = 4  # batches in progress or done, for each worker; bounds the results that wait for the writer
_OUTPUT_BYTES = 8192  # last part of a worker's output to report
_START_S = 60.0  # for a worker to start; chosen
_SCRIPT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from dowse.ingest.reading.worker import main; main({}, {})"
)


class ReadLimits(msgspec.Struct, frozen=True):
    """Limits for one file."""

    file_s: float = FILE_S
    worker_bytes: int = WORKER_BYTES


def read_in_process(reader: FileReader, tasks: Iterable[Task], limits: ReadLimits) -> Iterator[tuple[Task, ReadResult]]:
    """Read files in the main thread of this process: an alarm ends a file that takes too long."""
    for task in tasks:
        try:
            with at_most(limits.file_s):
                result = reader.read(task)
        except OverdueError:
            result = ReadResult(problem=overdue(limits.file_s))
        yield task, result


def read_in_workers(workers: int, tasks: Iterable[Task], limits: ReadLimits) -> Iterator[tuple[Task, ReadResult]]:
    """Read files in worker processes, each driven by a thread. They end with the iteration."""
    idle: SimpleQueue[_Worker] = SimpleQueue()
    everyone = [_Worker(limits) for _ in range(workers)]
    for worker in everyone:
        idle.put(worker)

    def read(batch: Sequence[Task]) -> list[ReadResult]:
        worker = idle.get()
        try:
            return worker.read(batch)
        finally:
            idle.put(worker)

    threads = ThreadPoolExecutor(max_workers=workers, thread_name_prefix="dowse-read")
    try:
        for batch, results in in_order(threads, read, _batches(tasks), _AHEAD * workers):
            yield from zip(batch, results, strict=True)
    finally:
        for worker in everyone:
            worker.stop()
        threads.shutdown(wait=True, cancel_futures=True)
        for worker in everyone:
            worker.close()


def _batches(tasks: Iterable[Task]) -> Iterator[list[Task]]:
    """Group tasks; a task with bytes is a batch of its own, because it may fill the buffer."""
    batch: list[Task] = []
    for task in tasks:
        batch.append(task)
        if task.data is not None or len(batch) >= BATCH_TASKS:
            yield batch
            batch = []
    if batch:
        yield batch


class _Worker:
    """One worker process, started on demand and restarted when lost. One thread at a time drives it."""

    def __init__(self, limits: ReadLimits) -> None:
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._output: IO[bytes] | None = None
        self._stopped = False
        self._decoder = msgspec.msgpack.Decoder(ReadResult)

    def read(self, batch: Sequence[Task]) -> list[ReadResult]:
        """Return one result a task; fewer if the worker is stopped meanwhile."""
        results: list[ReadResult] = []
        while len(results) < len(batch) and not self._stopped:
            self._attempt(batch[len(results) :], results)
        return results

    def stop(self) -> None:
        """Kill the process, from any thread; this wakes the thread that drives it."""
        self._stopped = True
        if (process := self._process) is not None:
            process.kill()

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        for each in (self._connection, self._output):
            if each is not None:
                each.close()
        self._connection = self._output = None

    def _attempt(self, batch: Sequence[Task], results: list[ReadResult]) -> None:
        """Add results up to and including the first file that loses the worker."""
        connection = self._connection or self._start()
        before = len(results)
        try:
            with suppress(ConnectionError):  # the worker may end before it has all tasks; its results show why
                for task in batch:
                    connection.send_bytes(msgspec.msgpack.encode(task))
            for _ in batch:
                results.append(self._decoder.decode(_received(connection, self._limits.file_s)))
                if results[-1].problem == OUT_OF_MEMORY:  # the worker has ended itself
                    self.close()
                    return
        except OverdueError:
            self.close()
            results.append(ReadResult(problem=overdue(self._limits.file_s)))
        except (EOFError, ConnectionError):
            if not self._stopped:
                results.append(self._lost(batch[len(results) - before]))

    def _lost(self, task: Task) -> ReadResult:
        code, output = self._process.wait() if self._process else 0, self._last_output()
        self.close()
        if code >= 0:
            raise RuntimeError(f"a reader failed on {task.full_path}; this is a bug in the reader:\n{output}")
        return ReadResult(problem=f"skipped: signal {-code} ({Signals(-code).name}) ended its reader")

    def _start(self) -> Connection:
        from multiprocessing import Pipe  # imported here: a small run starts no worker

        self._output = output = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the process runs
        self._connection, other = Pipe()
        with other:
            script = _SCRIPT.format(other.fileno(), self._limits.worker_bytes)
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", script, json.dumps(sys.path)],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, pass_fds=[other.fileno()],
            )  # fmt: skip
        try:
            _received(self._connection, _START_S)
        except (EOFError, ConnectionError, OverdueError) as err:
            if not self._stopped:
                self._process.kill()
                message = f"a worker process cannot start; run again with --workers 0\n{self._last_output()}"
                raise RuntimeError(message) from err
        return self._connection

    def _last_output(self) -> str:
        if self._output is None:
            return ""
        self._output.seek(max(0, self._output.seek(0, os.SEEK_END) - _OUTPUT_BYTES))
        return self._output.read().decode("utf-8", "replace")


def _received(connection: Connection, limit_s: float) -> bytes:
    if not connection.poll(limit_s):
        raise OverdueError
    return connection.recv_bytes()
