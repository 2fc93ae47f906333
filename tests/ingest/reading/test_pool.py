"""Workers give what reading in this process gives, in order; one that is lost costs its file and nothing else."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from dowse.errors import BadRequestError
from dowse.ingest import pipeline
from dowse.ingest.pipeline import IndexOptions, index
from dowse.ingest.readers.registry import find_readers
from dowse.ingest.reading import pool
from dowse.ingest.reading.limits import OverdueError, at_most
from dowse.ingest.reading.pool import ReadLimits, read_in_process, read_in_workers
from dowse.ingest.reading.read_file import FileReader, ReadResult, Task
from dowse.ingest.reading.worker import OUT_OF_MEMORY
from dowse.ingest.sources.kinds import classify
from dowse.ingest.sources.requests import IndexRequest
from dowse.ports import Progress, SourceFile
from dowse.store.memory import MemoryStore
from dowse.types import Document

# A package that is installed for a test: readers for files called *.slow, *.vast and *.wild, as a plug-in offers them.
PLUGIN = """
import os, time
from dowse.ingest.readers.text import read_text
class Slow:
    name = "slow"
    def read(self, file):
        if b"sleep" in file.data: time.sleep(60)
        return read_text(file)
class Vast:
    name = "vast"
    def read(self, file):
        if b"vast" in file.data: bytearray(1 << 40)
        return read_text(file)
class Wild:
    name = "wild"
    def read(self, file):
        if b"die" in file.data: os.kill(os.getpid(), 11)
        if b"bug" in file.data: raise TypeError("a bug")
        print("noise on stdout", flush=True)
        return read_text(file)
"""
ENTRY_POINTS = "[dowse.readers]\nslow = odd_readers:Slow\nvast = odd_readers:Vast\nwild = odd_readers:Wild\n"


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    folder = tmp_path / "plugin"
    (folder / "odd_readers-1.dist-info").mkdir(parents=True)
    (folder / "odd_readers.py").write_text(PLUGIN)
    (folder / "odd_readers-1.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: odd-readers\nVersion: 1\n"
    )
    (folder / "odd_readers-1.dist-info" / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(str(folder))
    yield
    sys.modules.pop("odd_readers", None)


def tasks(folder: Path, **files: str) -> list[Task]:
    folder.mkdir(exist_ok=True)
    readers = find_readers()
    made = []
    for name, text in files.items():
        path = folder / name.replace("_", ".")
        path.write_text(text)
        made.append(Task("s", path.name, str(path), classify(path.name, readers), 10_000_000))
    return made


def shape(result: ReadResult) -> str:
    return "document" if result.document else result.problem or "other"


def test_workers_give_what_one_process_gives_and_in_order(tmp_path: Path) -> None:
    made = tasks(
        tmp_path / "t", **{f"f{number:03d}_py": f"def f{number}():\n    return {number}\n" for number in range(70)}
    )
    here = list(read_in_process(FileReader(find_readers()), made, ReadLimits()))
    there = list(read_in_workers(2, iter(made), ReadLimits()))
    assert there == here
    assert [task.path for task, _ in there] == [task.path for task in made]


def test_bytes_that_lie_in_no_file_travel_too(tmp_path: Path) -> None:
    kind = classify("a.txt")
    made = [Task("s", f"{n}.txt", "/nowhere", kind, 10**7, data=b"word " * 200_000, modified_ns=5) for n in range(3)]
    found = [result.document for _, result in read_in_workers(2, made, ReadLimits())]
    assert [document.modified_ns for document in found if document] == [5, 5, 5]


@pytest.mark.usefixtures("plugin")
def test_a_file_that_takes_too_long_is_skipped_with_a_reason_and_the_rest_is_read(tmp_path: Path) -> None:
    made = tasks(tmp_path / "t", a_slow="fine", b_slow="sleep", c_slow="fine")
    started = time.monotonic()
    found = [shape(result) for _, result in read_in_workers(1, made, ReadLimits(file_s=0.5))]
    assert found == ["document", "skipped: reading took more than 0.5 s", "document"]
    assert time.monotonic() - started < 30
    here = read_in_process(FileReader(find_readers()), made, ReadLimits(file_s=0.2))
    assert [shape(result) for _, result in here] == [
        "document", "skipped: reading took more than 0.2 s", "document",
    ]  # fmt: skip


@pytest.mark.usefixtures("plugin")
def test_a_file_that_takes_too_much_memory_or_kills_its_reader_is_a_problem(tmp_path: Path) -> None:
    made = tasks(tmp_path / "t", a_vast="vast", b_wild="die", c_wild="fine", d_vast="fine")
    found = [shape(result) for _, result in read_in_workers(1, made, ReadLimits())]
    assert found == [
        OUT_OF_MEMORY,
        "skipped: signal 11 (SIGSEGV) ended its reader",
        "document",
        "document",
    ]


@pytest.mark.usefixtures("plugin")
def test_a_bug_in_a_reader_is_a_problem_of_its_file(tmp_path: Path) -> None:
    made = tasks(tmp_path / "t", a_wild="fine", b_wild="bug", c_wild="fine")
    found = [shape(result) for _, result in read_in_workers(1, made, ReadLimits())]
    assert found == ["document", "skipped: the wild reader failed (TypeError: a bug)", "document"]


def test_workers_end_with_the_iteration(tmp_path: Path) -> None:
    made = tasks(tmp_path / "t", **{f"f{number}_txt": "text" for number in range(200)})
    reading = read_in_workers(2, made, ReadLimits())
    next(reading)
    children = _children()
    assert len(children) == 2
    reading.close()  # type: ignore[attr-defined]
    assert not _children()


def test_ctrl_c_in_the_terminal_leaves_the_workers_to_their_leader(tmp_path: Path) -> None:
    reading = read_in_workers(1, tasks(tmp_path / "t", **{f"f{n}_txt": "text" for n in range(100)}), ReadLimits())
    next(reading)
    for child in _children():
        os.kill(child, signal.SIGINT)
    assert sum(result.document is not None for _, result in reading) == 100 - 1


def test_a_script_without_a_main_guard_may_use_workers(tmp_path: Path) -> None:
    """Processes of `multiprocessing` would run such a script again, and again."""
    make = tmp_path / "t"
    make.mkdir()
    (make / "a.txt").write_text("alpha")
    script = tmp_path / "script.py"
    script.write_text(
        "import dowse\nfrom dowse.ingest.pipeline import IndexOptions\n"
        f"with dowse.open({str(tmp_path / 'i')!r}, embedder=None) as engine:\n"
        f"    print(engine.index([{str(make)!r}], embed=False, how=IndexOptions(workers=2)).added)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=_environment())
    assert (done.stdout.strip(), done.stderr) == ("1", "")


def test_an_index_made_by_workers_is_the_index_made_alone(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"f{number}.md").write_text(f"# Title {number}\n\nSome words about {number}.\n")
    found = []
    for workers in (0, 2):
        store = MemoryStore()
        report = index(store, [IndexRequest(tmp_path)], IndexOptions(workers=workers))
        assert report.added == 40
        found.append({info.id: store.reader().document_chunks(info.id) for info in store.documents()})
    assert found[0] == found[1]


def test_an_interruption_while_workers_read_keeps_what_was_written_and_goes_on(tmp_path: Path) -> None:
    for number in range(200):
        (tmp_path / f"f{number:03d}.txt").write_text(f"text {number}\n")

    def at_ninety(progress: Progress) -> None:
        if progress.done == 90:
            raise KeyboardInterrupt

    store = MemoryStore()
    report = index(store, [IndexRequest(tmp_path)], IndexOptions(workers=2), at_ninety)
    kept = len(list(store.documents()))
    assert (report.interrupted, report.added) == (True, kept)
    assert 64 <= kept <= 90
    assert not _children()
    again = index(store, [IndexRequest(tmp_path)], IndexOptions(workers=2))
    assert (again.added, again.unchanged) == (200 - kept, kept)


def test_small_work_stays_in_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("alpha")
    monkeypatch.setattr("dowse.ingest.pipeline.read_in_workers", lambda *_: pytest.fail("workers were started"))
    assert index(MemoryStore(), [IndexRequest(tmp_path)], IndexOptions()).added == 1


@pytest.mark.parametrize(
    ("name", "size", "expected"),
    [
        ("a.py", pipeline.RISKY_BYTES, "in this process"),
        ("a.py", pipeline.RISKY_CODE_BYTES, "in workers"),
        ("a.md", pipeline.RISKY_BYTES - 1, "in this process"),
        ("a.md", pipeline.RISKY_BYTES, "in workers"),
    ],
)
def test_a_large_file_is_read_in_a_worker_unless_its_parser_has_a_time_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, size: int, expected: str
) -> None:
    used: list[str] = []

    def note(way: str) -> Callable[..., Iterator[object]]:
        return lambda *_: used.append(way) or iter(())

    monkeypatch.setattr(pipeline, "read_in_process", note("in this process"))
    monkeypatch.setattr(pipeline, "read_in_workers", note("in workers"))
    (tmp_path / name).write_text("x = 1\n" * (size // 6) + "#" * (size % 6))
    index(MemoryStore(), [IndexRequest(tmp_path)], IndexOptions())
    assert used == [expected]


def test_a_worker_that_cannot_start_is_an_error_with_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "_SCRIPT", "raise SystemExit('no such thing')  # {}")
    with pytest.raises(RuntimeError, match=r"(?s)cannot start; run again with --workers 0.*no such thing"):
        list(read_in_workers(1, tasks(tmp_path / "t", a_txt="x"), ReadLimits()))


# --- the alarm -------------------------------------------------------------------------------------


def test_an_alarm_of_the_caller_still_rings() -> None:
    rung: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, _: rung.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with at_most(5.0):
            pass
        time.sleep(0.1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert rung == [signal.SIGALRM]


def test_no_parser_that_catches_everything_keeps_the_alarm() -> None:
    def greedy() -> None:
        try:
            time.sleep(5)
        except Exception:  # noqa: BLE001 - what careless parsers do
            pytest.fail("the alarm was caught")

    with pytest.raises(OverdueError), at_most(0.05):
        greedy()


def test_what_a_reader_refuses_is_a_problem() -> None:
    class Refusing:
        name = "text"

        def read(self, file: SourceFile) -> Document:
            raise BadRequestError("not today")

    take = FileReader({"text": Refusing})
    task = Task("s", "a.txt", "/nowhere", classify("a.txt"), 100, data=b"x")
    assert take.read(task) == ReadResult(problem="not today")


def _children() -> list[int]:
    def lines(pattern: str) -> list[bytes]:
        found = []
        for path in Path("/proc").glob(pattern):
            with suppress(FileNotFoundError, ProcessLookupError):  # a thread or child that has just ended
                found.append(path.read_bytes())
        return found

    found = [int(child) for text in lines(f"{os.getpid()}/task/*/children") for child in text.split()]
    return [child for child in found if b"reading.worker" in b"".join(lines(f"{child}/cmdline"))]


def _environment() -> dict[str, str]:
    import dowse

    return os.environ | {"PYTHONPATH": str(Path(dowse.__file__).parents[1])}
