"""Watch for changed files: one set of paths for each burst of changes, after it ends.

With watchfiles installed the system reports changes. Without it, or if the system has no watches left, Dowse scans the
folders itself, rarely enough to cost little.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Event
from time import monotonic, thread_time

import msgspec

from dowse.errors import UnavailableError
from dowse.ingest.sources.gitignore import IGNORE_FILES
from dowse.ingest.sources.requests import IndexRequest, git_root, is_inside
from dowse.ingest.sources.skip_rules import INDEX_FOLDER, skip_folder

QUIET_S = 0.3  # chosen: an editor writes a file in several steps, a branch switch writes many files at once
LONGEST_S = 5.0  # chosen: a folder that never stops changing is still read now and then
LEAST_SCAN_S = 1.0  # between two scans; chosen
SCAN_SHARE = 0.05  # of one core, at most; chosen
MANY = 500  # chosen: for more paths, a walk over everything is simpler

Stamps = Mapping[str, tuple[int, int]]
Notices = Iterator[frozenset[str]]


class ChangeSet(msgspec.Struct, frozen=True):
    """Absolute paths that a burst of changes touched; None: walk everything."""

    paths: frozenset[str] | None


def changes(requests: Sequence[IndexRequest], stop: Event, note: Callable[[str], None]) -> Iterator[ChangeSet]:
    """Yield changes until `stop` is set; the first one is immediate and requests a full walk.

    `note` gets one message if the system cannot watch.
    """
    folders = watched_folders(requests)
    try:
        yield from _changes(system_notices(folders, stop))
    except UnavailableError as err:
        note(str(err))
        yield from _changes(scan_notices(folders, stop))


def _changes(notices: Notices) -> Iterator[ChangeSet]:
    for number, paths in enumerate(notices):
        if (change := _change(paths) if number else ChangeSet(None)) is not None:
            yield change


def watched_folders(requests: Sequence[IndexRequest]) -> list[str]:
    """Return the folders to watch: for a file its folder, because editors replace the file."""
    found: set[str] = set()
    for each in requests:
        if each.rev is None:
            path = Path(os.path.realpath(each.path))
            while not path.is_dir():
                path = path.parent
            found.add(str(path))
    return sorted(path for path in found if not any(other != path and is_inside(path, other) for other in found))


def system_notices(folders: Sequence[str], stop: Event) -> Notices:
    """Yield paths that the system reports; an empty set first, once it watches."""
    try:
        import watchfiles
    except ImportError as err:
        raise UnavailableError(
            "watchfiles is not installed, so Dowse polls for changes; run in a checkout: pip install '.[watch]'"
        ) from err
    try:
        found = watchfiles.watch(
            *folders,
            watch_filter=None,
            debounce=int(LONGEST_S * 1000),
            step=int(QUIET_S * 1000),
            stop_event=stop,
            rust_timeout=100,  # delay of the first, empty set and of `stop`
            yield_on_timeout=True,
        )
        for number, touched in enumerate(found):
            if touched or not number:
                yield frozenset(path for _, path in touched)
    except (OSError, RuntimeError) as err:
        raise UnavailableError(f"the system cannot watch these folders ({err}); Dowse scans for changes") from err


def scan_notices(folders: Sequence[str], stop: Event) -> Notices:
    """Compare sizes and times; pause twenty times as long as a scan takes. Yields an empty set first."""
    before, pause_s = _scan(folders)
    yield frozenset()
    while not stop.wait(pause_s):
        now, pause_s = _scan(folders)
        if now == before:
            continue
        first_s = monotonic()
        touched: set[str] = set()
        while now != before:  # until two scans agree
            touched |= {path for path, stamp in before.items() ^ now.items()}
            before = now
            if monotonic() - first_s > LONGEST_S or stop.wait(QUIET_S):
                break
            now, pause_s = _scan(folders)
        yield frozenset(touched)


def _change(paths: frozenset[str]) -> ChangeSet | None:
    """Return the paths that matter to an index; None if there are none."""
    kept = set()
    for path in paths:
        parts = path.split("/")
        if INDEX_FOLDER in parts:
            continue
        # A commit or another branch moves HEAD, and authors and dates with it.
        if parts[-1] == "HEAD" if ".git" in parts else parts[-1] in IGNORE_FILES:
            return ChangeSet(None)
        if ".git" not in parts:
            kept.add(path)
    if not kept:
        return None
    return ChangeSet(frozenset(kept) if len(kept) <= MANY else None)


def _scan(folders: Sequence[str]) -> tuple[Stamps, float]:
    """Return the stamp of each file, and the pause until the next scan."""
    started = thread_time()
    stamps: dict[str, tuple[int, int]] = {}
    waiting = list(folders)
    for root in filter(None, map(git_root, folders)):
        _stamp(os.path.join(root, ".git", "logs", "HEAD"), stamps)
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if not entry.is_dir(follow_symlinks=False):
                        _stamp(entry.path, stamps)
                    elif skip_folder(entry.name) is None:
                        waiting.append(entry.path)
        except OSError:
            continue  # removed or not readable; the next run reports it if it matters
    return stamps, max(LEAST_SCAN_S, (thread_time() - started) / SCAN_SHARE)


def _stamp(path: str, stamps: dict[str, tuple[int, int]]) -> None:
    try:
        found = os.stat(path)
    except OSError:
        return
    stamps[path] = (found.st_size, found.st_mtime_ns)
