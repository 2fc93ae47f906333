"""An index remembers what it was asked for, so that asking for nothing brings all of it up to date."""

from pathlib import Path

import pytest

from dowse.errors import BadRequestError
from dowse.ingest.pipeline import IndexOptions, index
from dowse.ingest.sources.requests import IndexRequest, requests_of, stored_requests
from dowse.store.memory import MemoryStore
from dowse.types import Source


def make(root: Path, *paths: str) -> Path:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("text\n")
    return root


def run(store: MemoryStore, *asked: IndexRequest) -> None:
    index(store, asked, IndexOptions())


def test_only_what_was_asked_for_is_asked_for_again(tmp_path: Path) -> None:
    """A single file belongs to its folder as a source; the rest of that folder was never meant."""
    make(tmp_path / "notes", "a.txt", "private.txt")
    make(tmp_path / "app", "b.txt")
    store = MemoryStore()
    run(store, IndexRequest(tmp_path / "notes" / "a.txt"))
    run(store, IndexRequest(tmp_path / "app", archives=True))
    assert requests_of(store, (), None, archives=False) == [
        IndexRequest(tmp_path / "notes" / "a.txt"), IndexRequest(tmp_path / "app", archives=True),
    ]  # fmt: skip
    run(store, *stored_requests(store))
    assert sorted(info.path for info in store.documents()) == ["a.txt", "b.txt"]


def test_a_file_inside_a_folder_that_is_asked_for_too_is_not_remembered(tmp_path: Path) -> None:
    make(tmp_path / "app", "sub/a.txt")
    store = MemoryStore()
    run(store, IndexRequest(tmp_path / "app" / "sub" / "a.txt"))
    run(store, IndexRequest(tmp_path / "app"))
    assert stored_requests(store) == [IndexRequest(tmp_path / "app")]


def test_a_source_that_was_removed_is_not_asked_for_again(tmp_path: Path) -> None:
    make(tmp_path, "app/a.txt", "old/b.txt")
    store = MemoryStore()
    run(store, IndexRequest(tmp_path / "app"), IndexRequest(tmp_path / "old"))
    store.remove_source("old")
    assert stored_requests(store) == [IndexRequest(tmp_path / "app")]


def test_an_index_that_remembers_nothing_is_asked_for_its_sources() -> None:
    store = MemoryStore()
    with pytest.raises(BadRequestError, match=r"nothing to index.*dowse index \."):
        requests_of(store, (), None, archives=False)
    store.add_source(Source("app", "/srv/app"))
    assert stored_requests(store) == [IndexRequest(Path("/srv/app"))]


def test_a_revision_needs_its_repository() -> None:
    with pytest.raises(BadRequestError, match="needs the folder of a repository"):
        requests_of(MemoryStore(), (), "main", archives=False)
