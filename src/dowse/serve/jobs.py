"""Index runs that a server was asked for: orders enter, and how each of them stands can be read at any time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryFile
from threading import Condition, Thread
from typing import IO, Any, Literal

from dowse.errors import NotFoundError, UnavailableError

State = Literal["waiting", "running", "done", "failed", "stopped"]
OVER: tuple[State, ...] = ("done", "failed", "stopped")
MOST_WAITING = 8  # chosen: a second run of the same sources finds nothing to do
MOST_KEPT = 100  # jobs that are over and can still be asked about; chosen
STOP_S = 10.0  # that a run has to come to a good end when the server stops; then it is killed, and loses nothing
TOKEN_VARIABLE = "DOWSE_TOKEN"  # for those who ask the server; a run has no use for it
_ERROR_BYTES = 2000  # of what a child that died had to say


@dataclass(frozen=True)
class Job:
    """How one index run stands. `version` grows with every change."""

    id: str
    paths: tuple[str, ...]  # as asked: source/path
    created_at: datetime
    state: State = "waiting"
    version: int = 0
    started_at: datetime | None = None
    finished_at: datetime | None = None
    progress: Mapping[str, Any] | None = None
    report: Mapping[str, Any] | None = None
    error: str | None = None


@dataclass(frozen=True)
class Work:
    """What a child process is told: real paths, and the environment that carries the settings."""

    index: Path
    paths: tuple[str, ...]
    embed: bool = True
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


class Jobs:
    """Runs them one after the other, each in a process of its own; there is one writer anyway."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._waiting: deque[tuple[str, Work]] = deque()
        self._changed = Condition()
        self._child: subprocess.Popen[bytes] | None = None
        self._runner: Thread | None = None
        self._closed = False

    def start(self, work: Work, shown_paths: Sequence[str]) -> Job:
        with self._changed:
            if self._closed or len(self._waiting) >= MOST_WAITING:
                raise UnavailableError("too many index jobs are waiting; ask again when one is done")
            job = Job(token_hex(8), tuple(shown_paths), datetime.now(UTC))
            self._jobs[job.id] = job
            self._waiting.append((job.id, work))
            self._forget()
            if self._runner is None:
                self._runner = Thread(target=self._run, name="dowse-jobs", daemon=True)
                self._runner.start()
            self._changed.notify_all()
            return job

    def get(self, job_id: str) -> Job:
        found = self._jobs.get(job_id)
        if found is None:
            raise NotFoundError(f"no job {job_id!r}; GET /v1/jobs lists those that are remembered")
        return found

    def all(self) -> tuple[Job, ...]:
        """Newest first."""
        with self._changed:
            return tuple(reversed(self._jobs.values()))

    def follow(self, job_id: str, poll_s: float = 1.0) -> Iterator[Job]:
        """Every change from now on, until the job is over."""
        seen = -1
        while True:
            job = self.get(job_id)
            if job.version != seen:
                seen = job.version
                yield job
            if job.state in OVER:
                return
            with self._changed:
                if self._jobs[job_id].version == seen:
                    self._changed.wait(poll_s)

    def close(self) -> None:
        """Waiting jobs are dropped; the running one is interrupted as ctrl-C would, and keeps what it has done."""
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

    # --- inside -------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
                job_id, work = self._waiting.popleft()
            with TemporaryFile() as errors:  # not a pipe: nobody reads it while the child writes
                self._listen(job_id, work, errors)

    def _listen(self, job_id: str, work: Work, errors: IO[bytes]) -> None:
        import msgspec

        told: dict[str, Any] = {}
        with _started(work, errors) as child:
            with self._changed:
                self._child = child
                self._set(job_id, state="running", started_at=datetime.now(UTC))
                if self._closed:
                    child.send_signal(signal.SIGINT)
            for line in child.stdout or ():
                told = msgspec.json.decode(line)
                if "progress" in told:
                    self._set(job_id, progress=told["progress"])
            child.wait()
            errors.seek(max(errors.seek(0, os.SEEK_END) - _ERROR_BYTES, 0))
            said = errors.read().decode("utf-8", "replace")
        report = told.get("report")
        error = None if report else told.get("error", {}).get("message") or f"the run ended without a report: {said}"
        stopped = report is not None and report["interrupted"]
        state: State = "failed" if error else "stopped" if stopped or self._closed else "done"
        self._set(job_id, state=state, report=report, error=error, finished_at=datetime.now(UTC))

    def _set(self, job_id: str, **changed: Any) -> None:
        with self._changed:
            job = self._jobs[job_id]
            self._jobs[job_id] = replace(job, version=job.version + 1, **changed)
            self._changed.notify_all()

    def _forget(self) -> None:
        over = [each.id for each in self._jobs.values() if each.state in OVER]
        for job_id in over[: max(len(self._jobs) - MOST_KEPT, 0)]:
            del self._jobs[job_id]


def _started(work: Work, errors: IO[bytes]) -> subprocess.Popen[bytes]:
    import msgspec

    from dowse.serve.job_child import Order

    child = subprocess.Popen(
        [sys.executable, "-m", "dowse.serve.job_child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env={name: text for name, text in os.environ.items() if name != TOKEN_VARIABLE} | dict(work.environment),
        start_new_session=True,  # ctrl-C at the server's terminal reaches it through close() alone
    )
    if child.stdin is not None:
        child.stdin.write(msgspec.json.encode(Order(str(work.index), work.paths, work.embed)) + b"\n")
        child.stdin.close()
    return child
