"""A path that someone typed goes in; the source it belongs to comes out, registered before or new."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from dowse.errors import BadRequestError, NotFoundError
from dowse.types import Source


@dataclass(frozen=True)
class Given:
    """A path as given, made absolute, without symlinks."""

    path: str
    source: Source
    is_folder: bool


def resolve(paths: Sequence[Path], registered: Sequence[Source]) -> list[Given]:
    """Every path with its source, in the order given. Raises NotFoundError before anything is done."""
    sources = list(registered)
    given: list[Given] = []
    for path in paths:
        real = _real(path)
        is_folder = os.path.isdir(real)
        source = innermost(sources, real)
        if source is None:
            root = git_root(real) or (real if is_folder else os.path.dirname(real))
            source = Source(_free_name(root, sources), root)
            sources.append(source)
        given.append(Given(real, source, is_folder))
    return given


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


def _free_name(root: str, sources: Iterable[Source]) -> str:
    """The folder's name; a number is added when another source has it already."""
    name = os.path.basename(root) or "root"
    taken = {source.name for source in sources}
    number = 1
    free = name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free
