"""Recall of symbols: share of the definitions in the tags of the grammars that a chunk names.

Corpus: the standard library of the running Python, or the folders given (unpack sdists in other languages there). For
every file that parses, the `tags.scm` in the grammar's wheel says what is defined where. A definition is *found* when
a chunk of the file lists its name at that line and holds that line, and *own* when it is also the name of that chunk:
the rest are small neighbours that share a chunk, or stand inside a function. The last columns are the reader's speed,
in CPU of one core, and how many files were cut by layout because they do not parse. No randomness.

    python -m bench.symbols                    the standard library
    python -m bench.symbols FOLDER …           these
"""

from __future__ import annotations

import sys
import sysconfig
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from time import process_time

from tree_sitter import Language, Parser, Query, QueryCursor

from dowse.errors import BadRequestError
from dowse.ingest.code.grammars import wheel_of
from dowse.ingest.code.reader import read_code
from dowse.ingest.sources.kinds import classify
from dowse.ports import SourceFile
from dowse.types import Document

LARGEST_BYTES = 1_000_000  # larger files are data
SKIPPED = ("site-packages", "node_modules", ".min.", "/.git/")
# TypeScript's tags hold only what it adds to JavaScript's.
ALSO = {"typescript": ("javascript",), "tsx": ("javascript",)}


@dataclass(frozen=True)
class Tags:
    """Grammar with its query for definitions."""

    language: Language
    query: Query

    def definitions(self, data: bytes) -> set[tuple[str, int]]:
        """Return names with their lines."""
        found: set[tuple[str, int]] = set()
        for _, captures in QueryCursor(self.query).matches(Parser(self.language).parse(data).root_node):
            if any(kind.startswith("definition") for kind in captures):
                for node in captures.get("name", ()):
                    found.add(
                        (data[node.start_byte : node.end_byte].decode("utf-8", "replace"), node.start_point[0] + 1)
                    )
        return found


def tags_of(name: str) -> Tags | None:
    """Load a grammar; None without a wheel, or without tags in it."""
    module, function = wheel_of(name)
    try:
        language = Language(getattr(import_module(module), function)())
        texts = [
            (files(wheel_of(each)[0]) / "queries" / "tags.scm").read_text() for each in (name, *ALSO.get(name, ()))
        ]
    except (ModuleNotFoundError, FileNotFoundError):
        return None
    return Tags(language, Query(language, "\n".join(texts)))


def sources(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        usable = path.is_file() and not path.is_symlink() and not any(part in str(path) for part in SKIPPED)
        if usable and 0 < path.stat().st_size <= LARGEST_BYTES:
            yield path


@dataclass
class Figures:
    files: int = 0
    by_layout: int = 0
    total: int = 0
    found: int = 0
    own: int = 0
    chunks: int = 0
    seconds: float = 0.0


def compare(document: Document, wanted: set[tuple[str, int]], figures: Figures, missed: Counter[str]) -> None:
    listed: set[tuple[str, int]] = set()
    own: set[tuple[str, int]] = set()
    for chunk in document.chunks:
        for each in chunk.defines:
            if (chunk.start_line or 0) <= each.start_line <= (chunk.end_line or 0):
                listed.add((each.name, each.start_line))
                if each.name == chunk.symbol_name:
                    own.add((each.name, each.start_line))
    figures.total += len(wanted)
    figures.found += len(wanted & listed)
    figures.own += len(wanted & own)
    missed.update(f"{name} {document.path}:{line}" for name, line in sorted(wanted - listed)[:3])


def measure(folders: list[Path]) -> tuple[dict[str, Figures], Counter[str]]:
    tags: dict[str, Tags | None] = {}
    figures: dict[str, Figures] = defaultdict(Figures)
    missed: Counter[str] = Counter()
    for folder in folders:
        for path in sources(folder):
            kind = classify(path.name)
            name = "tsx" if path.suffix == ".tsx" else kind.language or ""
            if kind.reader != "code" or tags.setdefault(name, tags_of(name) if name else None) is None:
                continue
            data = path.read_bytes().replace(b"\r\n", b"\n")
            started = process_time()
            try:
                document = read_code(SourceFile(folder.name, str(path.relative_to(folder)), data, 0))
            except BadRequestError:
                continue
            row = figures[name]
            row.seconds += process_time() - started
            row.files += 1
            row.chunks += sum(chunk.level == "chunk" for chunk in document.chunks)
            known = tags[name]
            if known is None or not any(chunk.level == "document" for chunk in document.chunks):
                row.by_layout += bool(known and known.definitions(data))
                continue
            compare(document, known.definitions(data), row, missed)
    return figures, missed


def main() -> None:
    folders = [Path(each) for each in sys.argv[1:] or [sysconfig.get_paths()["stdlib"]]]
    figures, missed = measure(folders)
    print(
        f"{'language':12} {'files':>6} {'defined':>8} {'found':>8} {'%':>7} {'own %':>6} {'chunks/s':>9} {'layout':>7}"
    )
    for name, row in sorted(figures.items()):
        share, own = (100 * each / max(row.total, 1) for each in (row.found, row.own))
        speed = row.chunks / max(row.seconds, 1e-9)
        counts = f"{name:12} {row.files:6} {row.total:8} {row.found:8}"
        print(f"{counts} {share:7.2f} {own:6.1f} {speed:9.0f} {row.by_layout:7}")
    for place, _ in missed.most_common(12):
        print("not found:", place)


if __name__ == "__main__":
    main()
