"""TREC's plain text formats: judgments and rankings go out to other tools, and theirs come in.

qrels   query-id 0 document-id grade
run     query-id Q0 document-id rank score tag
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dowse.errors import BadRequestError, NotFoundError
from dowse.evaluate.datasets import Grades, grade_of

TAG = "dowse"  # names the system that made a run

Scored = Sequence[tuple[str, float]]
"""Document ids with their scores, best first."""


def qrels_lines(grades: Grades) -> Iterator[str]:
    for question, own in grades.items():
        for document, grade in own.items():
            whole = int(grade) if grade == int(grade) else grade
            yield f"{_id(question)} 0 {_id(document)} {whole}"


def run_lines(rankings: Mapping[str, Scored], tag: str = TAG) -> Iterator[str]:
    for question, ranking in rankings.items():
        for rank, (document, score) in enumerate(ranking, start=1):
            yield f"{_id(question)} Q0 {_id(document)} {rank} {score:.9g} {tag}"


def falling(ranking: Sequence[str]) -> Scored:
    """Scores for a ranking that has none: other tools sort by score and do not read the rank."""
    return [(each, float(len(ranking) - place)) for place, each in enumerate(ranking)]


def read_qrels(file: Path) -> Grades:
    grades: dict[str, dict[str, float]] = {}
    for where, (question, _, document, grade) in _fields(file, 4, "query-id 0 document-id grade"):
        grades.setdefault(question, {})[document] = grade_of(grade, where)
    return grades


def read_run(file: Path) -> dict[str, list[str]]:
    """Rankings by question, sorted by score as trec_eval does; equal scores keep the order of their ranks."""
    rows: dict[str, list[tuple[float, int, str]]] = {}
    for where, fields in _fields(file, 6, "query-id Q0 document-id rank score tag"):
        question, _, document, rank, score, _ = fields
        try:
            rows.setdefault(question, []).append((-float(score), int(rank), document))
        except ValueError as err:
            raise BadRequestError(f"{where}: rank {rank!r} and score {score!r} must be numbers") from err
    return {question: list(dict.fromkeys(each for _, _, each in sorted(own))) for question, own in rows.items()}


def _fields(file: Path, count: int, layout: str) -> Iterator[tuple[str, list[str]]]:
    try:
        lines = file.read_text("utf-8").splitlines()
    except FileNotFoundError as err:
        raise NotFoundError(f"no file {file}; a line in it is: {layout}") from err
    except (OSError, UnicodeDecodeError) as err:
        raise BadRequestError(f"cannot read {file}: {err}; save it as UTF-8 text") from err
    found = [(number, line.split()) for number, line in enumerate(lines, start=1) if line.strip()]
    if not found:
        raise BadRequestError(f"{file} is empty; a line in it is: {layout}")
    for number, fields in found:
        if len(fields) != count:
            raise BadRequestError(f"{file}:{number} has {len(fields)} fields, not {count}; write: {layout}")
        yield f"{file}:{number}", fields


def _id(identity: str) -> str:
    if not identity or identity.split() != [identity]:
        raise BadRequestError(f"the id {identity!r} cannot stand in a TREC file, which blanks separate; rename it")
    return identity
