"""What someone asked for goes in: a path, a glob, a revision; the source it belongs to comes out, known or new."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from dowse.errors import BadRequestError, NotFoundError
from dowse.types import Source

MARK = "!/"  # between an archive's path and a member's, as in a jar: URL
REVISION_ROOT = "git:"  # before a repository's folder: the root of a source whose files lie in a commit
_WILD = re.compile(r"[*?\[{]")


@dataclass(frozen=True)
class Asked:
    """What to index: a file, a folder, an archive, a glob; or a repository as it was at a revision."""

    path: Path
    rev: str | None = None
    archives: bool = False  # open those that are met on the way, too; one that is named is always opened


@dataclass(frozen=True)
class Given:
    """What was asked for, as an absolute path without symlinks."""

    path: str
    source: Source
    is_folder: bool
    glob: str | None = None  # over paths inside the source: only files that match; `path` is where to look
    rev: str | None = None
    archives: bool = False


def resolve(asked: Sequence[Asked], registered: Sequence[Source]) -> list[Given]:
    """All with their sources, in the order given. Raises NotFoundError before anything is done."""
    sources = list(registered)
    given: list[Given] = []
    for each in asked:
        found = _at_revision(each.path, each.rev, sources) if each.rev is not None else _in_files(each.path, sources)
        if found.source not in sources:
            sources.append(found.source)
        given.append(replace(found, archives=each.archives))
    return given


def _in_files(path: Path, sources: Sequence[Source]) -> Given:
    base, glob = _split_glob(path)
    real = _real(base)
    is_folder = os.path.isdir(real)
    source = innermost(sources, real)
    if source is None:
        root = git_root(real) or (real if is_folder else os.path.dirname(real))
        source = Source(_free_name(os.path.basename(root) or "root", sources), root)
    if glob is None:
        return Given(real, source, is_folder)
    inner = path_in(source.root, real)
    return Given(real, source, is_folder, glob=f"/{inner}/{glob}" if inner else f"/{glob}")


def _split_glob(path: Path) -> tuple[Path, str | None]:
    """The folder before the first wildcard, and the rest; a file that is really called so is no glob."""
    parts = path.parts
    first = next((at for at, part in enumerate(parts) if _WILD.search(part)), None)
    if first is None or os.path.lexists(os.path.expanduser(path)):
        return path, None
    return Path(*parts[:first]), "/".join(parts[first:])


def _at_revision(path: Path, rev: str, sources: Sequence[Source]) -> Given:
    """A revision is a source of its own: its files stand beside those that are checked out."""
    if not rev or ":" in rev:
        raise BadRequestError(f"{rev!r} is no revision; give a branch, a tag or a commit, for example --rev v1.2")
    real = _real(path)
    repository = git_root(real) or real
    root = f"{REVISION_ROOT}{rev}:{repository}"
    known = next((source for source in sources if source.root == root), None)
    name = os.path.basename(repository).removesuffix(".git") or "root"
    source = known or Source(_free_name(f"{name}@{rev.replace('/', '-')}", sources), root)
    return Given(repository, source, is_folder=True, rev=rev)


def revision_of(source: Source) -> tuple[str, str] | None:
    """Repository and revision of a source whose files lie in a commit; None for one of plain files."""
    if not source.root.startswith(REVISION_ROOT):
        return None
    rev, _, repository = source.root.removeprefix(REVISION_ROOT).partition(":")
    return repository, rev


def innermost(sources: Iterable[Source], path: str) -> Source | None:
    """The source whose root holds the path; of nested ones the deepest."""
    holding = [source for source in sources if is_inside(path, source.root)]
    return max(holding, key=lambda source: len(source.root), default=None)


def is_inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def path_in(root: str, path: str) -> str:
    """The path inside the root, empty for the root itself."""
    return path[len(root.rstrip("/")) + 1 :]


def git_root(path: str) -> str | None:
    """The nearest folder, from the path upwards, that has a `.git` (a file in linked work trees)."""
    folder = path
    while True:
        if os.path.lexists(os.path.join(folder, ".git")):
            return folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def _real(path: Path) -> str:
    try:
        real = os.path.realpath(os.path.expanduser(path), strict=True)
    except OSError as err:
        why = "" if isinstance(err, FileNotFoundError) else f" ({err.strerror})"
        raise NotFoundError(
            f"no such file or folder: {path}{why}; to forget what was indexed from it, type `dowse remove {path}`"
        ) from err
    try:
        real.encode()
    except UnicodeEncodeError as err:
        shown = os.fsencode(real).decode("utf-8", "backslashreplace")
        raise BadRequestError(f"the name of {shown} is not valid UTF-8; rename it, then index it again") from err
    return real


def _free_name(name: str, sources: Iterable[Source]) -> str:
    """A number is added when another source has the name already."""
    taken = {source.name for source in sources}
    number = 1
    free = name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free
