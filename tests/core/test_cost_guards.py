"""Costs that no clock measures: statements, files, imports and calls of a query stay near what they were.

Each limit is what was counted when it was written, and 30 % more. A count above its limit is a regression to be
explained or a limit to be moved on purpose; `python -m bench.engine` says what it costs in time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import dowse
from dowse.engine import Engine
from dowse.query.pipeline import answer
from dowse.store.embedded import EmbeddedStore
from dowse.tokenizer import Tokenizer
from dowse.types import Document, QueryRequest, QueryResult
from factories import document, vectors

SAMPLE = Path(dowse.__file__).parent / "sample" / "acme"
QUESTIONS = ("where do we retry a failed request", "getRoute", "deploy the route planner to kubernetes")
ROOM = 1.3

# Counted on the sample company with the hash embedder; see the module's first lines for when to move them.
STATEMENTS = 13  # SQL statements of one warm query, the check for changed files included
CALLS = 7_300  # Python and C calls of one warm query, without staleness, in one thread
COLD_FILES = 39  # opened by `dowse search` besides modules
COLD_MODULES = 397  # imported by `dowse search --json` by words alone
WARM_FILES = 0  # opened by one warm query
UPDATE_STATEMENTS = 43  # SQL statements of replacing four documents, with vectors, until they are searchable
UPDATE_PAGES = 22  # of SQLite, that replacing 20 chunks of 4,000 changes, with vectors, until they are searchable
HELP_MODULES = 118  # imported by `dowse --help`

# What a run that does not need it must not load. Reading documents, drawing on a terminal and running models are
# other commands' business.
NOT_FOR_HELP = (
    "click",
    "numpy",
    "rich",
    "msgspec",
    "onnxruntime",
    "tokenizers",
    "sqlite3",
    "Stemmer",
)
NOT_FOR_WORDS = ("rich", "onnxruntime", "tokenizers", "markdown_it", "huggingface_hub", "unittest")


_HOOK = """
def note(event, arguments):
    if event in ("open", "sqlite3.connect"):
        seen.append(str(arguments[0]))
sys.addaudithook(note)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample company, indexed with vectors."""
    place = tmp_path_factory.mktemp("guards") / "index"
    with dowse.open(place, embedder="hash") as engine:
        engine.index([SAMPLE])
    return place


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[Engine]:
    """Warm: lazily made parts are there, every thread has its connection."""
    with dowse.open(folder, embedder="hash", read_only=True) as engine:
        for _ in range(3):
            for text in QUESTIONS:
                engine.query(text)
        yield engine


def _answer(engine: Engine, text: str) -> QueryResult:
    reader = engine._store.reader()
    embedder = engine._components._models.for_index(reader.stats.model)
    return answer(QueryRequest(text), reader, embedder, Tokenizer())


@pytest.mark.parametrize("text", QUESTIONS)
def test_a_query_needs_few_statements(engine: Engine, text: str) -> None:
    seen: list[str] = []
    connections = engine._store.database.connections.all
    for connection in connections:
        connection.set_trace_callback(seen.append)
    try:
        assert engine.query(text).chunks
    finally:
        for connection in connections:
            connection.set_trace_callback(None)
    assert seen, "nothing was counted"
    assert len(seen) <= STATEMENTS * ROOM, seen


def test_statements_do_not_grow_with_the_hits(engine: Engine) -> None:
    def statements(top_k: int) -> int:
        seen: list[str] = []
        connection = engine._store.database.connections.own
        connection.set_trace_callback(seen.append)
        found = answer(
            QueryRequest(QUESTIONS[0], top_k=top_k), engine._store.reader(), None, Tokenizer(), dense_note="not asked"
        )
        connection.set_trace_callback(None)
        assert len(found.chunks) == top_k
        return len(seen)

    statements(3)  # what is read once, at the first question to a store
    assert statements(30) <= statements(3) + 1  # one more level of parents


@pytest.mark.parametrize("text", QUESTIONS)
def test_a_query_makes_few_calls(engine: Engine, text: str) -> None:
    _answer(engine, text)
    count = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        result = _answer(engine, text)
    finally:
        sys.setprofile(None)
    assert result.chunks
    assert 0 < count <= CALLS * ROOM, count


def test_a_warm_query_opens_no_file(folder: Path) -> None:
    script = f"""
import json, sys, dowse
engine = dowse.open({str(folder)!r}, embedder="hash", read_only=True)
for _ in range(3):
    for text in {QUESTIONS!r}:
        engine.query(text)
seen = []
{_HOOK}
del seen[:]
for text in {QUESTIONS!r}:
    engine.query(text)
print(json.dumps(seen))
"""
    opened = json.loads(_run(script).splitlines()[-1])
    index = [name for name in opened if str(folder) in name]
    # CURRENT and a state file tell a living reader whether something new was published; nothing else is read again.
    assert len(index) <= WARM_FILES * len(QUESTIONS), index
    assert [name for name in opened if str(folder) not in name] == []


def test_an_update_needs_few_statements(tmp_path: Path) -> None:
    store = EmbeddedStore(tmp_path / "index")

    def update(number: int) -> list[str]:
        seen: list[str] = []
        store.database.connections.own.set_trace_callback(seen.append)
        writer = store.writer()
        writer.put([document(f"{each}.py", f"version{number} of {each}") for each in range(4)])
        writer.publish()
        writer.use_model("m", 8)
        waiting = [each.content_hash for each in writer.pending(10)]
        writer.put_vectors(waiting, vectors(waiting, 8))
        assert len(store.reader().search_words("bm25_code", [f"version{number}"], 10, ()).ids) == 4
        store.database.connections.own.set_trace_callback(None)
        writer.close()
        return seen

    statements = [update(number) for number in range(3)][-1]
    store.close()
    assert 0 < len(statements) <= UPDATE_STATEMENTS * ROOM, statements


def _pages_logged(index: Path) -> int:
    """How many pages SQLite's log holds: those that carry its salt, one after the other."""
    log = (index / "dowse.db-wal").read_bytes()
    page_bytes, salt, found = int.from_bytes(log[8:12], "big"), log[16:24], 0
    while log[(start := 32 + found * (24 + page_bytes)) + 8 : start + 16] == salt:
        found += 1
    return found


def test_an_update_changes_few_pages(tmp_path: Path) -> None:
    """Decision 17: with keys that are spread evenly it were twice as many, and more the larger the index is."""
    store = EmbeddedStore(tmp_path / "index")
    writer = store.writer()

    def put(documents: list[Document]) -> None:
        writer.put(documents)
        writer.publish()
        writer.use_model("m", 8)
        while waiting := [each.content_hash for each in writer.pending(5000)]:
            writer.put_vectors(waiting, vectors(waiting, 8))

    put([document(f"{file}.py", *(f"text {each} of {file}" for each in range(5))) for file in range(800)])
    put([document(f"{file}.py", *(f"other {each} of {file}" for each in range(5))) for file in range(4)])
    before = _pages_logged(store.folder)
    put([document(f"{file}.py", *(f"third {each} of {file}" for each in range(5))) for file in range(4)])
    changed = _pages_logged(store.folder) - before
    writer.close()
    store.close()
    assert 0 < changed <= UPDATE_PAGES * ROOM, changed


def _cold(arguments: list[str], **variables: str) -> dict[str, Any]:
    """What `dowse ARGUMENTS` opens and imports in a new process."""
    script = f"""
import json, sys
seen = []
{_HOOK}
from dowse.__main__ import main
sys.argv = ["dowse", *{arguments!r}]
try:
    main()
    code = 0
except SystemExit as end:
    code = end.code
print()
print(json.dumps({{"opened": seen, "modules": sorted(sys.modules), "code": code}}))
"""
    found: dict[str, Any] = json.loads(_run(script, **variables).splitlines()[-1])
    return found


def _run(script: str, **variables: str) -> str:
    environment = os.environ | {"PYTHONPATH": str(Path(dowse.__file__).parents[1]), **variables}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_help_loads_little() -> None:
    found = _cold(["--help"])
    assert found["code"] in (0, None)
    assert [name for name in NOT_FOR_HELP if name in found["modules"]] == []
    assert len(found["modules"]) <= HELP_MODULES * ROOM


def test_a_cold_search_by_words_loads_no_model_runtime_and_no_terminal(folder: Path) -> None:
    found = _cold(["search", "--index", str(folder), "--json", QUESTIONS[0]], DOWSE_EMBEDDER="none")
    assert found["code"] in (0, None)
    assert [name for name in NOT_FOR_WORDS if name in found["modules"]] == []
    assert len(found["modules"]) <= COLD_MODULES * ROOM


def test_a_cold_search_opens_few_files(folder: Path) -> None:
    found = _cold(["search", "--index", str(folder), "--json", QUESTIONS[0]], DOWSE_EMBEDDER="none")
    code = (".py", ".pyc", ".so", "__pycache__", "dist-info", "site-packages")
    opened = [name for name in found["opened"] if not any(part in name for part in code)]
    assert any(str(folder) in name for name in opened), "nothing was counted"
    assert len(opened) <= COLD_FILES * ROOM, opened
