"""Last commits of the files of one run, and the files that were committed since the last run.

Each repository is queried at most once a run. While its head has not moved, the commits stored in the index are still
right, so that a saved file costs the lookup of one commit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property

from dowse.errors import UnavailableError
from dowse.ingest.sources import git
from dowse.ingest.sources.git import Commit
from dowse.ingest.sources.requests import path_in
from dowse.ingest.sources.walk import Discovery, FoundFile, Repo
from dowse.ports import Store
from dowse.types import DocumentInfo

_HEAD = "head of "  # + a repository's folder: key of the commit at the last run


class History:
    """Last commits of the files of one run."""

    def __init__(self, store: Store, files: Sequence[FoundFile], known: Mapping[tuple[str, str], DocumentInfo]) -> None:
        self._known = known
        self._repos = {file.repo for file in files if file.repo and file.member is None}
        self._before = {repo: store.fact(_HEAD + repo.root) for repo in self._repos if repo.rev == "HEAD"}
        self._found: dict[tuple[Repo, str], Commit] = {}

    @cached_property
    def heads(self) -> dict[Repo, str]:
        """Current commit by repository, without repositories that have none."""
        found = {repo: git.head(repo.root) if repo.rev == "HEAD" else repo.rev for repo in self._repos}
        return {repo: head for repo, head in found.items() if head is not None}

    @cached_property
    def _moved(self) -> dict[Repo, set[str]]:
        """Paths that commits touched since the last run, by repository."""
        return {
            repo: git.changed_between(repo.root, before, self.heads[repo])
            for repo, before in self._before.items()
            if before and repo in self.heads and before != self.heads[repo]
        }

    def moved_on(self, file: FoundFile) -> bool:
        """Test whether a commit touched the file since the last run: same bytes can have a new author."""
        place = _place(file)
        return place is not None and place[1] in self._moved.get(place[0], ())

    def load(self, files: Sequence[FoundFile]) -> list[str]:
        """Find the commits of these files; return notes about those without one."""
        wanted: dict[Repo, dict[str, FoundFile]] = defaultdict(dict)
        for file in files:
            if (place := _place(file)) and place[0] in self.heads:
                wanted[place[0]][place[1]] = file
        notes: list[str] = []
        for repo, paths in wanted.items():
            try:
                notes += self._load(repo, paths)
            except UnavailableError as err:
                notes.append(f"no authors and dates from {repo.root}: {err}")
        return notes

    def _load(self, repo: Repo, paths: dict[str, FoundFile]) -> list[str]:
        left = set(paths)
        if self._before.get(repo) == self.heads[repo]:
            infos = {path: self._known.get((file.source.name, file.path)) for path, file in paths.items()}
            stored = {path: dict(info.meta).get("commit", "") for path, info in infos.items() if info}
            commits = git.commits(repo.root, list(stored.values()))
            known = {path: commits[commit] for path, commit in stored.items() if commit in commits}
            self._found |= {(repo, path): commit for path, commit in known.items()}
            left -= known.keys()
        if not left:
            return []
        found, complete = git.last_commits(repo.root, left, repo.rev)
        self._found |= {(repo, path): commit for path, commit in found.items()}
        missing = len(left) - len(found)
        return [] if complete else [f"{repo.root}: the history is long; {missing:,} files have no author and date"]

    def of(self, file: FoundFile) -> Commit | None:
        place = _place(file)
        return self._found.get(place) if place else None


def remember_heads(store: Store, history: History, found: Discovery) -> None:
    """Store the heads of repositories that were walked whole; a partial walk leaves files behind."""
    whole = {scope.source for scope in found.scopes if not scope.path and scope.glob is None}
    roots = {file.repo for file in found.files if file.source.name in whole and file.repo and file.repo.rev == "HEAD"}
    for repo in sorted(roots, key=lambda each: each.root):
        if repo in history.heads and store.fact(_HEAD + repo.root) != history.heads[repo]:
            store.set_fact(_HEAD + repo.root, history.heads[repo])


def _place(file: FoundFile) -> tuple[Repo, str] | None:
    """Return the repository of a file and its path there, which a file of a commit has already."""
    if file.repo is None or file.member is not None:
        return None
    disk = f"{file.source.root.rstrip('/')}/{file.path}"
    return file.repo, file.path if file.blob is not None else path_in(file.repo.root, disk)
