"""Files to read go in; each comes out with its bytes if they lie in an archive or a commit, else with none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from dowse.errors import BadRequestError, UnavailableError
from dowse.ingest.sources import git
from dowse.ingest.sources.archives import contents
from dowse.ingest.sources.walk import Candidate


@dataclass(frozen=True)
class Unsupplied:
    """Why the bytes of a file cannot be had."""

    reason: str


def supplied(files: Sequence[Candidate], max_bytes: int) -> Iterator[tuple[Candidate, bytes | Unsupplied | None]]:
    """Every file once: an archive is opened once, and read from front to end, in its own order; so is a repository."""
    for (holder, held), group in groupby(files, key=_holder):
        if not held:
            yield from ((file, None) for file in group)
        elif held == "archive":
            yield from _from_archive(holder, list(group), max_bytes)
        else:
            yield from _from_commit(holder, list(group))


def _holder(file: Candidate) -> tuple[str, str]:
    if file.member is not None:
        return file.full_path, "archive"
    return (file.full_path, "commit") if file.blob is not None else ("", "")


def _from_archive(
    path: str, files: Sequence[Candidate], max_bytes: int
) -> Iterator[tuple[Candidate, bytes | Unsupplied]]:
    left = {file.member: file for file in files if file.member is not None}
    try:
        for name, data in contents(path, [*left], max_bytes):
            yield left.pop(name), Unsupplied(data) if isinstance(data, str) else data
        reason = "no longer in the archive; run `dowse index` again"
    except BadRequestError as err:
        reason = str(err)
    for file in left.values():
        yield file, Unsupplied(reason)


def _from_commit(repository: str, files: Sequence[Candidate]) -> Iterator[tuple[Candidate, bytes | Unsupplied]]:
    given = 0
    try:
        for file, data in zip(files, git.blobs(repository, [file.blob or "" for file in files]), strict=True):
            given += 1
            yield file, data
    except UnavailableError as err:
        for file in files[given:]:
            yield file, Unsupplied(str(err))
