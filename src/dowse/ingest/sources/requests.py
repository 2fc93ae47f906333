"""Index requests: given paths, resolved to sources and stored for runs without paths."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from itertools import chain, count
from pathlib import Path

import msgspec
from msgspec.structs import replace

from dowse.errors import BadRequestError, NotFoundError
from dowse.ingest.sources.archives import is_archive
from dowse.ports import Store
from dowse.types import Source

MARK = "!/"  # between an archive's path and a member's, as in a jar: URL
REVISION_ROOT = "git:"  # + revision, `:` and folder of a repository: root of a source whose files are in a commit
ADDED_ROOT = "added:"  # + name: root of a source whose documents have no files
_STORED = "asked"  # key of the stored requests
_LOOKED_AT = 100  # files that show whether a folder is a moved source; chosen
_WILD = re.compile(r"[*?\[{]")


class IndexRequest(msgspec.Struct, frozen=True):
    """File, folder, archive or glob to index; or a repository at a revision."""

    path: Path
    rev: str | None = None
    archives: bool = False  # also open archives inside folders; an archive given by name is always opened


class ResolvedRequest(msgspec.Struct, frozen=True):
    """Request with an absolute path without symlinks, and its source."""

    path: str
    source: Source
    is_folder: bool
    glob: str | None = None  # over paths inside the source; `path` is the folder before the first wildcard
    rev: str | None = None
    archives: bool = False


def moved_sources(requests: Sequence[IndexRequest], store: Store) -> list[Source]:
    """Return the sources whose checkout was moved or copied to a requested folder, with their new roots.

    It is the same source if its recorded root is gone, or if the index lies inside the new folder, and if the new
    folder has most of the files that were indexed. Two live work trees with one index stay two sources.
    """
    sources = list(store.sources())
    home = getattr(store, "folder", None)  # a store in memory has none
    found: list[Source] = []
    for each in requests:
        real = os.path.realpath(os.path.expanduser(each.path))
        root = git_root(real) or real
        if each.rev is not None or not os.path.isdir(root) or any(is_inside(root, source.root) for source in sources):
            continue
        within = home is not None and is_inside(os.path.realpath(home), root)
        for source in sources:
            is_files = not source.root.startswith((REVISION_ROOT, ADDED_ROOT))
            if is_files and (within or not os.path.exists(source.root)) and _holds_most(root, store.paths(source.name)):
                found.append(Source(source.name, root))
                sources.remove(source)
                break
    return found


def _holds_most(root: str, paths: Sequence[str]) -> bool:
    looked = paths[:: max(len(paths) // _LOOKED_AT, 1)]
    return bool(looked) and 2 * sum(os.path.isfile(os.path.join(root, each.split(MARK)[0])) for each in looked) > len(
        looked
    )


def resolve(requests: Sequence[IndexRequest], registered: Sequence[Source]) -> list[ResolvedRequest]:
    """Find the source of each request, in order. Raises NotFoundError before anything is indexed."""
    sources = list(registered)
    resolved: list[ResolvedRequest] = []
    for each in requests:
        found = _at_revision(each.path, each.rev, sources) if each.rev is not None else _in_files(each.path, sources)
        if found.source not in sources:
            sources.append(found.source)
        resolved.append(replace(found, archives=each.archives))
    return resolved


def _in_files(path: Path, sources: Sequence[Source]) -> ResolvedRequest:
    base, glob = _split_glob(path)
    real = _real(base)
    is_folder = os.path.isdir(real)
    holding = [source for source in sources if is_inside(real, source.root)]
    source = max(holding, key=lambda source: len(source.root), default=None)
    if source is None:
        root = git_root(real) or (real if is_folder else os.path.dirname(real))
        source = Source(_free_name(os.path.basename(root) or "root", sources), root)
    if glob is None:
        return ResolvedRequest(real, source, is_folder)
    inner = path_in(source.root, real)
    return ResolvedRequest(real, source, is_folder, glob=f"/{inner}/{glob}" if inner else f"/{glob}")


def _split_glob(path: Path) -> tuple[Path, str | None]:
    """Split a path before its first wildcard, unless a file has exactly this name."""
    parts = path.parts
    first = next((at for at, part in enumerate(parts) if _WILD.search(part)), None)
    if first is None or os.path.lexists(os.path.expanduser(path)):
        return path, None
    return Path(*parts[:first]), "/".join(parts[first:])


def _at_revision(path: Path, rev: str, sources: Sequence[Source]) -> ResolvedRequest:
    """Resolve a revision: a source of its own, next to the one of the checked-out files."""
    if not rev or ":" in rev:
        raise BadRequestError(f"invalid revision {rev!r}; give a branch, a tag or a commit, for example --rev v1.2")
    real = _real(path)
    repository = git_root(real) or real
    root = f"{REVISION_ROOT}{rev}:{repository}"
    known = next((source for source in sources if source.root == root), None)
    name = os.path.basename(repository).removesuffix(".git") or "root"
    source = known or Source(_free_name(f"{name}@{rev.replace('/', '-')}", sources), root)
    return ResolvedRequest(repository, source, is_folder=True, rev=rev)


def revision_of(source: Source) -> tuple[str, str] | None:
    """Return repository and revision of a source whose files are in a commit, else None."""
    if not source.root.startswith(REVISION_ROOT):
        return None
    rev, _, repository = source.root.removeprefix(REVISION_ROOT).partition(":")
    return repository, rev


def is_inside(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def path_in(root: str, path: str) -> str:
    """Return the path inside the root, empty for the root itself."""
    return path[len(root.rstrip("/")) + 1 :]


def git_root(path: str) -> str | None:
    """Find the nearest folder, from the path upwards, that has a `.git` (a file in linked work trees)."""
    folders = [path, *map(str, Path(path).parents)]
    return next((folder for folder in folders if os.path.lexists(os.path.join(folder, ".git"))), None)


def _real(path: Path) -> str:
    try:
        real = os.path.realpath(os.path.expanduser(path), strict=True)
    except OSError as err:
        why = "" if isinstance(err, FileNotFoundError) else f" ({err.strerror})"
        raise NotFoundError(
            f"no such file or folder: {path}{why}; check the path, or run `dowse remove {path}` if you deleted it"
        ) from err
    try:
        real.encode()
    except UnicodeEncodeError as err:
        shown = os.fsencode(real).decode("utf-8", "backslashreplace")
        raise BadRequestError(f"the name of {shown} is not valid UTF-8; rename the file, then index it again") from err
    return real


def _free_name(name: str, sources: Iterable[Source]) -> str:
    """Append a number if another source has the name."""
    taken = {source.name for source in sources}
    return next(free for free in chain([name], (f"{name}-{number}" for number in count(2))) if free not in taken)


def requests_of(store: Store, paths: Sequence[str | Path], rev: str | None, *, archives: bool) -> list[IndexRequest]:
    """Make requests of the given paths; without paths, return the stored requests of existing sources."""
    if paths:
        return [IndexRequest(Path(path), rev, archives) for path in paths]
    if rev is not None:
        raise BadRequestError(f"--rev needs the folder of a repository; type for example: dowse index --rev {rev} .")
    found = stored_requests(store)
    if not found:
        raise BadRequestError("nothing to index: give a file or folder, for example `dowse index .`")
    return found


def stored_requests(store: Store) -> list[IndexRequest]:
    """Load the requests of sources that still exist. An index of an older version has only its sources."""
    requests = _stored(store)
    roots = [source.root for source in store.sources() if not source.root.startswith((REVISION_ROOT, ADDED_ROOT))]
    return requests + [IndexRequest(Path(root)) for root in roots if not any(_meets(each, root) for each in requests)]


def _stored(store: Store) -> list[IndexRequest]:
    rows = json.loads(store.fact(_STORED) or "[]")
    roots = [source.root for source in store.sources()]
    requests = [IndexRequest(Path(path), rev, archives) for path, rev, archives in rows]
    return [each for each in requests if any(_meets(each, root) for root in roots)]


def store_requests(store: Store, requests: Sequence[IndexRequest]) -> None:
    """Add requests to the stored ones; write only if the list changes."""
    now = {(each.path, each.rev): each for each in _stored(store)}
    for each in requests:
        path = Path(os.path.abspath(os.path.expanduser(each.path)))
        now[path, each.rev] = replace(each, path=path)
    rows = [[str(each.path), each.rev, each.archives] for each in now.values() if not _within(each, now.values())]
    if json.dumps(rows) != store.fact(_STORED):
        store.set_fact(_STORED, json.dumps(rows))


def _meets(request: IndexRequest, root: str) -> bool:
    """Test whether a request covers a source, a part of it or a folder above it."""
    if request.rev is not None:
        return root.startswith(f"{REVISION_ROOT}{request.rev}:")
    path = os.path.realpath(request.path)
    return is_inside(path, root) or is_inside(root, path)


def _within(request: IndexRequest, others: Iterable[IndexRequest]) -> bool:
    """Test whether a request for a folder above includes this one; an archive needs its own."""
    if request.rev is not None or is_archive(str(request.path)):
        return False
    return any(
        other.rev is None
        and other.path in request.path.parents
        and (other.archives or not request.archives)
        and other.path.is_dir()
        for other in others
    )
