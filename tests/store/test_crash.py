"""Writers are killed at random moments; what they acknowledged must be there when the index is opened again."""

from __future__ import annotations

import os
import random
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from crash_writers import DIMENSION, PATHS, CrashWriters, versioned
from dowse.identity import document_id, number_id
from dowse.store.embedded import EmbeddedStore
from dowse.store.segments import inverted
from dowse.store.segments.state import read_state, state_line
from dowse.store.snapshot import Snapshot
from dowse.store.verify import verify
from factories import ids, vectors

KILLS = int(os.environ.get("DOWSE_KILLS", "80"))
LONGEST_PAUSE_S = 0.02  # of the order of one operation, so that a kill falls into any part of it

Version = int | None  # None: there is no such document


@dataclass
class Ledger:
    """What the index may hold: one version of a document, or two when a kill left it open which."""

    versions: dict[int, set[Version]] = field(default_factory=lambda: {path: {None} for path in range(PATHS)})
    hashes: set[str] = field(default_factory=set)  # with an acknowledged vector

    def enter(self, line: list[str]) -> None:
        said, what, *rest = line
        assert said in ("try", "ack"), line
        if what in ("put", "remove"):
            version = int(rest[0]) if what == "put" else None
            for path in map(int, rest[1:]):
                self.versions[path] = {version} | (self.versions[path] if said == "try" else set())
        elif what == "vector" and said == "ack":
            self.hashes.add(rest[0])


def found_version(reader: Snapshot, path: int) -> Version:
    """The version that is found by its words; its chunks must be all there, and no others."""
    found = reader.search_words("bm25_code", [f"name{path}"], 50, ()).ids
    chunks = reader.get([number_id(int(each)) for each in found])
    versions = {int(chunk.text.split()[1].removeprefix("version")) for chunk in chunks.values()}
    assert len(versions) <= 1, f"document {path} is of versions {versions} at once"
    if not versions:
        assert reader.document(document_id("docs", str(path))) is None, f"document {path} is stored and not found"
        return None
    version = versions.pop()
    wanted = versioned(str(path), version).chunks
    assert sorted(found.tolist()) == sorted(ids(*(each.id for each in wanted)).tolist()), f"half of document {path}"
    assert tuple(reader.document_chunks(document_id("docs", str(path)))) == wanted
    return version


def check_index(folder: Path, ledger: Ledger) -> None:
    store = EmbeddedStore(folder)
    for path, allowed in ledger.versions.items():
        version = found_version(store.reader(), path)
        assert version in allowed, f"document {path}: version {version}, not one of {allowed}"
        ledger.versions[path] = {version}
    if ledger.hashes:
        check_vectors(store, ledger)
    assert [check for check in verify(store, deep=True) if check.state != "ok"] == []
    store.close()


def check_vectors(store: EmbeddedStore, ledger: Ledger) -> None:
    """An acknowledged vector is never asked for again, and serves its chunks."""
    writer = store.writer()
    writer.use_model("test-model", DIMENSION)
    assert ledger.hashes.isdisjoint(each.content_hash for each in writer.pending(1000))
    living = [
        chunk
        for path, (version,) in ((path, tuple(each)) for path, each in ledger.versions.items())
        if version is not None
        for chunk in versioned(str(path), version).chunks
        if chunk.content_hash in ledger.hashes
    ]
    rows, exist = store.reader().vectors(ids(*(each.id for each in living)))
    assert exist.all()
    np.testing.assert_allclose(rows, vectors([each.content_hash for each in living], DIMENSION), atol=5e-5)
    writer.close()


def run_and_kill(crash_writers: CrashWriters, job: str, rng: random.Random, folder: Path, ledger: Ledger) -> None:
    """Let a writer work for a random while."""
    process = crash_writers.start(job, rng.randrange(10**9), folder)
    for _ in range(rng.randrange(12)):
        ledger.enter(crash_writers.line())
    time.sleep(rng.random() * LONGEST_PAUSE_S)
    for line in crash_writers.kill(process):
        ledger.enter(line)


@pytest.mark.parametrize("job", ["mixed", "compact", "vectors"])
def test_a_kill_loses_nothing_and_leaves_nothing_half(
    crash_writers: CrashWriters, index_folder: Path, job: str
) -> None:
    rng, ledger, survived = random.Random(f"{job} {KILLS}"), Ledger(), 0
    for _ in range(KILLS // 4):
        run_and_kill(crash_writers, job, rng, index_folder, ledger)
        check_index(index_folder, ledger)
        survived += any(versions != {None} for versions in ledger.versions.values())
    assert survived, "no document survived any kill: nothing was tested"


def test_a_kill_while_an_index_begins_leaves_one_that_opens(crash_writers: CrashWriters, index_folder: Path) -> None:
    rng = random.Random(KILLS)
    for number in range(KILLS // 4):
        folder, ledger = index_folder / str(number), Ledger()
        process = crash_writers.start("mixed", rng.randrange(10**9), folder)
        time.sleep(rng.random() * LONGEST_PAUSE_S)
        for line in crash_writers.kill(process):
            ledger.enter(line)
        check_index(folder, ledger)


def test_kills_one_after_the_other_without_a_look_between(crash_writers: CrashWriters, index_folder: Path) -> None:
    """A writer that is killed while it mends what a killed writer left."""
    rng, ledger = random.Random(7), Ledger()
    for number in range(KILLS // 4):
        run_and_kill(crash_writers, ("mixed", "compact", "vectors")[number % 3], rng, index_folder, ledger)
    check_index(index_folder, ledger)


@pytest.mark.parametrize("tail", [0, 512], ids=["a run", "no run"])
def test_a_publication_cut_before_its_state_is_finished_in_its_place(
    index_folder: Path, tail: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inverted, "_TAIL_ROWS", tail)
    monkeypatch.setattr(inverted, "_STEP", 0)  # a merge would delete what the older state speaks of
    store = EmbeddedStore(index_folder)
    writer = store.writer()
    writer.put([versioned("0", 1), versioned("1", 1)])
    writer.publish()
    state = store.place().rows / "state.jsonl"
    before, generation = state.read_bytes(), store.place().number
    writer.put([versioned("0", 2), versioned("2", 1)])
    writer.close()
    store.close()
    state.write_bytes(before)
    ledger = Ledger()
    ledger.versions |= {0: {2}, 1: {1}, 2: {1}}
    check_index(index_folder, ledger)
    store = EmbeddedStore(index_folder)
    assert store.place().number == generation
    store.close()


def test_words_that_the_rows_do_not_explain_are_found_by_verify(
    index_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words of another index of as many chunks: every checksum is right, and every answer wrong."""
    monkeypatch.setattr(inverted, "_TAIL_ROWS", 0)
    rows = {}
    for name, path in (("ours", "1"), ("theirs", "6")):  # versions of as many chunks
        store = EmbeddedStore(index_folder / name)
        writer = store.writer()
        writer.put([versioned(path, 1)])
        writer.close()
        rows[name] = store.place().rows
        store.close()
    ours, theirs = read_state(rows["ours"]), read_state(rows["theirs"])
    runs = {name: each for name, each in theirs.files.items() if name.startswith("run-")}
    assert runs.keys() <= ours.files.keys()
    for name in runs:
        shutil.copy(rows["theirs"] / name, rows["ours"] / name)
    state = replace(ours, files=ours.files | runs)
    (rows["ours"] / "state.jsonl").write_bytes(state_line(state))
    store = EmbeddedStore(index_folder / "ours", read_only=True)
    assert [check.name for check in verify(store, deep=True) if check.state != "ok"] == ["terms"]
    store.close()
