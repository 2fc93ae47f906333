"""Files of repositories go in; the last commit of each comes out, and which of them were committed since last time.

Asked of git at most once a repository and run. While its head stands where it stood, the commits that the index
remembers are still right, so that a saved file costs one look at one commit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property

from dowse.errors import UnavailableError
from dowse.ingest.reading.read_file import Commit
from dowse.ingest.sources import git
from dowse.ingest.sources.requests import path_in
from dowse.ingest.sources.walk import Candidate, Discovery, Repo
from dowse.ports import Store
from dowse.types import DocumentInfo

_HEAD = "head of "  # + a repository's folder: the commit that the index was last brought up to


class History:
    """What the repositories say of the files of one run."""

    def __init__(self, store: Store, files: Sequence[Candidate], known: Mapping[tuple[str, str], DocumentInfo]) -> None:
        self._known = known
        self._repos = {file.repo for file in files if file.repo and file.member is None}
        self._before = {repo: store.fact(_HEAD + repo.root) for repo in self._repos if repo.rev == "HEAD"}
        self._found: dict[tuple[Repo, str], Commit] = {}

    @cached_property
    def heads(self) -> dict[Repo, str]:
        """Where each repository stands now; one without a commit is left out."""
        found = {repo: git.head(repo.root) if repo.rev == "HEAD" else repo.rev for repo in self._repos}
        return {repo: head for repo, head in found.items() if head is not None}

    @cached_property
    def _moved(self) -> dict[Repo, set[str]]:
        """By repository, the paths that commits touched since the last run."""
        return {
            repo: git.changed_between(repo.root, before, self.heads[repo])
            for repo, before in self._before.items()
            if before and repo in self.heads and before != self.heads[repo]
        }

    def moved_on(self, file: Candidate) -> bool:
        """Whether a commit touched the file since the last run: its bytes may be the same, its author is not."""
        if file.repo is None or file.member is not None or file.repo not in self._moved:
            return False
        return _path(file, file.repo) in self._moved[file.repo]

    def ask(self, files: Sequence[Candidate]) -> list[str]:
        """Find the commits of these files; what could not be found is told in notes."""
        wanted: dict[Repo, dict[str, Candidate]] = defaultdict(dict)
        for file in files:
            if file.repo is not None and file.member is None and file.repo in self.heads:
                wanted[file.repo][_path(file, file.repo)] = file
        notes: list[str] = []
        for repo, paths in wanted.items():
            try:
                notes += self._ask(repo, paths)
            except UnavailableError as err:
                notes.append(f"no authors and dates from {repo.root}: {err}")
        return notes

    def _ask(self, repo: Repo, paths: dict[str, Candidate]) -> list[str]:
        left = set(paths)
        if self._before.get(repo) == self.heads[repo]:
            remembered = {path: commit for path, file in paths.items() if (commit := self._remembered(file))}
            commits = git.commits(repo.root, list(remembered.values()))
            for path, commit in remembered.items():
                if commit in commits:
                    self._found[repo, path] = commits[commit]
                    left.discard(path)
        if not left:
            return []
        found, complete = git.last_commits(repo.root, left, repo.rev)
        self._found |= {(repo, path): commit for path, commit in found.items()}
        missing = len(left) - len(found)
        if complete:
            return []
        return [f"{repo.root}: the history is long; {missing:,} files have no author and date"]

    def of(self, file: Candidate) -> Commit | None:
        if file.repo is None or file.member is not None:
            return None
        return self._found.get((file.repo, _path(file, file.repo)))

    def _remembered(self, file: Candidate) -> str | None:
        info = self._known.get((file.source.name, file.path))
        return dict(info.meta).get("commit") if info else None


def remember_heads(store: Store, history: History, found: Discovery) -> None:
    """For the next run; only where all of a repository was looked at, or what was not would never be asked again."""
    whole = {scope.source for scope in found.looked_at if not scope.path and scope.glob is None}
    roots = {file.repo for file in found.files if file.source.name in whole and file.repo and file.repo.rev == "HEAD"}
    for repo in sorted(roots, key=lambda each: each.root):
        if repo in history.heads and store.fact(_HEAD + repo.root) != history.heads[repo]:
            store.set_fact(_HEAD + repo.root, history.heads[repo])


def _path(file: Candidate, repo: Repo) -> str:
    """As git spells it: from the root of the repository. A file of a commit has that path already."""
    return file.path if file.blob is not None else path_in(repo.root, f"{file.source.root.rstrip('/')}/{file.path}")
