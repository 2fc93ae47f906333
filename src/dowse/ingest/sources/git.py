"""A repository's folder goes in; what git knows of it comes out: its head, last commits, a revision's tree and files.

A repository may come from anyone. Nothing here runs a hook or a filter that its settings name, takes a lock, asks a
question or reaches a network.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from typing import IO

from dowse.errors import BadRequestError, UnavailableError
from dowse.ingest.reading.read_file import Commit

HISTORY_S = 20.0  # chosen: a hundred thousand commits; what is older than that stays without an author
_SAFE = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "protocol.allow=never")
_COMMIT, _FIELD = b"\x01", b"\x02"
_BLOCK_BYTES = 1 << 16


@dataclass(frozen=True)
class Entry:
    """A file in the tree of a revision."""

    path: str
    blob: str
    size_bytes: int
    mode: str  # "120000": a symlink


def head(root: str) -> str | None:
    """The commit that is checked out; None where there is none yet, no repository, or no git."""
    try:
        return _told(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").decode().strip() or None
    except UnavailableError:
        return None


def resolve(root: str, rev: str) -> Commit:
    """The commit that a revision means. BadRequestError when the repository does not know it."""
    try:
        found = _told(root, "rev-parse", "--verify", "--quiet", "--end-of-options", rev + "^{commit}")
    except _FailedError as err:
        raise BadRequestError(f"{root} has no revision {rev!r}; `git -C {root} log` lists them ({err})") from err
    commit = found.decode().strip()
    return commits(root, [commit])[commit]


def commits(root: str, ids: Sequence[str]) -> dict[str, Commit]:
    """Commits by id; one that is not a commit any more is left out."""
    wanted = list(dict.fromkeys(each for each in ids if each.isalnum()))
    if not wanted:
        return {}
    try:
        lines = _told(root, "log", "--no-walk=unsorted", "--ignore-missing", f"--format={_FORMAT}", *wanted, "--")
    except _FailedError:
        return {}
    return {each.id: each for line in lines.split(_COMMIT)[1:] for each in [_commit(line.strip(b"\n"))]}


def changed_between(root: str, old: str, new: str) -> set[str]:
    """Paths that differ between two commits; none when one of them is unknown by now."""
    try:
        found = _told(root, "diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new, "--")
    except _FailedError:
        return set()
    return {os.fsdecode(path) for path in found.split(b"\0") if path}


def last_commits(
    root: str, wanted: set[str], rev: str = "HEAD", limit_s: float = HISTORY_S
) -> tuple[dict[str, Commit], bool]:
    """The last commit of each path, and whether all of history was asked that had to be.

    One pass over the log, newest first, that ends as soon as every path was met: of a few changed files it reads a
    few commits.
    """
    left = wanted & _tracked(root, rev)
    found: dict[str, Commit] = {}
    if not left:
        return found, True
    until = monotonic() + limit_s
    # A merge shows no files here, so that a file belongs to who changed it and not to who merged it.
    with _running(root, "log", f"--format={_FORMAT}", "--name-only", "-z", "--no-renames", rev, "--") as pipe:
        commit: Commit | None = None
        for token in _tokens(pipe):
            if token.startswith(_COMMIT):
                commit = _commit(token[1:])
                if monotonic() > until:
                    return found, False
                continue
            path = os.fsdecode(token.removeprefix(b"\n"))
            if commit is not None and path in left:
                found[path] = commit
                left.discard(path)
                if not left:
                    break
    return found, True


def authors(root: str) -> set[str]:
    """Everyone who wrote a commit that is still reachable, by the name that .mailmap gives."""
    told = _told(root, "log", "--all", "--format=%aN")
    return {name for line in told.decode("utf-8", "replace").splitlines() if (name := line.strip())}


def tree(root: str, commit: str) -> Iterator[Entry]:
    """All files of a commit, by path; a submodule is none."""
    found = _told(root, "ls-tree", "-r", "-z", "-l", "--full-tree", commit)
    for line in found.split(b"\0"):
        about, _, path = line.partition(b"\t")
        if path:
            mode, kind, blob, size = about.decode().split()
            if kind == "blob":
                yield Entry(os.fsdecode(path), blob, int(size), mode)


def blobs(root: str, ids: Sequence[str]) -> Iterator[bytes]:
    """The bytes of each, in order, through one process."""
    with _running(root, "cat-file", "--batch", stdin=subprocess.PIPE) as pipe, _Feeder(pipe) as feeder:
        for each in ids:
            yield feeder.ask(each)


_FORMAT = "%x01%H%x02%an%x02%at"


class _FailedError(UnavailableError):
    """git answered with an error."""


class _Feeder:
    """Asks `git cat-file --batch` one question at a time, so that neither side waits for the other for ever."""

    def __init__(self, pipe: subprocess.Popen[bytes]) -> None:
        self._in, self._out = stream(pipe.stdin), stream(pipe.stdout)

    def __enter__(self) -> _Feeder:
        return self

    def __exit__(self, *_: object) -> None:
        self._in.close()

    def ask(self, blob: str) -> bytes:
        self._in.write(blob.encode() + b"\n")
        self._in.flush()
        answer = self._out.readline().split()
        if len(answer) != 3:
            raise _FailedError(f"git cannot give object {blob}: {b' '.join(answer).decode(errors='replace')}")
        data = self._out.read(int(answer[2]) + 1)[:-1]
        if len(data) != int(answer[2]):
            raise _FailedError(f"git ended in the middle of object {blob}; try `git fsck`")
        return data


def _tracked(root: str, rev: str) -> set[str]:
    try:
        found = _told(root, "ls-tree", "-r", "-z", "--name-only", "--full-tree", rev)
    except _FailedError:
        return set()
    return {os.fsdecode(path) for path in found.split(b"\0")}


def _commit(text: bytes) -> Commit:
    number, author, seconds = text.split(_FIELD)
    try:
        date = datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError):  # a commit may claim any moment
        date = datetime.fromtimestamp(0, UTC)
    return Commit(number.decode(), author.decode("utf-8", "replace"), date)


def _tokens(pipe: subprocess.Popen[bytes]) -> Iterator[bytes]:
    rest = b""
    while block := os.read(stream(pipe.stdout).fileno(), _BLOCK_BYTES):
        *whole, rest = (rest + block).split(b"\0")
        yield from whole
    if rest:
        yield rest


def _told(root: str, *arguments: str) -> bytes:
    with _running(root, *arguments, stderr=subprocess.PIPE) as pipe:
        out, err = pipe.communicate()
    if pipe.returncode:
        reason = err.decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
        raise _FailedError(f"git {arguments[0]} failed in {root}: {reason[0]}")
    return out


@contextmanager
def _running(
    root: str, *arguments: str, stdin: int = subprocess.DEVNULL, stderr: int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[bytes]]:
    """git at work; it is ended when the caller has heard enough."""
    environment = os.environ | {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"}
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):  # set inside a hook: they mean another repository
        environment.pop(name, None)
    try:
        pipe = subprocess.Popen(
            ["git", *_SAFE, "-C", root, *arguments],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=environment,
        )
    except OSError as err:
        raise UnavailableError(f"git cannot be run: {err.strerror}; install it to read repositories") from err
    with pipe:
        try:
            yield pipe
        finally:
            if pipe.poll() is None:
                pipe.kill()


def stream(end: IO[bytes] | None) -> IO[bytes]:
    """One end of a pipe that the process was started with."""
    if end is None:
        raise ValueError("the process was started without this stream")
    return end
