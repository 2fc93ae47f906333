"""Given paths go in; the files to index come out, sorted, with all that was left out and why."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dowse.ingest.contents import too_large
from dowse.ingest.ignore import Rules, read_rules
from dowse.ingest.leave_out import INDEX_FOLDER, Skip, is_binary_name, skip_file, skip_folder
from dowse.ingest.sources import Given, is_inside, path_in, resolve
from dowse.types import Problem, Source

_NEVER_FOLLOWED = frozenset((".git", INDEX_FOLDER))


@dataclass(frozen=True)
class Candidate:
    """A file that may be indexed."""

    source: Source
    path: str  # inside the source
    full_path: str  # where the bytes are: of a symlink, its target
    size_bytes: int
    modified_ns: int
    explicit: bool = False  # given by name: rules do not hide it, and what is wrong with it is a problem


@dataclass(frozen=True)
class Scope:
    """A part of a source: a folder or file inside it, or all of it when the path is empty."""

    source: str
    path: str

    def covers(self, path: str) -> bool:
        return not self.path or is_inside(path, self.path)


@dataclass(frozen=True)
class Discovery:
    """What a walk found."""

    files: tuple[Candidate, ...]  # by source, then path
    looked_at: tuple[Scope, ...]  # what is stored from there and was not found, is gone
    unlisted: tuple[Scope, ...]  # could not be looked at: what is stored from there stays
    skipped: tuple[tuple[Skip, int], ...]
    problems: tuple[Problem, ...]


def discover(
    paths: Sequence[Path], registered: Sequence[Source], max_file_bytes: int, readers: Collection[str] = ()
) -> Discovery:
    """Every file below the paths once, whatever the paths have in common."""
    given = resolve(paths, registered)
    roots = {source.root: source for source in (*registered, *(each.source for each in given))}
    walk = _Walk(max_file_bytes, readers, roots)
    for each in given:
        walk.add(each)
    return Discovery(
        files=tuple(sorted(walk.files.values(), key=lambda file: (file.source.name, file.path))),
        looked_at=tuple(walk.looked_at),
        unlisted=tuple(walk.unlisted),
        skipped=tuple(walk.skipped.items()),
        problems=tuple(walk.problems),
    )


def printable(path: str) -> str:
    """A path that can be written anywhere, even if its name is no text."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


@dataclass(frozen=True)
class _Place:
    """A folder on the way, with what holds in it."""

    folder: str
    source: Source
    rules: Rules


@dataclass
class _Walk:
    """The state of one walk."""

    max_file_bytes: int
    readers: Collection[str]
    roots: dict[str, Source]
    files: dict[tuple[str, str], Candidate] = field(default_factory=dict)
    looked_at: list[Scope] = field(default_factory=list)
    unlisted: list[Scope] = field(default_factory=list)
    skipped: Counter[Skip] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    walked: set[str] = field(default_factory=set)

    def add(self, given: Given) -> None:
        inner = path_in(given.source.root, given.path)
        if INDEX_FOLDER in given.path.split("/"):
            self._problem(given.path, "belongs to an index of Dowse, which is never indexed")
            return
        self.looked_at.append(Scope(given.source.name, inner))
        if given.is_folder:
            self._walk(_Place(given.path, given.source, self._rules_above(given)))
        else:
            self._explicit_file(given, inner)

    def _rules_above(self, given: Given) -> Rules:
        """What holds in a given folder by the folders above it, up to the source's root. Nothing when they hide the
        given one itself: who names a folder wants it.
        """
        root = given.source.root
        rules = self._read_rules(Rules(), root, [os.path.join(root, ".git", "info", "exclude")])
        folder = root
        for name in filter(None, path_in(root, given.path).split("/")):
            rules = self._read_rules(rules, folder)
            folder = os.path.join(folder, name)
            if rules.ignore(folder, is_folder=True):
                return Rules()
        return rules

    def _read_rules(self, rules: Rules, folder: str, files: Sequence[str] | None = None) -> Rules:
        try:
            return read_rules(rules, folder, files)
        except OSError as err:
            self._problem(err.filename or folder, f"this ignore file cannot be read: {err.strerror}")
            return rules

    def _walk(self, top: _Place) -> None:
        """Depth first, with a list in place of recursion: folders may be nested deeper than Python's stack."""
        waiting = [top]
        while waiting:
            place = waiting.pop()
            if place.folder in self.walked:
                continue
            self.walked.add(place.folder)
            waiting += self._folder(place, is_top=place is top)

    def _folder(self, place: _Place, *, is_top: bool) -> list[_Place]:
        """Take the files of a folder; the folders to go on with."""
        try:
            with os.scandir(place.folder) as listing:
                entries = list(listing)
        except OSError as err:
            self._unlisted(place.source, place.folder, f"this folder cannot be listed: {err.strerror}")
            return []
        if not is_top and any(entry.name == "pyvenv.cfg" for entry in entries):
            self.skipped[Skip.VENDORED] += 1
            return []
        rules = self._read_rules(place.rules, place.folder)
        return [inner for entry in entries if (inner := self._entry(entry, _Place(place.folder, place.source, rules)))]

    def _entry(self, entry: os.DirEntry[str], place: _Place) -> _Place | None:
        """Take a file, or give back the folder to go on with."""
        if not _is_text(entry.name):
            self._problem(entry.path, "file name is not valid UTF-8; rename it")
            return None
        is_folder = entry.is_dir(follow_symlinks=False)
        reason = skip_folder(entry.name) if is_folder else skip_file(entry.name, self.readers)
        if reason is None and place.rules.ignore(entry.path, is_folder=is_folder):
            reason = Skip.IGNORED
        if reason is not None:
            self.skipped[reason] += 1
            return None
        if not is_folder:
            self._file(entry, place.source)
            return None
        other = self.roots.get(entry.path)
        if other is not None:
            self.looked_at.append(Scope(other.name, ""))
        return _Place(entry.path, other or place.source, place.rules)

    def _file(self, entry: os.DirEntry[str], source: Source) -> None:
        path = path_in(source.root, entry.path)
        if (source.name, path) in self.files:
            return
        full_path = _target(entry.path, source.root) if entry.is_symlink() else entry.path
        if full_path is None:
            self.skipped[Skip.SYMLINK] += 1
            return
        try:
            found = os.lstat(full_path)
        except OSError as err:
            self._unlisted(source, entry.path, f"cannot be read: {err.strerror}")
            return
        candidate = Candidate(source, path, full_path, found.st_size, found.st_mtime_ns)
        if not stat.S_ISREG(found.st_mode):
            # Also a symlink to a folder: following it could lead round in a circle.
            self.skipped[Skip.SYMLINK if entry.is_symlink() else Skip.SPECIAL] += 1
        elif not found.st_size:
            self.skipped[Skip.EMPTY] += 1
        elif found.st_size > self.max_file_bytes:
            self.skipped[Skip.TOO_LARGE] += 1
        else:
            self.files[source.name, path] = candidate

    def _explicit_file(self, given: Given, path: str) -> None:
        try:
            found = os.stat(given.path)
        except OSError as err:
            self._unlisted(given.source, given.path, f"cannot be read: {err.strerror}")
            return
        size, modified = found.st_size, found.st_mtime_ns
        if not stat.S_ISREG(found.st_mode):
            self._problem(given.path, "not a regular file")
        elif not size:
            self.skipped[Skip.EMPTY] += 1
        elif size > self.max_file_bytes:
            self._problem(given.path, too_large(size, self.max_file_bytes))
        elif is_binary_name(path, self.readers):
            self._problem(given.path, "binary file; no reader for it is installed")
        else:
            self.files[given.source.name, path] = Candidate(
                given.source, path, given.path, size, modified, explicit=True
            )

    def _problem(self, path: str, reason: str) -> None:
        self.problems.append(Problem(printable(path), reason))

    def _unlisted(self, source: Source, path: str, reason: str) -> None:
        self._problem(path, reason)
        self.unlisted.append(Scope(source.name, path_in(source.root, path)))


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _target(link: str, root: str) -> str | None:
    """Where a symlink leads, if that is inside the root; None for one that dangles or goes round in a circle."""
    try:
        target = os.path.realpath(link, strict=True)
    except OSError:
        return None
    inside = is_inside(target, root) and _NEVER_FOLLOWED.isdisjoint(path_in(root, target).split("/"))
    return target if inside else None
