"""Files become documents and vectors: what changed, what went, what failed, and what an interruption leaves."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dowse.errors import CorruptIndexError, ModelUnavailableError, NotFoundError, StorageError
from dowse.ingest import pipeline
from dowse.ingest.embed import embed_backlog
from dowse.ingest.pipeline import GO_ON, NO_MODEL, IndexOptions, index
from dowse.ingest.reading import read_file
from dowse.ingest.sources.requests import IndexRequest
from dowse.models.embed_hash import HashEmbedder
from dowse.ports import Embedder, Matrix, Pending, Progress, Reporter, SourceFile
from dowse.reports import IndexReport, Problem
from dowse.store.memory import MemoryStore
from dowse.types import Document, Role
from readers_by_name import reader_of
from values import replace

MANY_FILES = os.environ.get("DOWSE_MANY_FILES", "")  # read now: no setting reaches a test
LATER = datetime(2100, 1, 1, tzinfo=UTC)  # long after every file of a test: no time stamp is too young to be trusted


class RecordingStore(MemoryStore):
    """The reference store, which also tells what was done to it, in order."""

    def __init__(self, now: datetime = LATER) -> None:
        super().__init__(lambda: now)
        self.calls: list[str] = []

    def put(self, documents: Sequence[Document]) -> None:
        self.calls += [f"put {document.path}" for document in documents]
        super().put(documents)

    def remove(self, document_ids: Collection[str]) -> int:
        paths = {info.id: info.path for info in self.documents()}
        self.calls += [f"remove {paths[each]}" for each in document_ids]
        return super().remove(document_ids)

    def put_vectors(self, content_hashes: Sequence[str], vectors: Matrix) -> None:
        self.calls.append(f"vectors {len(content_hashes)}")
        super().put_vectors(content_hashes, vectors)

    def close(self) -> None:
        self.calls.append("close")
        super().close()


class FailingEmbedder(HashEmbedder):
    """Raises after some texts."""

    def __init__(self, error: BaseException, after: int = 0) -> None:
        super().__init__()
        self._left = after
        self._error = error
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str], *, role: Role) -> Matrix:
        with self._lock:
            self._left -= len(texts)
            if self._left < 0:
                raise self._error
        return super().embed(texts, role=role)


def make(root: Path, **files: str) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (root / f"{name}.txt").write_text(text)
    return root


def run(
    store: MemoryStore,
    *paths: Path,
    options: IndexOptions | None = None,
    report: Reporter | None = None,
    embedder: Embedder | Callable[[], Embedder | None] | None = None,
) -> IndexReport:
    return index(store, [IndexRequest(path) for path in paths], options or IndexOptions(), report, embedder)


def counts(report: IndexReport) -> tuple[int, int, int, int]:
    return report.added, report.changed, report.removed, report.unchanged


def stored(store: MemoryStore) -> list[str]:
    return sorted(f"{info.source}/{info.path}" for info in store.documents())


@pytest.fixture
def store() -> RecordingStore:
    return RecordingStore()


@pytest.fixture
def app(tmp_path: Path) -> Path:
    return make(tmp_path / "app", a="alpha\n", b="beta\n")


# --- what changed ----------------------------------------------------------------------------------


def test_new_files_are_added_and_searchable(store: RecordingStore, app: Path) -> None:
    report = run(store, app)
    assert counts(report) == (2, 0, 0, 0)
    assert (report.chunks, store.reader().stats.chunks) == (2, 2)
    assert [(source.name, source.root) for source in store.sources()] == [("app", str(app))]
    assert store.calls[-1] == "close"


def test_unchanged_files_are_not_opened(store: RecordingStore, app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(store, app)
    opened: list[str] = []
    monkeypatch.setattr(read_file, "read_content", lambda path, *_, **__: opened.append(path))
    assert counts(run(store, app)) == (0, 0, 0, 2)
    assert opened == []


def test_a_touched_file_with_the_same_bytes_is_unchanged(store: RecordingStore, app: Path) -> None:
    run(store, app)
    os.utime(app / "a.txt", ns=(1, 1))
    store.calls.clear()
    assert counts(run(store, app)) == (0, 0, 0, 2)
    assert store.calls == ["close"]


def test_changed_gone_and_new_files_are_told_apart(store: RecordingStore, app: Path) -> None:
    run(store, app)
    make(app, a="alpha two\n", c="gamma\n")
    (app / "b.txt").unlink()
    assert counts(run(store, app)) == (1, 1, 1, 0)
    assert stored(store) == ["app/a.txt", "app/c.txt"]


def test_a_young_file_is_compared_by_its_bytes(app: Path) -> None:
    """Within two seconds of indexing, size and time may stay while the bytes change."""
    for age, seen in ((timedelta(seconds=1), 1), (timedelta(seconds=3), 0)):
        path = make(app, a="alpha\n") / "a.txt"
        modified = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        young = RecordingStore(modified + age)
        run(young, path)
        times = path.stat()
        path.write_text("omega\n")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        assert run(young, path).changed == seen


def test_force_reads_everything_again(store: RecordingStore, app: Path) -> None:
    run(store, app)
    assert counts(run(store, app, options=IndexOptions(force=True))) == (0, 2, 0, 0)


def test_a_moved_file_is_added_before_it_is_removed_and_embeds_nothing(store: RecordingStore, app: Path) -> None:
    run(store, app, embedder=HashEmbedder())
    (app / "a.txt").rename(app / "z.txt")
    store.calls.clear()
    report = run(store, app, embedder=HashEmbedder())
    assert counts(report) == (1, 0, 1, 1)
    assert report.embedded == 0
    assert store.calls == ["put z.txt", "remove a.txt", "close"]


def test_only_what_lies_below_the_given_paths_is_removed(store: RecordingStore, app: Path) -> None:
    make(app / "sub", c="gamma\n")
    make(app / "subway", d="delta\n")
    run(store, app)
    for path in ("a.txt", "sub/c.txt", "subway/d.txt"):
        (app / path).unlink()
    assert run(store, app / "sub").removed == 1
    assert stored(store) == ["app/a.txt", "app/b.txt", "app/subway/d.txt"]


def test_a_missing_root_removes_nothing(store: RecordingStore, app: Path, tmp_path: Path) -> None:
    run(store, app)
    app.rename(tmp_path / "elsewhere")
    with pytest.raises(NotFoundError, match="no such file or folder"):
        run(store, app)
    assert stored(store) == ["app/a.txt", "app/b.txt"]


def test_a_file_that_is_ignored_or_emptied_later_goes(store: RecordingStore, app: Path) -> None:
    run(store, app)
    (app / ".gitignore").write_text("a.txt\n")
    (app / "b.txt").write_text(" \n")
    report = run(store, app)
    assert report.removed == 2
    assert dict(report.skipped) == {"hidden": 1, "ignored": 1, "empty": 1}


def test_documents_are_written_in_groups(store: RecordingStore, tmp_path: Path) -> None:
    folder = make(tmp_path / "many", **{f"f{at:03d}": f"text {at}\n" for at in range(150)})
    groups: list[int] = []
    store.put = lambda documents: groups.append(len(documents))  # type: ignore[method-assign]
    run(store, folder)
    assert groups == [64, 64, 150 - 2 * 64]


# --- bad input -------------------------------------------------------------------------------------


def test_an_empty_folder_is_an_empty_report(store: RecordingStore, tmp_path: Path) -> None:
    report = run(store, tmp_path)
    assert replace(report, seconds=0.0) == IndexReport()
    assert store.sources() == []


def test_one_bad_file_does_not_stop_the_run(store: RecordingStore, app: Path) -> None:
    (app / "cyrillic.txt").write_bytes("Привет".encode("cp1251"))
    (app / "nul.txt").write_bytes(b"a\0b")
    (app / "unknown.dat2").write_bytes(b"\x7fELF\0\0")
    (app / "late.txt").write_bytes(b"x" * 9000 + b"\0")
    (app / "wide.txt").write_bytes("wide 🚀".encode("utf-16"))
    (app / "new\nline 🚀.txt").write_text("odd name\n")
    report = run(store, app)
    assert report.added == 4
    assert dict(report.skipped) == {"binary": 3}
    assert [(Path(each.path).name, each.reason.split(";")[0]) for each in report.problems] == [
        ("cyrillic.txt", "not valid UTF-8 at byte 0"),
    ]
    assert "app/new\nline 🚀.txt" in stored(store)


def test_when_no_file_can_be_read_every_one_is_a_problem(store: RecordingStore, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xff\xff\xff\xff")
    report = run(store, tmp_path)
    assert counts(report) == (0, 0, 0, 0)
    assert len(report.problems) == 1


def test_an_unreadable_file_keeps_what_was_indexed(
    store: RecordingStore, app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(store, app)
    (app / "a.txt").write_text("new and longer\n")
    opening = os.open

    def refusing(path: str, flags: int, *rest: int) -> int:
        if str(path).endswith("a.txt"):
            raise PermissionError(13, "Permission denied", path)
        return opening(path, flags, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refusing)  # chmod would not stop root
        report = run(store, app)
    assert report.problems == (Problem(str(app / "a.txt"), "cannot be read: Permission denied"),)
    assert stored(store) == ["app/a.txt", "app/b.txt"]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unreadable for root")
def test_a_file_without_permission_is_a_problem(store: RecordingStore, app: Path) -> None:
    (app / "a.txt").chmod(0)
    assert [each.reason for each in run(store, app).problems] == ["cannot be read: Permission denied"]


@pytest.mark.parametrize(("changes", "problems"), [(1, 0), (2, 1)])
def test_a_file_that_changes_while_read_is_read_once_more(
    store: RecordingStore, app: Path, monkeypatch: pytest.MonkeyPatch, changes: int, problems: int
) -> None:
    path = app / "a.txt"
    calls = 0
    fstat = os.fstat

    def and_then_it_grows(handle: int) -> os.stat_result:
        nonlocal calls
        if fstat(handle).st_ino == path.stat().st_ino:
            calls += 1
            if calls in range(2, 2 * changes + 1, 2):  # the second look of each attempt
                with path.open("a") as file:
                    file.write("more\n")
        return fstat(handle)

    monkeypatch.setattr(os, "fstat", and_then_it_grows)
    report = run(store, path)
    assert [each.reason for each in report.problems] == [
        "the file changed during reading; run `dowse index` again"
    ] * problems
    assert report.added == 1 - problems


def test_a_line_of_fifty_megabytes_is_skipped_and_one_within_the_limit_is_cut(
    store: RecordingStore, tmp_path: Path
) -> None:
    path = tmp_path / "line.txt"
    path.write_bytes(b"x" * 50_000_000)
    assert dict(run(store, tmp_path).skipped) == {"too large": 1}
    chunks = reader_of("text").read(SourceFile("s", "line.txt", b"x" * 5_000_000, 0)).chunks
    assert max(len(chunk.text) for chunk in chunks) <= 384 * 4
    assert {(chunk.start_line, chunk.end_line) for chunk in chunks} == {(1, 1)}


def test_a_binary_file_given_by_name_is_a_problem(store: RecordingStore, tmp_path: Path) -> None:
    path = tmp_path / "core"
    path.write_bytes(b"\0\1\2")
    assert "binary" in run(store, path).problems[0].reason


def test_a_bug_in_a_reader_is_a_problem_of_each_file(
    store: RecordingStore, app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Broken:
        name = "text"

        def read(self, file: SourceFile) -> Document:
            raise TypeError("a bug")

    monkeypatch.setattr(pipeline, "find_readers", lambda: {"text": Broken})
    assert "TypeError: a bug" in run(store, app).problems[0].reason


def test_a_file_that_vanishes_after_it_was_found_is_a_problem_and_the_run_goes_on(
    store: RecordingStore, app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finding = pipeline.discover

    def and_then_it_goes(*arguments: object) -> object:
        found = finding(*arguments)  # type: ignore[arg-type]
        (app / "a.txt").unlink()
        return found

    monkeypatch.setattr(pipeline, "discover", and_then_it_goes)
    report = run(store, app)
    assert report.problems == (Problem(str(app / "a.txt"), "cannot be read: No such file or directory"),)
    assert stored(store) == ["app/b.txt"]


def test_a_file_from_the_future_is_compared_by_its_bytes(store: RecordingStore, app: Path) -> None:
    later_s = LATER.timestamp() + 86_400
    os.utime(app / "a.txt", (later_s, later_s))
    run(store, app)
    assert counts(run(store, app)) == (0, 0, 0, 2)
    (app / "a.txt").write_text("omega\n")  # of the same length
    os.utime(app / "a.txt", (later_s, later_s))
    assert counts(run(store, app)) == (0, 1, 0, 1)


@pytest.mark.slow
@pytest.mark.skipif(not MANY_FILES, reason="set DOWSE_MANY_FILES to how many tiny files to make")
@pytest.mark.timeout(3600)
def test_very_many_tiny_files_stay_within_the_memory(tmp_path: Path) -> None:
    script = "import sys; from bench.ingest import main; sys.argv[1:] = ['--tiny', sys.argv[1]]; main()"
    done = subprocess.run(
        [sys.executable, "-c", script, MANY_FILES], cwd=Path(__file__).parents[2], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "fail" not in done.stdout, done.stdout


# --- vectors ---------------------------------------------------------------------------------------


def test_words_first_then_vectors(store: RecordingStore, app: Path) -> None:
    def late() -> Embedder:
        assert store.reader().stats.chunks == 2  # searchable by words before a model is even loaded
        return HashEmbedder()

    report = run(store, app, embedder=late)
    assert (report.embedded, report.pending, report.embedding_note) == (2, 0, "")


def test_without_an_embedder_chunks_stay_pending(store: RecordingStore, app: Path) -> None:
    assert (run(store, app).pending, run(store, app).embedding_note) == (2, "")
    assert run(store, app, embedder=lambda: None).embedding_note == NO_MODEL


@pytest.mark.parametrize("lazily", [True, False])
def test_an_unavailable_embedder_leaves_the_words_and_a_note(store: RecordingStore, app: Path, lazily: bool) -> None:
    error = ModelUnavailableError("no weights; run `dowse models pull x`")

    def absent() -> Embedder:
        raise error

    report = run(store, app, embedder=absent if lazily else FailingEmbedder(error))
    assert (report.added, report.embedded, report.pending) == (2, 0, 2)
    assert report.embedding_note == str(error)


def test_a_full_disk_is_an_error_and_not_a_note(store: RecordingStore, app: Path) -> None:
    def full(content_hashes: Sequence[str], vectors: Matrix) -> None:
        raise StorageError("disk full")

    store.put_vectors = full  # type: ignore[method-assign]
    with pytest.raises(StorageError):
        run(store, app, embedder=HashEmbedder())


def test_a_backlog_is_worked_off_in_batches_by_several_threads(store: RecordingStore, tmp_path: Path) -> None:
    run(store, make(tmp_path / "many", **{f"f{at}": f"text {at}\n" for at in range(70)}))
    embedder = HashEmbedder()
    store.use_model(embedder.model, embedder.dimension)
    store.calls.clear()
    seen: list[Progress] = []
    assert embed_backlog(store, embedder, seen.append, batch=32, threads=3) == 70
    assert store.calls == ["vectors 32", "vectors 32", f"vectors {70 - 2 * 32}"]
    assert [(each.phase, each.done, each.total) for each in seen] == [
        ("embed", 32, 70), ("embed", 64, 70), ("embed", 70, 70),
    ]  # fmt: skip


def test_vectors_are_those_of_their_texts(store: RecordingStore, app: Path) -> None:
    embedder = HashEmbedder()
    run(store, app, embedder=embedder)
    wanted = embedder.embed(["alpha"], role="chunk")[0]
    best = store.reader().search_vectors(wanted, 1, ())
    assert store.reader().get([f"{best.ids[0]:016x}"])[f"{best.ids[0]:016x}"].text == "alpha"


def test_a_stopped_backlog_goes_on_where_it_was(store: RecordingStore, tmp_path: Path) -> None:
    run(store, make(tmp_path / "many", **{f"f{at}": f"text {at}\n" for at in range(10)}))
    embedder = HashEmbedder()
    store.use_model(embedder.model, embedder.dimension)

    def interrupt(_: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embed_backlog(store, embedder, interrupt, batch=4)
    assert embed_backlog(store, embedder, batch=4) == 10 - 4


def test_a_store_that_forgets_vectors_is_not_asked_for_ever(store: RecordingStore, app: Path) -> None:
    run(store, app)
    embedder = HashEmbedder()
    store.use_model(embedder.model, embedder.dimension)
    stuck = [Pending("00", "text")]
    store.pending = lambda limit: stuck  # type: ignore[method-assign]
    store.put_vectors = lambda content_hashes, vectors: None  # type: ignore[method-assign]
    with pytest.raises(CorruptIndexError, match="dowse rebuild"):
        embed_backlog(store, embedder)


# --- interruptions ---------------------------------------------------------------------------------


def test_an_interruption_while_reading_keeps_what_was_written(store: RecordingStore, tmp_path: Path) -> None:
    folder = make(tmp_path / "many", **{f"f{at:03d}": f"text {at}\n" for at in range(100)})
    gone = make(tmp_path / "many", zzz="goes later\n") / "zzz.txt"
    run(store, gone)
    gone.unlink()

    def at_ninety(progress: Progress) -> None:
        if progress.done == 90:
            raise KeyboardInterrupt

    report = run(store, folder, report=at_ninety)
    assert (report.interrupted, report.embedding_note) == (True, GO_ON)
    assert (report.added, report.removed, len(list(store.documents()))) == (64, 0, 64 + 1)
    assert store.reader().stats.documents == 64 + 1
    again = run(store, folder)
    assert counts(again) == (100 - 64, 0, 1, 64)


def test_an_interruption_while_embedding_keeps_the_vectors_made(store: RecordingStore, tmp_path: Path) -> None:
    folder = make(tmp_path / "many", **{f"f{at}": f"text {at}\n" for at in range(20)})

    def after_two_batches(progress: Progress) -> None:
        if progress.phase == "embed" and progress.done == 8:
            raise KeyboardInterrupt

    options = IndexOptions(embed_batch=4)
    report = run(store, folder, options=options, report=after_two_batches, embedder=HashEmbedder())
    assert (report.added, report.embedded, report.pending, report.interrupted) == (20, 8, 20 - 8, True)
    again = run(store, folder, options=options, embedder=HashEmbedder())
    assert (again.unchanged, again.embedded, again.pending) == (20, 20 - 8, 0)


def test_an_embedder_that_fails_half_way_keeps_the_vectors_made(store: RecordingStore, tmp_path: Path) -> None:
    folder = make(tmp_path / "many", **{f"f{at}": f"text {at}\n" for at in range(20)})
    broken = FailingEmbedder(ModelUnavailableError("endpoint went away"), after=8)
    report = run(store, folder, options=IndexOptions(embed_batch=4, embed_threads=1), embedder=broken)
    assert (report.embedded, report.pending, report.embedding_note) == (8, 12, "endpoint went away")
