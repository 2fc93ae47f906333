"""The vector cache: what was put under a hash comes back, whether the table of hashes knows it yet or not."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dowse.errors import SchemaVersionError
from dowse.identity import text_hash
from dowse.store.embedded import EmbeddedStore
from dowse.store.sql import vector_cache as module
from dowse.store.sql.database import Database, create_database
from dowse.store.sql.vector_cache import Model, RecentVectors, VectorCache
from dowse.store.verify import verify
from factories import document, vector, vectors

DIMENSION = 8


@pytest.fixture
def path(tmp_path: Path) -> Path:
    create_database(tmp_path / "dowse.db")
    return tmp_path / "dowse.db"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    found = Database(path)
    yield found
    found.close()


@pytest.fixture(autouse=True)
def _few_recent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_RECENT", 5)


def hashes(*numbers: int) -> list[str]:
    return [text_hash(str(each)) for each in numbers]


def put(embeddings: VectorCache, model: Model, *numbers: int) -> None:
    embeddings.put(model, hashes(*numbers), vectors(hashes(*numbers), DIMENSION))


def known(embeddings: VectorCache, model: Model, numbers: range = range(100)) -> set[int]:
    """Which of the numbers come back, each with its own vector."""
    number_of = dict(zip(hashes(*numbers), numbers, strict=True))
    found = embeddings.get(model, list(number_of))
    for each, own in found.items():
        assert np.array_equal(own, vector(each, DIMENSION))
    return {number_of[each] for each in found}


def settled(database: Database) -> int:
    return int(database.query("SELECT count(*) FROM embedded")[0][0])


def test_vectors_come_back_before_and_after_their_hashes_are_settled(database: Database) -> None:
    embeddings = VectorCache(database)
    model = embeddings.add_model("m", DIMENSION)
    put(embeddings, model, 1, 2, 3)
    assert (settled(database), known(embeddings, model)) == (0, {1, 2, 3})
    put(embeddings, model, 4, 5, 6)
    assert (settled(database), known(embeddings, model)) == (6, {1, 2, 3, 4, 5, 6})
    put(embeddings, model, 7)
    assert (settled(database), known(embeddings, model)) == (6, {1, 2, 3, 4, 5, 6, 7})


def test_many_at_once_are_settled_with_the_rest(database: Database) -> None:
    embeddings = VectorCache(database)
    model = embeddings.add_model("m", DIMENSION)
    put(embeddings, model, 1)
    put(embeddings, model, *range(2, 30))
    assert (settled(database), known(embeddings, model)) == (29, set(range(1, 30)))


def test_what_another_process_wrote_is_found(database: Database, path: Path) -> None:
    recent = RecentVectors()
    model = VectorCache(database).add_model("m", DIMENSION)
    put(VectorCache(database, recent), model, 1, 2)
    other = Database(path)
    put(VectorCache(other), model, 3)
    assert known(VectorCache(database, recent), model) == {1, 2, 3}
    put(VectorCache(other), model, 4, 5, 6)  # which settles all of them
    assert known(VectorCache(database, recent), model) == {1, 2, 3, 4, 5, 6}
    put(VectorCache(database, recent), model, 7)
    assert known(VectorCache(other), model) == {1, 2, 3, 4, 5, 6, 7}
    other.close()


def test_of_two_vectors_for_one_content_the_first_counts(database: Database) -> None:
    embeddings = VectorCache(database)
    model = embeddings.add_model("m", DIMENSION)
    other = -vectors(hashes(1), DIMENSION)
    put(embeddings, model, 1)
    embeddings.put(model, hashes(1), other)
    embeddings.put(model, hashes(2, 2), np.concatenate([vectors(hashes(2), DIMENSION), other]))
    assert known(embeddings, model) == known(VectorCache(database), model) == {1, 2}
    put(embeddings, model, *range(3, 10))
    embeddings.put(model, hashes(1), other)  # which is settled by now
    put(embeddings, model, *range(10, 20))
    assert known(embeddings, model) == set(range(1, 20))


def test_models_do_not_share_vectors_and_a_removed_one_leaves_none(database: Database) -> None:
    embeddings = VectorCache(database)
    one, two = embeddings.add_model("one", DIMENSION), embeddings.add_model("two", DIMENSION)
    put(embeddings, one, 1, 2)
    put(embeddings, two, 2, 3, 4, 5, 6)  # the last numbers, and settled
    assert (known(embeddings, one), known(embeddings, two)) == ({1, 2}, {2, 3, 4, 5, 6})
    embeddings.remove_model(two)
    assert (known(embeddings, one), known(embeddings, two)) == ({1, 2}, set())
    put(embeddings, one, 7)  # must not hide behind the numbers that were settled
    assert known(embeddings, one) == known(VectorCache(database), one) == {1, 2, 7}


def test_a_removed_model_is_not_filed_from_memory(database: Database) -> None:
    recent = RecentVectors()
    embeddings = VectorCache(database, recent)
    one, two = embeddings.add_model("one", DIMENSION), embeddings.add_model("two", DIMENSION)
    put(embeddings, one, 1, 2)
    put(embeddings, two, 3)
    embeddings.remove_model(one)
    put(VectorCache(database, recent), two, *range(10, 20))
    assert database.query("SELECT DISTINCT model FROM embedded") == [(two.number,)]
    assert known(VectorCache(database, recent), two) == {3, *range(10, 20)}


def test_no_number_is_used_twice_when_another_process_removed_a_model(database: Database, path: Path) -> None:
    recent = RecentVectors()
    embeddings = VectorCache(database, recent)
    one, two = embeddings.add_model("one", DIMENSION), embeddings.add_model("two", DIMENSION)
    put(embeddings, one, 1)
    put(embeddings, two, 2, 3)  # the last numbers
    with closing(Database(path)) as other:
        VectorCache(other).remove_model(two)
        put(VectorCache(other), one, 4, 5)  # as many as went
    assert known(VectorCache(database, recent), one) == {1, 4, 5}
    put(VectorCache(database, recent), one, *range(10, 20))
    assert known(VectorCache(database), one) == {1, 4, 5, *range(10, 20)}


def test_a_write_that_failed_is_not_remembered(database: Database) -> None:
    embeddings = VectorCache(database)
    model = embeddings.add_model("m", DIMENSION)
    put(embeddings, model, 1)
    refuse = "CREATE TRIGGER refuse BEFORE INSERT ON embeddings BEGIN SELECT RAISE(ABORT, 'refused'); END"
    database.connections.own.execute(refuse)
    with pytest.raises(sqlite3.IntegrityError, match="refused"):
        put(embeddings, model, 2)
    assert known(embeddings, model) == {1}
    database.connections.own.execute("DROP TRIGGER refuse")
    put(embeddings, model, 3)
    assert known(embeddings, model) == known(VectorCache(database), model) == {1, 3}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 99), max_size=9)), max_size=12))
def test_any_order_of_two_writers_agrees_with_a_set(
    tmp_path_factory: pytest.TempPathFactory, puts: list[tuple[bool, list[int]]]
) -> None:
    path = tmp_path_factory.mktemp("cache") / "dowse.db"
    create_database(path)
    both = [Database(path), Database(path)]
    kept = [RecentVectors(), RecentVectors()]
    model = VectorCache(both[0]).add_model("m", DIMENSION)
    given: set[int] = set()
    for first, numbers in puts:
        put(VectorCache(both[first], kept[first]), model, *numbers)
        given.update(numbers)
        assert known(VectorCache(both[not first], kept[not first]), model) == given
    for each in both:
        each.close()


def test_the_doctor_sees_a_hash_that_leads_to_another_vector(tmp_path: Path) -> None:
    with closing(EmbeddedStore(tmp_path / "index")) as store:
        embeddings = VectorCache(store.database)
        model = embeddings.add_model("m", DIMENSION)
        put(embeddings, model, *range(9))
        assert [
            each.detail for each in verify(store, deep=True) if each.name == "embeddings" and each.state != "ok"
        ] == []
        with store.database.transaction() as connection:
            connection.execute("UPDATE embedded SET number = number % 9 + 1 WHERE number < 3")
        found = [each for each in verify(store, deep=True) if each.name == "embeddings"]
        assert [(each.state, "2 content hashes have no stored vector" in each.detail) for each in found] == [
            ("fail", True)
        ]


# --- an index of the schema before -------------------------------------------------------------------


def test_an_index_of_the_last_schema_is_brought_up_to_date_with_its_vectors(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path / "index")
    writer = store.writer()
    writer.put([document(f"{each}.md", f"text of {each}") for each in range(9)])
    writer.publish()
    writer.use_model("m", DIMENSION)
    waiting = [each.content_hash for each in writer.pending(20)]
    writer.put_vectors(waiting, vectors(waiting, DIMENSION))
    writer.close()
    tables = "SELECT type, name, tbl_name FROM sqlite_master ORDER BY name"
    as_made = store.database.query(tables)
    with store.database.transaction() as connection:
        connection.execute("DROP TABLE embedded")
        connection.execute("CREATE UNIQUE INDEX embeddings_by_hash ON embeddings (model, content_hash)")
        connection.execute("DELETE FROM meta WHERE key = 'embedded'")
        connection.execute("UPDATE meta SET value = '2' WHERE key = 'schema_version'")
    store.close()

    with pytest.raises(SchemaVersionError, match="run `dowse index`"):
        EmbeddedStore(tmp_path / "index", read_only=True)
    with closing(EmbeddedStore(tmp_path / "index")) as again:
        assert [each for each in verify(again, deep=True) if each.state != "ok"] == []
        assert again.database.query(tables) == as_made
        writer = again.writer()
        writer.use_model("m", DIMENSION)
        writer.put([document(f"moved/{each}.md", f"text of {each}") for each in range(9)])
        writer.publish()
        assert writer.pending(20) == []  # a moved file embeds nothing
        writer.close()
