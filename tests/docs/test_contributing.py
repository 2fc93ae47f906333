"""The examples of CONTRIBUTING.md run: each file is written, the readers are installed, the scripts are executed."""

from __future__ import annotations

import re
import sys
import tomllib
import zlib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import dowse
from contracts.embedder import EmbedderContract
from contracts.reranker import RerankerContract
from contracts.store import StoreContract
from dowse.ports import Embedder, Reranker, Store

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"# (?P<name>\w+\.py)\n")
FILES = {found["name"]: text for kind, text in BLOCKS if kind == "python" and (found := NAMED.match(text))}
SCRIPTS = [text for kind, text in BLOCKS if kind == "python" and not NAMED.match(text)]
READERS: dict[str, str] = next(
    tomllib.loads(text)["project"]["entry-points"]["dowse.readers"] for kind, text in BLOCKS if kind == "toml"
)
LOG = "09:00 started\n09:01 ready\n\n10:30 disk full on node 7\n10:31 stopped\n"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the examples as an installed package, and logs to index; it is the working folder."""
    info = tmp_path / "examples-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: examples\nVersion: 1\n")
    readers = READERS | {"packed": "packed_reader:PackedReader", "sum": "sum_reader:read_sum"}
    points = "".join(f"{name} = {target}\n" for name, target in readers.items())
    (info / "entry_points.txt").write_text(f"[dowse.readers]\n{points}")
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "sum_reader.py").write_text("def read_sum(text):\n    yield str(sum(map(int, text.split())))\n")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "node.log").write_text(LOG)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    for name in (*FILES, "sum_reader.py"):
        sys.modules.pop(name.removesuffix(".py"), None)


def test_the_page_has_an_example_of_each_extension() -> None:
    assert set(FILES) == {
        "log_reader.py",
        "packed_reader.py",
        "letter_embedder.py",
        "file_store.py",
        "starred_leg.py",
        "overlap_reranker.py",
    }


def test_every_script_runs(package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text in SCRIPTS:
        exec(compile(text, PAGE.name, "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.splitlines() == [
        "1 node.log 4",
        "2",
        "Delete the old logs.",
        "1 ['bm25_code', 'bm25_nlp', 'starred', 'fuse']",
        "Delete the old logs.",
    ]


def test_the_log_reader_makes_a_chunk_of_each_block(package: Path) -> None:
    (package / "logs" / "long.log").write_text("word " * 2000)
    (package / "logs" / "latin.log").write_bytes("Größe überschritten\n".encode("latin-1"))
    with dowse.open(package / "index", embedder=None) as engine:
        engine.index([package / "logs"])
        blocks = [hit for hit in engine.retrieve("started disk", 10) if hit.file_path == "node.log"]
        long = engine.retrieve("word", 50)
        (latin,) = engine.retrieve("überschritten")
    assert sorted((hit.start_line, hit.end_line, hit.text) for hit in blocks) == [
        (1, 2, "09:00 started\n09:01 ready"),
        (4, 5, "10:30 disk full on node 7\n10:31 stopped"),
    ]
    assert len(long) > 5
    assert latin.text == "Größe überschritten"


def test_a_reader_that_fails_names_the_file_and_the_others_are_indexed(package: Path) -> None:
    (package / "logs" / "good.sum").write_text("20 22")
    (package / "logs" / "bad.sum").write_text("20 twenty")
    (package / "logs" / "notes.packed").write_bytes(zlib.compress(b"Keys are rotated in May."))
    (package / "logs" / "torn.packed").write_bytes(b"\0nothing")
    with dowse.open(package / "index", embedder=None) as engine:
        report = engine.index([package / "logs"])
        (total,) = engine.retrieve("42")
        (note,) = engine.retrieve("rotated")
    assert total.file_path == "good.sum"
    assert (note.document_title, note.section_path) == ("Packed notes", "Unpacked")
    reasons = {Path(problem.path).name: problem.reason for problem in report.problems}
    assert set(reasons) == {"bad.sum", "torn.packed"}
    assert reasons["bad.sum"].startswith("reader 'sum' failed: invalid literal")


class TestLetterEmbedder(EmbedderContract):
    """The example is a whole embedder."""

    knows_words = False

    @pytest.fixture
    def embedder(self, package: Path) -> Embedder:
        made: Embedder = import_module("letter_embedder").LetterEmbedder()
        return made


class TestOverlapReranker(RerankerContract):
    """The example is a whole reranker."""

    @pytest.fixture
    def reranker(self, package: Path) -> Reranker:
        made: Reranker = import_module("overlap_reranker").OverlapReranker()
        return made


class TestFileStore(StoreContract):
    """The example is a whole store."""

    @pytest.fixture
    def store(self, package: Path) -> Store:
        made: Store = import_module("file_store").FileStore("store.json")
        return made
