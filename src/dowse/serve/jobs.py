"""Queue of index jobs of a server: each runs in a child process, one after the other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from secrets import token_hex
from tempfile import TemporaryFile
from threading import Condition, Thread
from typing import IO, Any, Literal

import msgspec
from msgspec import Struct

from dowse.errors import NotFoundError, UnavailableError

State = Literal["waiting", "running", "done", "failed", "stopped"]
Kind = Literal["index", "embed"]
OVER: tuple[State, ...] = ("done", "failed", "stopped")
MOST_WAITING = 8  # chosen: a second run of the same sources changes nothing
MOST_KEPT = 100  # finished jobs that stay listed; chosen
STOP_S = 10.0  # for a run to end when the server stops; then it is killed, and loses nothing
TOKEN_VARIABLE = "DOWSE_TOKEN"  # for clients of the server; hidden from child processes
_ERROR_BYTES = 2000  # of the error output of a failed child


class Job(Struct, frozen=True):
    """State of one index job. `version` increases with every change."""

    id: str
    paths: tuple[str, ...]  # as requested: source/path
    created_at: datetime
    state: State = "waiting"
    version: int = 0
    started_at: datetime | None = None
    finished_at: datetime | None = None
    progress: Mapping[str, Any] | None = None
    report: Mapping[str, Any] | None = None
    error: str | None = None
    kind: Kind = "index"


class IndexTask(Struct, frozen=True):
    """Work of a child process: real paths, and the environment variables with the settings."""

    index: str
    paths: tuple[str, ...]
    embed: bool = True
    environment: Mapping[str, str] = {}
    kind: Kind = "index"

    def __repr__(self) -> str:
        """Leave out the environment: it may hold keys of model providers."""
        return f"IndexTask({self.index}, {self.paths})"


class JobQueue:
    """Queue with one child process at a time, since an index has one writer."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._waiting: deque[tuple[str, IndexTask]] = deque()
        self._changed = Condition()
        self._child: subprocess.Popen[bytes] | None = None
        self._runner: Thread | None = None
        self._closed = False

    def start(self, task: IndexTask, shown_paths: Sequence[str]) -> Job:
        with self._changed:
            if self._closed or len(self._waiting) >= MOST_WAITING:
                raise UnavailableError("the queue of index jobs is full; retry when a job has finished")
            job = Job(token_hex(8), tuple(shown_paths), datetime.now(UTC), kind=task.kind)
            self._jobs[job.id] = job
            self._waiting.append((job.id, task))
            over = [each.id for each in self._jobs.values() if each.state in OVER]
            for job_id in over[: max(len(self._jobs) - MOST_KEPT, 0)]:
                del self._jobs[job_id]
            if self._runner is None:
                self._runner = Thread(target=self._run, name="dowse-jobs", daemon=True)
                self._runner.start()
            self._changed.notify_all()
            return job

    def start_embedding(self, task: IndexTask) -> None:
        """Start a job that embeds new documents, unless one waits: it will embed these, too."""
        with self._changed:
            if all(each.kind != task.kind for _, each in self._waiting) and len(self._waiting) < MOST_WAITING:
                self.start(task, ())

    def get(self, job_id: str) -> Job:
        found = self._jobs.get(job_id)
        if found is None:
            raise NotFoundError(f"no job {job_id!r}; GET /v1/jobs lists the jobs")
        return found

    def all(self) -> tuple[Job, ...]:
        """List jobs, newest first."""
        with self._changed:
            return tuple(reversed(self._jobs.values()))

    def close(self) -> None:
        """Drop waiting jobs and interrupt the running one as ctrl-C does; it keeps its finished work."""
        with self._changed:
            self._closed = True
            for job_id, _ in self._waiting:
                self._set(job_id, state="stopped", finished_at=datetime.now(UTC))
            self._waiting.clear()
            child, runner = self._child, self._runner
            self._changed.notify_all()
        if child is not None and child.poll() is None:
            child.send_signal(signal.SIGINT)
            try:
                child.wait(STOP_S)
            except subprocess.TimeoutExpired:
                child.kill()
        if runner is not None:
            runner.join(STOP_S)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
                job_id, task = self._waiting.popleft()
            with TemporaryFile() as errors:  # not a pipe, which would fill up: it is read after the child has ended
                self._run_child(job_id, task, errors)

    def _run_child(self, job_id: str, task: IndexTask, errors: IO[bytes]) -> None:
        message: dict[str, Any] = {}
        with _started(task, errors) as child:
            with self._changed:
                self._child = child
                self._set(job_id, state="running", started_at=datetime.now(UTC))
                if self._closed:
                    child.send_signal(signal.SIGINT)
            for line in child.stdout or ():
                message = msgspec.json.decode(line)
                if "progress" in message:
                    self._set(job_id, progress=message["progress"])
            child.wait()
            errors.seek(max(errors.seek(0, os.SEEK_END) - _ERROR_BYTES, 0))
            output = errors.read().decode("utf-8", "replace")
        report = message.get("report")
        error = (
            None if report else message.get("error", {}).get("message") or f"the run ended without a report: {output}"
        )
        stopped = report is not None and report["interrupted"]
        state: State = "failed" if error else "stopped" if stopped or self._closed else "done"
        self._set(job_id, state=state, report=report, error=error, finished_at=datetime.now(UTC))

    def _set(self, job_id: str, **changed: Any) -> None:
        with self._changed:
            job = self._jobs[job_id]
            self._jobs[job_id] = msgspec.structs.replace(job, version=job.version + 1, **changed)
            self._changed.notify_all()


def _started(task: IndexTask, errors: IO[bytes]) -> subprocess.Popen[bytes]:
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "dowse.serve.job_child"],  # -P: no modules from the working folder
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env={name: text for name, text in os.environ.items() if name != TOKEN_VARIABLE} | dict(task.environment),
        start_new_session=True,  # so that ctrl-C in the terminal reaches it only through close()
    )
    if child.stdin is not None:
        child.stdin.write(msgspec.json.encode(msgspec.structs.replace(task, environment={})) + b"\n")
        child.stdin.close()
    return child
