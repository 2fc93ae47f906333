"""Reader and writer of the TREC formats, for exchange with other tools.

qrels   query-id 0 document-id grade
run     query-id Q0 document-id rank score tag
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from dowse.errors import BadRequestError
from dowse.evaluate.datasets import Grades, grade_of, rows_of

TAG = "dowse"  # name of the system in a run
Scored = Sequence[tuple[str, float]]  # document ids with their scores, best first


def write_lines(file: Path, lines: Iterable[str]) -> None:
    try:
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as err:
        raise BadRequestError(f"cannot write {file}: {err.strerror}; name another file") from err


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
    """Make falling scores for a ranking: other tools sort by score and ignore the rank."""
    return [(each, float(len(ranking) - place)) for place, each in enumerate(ranking)]


def read_qrels(file: Path) -> Grades:
    grades: dict[str, dict[str, float]] = {}
    for where, (question, _, document, grade) in rows_of(file, 4, "query-id 0 document-id grade"):
        grades.setdefault(question, {})[document] = grade_of(grade, where)
    return grades


def read_run(file: Path) -> dict[str, list[str]]:
    """Read rankings by query, sorted by score as trec_eval does; equal scores keep the order of ranks."""
    rows: dict[str, list[tuple[float, int, str]]] = {}
    for where, fields in rows_of(file, 6, "query-id Q0 document-id rank score tag"):
        question, _, document, rank, score, _ = fields
        try:
            rows.setdefault(question, []).append((-float(score), int(rank), document))
        except ValueError as err:
            raise BadRequestError(f"{where}: rank {rank!r} and score {score!r} must be numbers") from err
    return {question: list(dict.fromkeys(each for _, _, each in sorted(own))) for question, own in rows.items()}


def _id(identity: str) -> str:
    if not identity or identity.split() != [identity]:
        raise BadRequestError(f"id {identity!r} is empty or contains a space, which TREC files do not allow; rename it")
    return identity
