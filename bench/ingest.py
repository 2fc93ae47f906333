"""Benchmark of indexing: speed of reading and updating, one line per figure with its bar and goal.

    python -m bench.ingest                         the standard library of this Python and this repository
    python -m bench.ingest ~/code/app ~/code/web   your own trees
    python -m bench.ingest --tiny 1000000          so many tiny files, for time and memory; some minutes

CPU time of all processes, without embedding. The bar is for reading, chunking and the words until they can be searched,
in one process; what comes after it, the edges between chunks, is in the lines beside it. The trees of 10,000 and of
tiny files are made for the run, from a seed, in a temporary folder.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dowse
from bench.figures import Figure
from dowse.engine import Engine
from dowse.ingest.pipeline import IndexOptions
from dowse.ports import Progress
from dowse.reports import IndexReport

FILES = 10_000  # size of the bar
SEED = 7
OLD_S = 3600  # age of the made files: a file changed in this second is always read again
ROUNDS = 7
WORDS = (
    "retry payment route planner cache token deploy rollback queue worker schema index vector chunk "
    "session timeout budget ledger invoice refund parser socket handler"
)


@dataclass
class Spent:
    """Measure the time of a block."""

    cpu_s: float = 0.0
    wall_s: float = 0.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.ingest", description="Benchmark of indexing.")
    parser.add_argument("trees", nargs="*", type=Path, metavar="TREE")
    parser.add_argument("--tiny", type=int, metavar="N", help="only this: so many tiny files")
    parser.add_argument("--workers", type=int, help="processes that read; 0: none")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="dowse-bench-") as folder:
        found = (
            tiny(Path(folder), asked.tiny)
            if asked.tiny
            else (
                *first_index(Path(folder), asked.trees or default_trees(), asked.workers),
                *later_runs(Path(folder)),
            )
        )
        for figure in found:
            print(figure.line, flush=True)


def default_trees() -> list[Path]:
    """Return the standard library (Python, C and shell) and this repository (everything else)."""
    return [Path(sysconfig.get_path("stdlib")), Path(__file__).parents[1]]


def first_index(folder: Path, trees: Sequence[Path], workers: int | None) -> Iterator[Figure]:
    for name, number in (("as it decides", workers), ("in this process", 0)):
        linking_since: list[float] = []

        def watch(progress: Progress, since: list[float] = linking_since) -> None:
            if progress.phase == "link" and not since:
                since.append(time.process_time())

        how = IndexOptions(workers=number, max_workers=os.cpu_count() or 1)
        with dowse.open(folder / f"first-{number}", embedder=None) as engine, spent() as took:
            started = time.process_time()
            done = engine.index(trees, embed=False, report=watch, how=how)
        if number == 0 and linking_since:
            words_s = linking_since[0] - started
            yield Figure(f"read + chunk + words, {name}", done.chunks / words_s, "chunks/s", 2000, 4000)
        yield Figure(f"… with edges, {name}", done.chunks / took.cpu_s, "chunks/s")
        yield Figure(f"the same by the clock, {name}", done.chunks / took.wall_s, "chunks/s")
        yield Figure(f"files, {name}", done.added, "")
        yield Figure(f"chunks, {name}", done.chunks, "")
    yield Figure("largest process", peak_mb(), "MB", 1500, at_most=True)


def later_runs(folder: Path) -> Iterator[Figure]:
    tree = make_tree(folder / "tree", FILES)
    with dowse.open(folder / "later", embedder=None) as engine:
        engine.index([tree], embed=False)
        again = [timed(engine, [tree]) for _ in range(ROUNDS)]
        if any(report.unchanged != FILES for report, _ in again):
            raise SystemExit("the unchanged tree was not seen as unchanged")
        yield Figure(
            f"unchanged tree of {FILES:,} files", min(took.cpu_s for _, took in again), "s CPU", 2, at_most=True
        )
        yield Figure("one changed file, searchable", min(changed_ms(engine, tree)), "ms CPU", 150, at_most=True)


def changed_ms(engine: Engine, tree: Path) -> Iterator[float]:
    """Time a changed file until search finds it, indexed as `--watch` does."""
    path = next(tree.rglob("*.py"))
    for number in range(ROUNDS):
        word = f"zebraword{number}"
        path.write_text(f"def changed():\n    return '{word}'\n")
        with spent() as took:
            engine.index([tree], embed=False, how=IndexOptions(only=frozenset((str(path),))))
            found = engine.query(word, legs=("bm25_code",))
        if not found.chunks:
            raise SystemExit(f"{word} was written to {path} and not found")
        yield took.cpu_s * 1000


def tiny(folder: Path, count: int) -> Iterator[Figure]:
    tree = make_tree(folder / "tiny", count, lines=1)
    with dowse.open(folder / "index", embedder=None) as engine:
        for name in ("first index", "again"):
            done, took = timed(engine, [tree])
            yield Figure(f"{count:,} tiny files, {name}", took.wall_s, "s")
            yield Figure(f"{count:,} tiny files, {name}", (done.added + done.unchanged) / took.cpu_s, "files/s CPU")
            yield Figure(f"{count:,} tiny files, {name}: largest process", peak_mb(), "MB", 1500, at_most=True)


def timed(engine: Engine, trees: Sequence[Path]) -> tuple[IndexReport, Spent]:
    with spent() as took:
        done = engine.index(trees, embed=False)
    return done, took


def make_tree(root: Path, files: int, lines: int = 12) -> Path:
    """Write Python, Markdown and YAML files in turn, a hundred to a folder."""
    chance, known = random.Random(SEED), WORDS.split()
    stamp = time.time() - OLD_S
    for number in range(files):
        name = root / f"part{number // 100:04d}" / f"file{number:06d}.{('py', 'md', 'yaml')[number % 3]}"
        name.parent.mkdir(parents=True, exist_ok=True)
        words = [" ".join(chance.choices(known, k=6)) for _ in range(lines)]
        head = ("def f():\n    return 1\n", "# Title\n", "key: value\n")[number % 3]
        name.write_text(head + "\n".join(f"# {row} {number}" for row in words) + "\n")
        os.utime(name, (stamp, stamp))
    return root


@contextmanager
def spent() -> Iterator[Spent]:
    took = Spent()
    wall, cpu = time.perf_counter(), cpu_s()
    yield took
    took.cpu_s, took.wall_s = cpu_s() - cpu, time.perf_counter() - wall


def cpu_s() -> float:
    """Return the CPU time of this process and of its ended children."""
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in both)


def peak_mb() -> float:
    return max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024


if __name__ == "__main__":
    main()
