"""What was asked for goes in; the files to index come out, sorted, with all that was left out and why."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from dowse.errors import BadRequestError
from dowse.filters import Glob, holds
from dowse.ingest.sources import git
from dowse.ingest.sources.archives import UNPACK, is_archive, members
from dowse.ingest.sources.content import too_large
from dowse.ingest.sources.gitignore import IGNORE_FILES, Rules, read_rules
from dowse.ingest.sources.kinds import extension_of, most_bytes
from dowse.ingest.sources.requests import MARK, Asked, Given, git_root, is_inside, path_in, resolve
from dowse.ingest.sources.skip_rules import INDEX_FOLDER, Skip, is_binary_name, skip_file, skip_folder
from dowse.reports import Problem
from dowse.types import Source

_NEVER_FOLLOWED = frozenset((".git", INDEX_FOLDER))


@dataclass(frozen=True)
class Repo:
    """A repository that files belong to."""

    root: str
    rev: str = "HEAD"

    @property
    def name(self) -> str:
        return os.path.basename(self.root).removesuffix(".git")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that may be indexed. With slots, for there may be a million of them."""

    source: Source
    path: str  # inside the source; of a member: the archive's, `!/` and its own
    full_path: str  # where the bytes are: of a symlink, its target; of a member, its archive; of a blob, its repository
    size_bytes: int
    modified_ns: int
    explicit: bool = False  # given by name: rules do not hide it, and what is wrong with it is a problem
    repo: Repo | None = None
    member: str | None = None  # its name in the archive
    blob: str | None = None  # its name in the repository


@dataclass(frozen=True)
class Scope:
    """A part of a source: a folder or file inside it, or all of it when the path is empty; or what a glob matches."""

    source: str
    path: str
    glob: str | None = None

    def covers(self, path: str) -> bool:
        inside = not self.path or is_inside(path, self.path) or path.startswith(self.path + MARK)
        return inside and (self.glob is None or matches_glob(path, self.glob))


@dataclass(frozen=True)
class Reach:
    """How far a walk goes."""

    max_file_bytes: int
    readers: Collection[str] = ()  # names of the readers at hand
    listing: bool = False  # name every file that is left out, not only how many
    only: frozenset[str] | None = None  # absolute paths: what changed, when that is known; the rest is not looked at


@dataclass(frozen=True)
class Discovery:
    """What a walk found."""

    files: tuple[Candidate, ...]  # by source, then path
    looked_at: tuple[Scope, ...]  # what is stored from there and was not found, is gone
    unlisted: tuple[Scope, ...]  # could not be looked at: what is stored from there stays
    skipped: tuple[tuple[Skip, int], ...]
    problems: tuple[Problem, ...]
    left_out: tuple[Problem, ...] = ()  # every skipped file with its reason, if they were asked for


def discover(asked: Sequence[Asked], registered: Sequence[Source], reach: Reach) -> Discovery:
    """Every file of what was asked for once, whatever the paths have in common."""
    given = resolve(asked, registered)
    roots = {source.root: source for source in (*registered, *(each.source for each in given))}
    walk = _Walk(reach, roots)
    for each in given:
        walk.add(each)
    return Discovery(
        files=tuple(sorted(walk.files.values(), key=lambda file: (file.source.name, file.path))),
        looked_at=tuple(walk.looked_at),
        unlisted=tuple(walk.unlisted),
        skipped=tuple(walk.skipped.items()),
        problems=tuple(walk.problems),
        left_out=tuple(walk.left_out),
    )


def matches_glob(path: str, glob: str) -> bool:
    """Also what lies in a folder that matches."""
    return holds(Glob("file_path", (glob, glob.rstrip("/") + "/**")), path)


def printable(path: str) -> str:
    """A path that can be written anywhere, even if its name is no text."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


@dataclass(frozen=True)
class _Place:
    """A folder on the way, with what holds in it."""

    folder: str
    source: Source
    rules: Rules
    repo: Repo | None
    glob: str | None = None
    archives: bool = False  # they are opened
    whole: bool = True  # False: only what changed, and the way to it


@dataclass
class _Walk:
    """The state of one walk."""

    reach: Reach
    roots: dict[str, Source]
    files: dict[tuple[str, str], Candidate] = field(default_factory=dict)
    looked_at: list[Scope] = field(default_factory=list)
    unlisted: list[Scope] = field(default_factory=list)
    skipped: Counter[Skip] = field(default_factory=Counter)
    left_out: list[Problem] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    walked: set[tuple[str, str | None]] = field(default_factory=set)

    def add(self, given: Given) -> None:
        if INDEX_FOLDER in given.path.split("/"):
            self._problem(given.path, "belongs to an index of Dowse, which is never indexed")
        elif given.rev is not None:
            self._revision(given, given.rev)
        elif given.is_folder:
            whole = self._look_at(given)
            repo = git_root(given.path)
            rules = self._rules_above(given)
            place = _Place(given.path, given.source, rules, Repo(repo) if repo else None, given.glob)
            self._walk(replace(place, archives=given.archives, whole=whole))
        elif self._look_at(given):
            self._explicit_file(given, path_in(given.source.root, given.path))

    def _look_at(self, given: Given) -> bool:
        """Note what is looked at. False when that is only a part of what was given."""
        root = given.source.root
        only = self.reach.only
        if only is None or any(is_inside(given.path, each) for each in only):
            self.looked_at.append(Scope(given.source.name, path_in(root, given.path), given.glob))
            return True
        inside = [each for each in only if is_inside(each, given.path)]
        self.looked_at += [Scope(given.source.name, path_in(root, each), given.glob) for each in inside]
        return False

    @cached_property
    def _ways(self) -> frozenset[str]:
        """The folders that lead to what changed."""
        ways: set[str] = set()
        for path in self.reach.only or ():
            while (path := os.path.dirname(path)) not in ways and path != "/":
                ways.add(path)
        return frozenset(ways)

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
            if (place.folder, place.glob) in self.walked:
                continue
            self.walked.add((place.folder, place.glob))
            waiting += self._folder(place, is_top=place is top)

    def _folder(self, place: _Place, *, is_top: bool) -> list[_Place]:
        """Take the files of a folder; the folders to go on with."""
        try:
            with os.scandir(place.folder) as listing:
                entries = list(listing)
        except OSError as err:
            self._unlisted(place.source, place.folder, f"this folder cannot be listed: {err.strerror}")
            return []
        names = {entry.name for entry in entries}
        if not is_top and "pyvenv.cfg" in names:
            self._skip(Skip.VENDORED, place.folder)
            return []
        rules = place.rules if names.isdisjoint(IGNORE_FILES) else self._read_rules(place.rules, place.folder)
        repo = Repo(place.folder) if ".git" in names else place.repo
        place = replace(place, rules=rules, repo=repo)
        return [inner for entry in entries if (inner := self._entry(entry, place))]

    def _entry(self, entry: os.DirEntry[str], place: _Place) -> _Place | None:
        """Take a file, or give back the folder to go on with."""
        whole = place.whole or entry.path in (self.reach.only or ())
        if not whole and entry.path not in self._ways:
            return None
        if not _is_text(entry.name):
            self._problem(entry.path, "file name is not valid UTF-8; rename it")
            return None
        is_folder = entry.is_dir(follow_symlinks=False)
        reason = skip_folder(entry.name) if is_folder else self._skip_file(entry.name, place)
        if reason is None and place.rules.ignore(entry.path, is_folder=is_folder):
            reason = Skip.IGNORED
        if reason is not None:
            self._skip(reason, entry.path)
            if reason is Skip.ARCHIVE:  # what was taken from it when it was given by name stays
                self.unlisted.append(Scope(place.source.name, path_in(place.source.root, entry.path)))
            return None
        if not is_folder:
            if place.glob is None or matches_glob(path_in(place.source.root, entry.path), place.glob):
                self._file(entry, place)
            return None
        other = self.roots.get(entry.path)
        if other is not None:
            self.looked_at.append(Scope(other.name, "", place.glob))
        return replace(place, folder=entry.path, source=other or place.source, whole=whole)

    def _skip_file(self, name: str, place: _Place) -> Skip | None:
        if self._opens(name) and not name.startswith("."):
            return None if place.archives else Skip.ARCHIVE
        return skip_file(name, self.reach.readers)

    def _file(self, entry: os.DirEntry[str], place: _Place) -> None:
        source = place.source
        path = path_in(source.root, entry.path)
        if (source.name, path) in self.files:
            return
        full_path = _target(entry.path, source.root) if entry.is_symlink() else entry.path
        if full_path is None:
            self._skip(Skip.SYMLINK, entry.path)
            return
        try:
            found = os.lstat(full_path)
        except OSError as err:
            self._unlisted(source, entry.path, f"cannot be read: {err.strerror}")
            return
        candidate = Candidate(source, path, full_path, found.st_size, found.st_mtime_ns, repo=place.repo)
        if not stat.S_ISREG(found.st_mode):
            # Also a symlink to a folder: following it could lead round in a circle.
            self._skip(Skip.SYMLINK if entry.is_symlink() else Skip.SPECIAL, entry.path)
        elif not found.st_size:
            self._skip(Skip.EMPTY, entry.path)
        elif self._opens(path):
            self._archive(candidate)
        elif found.st_size > most_bytes(path, self.reach.max_file_bytes):
            self._skip(Skip.TOO_LARGE, entry.path)
        else:
            self.files[source.name, path] = candidate

    def _explicit_file(self, given: Given, path: str) -> None:
        try:
            found = os.stat(given.path)
        except OSError as err:
            self._unlisted(given.source, given.path, f"cannot be read: {err.strerror}")
            return
        repo = git_root(given.path)
        candidate = Candidate(
            given.source, path, given.path, found.st_size, found.st_mtime_ns, True, Repo(repo) if repo else None
        )
        if not stat.S_ISREG(found.st_mode):
            self._problem(given.path, "not a regular file")
        elif not found.st_size:
            self._skip(Skip.EMPTY, given.path)
        elif self._opens(path):
            self._archive(candidate)
        elif found.st_size > (most := most_bytes(path, self.reach.max_file_bytes)):
            self._problem(given.path, too_large(found.st_size, most))
        elif is_binary_name(path, self.reach.readers):
            self._problem(given.path, "binary file; no reader for it is installed")
        else:
            self.files[given.source.name, path] = candidate

    def _opens(self, path: str) -> bool:
        return is_archive(path) and extension_of(path) not in self.reach.readers

    def _archive(self, archive: Candidate) -> None:
        """Its members become candidates; the names inside are judged like those of files, but for ignore files."""
        try:
            found, escaping = members(archive.full_path)
        except BadRequestError as err:
            self._unlisted(archive.source, os.path.join(archive.source.root, archive.path), str(err))
            return
        for name in escaping:
            self._problem(archive.full_path + MARK + name, "leads out of the archive; it was left out")
        locked = sum(member.encrypted for member in found)
        if locked:
            self._problem(archive.full_path, f"encrypted: {locked:,} of {len(found):,} files; {UNPACK}")
        for member in found:
            if not member.encrypted:
                path = f"{archive.path}{MARK}{member.path}"
                inner = replace(archive, path=path, size_bytes=member.size_bytes, member=member.name, explicit=False)
                self._held(inner, member.path, archive.full_path + MARK + member.path)

    def _revision(self, given: Given, rev: str) -> None:
        """The files of a commit become candidates."""
        commit = git.resolve(given.path, rev)
        self.looked_at.append(Scope(given.source.name, ""))
        repo = Repo(given.path, commit.id)
        for entry in git.tree(given.path, commit.id):
            shown = f"{given.path}@{rev}/{entry.path}"
            if not _is_text(entry.path):
                self._problem(shown, "file name is not valid UTF-8; rename it")
            elif entry.mode == "120000":
                self._skip(Skip.SYMLINK, shown)
            else:
                found = Candidate(given.source, entry.path, given.path, entry.size_bytes, commit.stamp_ns, False, repo)
                self._held(replace(found, blob=entry.blob), entry.path, shown)

    def _held(self, found: Candidate, inner: str, shown: str) -> None:
        """Take a file that lies in an archive or a commit, unless its name or size forbids."""
        *folders, name = inner.split("/")
        reason = next((why for folder in folders if (why := skip_folder(folder))), None)
        reason = reason or (Skip.ARCHIVE if self._opens(name) else skip_file(name, self.reach.readers))
        if reason is None and not found.size_bytes:
            reason = Skip.EMPTY
        if reason is None and found.size_bytes > most_bytes(name, self.reach.max_file_bytes):
            reason = Skip.TOO_LARGE
        if reason is not None:
            self._skip(reason, shown)
        else:
            self.files.setdefault((found.source.name, found.path), found)

    def _skip(self, reason: Skip, path: str) -> None:
        self.skipped[reason] += 1
        if self.reach.listing:
            self.left_out.append(Problem(printable(path), reason.value))

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
