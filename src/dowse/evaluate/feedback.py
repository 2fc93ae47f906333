"""What people said of hits: judgments go into an index's database, come out again, and travel as TREC qrels.

TREC's query ids have no blanks, so a query goes by a hash of its text, and a file beside the qrels says which is whose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from dowse.errors import BadRequestError
from dowse.evaluate.datasets import lines_of
from dowse.evaluate.trec import qrels_lines, read_qrels
from dowse.identity import text_hash
from dowse.store.embedded import EmbeddedStore
from dowse.store.sql.judgments import Judgment, Judgments

QUERIES = ".queries"  # ends the name of the file with `query-id <TAB> query`


def keep(index: Path, judgments: Sequence[Judgment]) -> None:
    with _opened(index, read_only=False) as found:
        found.put(judgments)


def kept(index: Path) -> list[Judgment]:
    with _opened(index, read_only=True) as found:
        return found.all()


def forget(index: Path, query: str) -> int:
    with _opened(index, read_only=False) as found:
        return found.remove(query)


def query_id(query: str) -> str:
    return f"q{text_hash(query)[:12]}"


def export_qrels(index: Path, file: Path) -> int:
    """How many judgments were written."""
    found = kept(index)
    grades: dict[str, dict[str, float]] = {}
    for each in found:
        grades.setdefault(query_id(each.query), {})[each.target] = each.grade
    texts = {query_id(each.query): " ".join(each.query.split()) for each in found}
    _write(file, qrels_lines(grades))
    _write(_queries(file), (f"{identity}\t{text}" for identity, text in texts.items()))
    return len(found)


def import_qrels(index: Path, file: Path) -> int:
    """How many judgments were read; their targets are chunk ids of this index or of one with the same files."""
    grades = read_qrels(file)
    texts = dict(_query_texts(_queries(file)))
    unnamed = [each for each in grades if each not in texts]
    if unnamed:
        raise BadRequestError(
            f"{_queries(file)} has no text for query {unnamed[0]}; add a line: {unnamed[0]}<TAB>query"
        )
    now = datetime.now(UTC)
    rows = [
        Judgment(texts[identity], target, grade, "", now)
        for identity, own in grades.items()
        for target, grade in own.items()
    ]
    keep(index, rows)
    return len(rows)


def _query_texts(file: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(lines_of(file), start=1):
        identity, tab, text = line.partition("\t")
        if not tab or not text.strip():
            raise BadRequestError(f"{file}:{number} is no query; write query-id<TAB>query")
        yield identity, text.strip()


def _queries(file: Path) -> Path:
    return file.with_name(file.name + QUERIES)


def _write(file: Path, lines: Iterator[str]) -> None:
    try:
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    except OSError as err:
        raise BadRequestError(f"cannot write {file}: {err.strerror}; name another file") from err


@contextmanager
def _opened(index: Path, *, read_only: bool) -> Iterator[Judgments]:
    store = EmbeddedStore(index, read_only=read_only, create=False)
    try:
        yield Judgments(store.database)
    finally:
        store.close()
