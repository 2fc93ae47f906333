"""Judgments of results: stored in an index, exported and imported as TREC qrels, evaluated.

Query ids of TREC have no blanks, so the id of a query is a hash of its text. The file FILE.queries maps ids to texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from dowse.errors import BadRequestError, ModelMismatchError, NotFoundError
from dowse.evaluate.collection import Collection
from dowse.evaluate.datasets import Dataset, Grades, JudgedQuery, graded, judged, lines_of, rows_of
from dowse.evaluate.trec import qrels_lines, read_qrels, write_lines
from dowse.identity import text_hash
from dowse.lookup.locate import chunks_at
from dowse.models.choose import SPEC
from dowse.ports import Embedder
from dowse.store.embedded import EmbeddedStore
from dowse.store.sql.judgments import Judgment, Judgments
from dowse.types import AnyChunk, Chunk, ChunkId

QUERIES = ".queries"  # ends the name of the file with `query-id <TAB> query`
LAYOUT = "query<TAB>FILE:LINE, chunk or document<TAB>grade"
Places = Mapping[str, Mapping[ChunkId, Sequence[str]]]  # by query, the targets that a chunk matches, best grade first


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
    """Write the judgments of an index; return their number."""
    grades = _by_query(kept(index))
    write_lines(file, qrels_lines({query_id(query): own for query, own in grades.items()}))
    write_lines(_queries(file), (f"{query_id(query)}\t{' '.join(query.split())}" for query in grades))
    return sum(map(len, grades.values()))


def import_qrels(index: Path, file: Path) -> int:
    """Store judgments from a file, whose targets are chunk ids of this index; return their number."""
    grades = read_qrels(file)
    texts = {}
    for number, line in enumerate(lines_of(_queries(file)), start=1):
        identity, _, text = line.partition("\t")
        if not text.strip():
            raise BadRequestError(f"{_queries(file)}:{number} is not a query; write: query-id<TAB>query")
        texts[identity] = text.strip()
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


def _queries(file: Path) -> Path:
    return file.with_name(file.name + QUERIES)


@contextmanager
def _opened(index: Path, *, read_only: bool) -> Iterator[Judgments]:
    with closing(EmbeddedStore(index, read_only=read_only, create=False)) as store:
        yield Judgments(store.database)


def _by_query(found: Sequence[Judgment]) -> Grades:
    grades: dict[str, dict[str, float]] = {}
    for each in found:
        grades.setdefault(each.query, {})[each.target] = each.grade
    return grades


@contextmanager
def judged_index(folder: Path, embedder: Embedder | None, file: Path | None) -> Iterator[Collection]:
    """Open an existing index with the judgments of a file or, without one, those stored in the index."""
    with closing(EmbeddedStore(folder, read_only=True, create=False)) as store:
        check_model(store, embedder)
        grades = graded(rows_of(file, 3, LAYOUT, "\t")) if file else _by_query(Judgments(store.database).all())
        if not grades:
            raise NotFoundError("the index holds no judgments; add some with `dowse judge QUERY`")
        places, lost = _places(store, grades)
        questions = tuple(JudgedQuery(query, query) for query in grades)
        name = file or folder
        known = [target for own in grades.values() for target in own if target not in lost]
        kept, notes = judged(questions, grades, known, name)
        dataset = Dataset(name.stem or name.name, "judgments", (), kept, grades, "", notes)

        def label(question: JudgedQuery, chunk: AnyChunk, seen: Set[str]) -> str:
            """Return the best target of the chunk that no better hit has; an unjudged chunk has its own id."""
            targets = places[question.id].get(chunk.id, ())
            return next((each for each in targets if each not in seen), targets[0] if targets else chunk.id)

        yield Collection(dataset, store, embedder, label)


def model_of(folder: Path) -> str | None:
    """Return the name, folder or address that opens the embedding model of an index."""
    with closing(EmbeddedStore(folder, read_only=True, create=False)) as store:
        model = store.reader().stats.model
        return None if model is None else store.fact(SPEC + model) or model


def check_model(store: EmbeddedStore, embedder: Embedder | None) -> None:
    """Refuse an embedder other than that of the index: their vectors cannot be compared."""
    model = store.reader().stats.model
    if embedder is not None and model is not None and embedder.model != model:
        raise ModelMismatchError(
            f"the index in {store.folder} has vectors of {model}, not of {embedder.model}; "
            f"use --embedder {model}, or run `dowse reembed {embedder.model}` to change the index"
        )


def _places(store: EmbeddedStore, grades: Grades) -> tuple[Places, Set[str]]:
    """Find the chunks of the targets, and the targets without any."""
    found: dict[str, tuple[Chunk, ...]] = {}
    lost: set[str] = set()
    for target in {each for own in grades.values() for each in own}:
        try:
            found[target] = chunks_at(store, target)
        except NotFoundError:
            lost.add(target)
    places: dict[str, dict[ChunkId, list[str]]] = {}
    for query, own in grades.items():
        mine = places.setdefault(query, {})
        for target in sorted(own, key=lambda each: -own[each]):
            for chunk in found.get(target, ()):
                mine.setdefault(chunk.id, []).append(target)
    return places, lost
