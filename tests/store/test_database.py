"""SQLite by itself: what was written last comes out without being read, and is the same as what is read."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from zlib import crc32

import pytest

from dowse.store.sql import database as module
from dowse.store.sql.codec import decoded, encoded
from dowse.store.sql.database import Database, create_database
from dowse.types import Edge
from factories import document
from values import replace


@pytest.fixture
def path(tmp_path: Path) -> Path:
    create_database(tmp_path / "dowse.db")
    return tmp_path / "dowse.db"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    found = Database(path)
    yield found
    found.close()


def agrees(database: Database, path: Path) -> int:
    """How many rows there are; those of the writer must be those that another connection reads."""
    other = Database(path)
    try:
        for key in range(8):
            for limit in (1, 100):
                assert database.rows_after(key, limit, database.seq()) == other.rows_after(key, limit)
        return len(other.rows_after(0, 100))
    finally:
        other.close()


def test_the_latest_rows_are_those_that_are_stored(database: Database, path: Path) -> None:
    database.put([document("a.md", "one", "two")])
    assert agrees(database, path) == 2
    database.put([document("b.md", "three"), document("c.md", "four")])
    assert agrees(database, path) == 2 + 2
    database.put([document("a.md", "two", "five")])  # its old rows have died
    assert agrees(database, path) == 2 + 2
    database.put([document("d.md", "six")])
    assert agrees(database, path) == 2 + 2 + 1
    database.remove([document("b.md").id])
    assert agrees(database, path) == 2 + 1 + 1


def test_what_is_published_from_memory_is_not_read(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    database.put([document("a.md", "one", "two")])
    database.put([document("a.md", "three")])  # its old rows have died
    seq = database.seq()
    monkeypatch.setattr(database, "query", None)
    assert [row.chunk.text for row in database.rows_after(2, 100, seq)] == ["three"]
    assert database.rows_after(3, 100, seq) == []


def test_what_another_process_wrote_in_between_is_read(database: Database, path: Path) -> None:
    database.put([document("a.md", "one")])
    other = Database(path)
    other.put([document("b.md", "two")])  # and it dies before it publishes that
    other.close()
    assert [row.chunk.text for row in database.rows_after(1, 100, database.seq())] == ["two"]
    database.put([document("c.md", "three")])
    assert [row.chunk.text for row in database.rows_after(1, 100, database.seq())] == ["two", "three"]


def test_documents_are_counted_on_from_a_known_count(database: Database, path: Path) -> None:
    asked: list[str] = []
    database.connections.own.set_trace_callback(asked.append)
    known, since = 0, 0

    def count() -> int:
        nonlocal known, since
        known, since = database.count_documents(known, since, database.seq()), database.seq()
        return known

    database.put([document("a.md", "one"), document("b.md", "two")])
    database.put([document("b.md", "three"), document("c.md", "four"), document("c.md", "five")])
    assert count() == 3
    database.remove([document("a.md").id, document("none.md").id])
    assert count() == 2
    assert not any("count(*)" in each for each in asked)
    other = Database(path)
    other.put([document("d.md", "six")])
    other.close()
    database.put([document("e.md", "seven")])
    assert count() == 4
    assert sum("count(*)" in each for each in asked) == 1


def test_the_latest_rows_are_bounded(database: Database, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_RECENT_ROWS", 2)
    for name in "abcde":
        database.put([document(f"{name}.md", name)])
        assert len(database._recent_rows.rows) <= 2
    assert agrees(database, path) == len("abcde")


def test_of_many_rows_the_last_stay_in_memory(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_RECENT_ROWS", 2)
    for name in "abc":
        database.put([document(f"{name}.md", name)])
    seq = database.seq()
    monkeypatch.setattr(database, "query", None)
    assert [row.chunk.text for row in database.rows_after(1, 100, seq)] == ["b", "c"]


def test_a_failed_transaction_leaves_no_rows_behind(database: Database, path: Path) -> None:
    database.put([document("a.md", "one")])
    broken = document("b.md", "two")
    broken = replace(broken, chunks=(replace(broken.chunks[0], content_hash="no hexadecimal"),))
    with pytest.raises(ValueError, match="hexadecimal"):
        database.put([broken])
    assert agrees(database, path) == 1


def test_of_a_document_that_is_given_twice_the_later_stays(database: Database, path: Path) -> None:
    database.put([document("a.md", "one"), document("b.md", "two"), document("a.md", "three")])
    assert [chunk.text for chunk in database.document_chunks(document("a.md").id)] == ["three"]
    assert agrees(database, path) == 2


def test_a_chunk_is_written_once_with_its_connections(database: Database) -> None:
    """The row holds the text: to write it again for a count would double what a transaction writes."""
    given = document("a.md", "one", "two", "three")
    one, two, three = (chunk.id for chunk in given.chunks)
    tied = replace(given, edges=(Edge(one, two, "calls"), Edge(one, three, "part_of")))
    seen: list[str] = []
    database.connections.own.set_trace_callback(seen.append)
    database.put([tied])
    assert [each for each in seen if each.startswith("UPDATE chunks")] == []
    counts = {each: chunk.connection_count for each, chunk in database.chunks([one, two, three], 0).items()}
    assert counts == {one: 1, two: 1, three: 0}


def test_a_chunk_comes_out_of_its_body_as_it_went_in() -> None:
    """Fields that hold their default are not in the body."""
    plain = document("a.md", "one").chunks[0]
    for chunk in (plain, replace(plain, section_path="A > B", page=3, meta=(("team", "x"),), content_hash="ab" * 16)):
        body = encoded(chunk)
        assert b"null" not in body
        found = decoded(body, crc32(body))
        assert found == chunk
        assert decoded(body, crc32(body), 7) == replace(chunk, connection_count=7)


# --- the write-ahead log ----------------------------------------------------------------------------


def test_the_log_has_room_ahead_of_what_is_committed(database: Database, path: Path) -> None:
    log = path.with_name("dowse.db-wal")
    database.put([document("a.md", "one")])
    database.put([document("b.md", "two")])
    size = log.stat().st_size
    for number in range(5):
        database.put([document(f"{number}.md", "text " * 100)])
    assert log.stat().st_size == size
    database.put(
        [document("large.md", *(f"text {each} " * 2000 for each in range(100)))]
    )  # more than there is room for
    outgrown = log.stat().st_size
    database.put([document("c.md", "three")])
    assert size < outgrown < log.stat().st_size


def test_writers_who_take_turns_do_not_take_each_others_room_for_growth(database: Database, path: Path) -> None:
    log = path.with_name("dowse.db-wal")
    for number in range(20):
        database.set_fact("one", str(number))
        with closing(Database(path)) as other:
            other.set_fact("two", str(number))
    assert log.stat().st_size < 2 * (1 << 20)


def test_only_the_own_log_gets_room_wherever_the_process_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        create_database(tmp_path / name / "dowse.db")
    monkeypatch.chdir(tmp_path / "here")
    with closing(Database(Path("dowse.db"))) as own, closing(Database(tmp_path / "there" / "dowse.db")) as other:
        own.set_fact("a", "1")
        other.set_fact("a", "1")
        monkeypatch.chdir(tmp_path / "there")
        size = (tmp_path / "there" / "dowse.db-wal").stat().st_size
        own.set_fact("a", "2")
        assert (tmp_path / "there" / "dowse.db-wal").stat().st_size == size


def test_a_log_that_ends_in_zeros_is_read_to_the_last_commit(database: Database, path: Path, tmp_path: Path) -> None:
    for number in range(4):
        database.put([document(f"{number}.md", f"text {number}")])
    log = path.with_name("dowse.db-wal")
    assert log.read_bytes().endswith(bytes(1 << 16))
    (tmp_path / "copy").mkdir()
    for each in (path, log):  # as a killed process leaves them
        shutil.copy(each, tmp_path / "copy" / each.name)
    with closing(Database(tmp_path / "copy" / "dowse.db")) as copy:
        assert [each.path for each in copy.documents()] == ["0.md", "1.md", "2.md", "3.md"]
        assert copy.query("PRAGMA integrity_check") == [("ok",)]
        copy.put([document("4.md", "text 4")])
        assert len(list(copy.documents())) == 5
