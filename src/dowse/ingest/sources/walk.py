"""Walk over requested paths: the files to index, sorted, and the skipped ones with their reasons."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import msgspec
from msgspec.structs import replace

from dowse.errors import BadRequestError
from dowse.filters import Glob, holds
from dowse.ingest.privacy.secret_forms import token_in_name
from dowse.ingest.sources import git
from dowse.ingest.sources.archives import UNPACK, is_archive, members
from dowse.ingest.sources.content import BINARY, too_large
from dowse.ingest.sources.gitignore import IGNORE_FILES, Rules, read_rules
from dowse.ingest.sources.kinds import extension_of, most_bytes
from dowse.ingest.sources.requests import MARK, IndexRequest, ResolvedRequest, git_root, is_inside, path_in, resolve
from dowse.ingest.sources.skip_rules import INDEX_FOLDER, Skip, is_binary_name, skip_file, skip_folder
from dowse.reports import Problem
from dowse.types import Source

_NOT_UTF8 = re.compile("[\ud800-\udfff]")  # as Python decodes other bytes of a file name
_NEVER_FOLLOWED = frozenset((".git", INDEX_FOLDER))


class Repo(msgspec.Struct, frozen=True):
    """Repository of a file."""

    root: str
    rev: str = "HEAD"

    @property
    def name(self) -> str:
        return os.path.basename(self.root).removesuffix(".git")


class FoundFile(msgspec.Struct, frozen=True):
    """File that may be indexed."""

    source: Source
    path: str  # inside the source; of a member: the archive's, `!/` and its own
    full_path: str  # target of a symlink; archive of a member; repository of a blob
    size_bytes: int
    modified_ns: int
    explicit: bool = False  # given by name: not skipped by rules, and reported if it cannot be read
    repo: Repo | None = None
    member: str | None = None  # its name in the archive
    blob: str | None = None  # its name in the repository


class Scope(msgspec.Struct, frozen=True):
    """Part of a source: a folder or file, all of it if the path is empty, or the matches of a glob."""

    source: str
    path: str
    glob: str | None = None

    def covers(self, path: str) -> bool:
        inside = not self.path or is_inside(path, self.path) or path.startswith(self.path + MARK)
        return inside and (self.glob is None or matches_glob(path, self.glob))


class WalkOptions(msgspec.Struct, frozen=True):
    """Limits of a walk."""

    max_file_bytes: int
    readers: Collection[str] = ()  # names of the available readers
    listing: bool = False  # list every skipped file, not only their number
    only: frozenset[str] | None = None  # absolute paths that changed, if known; other files are ignored


def discover(requests: Sequence[IndexRequest], registered: Sequence[Source], options: WalkOptions) -> Discovery:
    """Find every requested file once, even if requests overlap."""
    resolved = resolve(requests, registered)
    roots = {source.root: source for source in (*registered, *(each.source for each in resolved))}
    found = Discovery(options, roots)
    for each in resolved:
        found.add(each)
    return found


def matches_glob(path: str, glob: str) -> bool:
    """Test a path; files inside a matching folder match, too."""
    return holds(Glob("file_path", (glob, glob.rstrip("/") + "/**")), path)


def printable(path: str) -> str:
    """Return a path that can be written anywhere, even if its name is not valid UTF-8."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


class _Folder(msgspec.Struct, frozen=True):
    """Folder to walk, with the rules and options that apply inside."""

    folder: str
    source: Source
    rules: Rules
    repo: Repo | None
    glob: str | None = None
    archives: bool = False  # open them
    whole: bool = True  # False: only changed files and the folders above them


@dataclass
class Discovery:
    """Walk over requests, and its result."""

    options: WalkOptions
    roots: dict[str, Source]
    by_path: dict[tuple[str, str], FoundFile] = field(default_factory=dict)  # by source and path
    scopes: list[Scope] = field(default_factory=list)  # stored documents from there that were not found are removed
    unlisted: list[Scope] = field(default_factory=list)  # not readable now: stored documents from there stay
    skipped: Counter[Skip] = field(default_factory=Counter)
    left_out: list[Problem] = field(default_factory=list)  # every skipped file with its reason, with `listing`
    problems: list[Problem] = field(default_factory=list)
    walked: set[tuple[str, str | None]] = field(default_factory=set)

    @cached_property
    def files(self) -> tuple[FoundFile, ...]:
        """All files of the finished walk by source, then path."""
        return tuple(file for _, file in sorted(self.by_path.items()))

    def add(self, request: ResolvedRequest) -> None:
        path, source = request.path, request.source
        if INDEX_FOLDER in path.split("/"):
            self._problem(path, "part of a Dowse index, which is never indexed")
            return
        if request.rev is not None:
            self._add_revision(request, request.rev)
            return
        only = self.options.only
        whole = only is None or any(is_inside(path, each) for each in only)  # or only a part of the request
        paths = [path] if whole else [each for each in only or () if is_inside(each, path)]
        self.scopes += [Scope(source.name, path_in(source.root, each), request.glob) for each in paths]
        root = git_root(path)
        repo = Repo(root) if root else None
        if request.is_folder:
            rules = self._rules_above(request)
            self._walk(_Folder(path, source, rules, repo, request.glob, request.archives, whole))
        elif whole:
            self._add_file(source, path, path, repo, explicit=True)

    @cached_property
    def _folders_above_changes(self) -> frozenset[str]:
        found: set[str] = set()
        for path in self.options.only or ():
            while (path := os.path.dirname(path)) not in found and path != "/":
                found.add(path)
        return frozenset(found)

    def _rules_above(self, request: ResolvedRequest) -> Rules:
        """Read the ignore files of the folders above a requested one, up to the source's root.

        Empty if they ignore the requested folder itself: a folder given by name is wanted.
        """
        root = request.source.root
        rules = self._read_rules(Rules(), root, [os.path.join(root, ".git", "info", "exclude")])
        folder = root
        for name in filter(None, path_in(root, request.path).split("/")):
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

    def _walk(self, top: _Folder) -> None:
        """Walk depth first, with a list in place of recursion: folders may nest deeper than Python's stack."""
        waiting = [top]
        while waiting:
            place = waiting.pop()
            if (place.folder, place.glob) not in self.walked:
                self.walked.add((place.folder, place.glob))
                waiting += self._folder(place, is_top=place is top)

    def _folder(self, place: _Folder, *, is_top: bool) -> list[_Folder]:
        """Add the files of a folder; return the folders inside."""
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

    def _entry(self, entry: os.DirEntry[str], place: _Folder) -> _Folder | None:
        """Add a file, or return a folder to walk."""
        whole = place.whole or entry.path in (self.options.only or ())
        if not whole and entry.path not in self._folders_above_changes:
            return None
        if _NOT_UTF8.search(entry.name):
            self._problem(entry.path, "file name is not valid UTF-8; rename it")
            return None
        is_folder = entry.is_dir(follow_symlinks=False)
        if is_folder:
            reason = skip_folder(entry.name)
        elif self._opens(entry.name) and not entry.name.startswith("."):
            reason = None if place.archives else Skip.ARCHIVE
        else:
            reason = skip_file(entry.name, self.options.readers)
        if reason is None and place.rules.ignore(entry.path, is_folder=is_folder):
            reason = Skip.IGNORED
        if reason is not None:
            self._skip(reason, entry.path)
            if reason is Skip.ARCHIVE:  # members indexed when it was given by name stay
                self.unlisted.append(Scope(place.source.name, path_in(place.source.root, entry.path)))
            return None
        if not is_folder:
            if place.glob is None or matches_glob(path_in(place.source.root, entry.path), place.glob):
                target = _target(entry.path, place.source.root) if entry.is_symlink() else entry.path
                self._add_file(place.source, entry.path, target, place.repo)
            return None
        other = self.roots.get(entry.path)
        if other is not None:
            self.scopes.append(Scope(other.name, "", place.glob))
        return replace(place, folder=entry.path, source=other or place.source, whole=whole)

    def _add_file(
        self, source: Source, shown: str, full_path: str | None, repo: Repo | None, *, explicit: bool = False
    ) -> None:
        """Add a file on disk; `full_path` is the target of a symlink, None if that is outside of the source."""
        path = path_in(source.root, shown)
        if ((source.name, path) in self.by_path and not explicit) or self._names_secret(path, shown):
            return
        if full_path is None:
            self._skip(Skip.SYMLINK, shown)
            return
        try:
            found = os.lstat(full_path)
        except OSError as err:
            self._unlisted(source, shown, f"cannot be read: {err.strerror}")
            return
        size, most = found.st_size, most_bytes(path, self.options.max_file_bytes)
        file = FoundFile(source, path, full_path, size, found.st_mtime_ns, explicit, repo)
        if not stat.S_ISREG(found.st_mode):
            # A symlink to a folder is not followed: it could lead round in a circle.
            reason = Skip.SYMLINK if shown != full_path else Skip.SPECIAL
            self._refuse(file, shown, reason, "not a regular file")
        elif not size:
            self._skip(Skip.EMPTY, shown)
        elif self._opens(path):
            self._add_archive(file)
        elif size > most:
            self._refuse(file, shown, Skip.TOO_LARGE, too_large(size, most))
        elif explicit and is_binary_name(path, self.options.readers):
            self._problem(shown, BINARY)
        else:
            self.by_path[source.name, path] = file

    def _refuse(self, file: FoundFile, shown: str, reason: Skip, problem: str) -> None:
        if file.explicit:
            self._problem(shown, problem)
        else:
            self._skip(reason, shown)

    def _opens(self, path: str) -> bool:
        return is_archive(path) and extension_of(path) not in self.options.readers

    def _add_archive(self, archive: FoundFile) -> None:
        """Add the members of an archive; the rules for names apply, ignore files do not."""
        try:
            found, escaping = members(archive.full_path)
        except BadRequestError as err:
            self._unlisted(archive.source, os.path.join(archive.source.root, archive.path), str(err))
            return
        for name in escaping:
            self._problem(archive.full_path + MARK + name, "skipped: the path leads out of the archive")
        locked = sum(member.encrypted for member in found)
        if locked:
            self._problem(archive.full_path, f"encrypted: {locked:,} of {len(found):,} files; {UNPACK}")
        for member in found:
            if not member.encrypted:
                path = f"{archive.path}{MARK}{member.path}"
                inner = replace(archive, path=path, size_bytes=member.size_bytes, member=member.name, explicit=False)
                self._add_held(inner, member.path, archive.full_path + MARK + member.path)

    def _add_revision(self, request: ResolvedRequest, rev: str) -> None:
        """Add the files of a commit."""
        root, source = request.path, request.source
        commit = git.resolve(root, rev)
        self.scopes.append(Scope(source.name, ""))
        repo = Repo(root, commit.id)
        for entry in git.tree(root, commit.id):
            shown = f"{root}@{rev}/{entry.path}"
            if _NOT_UTF8.search(entry.path):
                self._problem(shown, "file name is not valid UTF-8; rename it")
            elif entry.mode == "120000":
                self._skip(Skip.SYMLINK, shown)
            else:
                size, stamp_ns = entry.size_bytes, commit.stamp_ns
                found = FoundFile(source, entry.path, root, size, stamp_ns, repo=repo, blob=entry.blob)
                self._add_held(found, entry.path, shown)

    def _add_held(self, found: FoundFile, inner: str, shown: str) -> None:
        """Add a file of an archive or a commit, unless its name or size forbids."""
        *folders, name = inner.split("/")
        reason = next((why for folder in folders if (why := skip_folder(folder))), None)
        reason = reason or (Skip.ARCHIVE if self._opens(name) else skip_file(name, self.options.readers))
        if reason is None and not found.size_bytes:
            reason = Skip.EMPTY
        if reason is None and found.size_bytes > most_bytes(name, self.options.max_file_bytes):
            reason = Skip.TOO_LARGE
        if reason is not None:
            self._skip(reason, shown)
        elif not self._names_secret(inner, shown):
            self.by_path.setdefault((found.source.name, found.path), found)

    def _skip(self, reason: Skip, path: str) -> None:
        self.skipped[reason] += 1
        if self.options.listing:
            self.left_out.append(Problem(printable(path), reason.value))

    def _names_secret(self, path: str, shown: str) -> bool:
        """Report a path that contains a token: a path is stored and shown everywhere, so it cannot be masked."""
        token = token_in_name(path)
        if token:
            self._problem(shown.replace(token, "[masked]"), "skipped: its path contains a secret; rename it")
        return bool(token)

    def _problem(self, path: str, reason: str) -> None:
        self.problems.append(Problem(printable(path), reason))

    def _unlisted(self, source: Source, path: str, reason: str) -> None:
        self._problem(path, reason)
        self.unlisted.append(Scope(source.name, path_in(source.root, path)))


def _target(link: str, root: str) -> str | None:
    """Return the target of a symlink if it is inside the root; None for a dangling or circular link."""
    try:
        target = os.path.realpath(link, strict=True)
    except OSError:
        return None
    inside = is_inside(target, root) and _NEVER_FOLLOWED.isdisjoint(path_in(root, target).split("/"))
    return target if inside else None
