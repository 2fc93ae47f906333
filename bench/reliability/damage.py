"""Damage to the files of an index: bytes are flipped, zeroed or cut, and the answers compared with those before.

An answer may be the same, degraded with a note, or an error of Dowse; never another list and never a crash. Every fault
runs in a process of its own, so that a crash is counted. Files keep their times, as on a disk that loses bits.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any

import dowse
from dowse import sample
from dowse.config import Config
from dowse.errors import CorruptIndexError, DowseError
from dowse.store.kernels.numpy_kernel import open_kernel
from dowse.store.segments import inverted, vectors
from dowse.store.segments.state import STATE, read_state

HARMS = ("flip", "zero", "cut")
ZEROED_BYTES = 64
WAYS = ("read-only", "read-write")
# Words, meaning, names, filters of all kinds, links, documents about documents.
QUERIES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("where do we retry payments", {}),
    ("Backoff", {}),
    ("idempotency key", {"language_filter": ("go",)}),
    ("refund webhook signature", {"corpus_filter": ("CODE_LOGIC",)}),
    ("deploy runbook rollback", {"path_filter": ("**/*.md",)}),
    ("timeout of the gateway", {"language_filter": ("python", "go", "yaml")}),
    ("charge", {"graph": True}),
    ("database pool exhausted", {"top_k": 50}),
    ("retry", {"legs": ("bm25_code",)}),
    ("payment", {"legs": ("bm25_nlp",), "top_k": 30}),
    ("error budget", {"legs": ("dense",), "top_k": 30}),
    ("latest documents about payments", {}),
    ("checkout service", {"created_after": "2001-01-01"}),
    ("payment", {"meta_filter": (("team", "t1"),), "mmr": True}),
)

_SHOWN = attrgetter(
    *("id", "final_score", "text", "source_uri", "document_title", "start_line", "connection_count", "timestamp"),
    *("dense_score", "bm25_code_score", "bm25_nlp_score", "stale", "parents", "graph_context", "copies", "meta"),
)


@dataclass
class Tally:
    """Outcomes of the faults so far, by kind; `bad` names the wrong answers and crashes."""

    outcomes: Counter[str] = field(default_factory=Counter)
    by_file: dict[str, Counter[str]] = field(default_factory=dict)
    bad: list[str] = field(default_factory=list)

    @property
    def faults(self) -> int:
        return sum(self.outcomes.values())

    def enter(self, fault: Fault, outcome: str, detail: str) -> None:
        self.outcomes[outcome] += 1
        self.by_file.setdefault(fault.path, Counter())[outcome] += 1
        if outcome in ("wrong", "crash"):
            self.bad.append(f"{fault}: {outcome}: {detail}")


@dataclass(frozen=True)
class Fault:
    """One fault in one file."""

    path: str  # below the index
    harm: str
    at: int
    bit: int
    way: str
    kernel: str

    def apply(self, index: Path) -> None:
        path = index / self.path
        times = path.stat()
        if self.harm == "cut":
            os.truncate(path, self.at)
        else:
            with path.open("r+b") as file:
                file.seek(self.at)
                was = file.read(1 if self.harm == "flip" else ZEROED_BYTES)
                file.seek(self.at)
                file.write(bytes([was[0] ^ 1 << self.bit]) if self.harm == "flip" else bytes(len(was)))
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def build(index: Path, documents: int = 0) -> None:
    """Make an index of the sample project, with a word run, sign codes, deleted chunks and documents of its own."""
    few, tail, vectors.EXACT_ROWS, inverted._TAIL_ROWS = vectors.EXACT_ROWS, inverted._TAIL_ROWS, 64, 16
    try:
        with dowse.open(index, embedder="hash") as engine:
            engine.index([sample.root()])
            words = [word for query, _ in QUERIES for word in query.split()]
            draw = random.Random(5)
            added = engine.add(
                {
                    "id": f"n{number}",
                    "text": " ".join(draw.choices(words, k=40)),
                    "metadata": {"team": f"t{number % 3}"},
                }
                for number in range(documents + 40)
            )
            if added.problems:
                raise RuntimeError(str(added.problems[0]))
            engine.remove([f"n{number}" for number in range(7)])
    finally:
        vectors.EXACT_ROWS, inverted._TAIL_ROWS = few, tail


def draw_fault(index: Path, draw: random.Random) -> Fault:
    """Choose a file, then a place in what of it counts: small files are hit as often as large ones."""
    files = sorted(str(path.relative_to(index)) for path in index.rglob("*") if path.is_file())
    derived = [name for name in files if name.startswith("derived/")]
    name = "dowse.db" if draw.random() < 0.3 else draw.choice(derived)
    size = counted(index / name)
    harm = draw.choices(HARMS, (4, 3, 1))[0]
    return Fault(name, harm, draw.randrange(size), draw.randrange(8), draw.choice(WAYS), draw.choice(("numpy", "fast")))


def counted(path: Path) -> int:
    """Return the bytes of a file that count; behind them is room."""
    known = read_state(path.parent).files.get(path.name) if (path.parent / STATE).exists() else None
    return path.stat().st_size if known is None else known.bytes


def answers(index: Path, *, read_only: bool, kernel: str) -> list[Any]:
    """Return what each query finds, with scores and texts, or the error that it raises."""
    found: list[Any] = []
    with dowse.open(index, read_only=read_only, create=False, embedder="hash", config=Config(kernel=kernel)) as engine:
        for text, fields in QUERIES:
            try:
                result = engine.query(
                    text, cache=False, freshness_weight=0.0, **fields
                )  # freshness changes with the clock
            except CorruptIndexError as err:
                found.append({"error": str(err)})
                continue
            hits = [_SHOWN(hit) for hit in result.chunks]
            found.append({"hits": repr(hits), "degraded": [f"{each.stage}: {each.reason}" for each in result.degraded]})
    return found


def observe(index: Path, fault: Fault) -> tuple[str, Any]:
    """Answer all queries in a process of its own; return its outcome."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        code = 1
        try:
            os.close(reading)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            try:
                reply = ["answers", answers(index, read_only=fault.way == "read-only", kernel=fault.kernel)]
            except DowseError as err:
                reply = ["error", str(err)]
            except BaseException:  # noqa: BLE001  # whatever it is, it is the finding
                reply = ["crash", traceback.format_exc(limit=-4)]
            with os.fdopen(writing, "w") as file:
                json.dump(reply, file)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as file:
        data = file.read()
    _, status = os.waitpid(child, 0)
    if status or not data:
        return "crash", f"the process ended with status {status}"
    kind, detail = json.loads(data)
    return kind, detail


def judged(kind: str, found: Any, wanted: list[Any]) -> tuple[str, str]:
    """Return the outcome of a fault: same, degraded, error, wrong or crash."""
    if kind != "answers":
        return kind, str(found)
    worst, why = "same", ""
    for (text, fields), own, right in zip(QUERIES, found, wanted, strict=True):
        if own == right:
            continue
        if "error" in own:
            worst, why = "error", own["error"]
        elif own["degraded"] != right["degraded"]:
            worst, why = "degraded", str(own["degraded"])
        else:
            return "wrong", f"{text!r} {fields}"
    return worst, why


def campaign(folder: Path, faults: int, seed: int = 1) -> Iterator[tuple[Fault, str, str]]:
    """Run faults, each on a fresh copy of one index; yield fault, outcome and detail."""
    whole, copy, draw = folder / "whole", folder / "copy", random.Random(seed)
    build(whole)
    open_kernel("fast")  # compiled before the first fork
    wanted = {}
    for kernel in ("numpy", "fast"):
        kind, wanted[kernel] = observe(whole, Fault("", "", 0, 0, "read-only", kernel))
        if kind != "answers":
            raise RuntimeError(f"the undamaged index does not answer: {wanted[kernel]}")
    for _ in range(faults):
        shutil.copytree(whole, copy)
        fault = draw_fault(copy, draw)
        fault.apply(copy)
        yield fault, *judged(*observe(copy, fault), wanted[fault.kernel])
        shutil.rmtree(copy)


def run(folder: Path, faults: int, seed: int = 1) -> Tally:
    tally = Tally()
    for fault, outcome, detail in campaign(folder, faults, seed):
        tally.enter(fault, outcome, detail)
    return tally
