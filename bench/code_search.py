"""Benchmark on questions about repositories, scored as their publisher scores them.

    python -m bench.code_search QUESTIONS CHECKOUTS

QUESTIONS holds `repos.tsv` and a file of questions for each repository; CHECKOUTS a folder for each, with the path to
index inside. Ten hits are asked for. The rank of a target is that of the first hit of its file, or of the first that
overlaps its lines. Further hits of a file count as misses. Questions without a target in the checkout, or whose only
target is a stub there, are left out.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import log2
from pathlib import Path
from statistics import fmean

import dowse
from bench import cache
from dowse.engine import Engine
from dowse.types import AnyChunk

HITS = 10
STUB_LINES = 10  # a target of so few lines only includes another file at this revision, and is left out
CATEGORIES: Mapping[str, str] = {"api": "architecture", "keyword": "symbol"}  # names of older files
PUBLISHED = ("semble", "coderankembed_hybrid", "coderankembed", "bm25_raw")
SETTINGS: Mapping[str, Mapping[str, object]] = {
    "grouped": {"group": "document"},
    "chunks": {},
    "words, grouped": {"group": "document", "legs": ("bm25_code", "bm25_nlp")},
    "words, chunks": {"legs": ("bm25_code", "bm25_nlp")},
}


@dataclass(frozen=True)
class Shown:
    """Hit, with the lines of each passage that is shown of it."""

    path: str
    passages: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Target:
    """File that answers a question, with the lines if the question names them."""

    path: str
    lines: tuple[int, int] | None = None

    @classmethod
    def parse(cls, text: str) -> Target:
        path, _, span = text.rpartition(":")
        first, _, last = span.partition("-")
        if path and first.isdigit() and last.isdigit():
            return cls(path, (int(first), int(last)))
        return cls(text)

    def matches(self, hit: Shown) -> bool:
        """Return whether one path ends with the other, and one of the passages overlaps the lines."""
        own, other = f"/{self.path}", f"/{hit.path}"
        if not (own.endswith(other) or other.endswith(own)):
            return False
        lines = self.lines
        return lines is None or any(first <= lines[1] and lines[0] <= last for first, last in hit.passages)


@dataclass(frozen=True)
class Question:
    """Question on a repository, and the files that answer it."""

    text: str
    targets: tuple[Target, ...]
    category: str


@dataclass(frozen=True)
class Repository:
    """Row of `repos.tsv`."""

    name: str
    root: str  # folder to index, inside the checkout
    published: Mapping[str, float]


def ndcg(shown: Sequence[Shown], targets: Sequence[Target]) -> float:
    """Return nDCG@10; each target counts once, at its first hit."""
    ranks = [
        next((rank for rank, hit in enumerate(shown[:HITS], start=1) if target.matches(hit)), None)
        for target in targets
    ]
    gained = sum(1 / log2(rank + 1) for rank in ranks if rank is not None)
    return gained / sum(1 / log2(rank + 1) for rank in range(1, min(HITS, len(targets)) + 1))


def repositories(questions: Path) -> list[Repository]:
    with (questions / "repos.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    return [Repository(row["name"], row["root"], {name: float(row[name]) for name in PUBLISHED}) for row in rows]


def questions_of(file: Path, checkout: Path) -> list[Question]:
    """Return the questions that have a target in the checkout."""
    found = []
    for line in file.read_text("utf-8").splitlines():
        text, relevant, secondary, category = line.split("\t")
        targets = (Target.parse(each) for each in (*relevant.split(";"), *secondary.split(";")) if each)
        there = tuple(each for each in dict.fromkeys(targets) if _answers(checkout / each.path))
        if there:
            found.append(Question(text, there, CATEGORIES.get(category, category)))
    return found


def _answers(file: Path) -> bool:
    return file.is_file() and len(file.read_text("utf-8", "replace").splitlines()) > STUB_LINES


def shown_by(engine: Engine, text: str, root: str, fields: Mapping[str, object]) -> list[Shown]:
    result = engine.query(text, top_k=HITS, **fields)
    hits = [each.chunks for each in result.groups] or [(each,) for each in result.chunks]
    return [Shown(f"{root}/{hit[0].file_path}", tuple(_lines(each) for each in hit)) for hit in hits]


def _lines(chunk: AnyChunk) -> tuple[int, int]:
    first = chunk.start_line or 1
    return first, chunk.end_line or first


@dataclass(frozen=True)
class Answer:
    """Score of one question in one setting."""

    repository: str
    setting: str
    category: str
    text: str
    score: float


def measured(repository: Repository, questions: Path, checkouts: Path, indexes: Path, model: str) -> list[Answer]:
    """Index a checkout if needed, and ask its questions in every setting."""
    checkout = checkouts / repository.name
    asked = questions_of(questions / f"{repository.name}.tsv", checkout)
    answers = []
    with dowse.open(indexes / repository.name, embedder=model) as engine:
        engine.index([checkout / repository.root])
        for setting, fields in SETTINGS.items():
            for each in asked:
                score = ndcg(shown_by(engine, each.text, repository.root, fields), each.targets)
                answers.append(Answer(repository.name, setting, each.category, each.text, score))
    return answers


def table(answers: Sequence[Answer], known: Sequence[Repository]) -> list[str]:
    """Return lines with nDCG@10 by repository and by category, beside the published figures."""
    names = [*SETTINGS, *PUBLISHED]
    lines = ["\t".join(("repository", "questions", *names))]
    count = {each.name: _count(answers, each.name) for each in known}
    for each in known:
        own = [_mean(answers, setting, repository=each.name) for setting in SETTINGS]
        lines.append(_row(each.name, count[each.name], [*own, *each.published.values()]))
    total = sum(count.values())
    published = [sum(count[each.name] * each.published[name] for each in known) / total for name in PUBLISHED]
    lines.append(_row("all", total, [*(_mean(answers, setting) for setting in SETTINGS), *published]))
    by_category: dict[str, int] = defaultdict(int)
    for answer in answers:
        by_category[answer.category] += 1
    for category, times in sorted(by_category.items()):
        own = [_mean(answers, setting, category=category) for setting in SETTINGS]
        lines.append(_row(category, times // len(SETTINGS), own))
    return lines


def _count(answers: Iterable[Answer], repository: str) -> int:
    return sum(each.repository == repository for each in answers) // len(SETTINGS)


def _mean(answers: Iterable[Answer], setting: str, repository: str = "", category: str = "") -> float:
    chosen = (each for each in answers if each.setting == setting)
    return fmean(
        each.score for each in chosen if repository in ("", each.repository) and category in ("", each.category)
    )


def _row(name: str, count: int, figures: Iterable[float]) -> str:
    return "\t".join((name, str(count), *(f"{each:.3f}" for each in figures)))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.code_search", description=__doc__.splitlines()[0])
    parser.add_argument("questions", type=Path, help="folder with repos.tsv and the questions")
    parser.add_argument("checkouts", type=Path, help="folder with a checkout for each repository")
    parser.add_argument("--indexes", type=Path, help="folder of the indexes; default: the bench cache")
    parser.add_argument("--repositories", help="names joined by commas; default: all")
    parser.add_argument("--embedder", default="auto", help="model of the vectors; default: auto")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the score of every question there, too")
    options = parser.parse_args()
    wanted = options.repositories.split(",") if options.repositories else None
    known = [each for each in repositories(options.questions) if wanted is None or each.name in wanted]
    indexes = options.indexes or cache.folder("code_search")
    answers = [
        answer
        for each in known
        for answer in measured(each, options.questions, options.checkouts, indexes, options.embedder)
    ]
    print("\n".join(table(answers, known)))
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in answers], indent=1), "utf-8")


if __name__ == "__main__":
    main()
