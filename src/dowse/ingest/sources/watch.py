"""Folders go in; sets of paths that changed come out, one for each burst, when it has settled.

With watchfiles installed the system tells what changed; without it, or where the system has no room for more
watches, Dowse looks for itself, seldom enough to cost little.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from time import monotonic, thread_time

from dowse.errors import UnavailableError
from dowse.ingest.sources.gitignore import IGNORE_FILES
from dowse.ingest.sources.requests import Asked, git_root
from dowse.ingest.sources.skip_rules import INDEX_FOLDER, skip_folder

QUIET_S = 0.3  # chosen: an editor writes a file in several steps, a branch switch writes many files at once
LONGEST_S = 5.0  # chosen: what keeps changing is read once in a while all the same
LEAST_LOOK_S = 1.0  # between two looks; chosen
LOOK_SHARE = 0.05  # of one core, at most, for looking; chosen
MANY = 500  # chosen: above this, looking at everything is simpler than at each

Stamps = Mapping[str, tuple[int, int]]
Notices = Iterator[frozenset[str]]


@dataclass(frozen=True)
class Change:
    """What a burst touched: absolute paths; None when everything should be looked at."""

    paths: frozenset[str] | None


def changes(asked: Sequence[Asked], stop: Event, note: Callable[[str], None]) -> Iterator[Change]:
    """Until `stop` is set. The first one comes at once and says to look at everything: from then on nothing is missed.

    `note` is told, once, when the system cannot be asked.
    """
    folders = watched_folders(asked)
    try:
        yield from _changes(system_notices(folders, stop))
    except UnavailableError as err:
        note(str(err))
        yield from _changes(own_looks(folders, stop))


def _changes(notices: Notices) -> Iterator[Change]:
    for number, paths in enumerate(notices):
        change = _change(paths) if number else Change(None)
        if change is not None:
            yield change


def watched_folders(asked: Sequence[Asked]) -> list[str]:
    """The folders to watch: of a file, its own, because editors put a new file in the old one's place."""
    found: set[str] = set()
    for each in asked:
        if each.rev is None:
            path = Path(os.path.realpath(each.path))
            while not path.is_dir():
                path = path.parent
            found.add(str(path))
    return sorted(path for path in found if not any(other != path and _below(path, other) for other in found))


def system_notices(folders: Sequence[str], stop: Event) -> Notices:
    """An empty one first, when the watches stand."""
    try:
        import watchfiles
    except ImportError as err:
        raise UnavailableError(
            "watchfiles is not installed, so Dowse looks for changes itself; to be told: pip install 'dowse[watch]'"
        ) from err
    try:
        found = watchfiles.watch(
            *folders,
            watch_filter=None,
            debounce=int(LONGEST_S * 1000),
            step=int(QUIET_S * 1000),
            stop_event=stop,
            rust_timeout=100,  # so soon is the empty one there, and so soon `stop` is noticed
            yield_on_timeout=True,
        )
        for number, touched in enumerate(found):
            if touched or not number:
                yield frozenset(path for _, path in touched)
    except (OSError, RuntimeError) as err:
        raise UnavailableError(
            f"the system cannot watch these folders ({err}); Dowse looks for changes itself"
        ) from err


def own_looks(folders: Sequence[str], stop: Event) -> Notices:
    """Compares sizes and times; between two looks it rests twenty times as long as a look takes. An empty one first."""
    before, pause_s = _look(folders)
    yield frozenset()
    while not stop.wait(pause_s):
        now, pause_s = _look(folders)
        if now == before:
            continue
        first_s = monotonic()
        touched: set[str] = set()
        while now != before:  # until two looks agree
            touched |= {path for path, stamp in before.items() ^ now.items()}
            before = now
            if monotonic() - first_s > LONGEST_S or stop.wait(QUIET_S):
                break
            now, pause_s = _look(folders)
        yield frozenset(touched)


def _change(paths: frozenset[str]) -> Change | None:
    """None when nothing of it concerns an index."""
    kept = set()
    for path in paths:
        parts = path.split("/")
        if INDEX_FOLDER in parts:
            continue
        if ".git" in parts:
            if parts[-1] == "HEAD":  # a commit or another branch: authors and dates change with it
                return Change(None)
            continue
        if parts[-1] in IGNORE_FILES:
            return Change(None)
        kept.add(path)
    if len(kept) > MANY:
        return Change(None)
    return Change(frozenset(kept)) if kept else None


def _look(folders: Sequence[str]) -> tuple[Stamps, float]:
    """What is there now, and how long to rest after having looked."""
    started = thread_time()
    stamps: dict[str, tuple[int, int]] = {}
    waiting = list(folders)
    for folder in folders:
        root = git_root(folder)
        if root is not None:
            _stamp(os.path.join(root, ".git", "logs", "HEAD"), stamps)
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        if skip_folder(entry.name) is None:
                            waiting.append(entry.path)
                    else:
                        _stamp(entry.path, stamps)
        except OSError:
            continue  # gone or closed to us; the run that follows says so if it matters
    return stamps, max(LEAST_LOOK_S, (thread_time() - started) / LOOK_SHARE)


def _stamp(path: str, stamps: dict[str, tuple[int, int]]) -> None:
    try:
        found = os.stat(path)
    except OSError:
        return
    stamps[path] = (found.st_size, found.st_mtime_ns)


def _below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")
