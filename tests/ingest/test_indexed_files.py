"""What an index run reads, keeps and says: moved checkouts, binary fixtures, missing grammars, masked secrets."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import dowse
from dowse.ingest import pipeline
from dowse.lookup.masked import masked_places
from dowse.reports import IndexReport


def checkout(folder: Path) -> Path:
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "pay.py").write_text("def retry_payment():\n    return 1\n")
    (folder / "README.md").write_text("# Shop\n\nPayments are retried.\n")
    return folder


def run(index: Path, *paths: Path) -> IndexReport:
    with dowse.open(index, embedder=None) as engine:
        return engine.index(paths)


def sources(index: Path) -> list[tuple[str, str]]:
    with dowse.open(index, embedder=None) as engine:
        return [(each.name, each.root) for each in engine.sources()]


def hits(index: Path) -> list[str]:
    with dowse.open(index, embedder=None) as engine:
        return [hit.source_uri for hit in engine.query("retry_payment").chunks if "pay.py" in hit.source_uri]


def test_a_moved_checkout_is_the_same_source(tmp_path: Path) -> None:
    first = checkout(tmp_path / "a")
    run(first / ".dowse", first)
    second = first.rename(tmp_path / "b")
    done = run(second / ".dowse", second)
    assert sources(second / ".dowse") == [("a", str(second))]
    assert hits(second / ".dowse") == ["a/src/pay.py"]
    assert (done.added, done.unchanged) == (0, 2)
    assert any("moved" in note for note in done.notes)


def test_a_moved_checkout_is_the_same_source_in_an_index_elsewhere(tmp_path: Path) -> None:
    first, index = checkout(tmp_path / "a"), tmp_path / "index"
    run(index, first)
    second = first.rename(tmp_path / "b")
    run(index, second)
    assert sources(index) == [("a", str(second))]


def test_a_copied_checkout_with_its_index_is_the_same_source(tmp_path: Path) -> None:
    first = checkout(tmp_path / "a")
    run(first / ".dowse", first)
    second = Path(shutil.copytree(first, tmp_path / "b"))
    run(second / ".dowse", second)
    assert sources(second / ".dowse") == [("a", str(second))]
    assert hits(second / ".dowse") == ["a/src/pay.py"]


def test_two_live_work_trees_stay_two_sources(tmp_path: Path) -> None:
    first, index = checkout(tmp_path / "a"), tmp_path / "index"
    run(index, first)
    second = Path(shutil.copytree(first, tmp_path / "b"))
    run(index, second)
    assert sources(index) == [("a", str(first)), ("b", str(second))]


def test_another_folder_is_another_source_even_if_the_first_is_gone(tmp_path: Path) -> None:
    first, index = checkout(tmp_path / "a"), tmp_path / "index"
    run(index, first)
    shutil.rmtree(first)
    other = tmp_path / "b"
    other.mkdir()
    (other / "notes.md").write_text("Something else.")
    run(index, other)
    assert [name for name, _ in sources(index)] == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "data"),
    [("sherlock-nul.txt", b"text\n" * 3000 + b"\0 more\n"), ("sherlock.br", bytes(range(128, 256)) * 9)],
)
def test_binary_fixtures_are_skipped_unless_they_are_named(tmp_path: Path, name: str, data: bytes) -> None:
    folder = checkout(tmp_path / "a")
    (folder / name).write_bytes(data)
    done = run(tmp_path / "index", folder)
    assert (done.problems, dict(done.skipped)["binary"]) == ((), 1)
    assert len(run(tmp_path / "index", folder / name).problems) == 1


def test_text_in_an_unknown_encoding_stays_a_problem(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "a")
    (folder / "cities.md").write_bytes("東京タワーは高い。".encode("shift-jis") * 20)
    assert len(run(tmp_path / "index", folder).problems) == 1


def test_a_missing_grammar_is_noted_once_with_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "has_grammar", lambda _name: False)
    folder = checkout(tmp_path / "a")
    for number in range(3):
        (folder / f"main{number}.swift").write_text("func main() {\n    print(1)\n}\n")
    (note,) = [each for each in run(tmp_path / "index", folder).notes if "[langs]" in each]
    assert "3 files of swift" in note


def test_masked_secrets_are_listed_by_place_and_kind(tmp_path: Path) -> None:
    folder = checkout(tmp_path / "a")
    (folder / "settings.py").write_text(
        'HOST = "db"\nDB_PASSWORD = "hunter2hunter2"\nURL = "postgres://ada:s3cr3tpass99@db/shop"\n'
    )
    with dowse.open(tmp_path / "index", embedder=None) as engine:
        assert engine.index([folder]).masked == 2
        found = [(each.place, each.kind) for each in masked_places(engine.reader())]
    assert found == [("a/settings.py:2", "DB_PASSWORD"), ("a/settings.py:3", "password in an address")]
