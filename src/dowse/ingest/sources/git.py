"""Access to git repositories: head, last commits of files, trees and blobs of a revision.

Repositories are untrusted: `git_process` runs git without their settings, so that no call here starts another program,
takes a lock, prompts, or uses the network.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from time import monotonic

import msgspec

from dowse.errors import BadRequestError, UnavailableError
from dowse.ingest.sources.git_process import PROCESS_S, GitFailedError, output, running, stream

HISTORY_S = 20.0  # chosen: time for 100,000 commits; files whose commit is older get no author
_COMMIT = b"\x01"
_FORMAT = "%x01%H%x02%an%x02%at"
_ABOUT = re.compile(rb"([0-9a-f]{40,64})\x02(.*)\x02(\d+)", re.DOTALL)  # an author or a path may hold these bytes, too
_BLOCK_BYTES = 1 << 16


class Commit(msgspec.Struct, frozen=True):
    """Commit that last changed a file."""

    id: str
    author: str
    date: datetime  # aware, UTC

    @property
    def stamp_ns(self) -> int:
        """Modification time for the files of this commit; it differs between commits, so that a change shows."""
        return int(self.date.timestamp()) * 10**9 + int(self.id[:7], 16)


class TreeEntry(msgspec.Struct, frozen=True):
    """File in the tree of a revision."""

    path: str
    blob: str
    size_bytes: int
    mode: str  # "120000": a symlink


def head(root: str) -> str | None:
    """Return the commit that is checked out; None without a commit, a repository, or git."""
    try:
        return output(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").decode().strip() or None
    except UnavailableError:
        return None


def resolve(root: str, rev: str) -> Commit:
    """Resolve a revision to its commit. Raises BadRequestError if the repository does not have it."""
    try:
        found = output(root, "rev-parse", "--verify", "--quiet", "--end-of-options", rev + "^{commit}")
    except GitFailedError as err:
        raise BadRequestError(f"no revision {rev!r} in {root} ({err}); run `git -C {root} log --all`") from err
    commit = found.decode().strip()
    if commit not in (found_commits := commits(root, [commit])):
        raise BadRequestError(f"git cannot read commit {commit} of {root}; run `git fsck`")
    return found_commits[commit]


def commits(root: str, ids: Sequence[str]) -> dict[str, Commit]:
    """Look up commits by id; unknown ids are omitted."""
    wanted = list(dict.fromkeys(each for each in ids if each.isalnum()))
    if not wanted:
        return {}
    lines = _output_or_empty(
        root, "log", "-z", "--no-walk=unsorted", "--ignore-missing", f"--format={_FORMAT}", *wanted, "--"
    )
    found = (_commit(line.removeprefix(_COMMIT)) for line in lines.split(b"\0"))
    return {each.id: each for each in found if each}


def changed_between(root: str, old: str, new: str) -> set[str]:
    """Return the paths that differ between two commits; none if a commit is unknown."""
    return _paths(_output_or_empty(root, "diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new, "--"))


def last_commits(
    root: str, wanted: set[str], rev: str = "HEAD", limit_s: float = HISTORY_S
) -> tuple[dict[str, Commit], bool]:
    """Find the last commit of each path; the flag is False if time ran out.

    One pass over the log, newest first, that stops once every path was found: a few changed files need a few commits.
    """
    left = wanted & _paths(_output_or_empty(root, "ls-tree", "-r", "-z", "--name-only", "--full-tree", rev))
    found: dict[str, Commit] = {}
    if not left:
        return found, True
    until = monotonic() + limit_s
    # `git log` lists no files for a merge, so that a file gets the author of the change, not of the merge.
    with running(
        root, "log", f"--format={_FORMAT}", "--name-only", "-z", "--no-renames", rev, "--", limit_s=PROCESS_S
    ) as pipe:
        commit: Commit | None = None
        for token in _tokens(pipe):
            if token.startswith(_COMMIT) and (about := _commit(token[1:])):
                commit = about
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
    """Return the author names of all reachable commits, as .mailmap spells them."""
    names = output(root, "log", "--all", "--format=%aN").decode("utf-8", "replace").splitlines()
    return {name for line in names if (name := line.strip())}


def tree(root: str, commit: str) -> Iterator[TreeEntry]:
    """List all files of a commit by path, without submodules."""
    found = output(root, "ls-tree", "-r", "-z", "-l", "--full-tree", commit)
    for line in found.split(b"\0"):
        about, _, path = line.partition(b"\t")
        if path:
            mode, kind, blob, size = about.decode().split()
            if kind == "blob":
                # A missing object has no size; it is not an empty file, so that reading it reports the reason.
                yield TreeEntry(os.fsdecode(path), blob, int(size) if size.isdigit() else 1, mode)


def blobs(root: str, ids: Sequence[str]) -> Iterator[bytes | None]:
    """Read blobs in order through one process; None for a missing one. One request at a time: no side blocks."""
    with running(root, "cat-file", "--batch", stdin=subprocess.PIPE) as pipe:
        replies = stream(pipe.stdout)
        with stream(pipe.stdin) as requests:
            for blob in ids:
                requests.write(blob.encode() + b"\n")
                requests.flush()
                header = replies.readline().split()
                if header[1:] == [b"missing"]:
                    yield None
                    continue
                if len(header) != 3:
                    raise GitFailedError(f"git ended before object {blob}; run `git fsck`")
                data = replies.read(int(header[2]) + 1)[:-1]
                if len(data) != int(header[2]):
                    raise GitFailedError(f"git ended in the middle of object {blob}; run `git fsck`")
                yield data


def _paths(output: bytes) -> set[str]:
    return {os.fsdecode(path) for path in output.split(b"\0") if path}


def _commit(text: bytes) -> Commit | None:
    if (match := _ABOUT.fullmatch(text)) is None:
        return None
    number, author, seconds = match.groups()
    try:
        date = datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError):  # a commit may claim any date
        date = datetime.fromtimestamp(0, UTC)
    return Commit(number.decode(), author.decode("utf-8", "replace"), date)


def _tokens(pipe: subprocess.Popen[bytes]) -> Iterator[bytes]:
    partial = b""
    while block := os.read(stream(pipe.stdout).fileno(), _BLOCK_BYTES):
        *whole, partial = (partial + block).split(b"\0")
        yield from whole
    if partial:
        yield partial


def _output_or_empty(root: str, *arguments: str) -> bytes:
    try:
        return output(root, *arguments)
    except GitFailedError:
        return b""
