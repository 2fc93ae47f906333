"""Benchmark of look-ups by name: the definition first, whole symbols, and the symbols of the sample project.

    python -m bench.code_lookups CHECKOUTS

CHECKOUTS holds a folder for each repository; the indexes are those of bench.code_search. The truth are the definitions
in the tags of the grammars, for names that are defined once in a checkout. A hit is right if it has the file and the
line of the definition. The samples are drawn with fixed seeds.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random
from shutil import copytree
from statistics import fmean
from tempfile import TemporaryDirectory

import dowse
from bench import cache
from bench.symbols import Tags, sources, tags_of
from dowse.engine import Engine
from dowse.ingest.code.reader import read_code
from dowse.ingest.sources.kinds import classify
from dowse.ports import SourceFile
from dowse.sample import root as sample_root
from dowse.types import AnyChunk, Chunk

HITS = 10
NAMES, NAMES_SEED = 500, 19  # of "definition first"
SYMBOLS, SYMBOLS_SEED = 550, 1919
SAMPLE, SAMPLE_SEED = 47, 47  # of the sample project
LEAST_LETTERS = 3  # of a name
RUST_MODULE = re.compile(rb"(?m)^[ \t]*(?:pub(?:\([^)\n]*\))? )?mod \w+;")  # refers to a file, defines nothing
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
WORDINGS: Mapping[str, Callable[[str], str]] = {
    "name": lambda name: name,
    "words": lambda name: " ".join(words_of(name)),
    "how does … work": lambda name: f"how does {' '.join(words_of(name))} work",
}

SAMPLE_WORDINGS: Mapping[str, Callable[[str], str]] = {
    "qualified name": lambda name: name,
    "last part": lambda name: name.rpartition(".")[2],
    "lower-case words": lambda name: " ".join(words_of(name.rpartition(".")[2])),
}


@dataclass(frozen=True)
class Definition:
    """Name that is defined once in a checkout."""

    repository: str
    language: str
    name: str
    path: str  # inside the checkout
    line: int

    def at(self, hit: AnyChunk) -> bool:
        """Return whether a hit has the line of the definition."""
        first = hit.start_line or 0
        there = f"/{self.path}".endswith(f"/{hit.file_path}")
        return there and first <= self.line <= (hit.end_line or first)


def words_of(name: str) -> list[str]:
    return [part.lower() for part in _PART.findall(name)]


def definitions(checkout: Path) -> list[Definition]:
    """Return the names that the tags of the grammars define exactly once, in languages of the default install."""
    tags: dict[str, Tags | None] = {}
    found: dict[str, list[Definition]] = defaultdict(list)
    for path in sources(checkout):
        language = _language(path)
        known = tags.setdefault(language, tags_of(language) if language else None)
        if known is None:
            continue
        place = path.relative_to(checkout).as_posix()
        data = path.read_bytes().replace(b"\r\n", b"\n")
        for name, line in known.definitions(RUST_MODULE.sub(b"", data) if language == "rust" else data):
            found[name].append(Definition(checkout.name, language, name, place, line))
    once = (each[0] for each in found.values() if len(each) == 1)
    named = (each for each in once if re.fullmatch(r"[A-Za-z_]\w*", each.name) and len(each.name) >= LEAST_LETTERS)
    return sorted(named, key=lambda each: (each.path, each.line, each.name))


def _language(path: Path) -> str:
    """Return the grammar of a file; of a header, that which the reader chooses by its text."""
    if path.suffix == ".tsx":
        return "tsx"
    language = classify(path.name).language or ""
    if path.suffix != ".h":
        return language
    chunks = read_code(SourceFile("", path.name, path.read_bytes(), 0)).chunks
    return next((each.language for each in chunks if each.language), language)


def sampled(known: Iterable[Definition], count: int, seed: int) -> list[Definition]:
    """Return a sample with as many names of each language as there are, in turn."""
    by_language: dict[str, list[Definition]] = defaultdict(list)
    for each in known:
        by_language[each.language].append(each)
    for language, names in sorted(by_language.items()):
        Random(f"{seed} {language}").shuffle(names)
    turns = [each for number in range(count) for names in by_language.values() for each in names[number : number + 1]]
    return turns[:count]


def rank_of(wanted: Callable[[AnyChunk], bool], hits: Sequence[AnyChunk]) -> int | None:
    return next((rank for rank, hit in enumerate(hits, start=1) if wanted(hit)), None)


def reciprocal(rank: int | None) -> float:
    return 0.0 if rank is None else 1 / rank


def asked(engine: Engine, text: str, *, grouped: bool = False) -> list[AnyChunk]:
    result = engine.query(text, top_k=HITS, **({"group": "document"} if grouped else {}))
    return [each.chunks[0] for each in result.groups] if grouped else list(result.chunks)


def first_definitions(engines: Mapping[str, Engine], sample: Sequence[Definition]) -> list[str]:
    """Return lines: the share of names whose definition is the first hit, as chunks and in groups, by language."""
    first: dict[str, Counter[str]] = {"chunks": Counter(), "grouped": Counter()}
    missed = []
    for each in sample:
        for setting, counts in first.items():
            hits = asked(engines[each.repository], each.name, grouped=setting == "grouped")
            right = bool(hits) and each.at(hits[0])
            counts[each.language] += right
            if not right:
                missed.append(f"missed ({setting})\t{each.name}\t{each.repository}/{each.path}:{each.line}")
    total = Counter(each.language for each in sample)
    lines = ["language\tnames\t" + "\t".join(first)]
    for language, count in sorted(total.items()):
        lines.append("\t".join((language, str(count), *(f"{of[language] / count:.3f}" for of in first.values()))))
    shares = (f"{of.total() / len(sample):.3f}" for of in first.values())
    return [*lines, "\t".join(("all", str(len(sample)), *shares)), *missed]


def symbol_ranks(engines: Mapping[str, Engine], sample: Sequence[Definition]) -> list[str]:
    """Return lines: MRR@10 of the defining chunk, by wording."""
    lines = ["wording\tsymbols\tMRR@10"]
    for wording, text in WORDINGS.items():
        ranks = [rank_of(each.at, asked(engines[each.repository], text(each.name))) for each in sample]
        lines.append(f"{wording}\t{len(sample)}\t{fmean(map(reciprocal, ranks)):.3f}")
    return lines


def sample_symbols(engine: Engine, folder: Path) -> list[Chunk]:
    """Return a chunk of each function, method and type of the sample project whose name is qualified once."""
    reader = engine.reader()
    chunks = (each for document in engine.documents(str(folder)) for each in reader.document_chunks(document.id))
    found: dict[str, Chunk] = {}
    for chunk in chunks:
        if chunk.level == "chunk" and chunk.corpus_type == "CODE_LOGIC" and chunk.qualified_name:
            found.setdefault(chunk.qualified_name, chunk)
    return [chunk for _, chunk in sorted(found.items())]


def sample_ranks(model: str | None, folder: Path) -> list[str]:
    """Return lines: MRR@10 of symbols of the sample project, by wording. Any piece of the symbol is right."""
    project = folder / "project"
    copytree(sample_root(), project)
    with dowse.open(folder / "index", embedder=model) as engine:
        engine.index([project])
        known = sample_symbols(engine, project)
        chosen = sorted(Random(SAMPLE_SEED).sample(known, SAMPLE), key=lambda each: each.qualified_name or "")
        lines = ["wording\tsymbols\tMRR@10\tall symbols\tMRR@10"]
        for wording, text in SAMPLE_WORDINGS.items():
            means = []
            for symbols in (chosen, known):
                ranks = [_rank(asked(engine, text(each.qualified_name or "")), each) for each in symbols]
                means.append(f"{len(symbols)}\t{fmean(map(reciprocal, ranks)):.3f}")
            lines.append("\t".join((wording, *means)))
    return lines


def _rank(hits: Sequence[AnyChunk], wanted: Chunk) -> int | None:
    return rank_of(lambda hit: hit.qualified_name == wanted.qualified_name, hits)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.code_lookups", description=__doc__.splitlines()[0])
    parser.add_argument("checkouts", type=Path, help="folder with a checkout for each repository")
    parser.add_argument("--indexes", type=Path, help="folder of the indexes; default: the bench cache")
    parser.add_argument("--words", action="store_true", help="without vectors")
    options = parser.parse_args()
    indexes = options.indexes or cache.folder("code_search")
    model = None if options.words else "auto"
    known = [each for checkout in sorted(options.checkouts.iterdir()) for each in definitions(checkout)]
    with ExitStack() as stack, TemporaryDirectory() as folder:
        names = sorted({each.repository for each in known})
        engines = {name: stack.enter_context(dowse.open(indexes / name, embedder=model)) for name in names}
        lines = [
            "Definition first",
            *first_definitions(engines, sampled(known, NAMES, NAMES_SEED)),
            "Symbols of the checkouts",
            *symbol_ranks(engines, sampled(known, SYMBOLS, SYMBOLS_SEED)),
            "Symbols of the sample project",
            *sample_ranks(model, Path(folder)),
        ]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
