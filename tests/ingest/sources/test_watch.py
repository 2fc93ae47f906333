"""Bursts of changes become one look at what changed; nothing is missed and nothing goes round in circles."""

import builtins
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread
from time import sleep
from typing import Any

import pytest

from dowse.ingest.pipeline import IndexOptions, index
from dowse.ingest.sources import watch
from dowse.ingest.sources.requests import IndexRequest
from dowse.ingest.sources.watch import MANY, ChangeSet, changes, scan_notices, watched_folders
from dowse.reports import IndexReport
from dowse.store.memory import MemoryStore


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "LEAST_SCAN_S", 0.02)
    monkeypatch.setattr(watch, "QUIET_S", 0.1)


@pytest.fixture(params=["told by the system", "by looking"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "by looking":
        real = builtins.__import__

        def without(name: str, *rest: Any, **more: Any) -> Any:
            if name == "watchfiles":
                raise ImportError(name)
            return real(name, *rest, **more)

        monkeypatch.setattr(builtins, "__import__", without)
    else:
        pytest.importorskip("watchfiles")
    return str(request.param)


def after(doing: Callable[[], object]) -> Thread:
    def later() -> None:
        sleep(0.3)
        doing()

    thread = Thread(target=later)
    thread.start()
    return thread


def seen(found: Iterator[ChangeSet], wanted: str) -> set[str]:
    """What changed, until the wanted path is among it."""
    paths: set[str] = set()
    while wanted not in paths:
        change = next(found)
        assert change.paths is not None
        paths |= change.paths
    return paths


def test_the_first_change_says_to_look_at_everything_and_then_what_changed_is_told(tmp_path: Path, way: str) -> None:
    (tmp_path / "a.txt").write_text("a")
    stop, notes = Event(), list[str]()
    found = changes([IndexRequest(tmp_path)], stop, notes.append)
    assert next(found) == ChangeSet(None)
    writing = after(lambda: (tmp_path / "b.txt").write_text("b"))
    assert seen(found, str(tmp_path / "b.txt")) <= {str(tmp_path / "b.txt"), str(tmp_path / "a.txt")}
    writing.join()
    deleting = after((tmp_path / "a.txt").unlink)
    assert str(tmp_path / "a.txt") in seen(found, str(tmp_path / "a.txt"))
    deleting.join()
    stop.set()
    assert bool(notes) == (way == "by looking")


def test_a_burst_is_one_change(tmp_path: Path, way: str) -> None:
    stop = Event()
    found = changes([IndexRequest(tmp_path)], stop, lambda _: None)
    next(found)
    writing = after(lambda: [(tmp_path / f"{n}.txt").write_text("x") for n in range(200)])
    first = next(found)
    writing.join()
    stop.set()
    assert first.paths is not None
    assert len(first.paths) > 150


def test_scan_notices_end_when_asked_to(tmp_path: Path) -> None:
    stop = Event()
    found = scan_notices([str(tmp_path)], stop)
    assert next(found) == frozenset()
    stop.set()
    assert list(found) == []


@pytest.mark.parametrize(
    ("path", "change"),
    [
        ("/app/.dowse/dowse.db", None),
        ("/app/.git/index.lock", None),
        ("/app/.git/logs/HEAD", ChangeSet(None)),
        ("/app/sub/.gitignore", ChangeSet(None)),
        ("/app/.dowseignore", ChangeSet(None)),
        ("/app/a.txt", ChangeSet(frozenset(("/app/a.txt",)))),
    ],
)
def test_what_a_path_means_for_an_index(path: str, change: ChangeSet | None) -> None:
    assert watch._change(frozenset((path,))) == change


def test_very_many_changes_are_a_look_at_everything() -> None:
    paths = [f"/app/{number}.txt" for number in range(MANY + 1)]
    assert watch._change(frozenset(paths)) == ChangeSet(None)
    assert watch._change(frozenset(paths[1:])) == ChangeSet(frozenset(paths[1:]))


def test_the_folder_of_a_file_is_watched_and_each_folder_once(tmp_path: Path) -> None:
    (tmp_path / "app" / "sub").mkdir(parents=True)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("a")
    asked = [
        IndexRequest(tmp_path / "app"),
        IndexRequest(tmp_path / "app" / "sub"),
        IndexRequest(tmp_path / "notes" / "a.txt"),
    ]
    assert watched_folders([*asked, IndexRequest(tmp_path, rev="main")]) == [
        str(tmp_path / "app"),
        str(tmp_path / "notes"),
    ]


# --- a run over what changed -----------------------------------------------------------------------


def run(store: MemoryStore, root: Path, *only: Path) -> IndexReport:
    return index(store, [IndexRequest(root)], IndexOptions(only=frozenset(map(str, only)) or None))


def stored(store: MemoryStore) -> list[str]:
    return sorted(info.path for info in store.documents())


@pytest.fixture
def app(tmp_path: Path) -> Path:
    for path in ("a.txt", "sub/b.txt", "sub/deep/c.txt"):
        (tmp_path / "app" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "app" / path).write_text("text\n")
    return tmp_path / "app"


def test_only_what_changed_is_looked_at(app: Path) -> None:
    store = MemoryStore()
    run(store, app)
    (app / "a.txt").write_text("changed\n")
    (app / "sub" / "b.txt").write_text("changed as well, and not told\n")
    report = run(store, app, app / "a.txt")
    assert (report.added, report.changed, report.removed, report.unchanged) == (0, 1, 0, 0)


def test_a_new_and_a_deleted_file_or_folder_are_seen(app: Path) -> None:
    store = MemoryStore()
    run(store, app)
    (app / "sub" / "deep" / "c.txt").unlink()
    (app / "sub" / "deep").rmdir()
    (app / "new").mkdir()
    (app / "new" / "d.txt").write_text("new\n")
    report = run(store, app, app / "sub" / "deep", app / "new")
    assert (report.added, report.removed) == (1, 1)
    assert stored(store) == ["a.txt", "new/d.txt", "sub/b.txt"]


def test_what_is_ignored_or_vendored_stays_so_when_it_changes(app: Path) -> None:
    (app / ".gitignore").write_text("*.log\n")
    (app / "x.log").write_text("log\n")
    (app / "node_modules").mkdir()
    (app / "node_modules" / "x.txt").write_text("x\n")
    store = MemoryStore()
    run(store, app)
    assert run(store, app, app / "x.log", app / "node_modules" / "x.txt").added == 0
    assert stored(store) == ["a.txt", "sub/b.txt", "sub/deep/c.txt"]


def test_a_change_outside_of_what_was_asked_for_is_nothing(app: Path, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("other\n")
    store = MemoryStore()
    run(store, app)
    report = run(store, app, tmp_path / "other.txt", tmp_path)
    assert (report.added, report.removed) == (0, 0)


def test_a_file_that_comes_and_goes_within_a_burst_leaves_nothing(app: Path) -> None:
    store = MemoryStore()
    run(store, app)
    report = run(store, app, app / "swap.txt~", app / "sub" / "gone.txt")
    assert (report.added, report.removed, report.problems) == (0, 0, ())
    os.rename(app / "a.txt", app / "z.txt")
    report = run(store, app, app / "a.txt", app / "z.txt")
    assert (report.added, report.removed) == (1, 1)
