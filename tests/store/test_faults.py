"""Files are lost, cut and flipped; the index notices, says what is wrong and mends what can be mended."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from dowse.errors import CorruptIndexError, NoIndexError, SchemaVersionError, StorageError
from dowse.filters import Gt, by_language, by_meta
from dowse.identity import number_id
from dowse.reports import Check
from dowse.store.embedded import EmbeddedStore
from dowse.store.segments import arrays, inverted
from dowse.store.segments.arrays import MappedFiles, PartReader, PartWriter
from dowse.store.segments.generation import Generation
from dowse.store.sql.schema import OLDEST_VERSION, SCHEMA_VERSION
from dowse.store.verify import verify
from dowse.types import Edge, Source
from factories import PLAIN, document, vectors
from values import replace

DIMENSION = 16
COUNT = 12
LIKE = replace(PLAIN, language="python", file_path="src/a.py", meta=(("team", "core"),))
# Files of this index; a test below holds that the list is complete.
DERIVED = (
    "CURRENT", "rows/state.jsonl", "rows/synced.json", "rows/ids", "rows/keys", "rows/terms", "rows/counts",
    "rows/ends", "rows/lengths",
    "rows/column-corpus_type", "rows/column-document_id", "rows/column-document_source", "rows/column-file_path",
    "rows/column-language", "rows/column-meta-7465616d", "rows/column-timestamp", "rows/run-0-24.terms",
    "rows/run-0-24.ends", "rows/run-0-24.slots", "rows/run-0-24.counts",
    "vectors-1/state.jsonl", "vectors-1/synced.json", "vectors-1/slots",
    "vectors-1/coarse", "vectors-1/fine", "vectors-1/scales",
)  # fmt: skip


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with words, in a run, and vectors, closed."""
    folder = tmp_path_factory.mktemp("pristine") / "index"
    store = EmbeddedStore(folder)
    writer = store.writer()
    writer.put([document(f"{n}.py", f"common unique{n} words", f"second{n} chunk", like=LIKE) for n in range(COUNT)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inverted, "_TAIL_ROWS", 0)
        writer.publish()
    writer.use_model("test-model", DIMENSION)
    hashes = [each.content_hash for each in writer.pending(100)]
    writer.put_vectors(hashes, vectors(hashes, DIMENSION))
    writer.close()
    store.close()
    return folder


@pytest.fixture
def index(pristine: Path, index_folder: Path) -> Path:
    shutil.copytree(pristine, index_folder)
    return index_folder


def generation(index: Path) -> Path:
    return next(path for path in (index / "derived").iterdir() if path.is_dir())


def derived_file(index: Path, name: str) -> Path:
    found = sorted((index / "derived").glob(name) if name == "CURRENT" else generation(index).glob(name))
    assert found, f"{name} does not exist"
    return max(found, key=lambda path: path.stat().st_size)


def counted(path: Path) -> int:
    """Bytes of a file that count; behind them is room."""
    known = None if path.name == "CURRENT" else arrays.read_state(path.parent).files.get(path.name)
    return path.stat().st_size if known is None else known.bytes


def check_whole(index: Path) -> None:
    """Everything is there: words, filters, vectors; and all parts agree."""
    store = EmbeddedStore(index)
    reader = store.reader()
    assert (reader.stats.documents, reader.stats.chunks, reader.stats.vectors) == (COUNT, 2 * COUNT, 2 * COUNT)
    for number in range(COUNT):
        found = reader.search_words(
            "bm25_code", [f"unique{number}"], 5, (by_language("python"), by_meta("team", "core"))
        )
        assert list(reader.get([number_id(int(each)) for each in found.ids]).values()) == list(
            document(f"{number}.py", f"common unique{number} words", like=LIKE).chunks
        )
    assert len(reader.search_vectors(vectors(["ab" * 16], DIMENSION)[0], 99, ()).ids) == 2 * COUNT
    assert problems(store) == []
    store.close()


def problems(store: EmbeddedStore) -> list[Check]:
    return [check for check in verify(store, deep=True) if check.state != "ok"]


# --- derived files ----------------------------------------------------------------------------------


def test_the_list_of_derived_files_is_complete(pristine: Path) -> None:
    known = {path for name in DERIVED[1:] for path in generation(pristine).glob(name)}
    files = {path for path in (pristine / "derived").rglob("*") if path.is_file()}
    assert files - known == {pristine / "derived" / "CURRENT"}


def test_a_generation_that_could_not_be_served_is_not_written_to(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(place: Generation) -> None:
        raise StorageError(f"no space left for {place.folder}")

    store = EmbeddedStore(index)
    writer = store.writer()
    with monkeypatch.context() as full:
        full.setattr(Generation, "serve", refuse)
        with pytest.raises(StorageError):
            writer.compact()
    writer.put([document("late.py", "latecomer")])
    writer.publish()
    assert len(store.reader().search_words("bm25_code", ["latecomer"], 5, ()).ids) == 1
    writer.close()
    store.close()


@pytest.mark.parametrize("harm", ["deleted", "emptied", "cut"])
@pytest.mark.parametrize("name", DERIVED)
def test_a_harmed_derived_file_is_mended_on_open(index: Path, name: str, harm: str) -> None:
    path = derived_file(index, name)
    if harm == "deleted":
        path.unlink()
    elif harm == "emptied":
        os.truncate(path, 0)
    else:
        os.truncate(path, counted(path) - 1)
    check_whole(index)


@pytest.mark.parametrize("name", [name for name in DERIVED if name == "CURRENT" or name.endswith(".json")])
@pytest.mark.parametrize("garbage", [b"\xff{not json", b"{}", b"[1, 2]", b'{"rows": "many"}'])
def test_garbage_where_json_should_be_is_mended_on_open(index: Path, name: str, garbage: bytes) -> None:
    derived_file(index, name).write_bytes(garbage)
    check_whole(index)


def test_a_deleted_derived_folder_is_rebuilt(index: Path) -> None:
    shutil.rmtree(index / "derived")
    check_whole(index)


@pytest.mark.parametrize("part", ["rows", "vectors-1", "."])
def test_a_deleted_part_is_rebuilt(index: Path, part: str) -> None:
    shutil.rmtree(generation(index) / part)
    check_whole(index)


def test_a_pointer_to_a_generation_that_never_was_is_mended(index: Path) -> None:
    (index / "derived" / "CURRENT").write_text('{"generation": 99, "model": 1}')
    check_whole(index)


def test_a_reader_that_may_not_write_says_what_to_run(index: Path) -> None:
    shutil.rmtree(index / "derived")
    store = EmbeddedStore(index, read_only=True)
    with pytest.raises(CorruptIndexError, match="dowse rebuild"):
        store.reader()
    store.close()


def test_rest_of_a_torn_append_is_written_over(index: Path) -> None:
    for name in ("rows/ids", "rows/terms", "rows/column-language", "vectors-1/fine"):
        path = derived_file(index, name)
        with path.open("r+b") as file:
            file.seek(counted(path))
            file.write(b"torn" * 50)
    check_whole(index)
    store = EmbeddedStore(index)
    writer = store.writer()
    writer.put([document("new.py", "brandnew", like=LIKE)])
    writer.close()
    assert len(store.reader().search_words("bm25_code", ["brandnew"], 5, (by_language("python"),)).ids) == 1
    assert [each for each in problems(store) if each.name != "embeddings"] == []
    store.close()


def test_an_index_with_every_kind_of_row_is_found_healthy(index_folder: Path) -> None:
    """SQLite 3.40 sees NULLs where a table's key is not in front (schema.sql), which `integrity_check` would report."""
    a, b = document("a.py", "one", "two").chunks
    store = EmbeddedStore(index_folder)
    writer = store.writer()
    writer.add_source(Source("docs", "/docs"))
    writer.put([replace(document("a.py", "one", "two", like=LIKE), edges=(Edge(a.id, b.id, "calls", 0.5, "why"),))])
    writer.publish()
    assert problems(store) == []
    assert [check for check in verify(store, deep=False) if check.state != "ok"] == []
    writer.close()
    store.close()


def test_tables_without_row_numbers_begin_with_their_key(index: Path) -> None:
    connection = sqlite3.connect(index / "dowse.db")
    tables = connection.execute("SELECT name FROM sqlite_master WHERE sql LIKE '%WITHOUT ROWID%'").fetchall()
    assert tables
    for (table,) in tables:
        places = [row[5] for row in connection.execute(f"PRAGMA table_info({table})")]  # of a column in the key, or 0
        keys = sum(place > 0 for place in places)
        assert places == [*range(1, keys + 1), *[0] * (len(places) - keys)], table
    connection.close()


# --- flipped bytes ----------------------------------------------------------------------------------


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0x40
    path.write_bytes(data)


@pytest.mark.parametrize(
    "name",
    [name for name in DERIVED if name != "CURRENT" and not name.endswith(".json")],
)
def test_a_flipped_byte_is_found_and_named(index: Path, name: str) -> None:
    path = derived_file(index, name)
    flip(path, counted(path) // 2)
    store = EmbeddedStore(index, read_only=True)
    found = problems(store)
    assert any(path.name in check.detail or path.parent.name in check.detail for check in found), found
    assert all(check.state == "fail" and check.fix for check in found)
    store.close()


def damage_body(index: Path, change: Callable[[bytes], bytes]) -> None:
    """Change bytes of a stored chunk behind SQLite's back, which has no checksums of its own."""
    path = index / "dowse.db"
    data = path.read_bytes()
    changed = change(data)
    assert len(changed) == len(data)
    assert changed != data
    path.write_bytes(changed)


@pytest.fixture
def store(index: Path) -> Iterator[Callable[[], EmbeddedStore]]:
    opened: list[EmbeddedStore] = []

    def open_it() -> EmbeddedStore:
        opened.append(EmbeddedStore(index, read_only=True))
        return opened[-1]

    yield open_it
    for each in opened:
        each.close()


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        (b'"common unique3', b'"common uniqve3'),
        (b'"text":"common unique3', b'"text"#"common unique3'),
        (b"unique3 ", b"unique\xff "),
    ],
    ids=["another letter", "no JSON", "no UTF-8"],
)
def test_a_changed_chunk_in_the_truth_is_found_and_named(
    index: Path, store: Callable[[], EmbeddedStore], was: bytes, becomes: bytes
) -> None:
    damage_body(index, lambda data: data.replace(was, becomes, 1))
    found = problems(store())
    assert any(check.name == "chunks" and "does not match its checksum" in check.detail for check in found), found


def test_an_unreadable_chunk_is_an_error_with_a_next_step(index: Path, store: Callable[[], EmbeddedStore]) -> None:
    damage_body(index, lambda data: data.replace(b'"text":"common unique3', b'"text"#"common unique3', 1))
    with pytest.raises(CorruptIndexError, match="dowse doctor"):
        store().reader().get([document("3.py", "common unique3 words", like=LIKE).chunks[0].id])


def test_a_changed_vector_in_the_truth_is_found_and_named(index: Path, store: Callable[[], EmbeddedStore]) -> None:
    blob = vectors([document("3.py", "second3 chunk", like=LIKE).chunks[0].content_hash], DIMENSION)[0].tobytes()
    damage_body(index, lambda data: data.replace(blob, bytes([blob[0] ^ 1]) + blob[1:], 1))
    found = problems(store())
    assert any(check.name == "embeddings" and "does not match its checksum" in check.detail for check in found), found


# --- what a query reads ------------------------------------------------------------------------------


def ask_all(store: EmbeddedStore) -> list[object]:
    """Words, filters, vectors and texts, of all chunks."""
    reader = store.reader()
    where = (by_language("python"), by_meta("team", "core"), Gt("timestamp", 0.0))
    legs = [
        reader.search_words("bm25_code", ["common", "unique3"], 99, ()),
        reader.search_words("bm25_nlp", ["second4"], 9, where[:2]),
    ]
    legs += [reader.search_vectors(vectors(["ab" * 16], DIMENSION)[0], 99, each) for each in ((), where, where[:2])]
    scores = reader.score_words({"bm25_nlp": ["common"]}, legs[0].ids)
    texts = reader.get([number_id(int(each)) for each in legs[2].ids])
    return [repr([(each.ids.tolist(), each.scores.tolist()) for each in legs]), repr(scores), repr(texts)]


@pytest.mark.parametrize("name", [name for name in DERIVED if "json" not in name])
def test_a_query_never_reads_a_flipped_byte(pristine: Path, index: Path, name: str) -> None:
    whole = EmbeddedStore(pristine, read_only=True)
    wanted, path, noticed = ask_all(whole), derived_file(index, name), 0
    whole.close()
    data = path.read_bytes()
    for at in range(0, counted(path), max(counted(path) // 9, 1)):
        flip(path, at)
        store = EmbeddedStore(index, read_only=True)
        try:
            assert ask_all(store) == wanted
        except CorruptIndexError as err:
            noticed += "dowse rebuild" in str(err)
        store.close()
        path.write_bytes(data)
    unread = name.startswith("rows/column-") and not any(each in name for each in ("language", "meta", "timestamp"))
    assert (noticed >= 9) is not unread


def test_only_appended_bytes_are_checked_again(tmp_path: Path) -> None:
    writer, maps = PartWriter(tmp_path), MappedFiles()
    block = arrays.BLOCK_BYTES // 8
    for number, size in enumerate((10, 20, block, 5, 2 * block, 1)):
        before = writer.size("rows")
        writer.append("rows", np.arange(size, dtype="<i8"))
        writer.publish(number, number)
        maps = MappedFiles(maps)
        reader = PartReader(tmp_path, maps=maps)
        file = maps.file(f"{tmp_path}/rows", reader.state.files["rows"], "<i8")
        assert file.left == set(range(before // arrays.BLOCK_BYTES, -(-writer.size("rows") // arrays.BLOCK_BYTES)))
        reader.array("rows", "<i8")
        assert not file.left
        maps.forget()
    flip(tmp_path / "rows", 3)  # a checked byte: nobody reads it from the disk again
    writer.append("rows", np.arange(7, dtype="<i8"))
    writer.publish(9, 9)
    maps = MappedFiles(maps)
    PartReader(tmp_path, maps=maps).array("rows", "<i8")
    maps.forget()
    writer.append("rows", np.arange(7, dtype="<i8"))
    writer.publish(10, 10)
    flip(tmp_path / "rows", counted(tmp_path / "rows") - 3)
    with pytest.raises(CorruptIndexError, match=r"rows, megabyte 3 is damaged; run `dowse rebuild`"):
        PartReader(tmp_path, maps=MappedFiles(maps)).array("rows", "<i8")
    writer.close()


def test_a_writer_gives_damage_no_new_checksum(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A merge of runs reads what it writes again; a damaged run is rebuilt from the database instead."""
    flip(derived_file(index, "rows/run-0-24.counts"), 5)
    monkeypatch.setattr(inverted, "_TAIL_ROWS", 0)
    store = EmbeddedStore(index)
    writer = store.writer()
    writer.put([document("new.py", "brandnew", like=LIKE)])
    with pytest.raises(CorruptIndexError, match="dowse rebuild"):
        writer.close()
    writer = store.writer()
    writer.compact()
    writer.close()
    store.close()
    store = EmbeddedStore(index)
    assert [each for each in problems(store) if each.name != "embeddings"] == []
    store.close()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE dictionary SET value = 'pythoo' WHERE value = 'python'", "values of language"),
        ("DELETE FROM dictionary WHERE value = 'python'", "values of language"),
        ("DELETE FROM tombstones", "deleted chunks"),
        ("UPDATE tombstones SET key = key + 100", "deleted chunks"),
        ("UPDATE models SET dimension = 17", "17 dimensions"),
        ("DELETE FROM models", "the model of"),
        ("UPDATE meta SET value = '1x' WHERE key = 'seq'", "no usable 'seq'"),
        ("UPDATE chunks SET body = CAST(replace(body, 'unique', 'uniqve') AS BLOB)", "does not match its checksum"),
        ("UPDATE chunks SET id = id + 1", "row of another|checksum"),
    ],
)
def test_rows_of_the_truth_that_changed_are_noticed(index: Path, statement: str, message: str) -> None:
    store = EmbeddedStore(index)
    writer = store.writer()
    writer.remove([document("5.py", "x").id])
    writer.close()
    store.close()
    connection = sqlite3.connect(index / "dowse.db")
    ids = [row[0] for row in connection.execute("SELECT id FROM chunks")]
    connection.execute(statement)
    connection.commit()
    connection.close()
    store = EmbeddedStore(index, read_only=True)
    moved = [number_id((each + 1) % (1 << 64)) for each in ids] if "SET id" in statement else []
    with pytest.raises(CorruptIndexError, match=message):
        [store.reader().get(moved), ask_all(store), store.database.seq()]
    store.close()


def test_a_damaged_vector_in_the_truth_is_embedded_again(index: Path) -> None:
    connection = sqlite3.connect(index / "dowse.db")
    connection.execute("UPDATE embeddings SET crc = crc + 1 WHERE number = 3")
    connection.commit()
    connection.close()
    shutil.rmtree(index / "derived")
    store = EmbeddedStore(index)
    assert store.reader().stats.vectors == 2 * COUNT - 1
    store.close()


# --- the truth --------------------------------------------------------------------------------------


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("harm", ["header", "empty", "all"])
def test_a_database_that_is_none_is_named(index: Path, harm: str, read_only: bool) -> None:
    path = index / "dowse.db"
    size = path.stat().st_size
    path.write_bytes({"header": b"garbage!" * 12 + path.read_bytes()[96:], "empty": b"", "all": b"\xa5" * size}[harm])
    with pytest.raises(CorruptIndexError, match=r"dowse\.db"):
        EmbeddedStore(index, read_only=read_only)


@pytest.mark.parametrize(
    ("version", "advice"),
    [
        (SCHEMA_VERSION + 1, "install a newer Dowse"),
        (OLDEST_VERSION - 1, "index its sources again"),
        ("x", "not a Dowse index"),
    ],
)
def test_another_schema_is_refused_with_advice(index: Path, version: object, advice: str) -> None:
    connection = sqlite3.connect(index / "dowse.db")
    connection.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", [str(version)])
    connection.commit()
    connection.close()
    with pytest.raises(SchemaVersionError, match=advice):
        EmbeddedStore(index)


@pytest.mark.parametrize("options", [{"read_only": True}, {"create": False}])
def test_no_index_is_not_made_unasked(index_folder: Path, options: dict[str, bool]) -> None:
    with pytest.raises(NoIndexError, match="dowse index"):
        EmbeddedStore(index_folder, **options)
    assert not index_folder.exists()


# --- a power failure --------------------------------------------------------------------------------


@pytest.fixture
def part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PartWriter:
    """Two blocks and a bit that were synced, and some rows that were not, in the first run of a machine."""
    monkeypatch.setattr(arrays, "_boot", lambda: "first")
    writer = PartWriter(tmp_path)
    writer.append("rows", np.arange(arrays.BLOCK_BYTES * 9 // 32, dtype="<i8"))
    writer.append("still", np.arange(9, dtype="<i8"))
    writer.publish(1, 1)
    writer.sync()
    writer.append("rows", np.arange(500, dtype="<i8"))
    writer.publish(2, 2)
    writer.close()
    return writer


def harm(part: PartWriter, at: int) -> None:
    with open(part.folder / "rows", "r+b") as file:
        file.seek(at % counted(part.folder / "rows"))
        file.write(b"\0" * 8)


def test_what_was_not_synced_is_checked_when_the_machine_runs_again(
    part: PartWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    harm(part, -8)
    PartReader(part.folder)  # the machine did not stop: nothing can be lost
    monkeypatch.setattr(arrays, "_boot", lambda: "second")
    with pytest.raises(CorruptIndexError, match=r"rows, megabyte 2 was lost when the machine stopped; run `dowse rebu"):
        PartReader(part.folder)


def test_what_was_synced_is_not_checked_again(part: PartWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    harm(part, 8)
    monkeypatch.setattr(arrays, "_boot", lambda: "second")
    reader = PartReader(part.folder)
    assert len(list(reader.damaged())) == 1  # as the doctor finds it
    (part.folder / arrays.SYNCED).unlink()  # nobody knows what was synced: all is checked
    with pytest.raises(CorruptIndexError, match="megabyte 0 was lost"):
        PartReader(part.folder)


def test_what_survived_is_read_and_written_on(part: PartWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "_boot", lambda: "second")
    writer = PartWriter(part.folder)
    writer.append("rows", np.arange(7, dtype="<i8"))
    writer.publish(3, 3)
    writer.sync()
    writer.close()
    monkeypatch.setattr(arrays, "_boot", lambda: "third")
    reader = PartReader(part.folder)
    assert reader.array("rows", "<i8")[-8:].tolist() == [499, 0, 1, 2, 3, 4, 5, 6]
    assert list(reader.damaged(unsynced=True)) == list(reader.damaged()) == []


def test_a_file_that_grows_stays_mapped_until_its_room_is_used_up(tmp_path: Path) -> None:
    writer = PartWriter(tmp_path)
    maps, kept = MappedFiles(), []
    for number in range(3):
        writer.append("rows", np.full((10, 9_000)[number == 2], number, dtype="<i8"))
        writer.append(f"run-{number}", np.arange(3, dtype="<i8"))
        writer.publish(number, number)
        maps = MappedFiles(maps)
        reader = PartReader(tmp_path, maps=maps)
        kept.append(reader.array("rows", "<i8"))
        reader.array(f"run-{number}", "<i8")
        maps.forget()
        assert kept[-1].tolist() == [0] * 10 + [1] * 10 * (number > 0) + [2] * 9_000 * (number > 1)
        assert list(maps._now) == [f"{tmp_path}/rows", f"{tmp_path}/run-{number}"]
    addresses = [each.ctypes.data for each in kept]
    assert addresses[0] == addresses[1] != addresses[2]
    assert kept[0].tolist() == [0] * 10  # a moment stays as it was
    writer.close()


def test_a_generation_that_was_made_again_is_not_taken_for_the_deleted_one(index: Path) -> None:
    """Files stay mapped by their names, so a name must not come back."""
    store = EmbeddedStore(index)
    assert len(store.reader().search_words("bm25_code", ["common"], 99, ()).ids) == COUNT
    before = store.place().number
    shutil.rmtree(index / "derived")
    other = EmbeddedStore(index)
    writer = other.writer()
    writer.put([document(f"{n}.py", f"other{n}", like=LIKE) for n in range(COUNT)])
    writer.close()
    assert other.place().number > before
    assert len(store.reader().search_words("bm25_code", ["common"], 99, ()).ids) == 0
    assert len(store.reader().search_words("bm25_code", ["other7"], 99, ()).ids) == 1
    other.close()
    store.close()


def test_publishing_forces_nothing_to_the_disk_and_syncing_does_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda handle: forced.append(os.readlink(f"/proc/self/fd/{handle}")))
    writer = PartWriter(tmp_path / "part")
    for _ in range(2):
        writer.append("rows", np.arange(9, dtype="<i8"))
        writer.publish(1, 1)
    assert forced == []
    writer.sync()
    names = [Path(each).name for each in forced]
    assert names == ["rows", "state.jsonl", "synced.json.new", "part"]
    writer.sync()
    assert len(forced) == 4
    monkeypatch.setattr(arrays, "_boot", lambda: "")  # a system that does not say whether it was stopped
    writer.append("rows", np.arange(9, dtype="<i8"))
    writer.publish(2, 2)
    assert [Path(each).name for each in forced[4:]] == ["rows", "state.jsonl", "part"]
    writer.close()


def test_an_index_that_a_power_failure_tore_is_mended_on_open(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("rows", "vectors-1"):
        (generation(index) / name / arrays.SYNCED).unlink()
    path = derived_file(index, "vectors-1/fine")
    with open(path, "r+b") as file:
        file.seek(counted(path) - 16)
        file.write(b"\x55" * 16)
    monkeypatch.setattr(arrays, "_boot", lambda: "another")
    check_whole(index)
