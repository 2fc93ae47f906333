"""What git knows of files: who changed them last, what a revision held; asked seldom, and of anyone's repository."""

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dowse.errors import BadRequestError, NotFoundError
from dowse.ingest.pipeline import IndexOptions, index
from dowse.ingest.sources import git
from dowse.ingest.sources.requests import IndexRequest
from dowse.lookup.locate import source_status, staleness
from dowse.reports import IndexReport
from dowse.store.memory import MemoryStore
from dowse.types import Chunk

DAY = 86_400
NOON = 1_700_000_000
LATER = datetime(2100, 1, 1, tzinfo=UTC)


class Repo:
    """A repository on disk, made for a test."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.commits = 0
        root.mkdir(parents=True)
        self("init", "-q", "-b", "main")

    def __call__(self, *arguments: str, author: str = "Ada") -> str:
        date = f"{NOON + self.commits * DAY} +0000"
        environment = {
            "PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": author, "GIT_AUTHOR_EMAIL": "a@example.org", "GIT_AUTHOR_DATE": date,
            "GIT_COMMITTER_NAME": "Bot", "GIT_COMMITTER_EMAIL": "b@example.org", "GIT_COMMITTER_DATE": date,
        }  # fmt: skip
        done = subprocess.run(["git", *arguments], cwd=self.root, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def commit(self, author: str = "Ada", **files: str) -> str:
        self.write(**files)
        self("add", "-A", author=author)
        self.commits += 1
        self("commit", "-q", "--allow-empty", "-m", "change", author=author)
        return self("rev-parse", "HEAD")

    def write(self, **files: str) -> None:
        for name, text in files.items():
            (self.root / f"{name}.txt").write_text(text)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "app")


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(lambda: LATER)


def run(store: MemoryStore, *paths: Path, rev: str | None = None) -> IndexReport:
    return index(store, [IndexRequest(path, rev) for path in paths], IndexOptions())


def chunk(store: MemoryStore, path: str, source: str = "app") -> Chunk:
    info = next(info for info in store.documents() if (info.source, info.path) == (source, path))
    return store.reader().document_chunks(info.id)[0]


def counts(report: IndexReport) -> tuple[int, int, int, int]:
    return report.added, report.changed, report.removed, report.unchanged


# --- authors and dates -----------------------------------------------------------------------------


def test_a_chunk_carries_author_date_and_commit_of_its_files_last_change(repo: Repo, store: MemoryStore) -> None:
    first = repo.commit(a="alpha", b="beta")
    second = repo.commit("Grace", b="beta two")
    run(store, repo.root)
    a, b = chunk(store, "a.txt"), chunk(store, "b.txt")
    assert (a.author, a.timestamp, dict(a.meta)["commit"]) == ("Ada", datetime.fromtimestamp(NOON + DAY, UTC), first)
    assert (b.author, b.timestamp) == ("Grace", datetime.fromtimestamp(NOON + 2 * DAY, UTC))
    assert (dict(b.meta)["commit"], b.repo_name) == (second, "app")


def test_what_a_file_says_of_its_author_wins(repo: Repo, store: MemoryStore) -> None:
    (repo.root / "note.md").write_text("---\nauthor: Lin\ndate: 2020-01-01\n---\n# Note\n\nText.\n")
    repo.commit()
    run(store, repo.root)
    found = chunk(store, "note.md")
    assert (found.author, found.timestamp and found.timestamp.year) == ("Lin", 2020)


def test_a_file_that_was_never_committed_has_no_author(repo: Repo, store: MemoryStore) -> None:
    repo.commit(a="alpha")
    repo.write(new="new")
    run(store, repo.root)
    assert chunk(store, "new.txt").author is None


def test_a_commit_alone_brings_its_author_to_what_was_indexed_before(repo: Repo, store: MemoryStore) -> None:
    """The bytes did not change: only who answers for them."""
    repo.commit(a="alpha", b="beta")
    repo.write(a="alpha two")
    run(store, repo.root)
    assert chunk(store, "a.txt").author == "Ada"
    repo.commit("Grace")
    assert counts(run(store, repo.root)) == (0, 1, 0, 1)
    assert chunk(store, "a.txt").author == "Grace"
    assert counts(run(store, repo.root)) == (0, 0, 0, 2)


def test_history_is_not_walked_while_the_head_stands(
    repo: Repo, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.commit(a="alpha", b="beta")
    run(store, repo.root)
    repo.write(a="alpha, saved and not committed")
    monkeypatch.setattr(git, "last_commits", lambda *_: pytest.fail("the log was read"))
    assert run(store, repo.root).changed == 1
    assert chunk(store, "a.txt").author == "Ada"


def test_a_merge_does_not_take_the_authors_place(repo: Repo, store: MemoryStore) -> None:
    repo.commit(a="alpha")
    repo("checkout", "-q", "-b", "side")
    repo.commit("Grace", side="side")
    repo("checkout", "-q", "main")
    repo.commit(a="alpha two")
    repo("merge", "-q", "--no-ff", "side", author="Merger")
    run(store, repo.root)
    assert chunk(store, "side.txt").author == "Grace"


def test_the_log_is_read_only_as_far_as_needed_and_not_for_ever(repo: Repo) -> None:
    repo.commit(a="alpha", old="old")
    repo.commit("Grace", a="alpha two")
    found, complete = git.last_commits(str(repo.root), {"a.txt"})
    assert (found["a.txt"].author, complete) == ("Grace", True)
    found, complete = git.last_commits(str(repo.root), {"old.txt"}, limit_s=-1.0)
    assert (found, complete) == ({}, False)


def test_repositories_below_a_folder_keep_their_names(tmp_path: Path, store: MemoryStore) -> None:
    Repo(tmp_path / "all" / "one").commit(a="alpha")
    Repo(tmp_path / "all" / "two").commit("Grace", a="alpha")
    (tmp_path / "all" / "loose.txt").write_text("loose")
    run(store, tmp_path / "all")
    found = {path: chunk(store, path, "all") for path in ("one/a.txt", "two/a.txt", "loose.txt")}
    assert {path: (each.repo_name, each.author) for path, each in found.items()} == {
        "one/a.txt": ("one", "Ada"), "two/a.txt": ("two", "Grace"), "loose.txt": ("all", None),
    }  # fmt: skip


def test_odd_names_and_empty_repositories_are_no_trouble(repo: Repo, store: MemoryStore) -> None:
    repo.write(young="young")
    assert run(store, repo.root).added == 1
    (repo.root / 'new\nline "quoted" ü.txt').write_text("odd")
    repo.commit()
    run(store, repo.root)
    assert chunk(store, 'new\nline "quoted" ü.txt').author == "Ada"


def test_a_commit_may_claim_any_moment() -> None:
    found = git._commit(b"a" * 40 + b"\x02Eve\x0299999999999999999")
    assert found is not None
    assert found.date == datetime.fromtimestamp(0, UTC)


# --- revisions -------------------------------------------------------------------------------------


def test_a_revision_is_a_source_of_its_own_and_nothing_is_checked_out(repo: Repo, store: MemoryStore) -> None:
    repo.commit(a="alpha", gone="gone")
    repo("tag", "v1")
    (repo.root / "gone.txt").unlink()
    repo.commit("Grace", a="alpha two")
    assert counts(run(store, repo.root)) == (1, 0, 0, 0)
    assert counts(run(store, repo.root, rev="v1")) == (2, 0, 0, 0)
    old = chunk(store, "a.txt", "app@v1")
    assert (old.text, old.author, old.source_uri, old.repo_name) == ("alpha", "Ada", "app@v1/a.txt", "app")
    assert not (repo.root / "gone.txt").exists()


def test_a_bare_repository_can_be_read(tmp_path: Path, repo: Repo, store: MemoryStore) -> None:
    repo.commit(a="alpha")
    repo("clone", "-q", "--bare", str(repo.root), str(tmp_path / "store.git"))
    assert counts(run(store, tmp_path / "store.git", rev="main")) == (1, 0, 0, 0)
    assert chunk(store, "a.txt", "store@main").repo_name == "store"


def test_the_same_commit_is_not_read_again_and_a_moved_branch_is_compared(
    repo: Repo, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.commit(a="alpha", b="beta")
    run(store, repo.root, rev="main")
    with monkeypatch.context() as patch:
        patch.setattr(git, "blobs", lambda *_: pytest.fail("a blob was read"))
        assert counts(run(store, repo.root, rev="main")) == (0, 0, 0, 2)
    repo.commit(b="beta two", c="gamma")
    assert counts(run(store, repo.root, rev="main")) == (1, 1, 0, 1)


def test_status_tells_a_branch_that_moved_and_a_query_does_not_ask(repo: Repo, store: MemoryStore) -> None:
    repo.commit(a="alpha")
    run(store, repo.root, rev="main")
    source, reader = store.sources()[0], store.reader()
    assert (source_status(store, reader, source).stale, source_status(store, reader, source).missing) == (0, 0)
    assert staleness(store, reader, [info.id for info in store.documents()]) == {}
    repo.commit(a="alpha two")
    assert source_status(store, reader, source).stale == 1
    repo.root.rename(repo.root.with_name("elsewhere"))
    assert source_status(store, reader, source).missing == 1


def test_skipping_holds_inside_a_commit(repo: Repo, store: MemoryStore) -> None:
    (repo.root / "node_modules").mkdir()
    (repo.root / "node_modules" / "x.js").write_text("x")
    (repo.root / "link.txt").symlink_to("a.txt")
    (repo.root / ".hidden").write_text("x")
    repo.commit(a="alpha", empty="")
    report = run(store, repo.root, rev="main")
    assert report.added == 1
    assert dict(report.skipped) == {"vendored": 1, "symlink": 1, "hidden": 1, "empty": 1}


@pytest.mark.parametrize("rev", ["nowhere", "--help", "HEAD:a.txt", ""])
def test_what_is_no_revision_is_an_error(repo: Repo, store: MemoryStore, rev: str) -> None:
    repo.commit(a="alpha")
    with pytest.raises(BadRequestError, match="revision"):
        run(store, repo.root, rev=rev)


def test_a_revision_of_what_is_no_repository_is_an_error(tmp_path: Path, store: MemoryStore) -> None:
    with pytest.raises(BadRequestError, match="no revision"):
        run(store, tmp_path, rev="main")
    with pytest.raises(NotFoundError):
        run(store, tmp_path / "gone", rev="main")


def test_without_git_files_are_indexed_without_authors(
    repo: Repo, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.commit(a="alpha")
    monkeypatch.setenv("PATH", "/nonexistent")
    assert run(store, repo.root).added == 1
    assert chunk(store, "a.txt").author is None
