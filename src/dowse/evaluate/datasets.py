"""Reader of test collections in BEIR layout: documents, queries and judgments.

    corpus.jsonl[.gz]    {"_id", "title", "text"}
    queries.jsonl[.gz]   {"_id", "text"}
    qrels/<split>.tsv    query-id, corpus-id, score

Other fields are ignored.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

import msgspec
from msgspec.structs import replace

from dowse.errors import BadRequestError, NotFoundError

SPLITS = ("test", "dev", "train")  # order of preference without --split
SHOWN = 3  # ids that a note lists
Grades = Mapping[str, Mapping[str, float]]  # query id → document id → grade; above 0 is relevant


class CorpusDocument(msgspec.Struct, frozen=True):
    """Document of a collection."""

    id: str
    title: str
    text: str


class JudgedQuery(msgspec.Struct, frozen=True):
    """Query of a collection."""

    id: str
    text: str


class Dataset(msgspec.Struct, frozen=True, eq=False):
    """Collection with one split of its judgments. Every query has at least one relevant document."""

    name: str
    split: str
    documents: tuple[CorpusDocument, ...]
    questions: tuple[JudgedQuery, ...]
    grades: Grades
    content_hash: str  # of the documents: names the cached index
    notes: tuple[str, ...] = ()

    def limited(self, count: int | None) -> Dataset:
        """Keep `count` queries, always the same: those whose ids have the smallest hashes."""
        if count is None or count >= len(self.questions):
            return self
        if count < 1:
            raise BadRequestError(f"--limit-queries is {count}; give 1 or more")
        kept = {each.id for each in sorted(self.questions, key=lambda each: shuffle_key(each.id))[:count]}
        return replace(self, questions=tuple(each for each in self.questions if each.id in kept))


def load(folder: Path, split: str | None = None) -> Dataset:
    if not folder.is_dir():
        raise NotFoundError(f"no dataset folder {folder}; give one with corpus.jsonl, queries.jsonl and qrels/")
    documents = tuple(_texts(_file(folder, "corpus.jsonl")))
    questions = tuple(JudgedQuery(each.id, each.text) for each in _texts(_file(folder, "queries.jsonl")))
    place = _split(folder, split)
    grades = read_grades(place)
    known = {each.id for each in documents}
    kept, notes = judged(questions, grades, known, place)
    if split is None and len(found := _splits(folder)) > 1:
        notes = (f"using split {place.stem}; choose from {', '.join(found)} with --split", *notes)
    return Dataset(folder.resolve().name, place.stem, documents, kept, grades, _hash(documents), notes)


def judged(
    questions: Sequence[JudgedQuery], grades: Grades, known: Iterable[str], place: Path
) -> tuple[tuple[JudgedQuery, ...], tuple[str, ...]]:
    """Return the queries that can be scored, and notes on the others; an error when there is none."""
    documents = set(known)
    kept = tuple(each for each in questions if any(grade > 0 for grade in grades.get(each.id, {}).values()))
    if not kept:
        raise BadRequestError(f"{place} has no relevant document for any query; check that the query ids are the same")
    asked = {each.id for each in questions}
    odd = (
        ("queries without a relevant document, skipped", [q.id for q in questions if q not in set(kept)]),
        ("judged queries that are not in queries.jsonl, skipped", [each for each in grades if each not in asked]),
        (
            "judged documents that are not in the corpus, counted as not found",
            sorted({doc for each in kept for doc in grades[each.id] if doc not in documents}),
        ),
    )
    return kept, tuple(
        f"{len(ids)} {what} ({', '.join(ids[:SHOWN])}{', …' * (len(ids) > SHOWN)})" for what, ids in odd if ids
    )


def read_grades(file: Path) -> Grades:
    """Read judgments as tab-separated `query-id, corpus-id, score`, with or without a header."""
    rows = list(rows_of(file, 3, "query-id<TAB>corpus-id<TAB>score", "\t"))
    grades = graded(rows[1:] if rows[0][1][2] == "score" else rows)
    if not grades:
        raise BadRequestError(f"{file} holds no judgments; choose another split with --split")
    return grades


def graded(rows: Iterable[tuple[str, Sequence[str]]]) -> Grades:
    """Group (place, [query, document, grade]) by query; refuse a second grade for the same pair."""
    grades: dict[str, dict[str, float]] = {}
    for where, (query, document, grade) in rows:
        own = grades.setdefault(query, {})
        if document in own:
            raise BadRequestError(f"{where}: second grade of {document!r} for {query!r}; keep one of the two lines")
        own[document] = grade_of(grade, where)
    return grades


def grade_of(text: str, where: str) -> float:
    try:
        grade = float(text)
    except ValueError as err:
        raise BadRequestError(f"{where}: grade {text!r} is not a number; write 0 for wrong, 1 for right") from err
    if not -1e6 < grade < 1e6:  # NaN and infinity, too
        raise BadRequestError(f"{where}: grade {text!r} is out of range; write 0 for wrong, 1 for right")
    return grade


class _JsonRow(msgspec.Struct, frozen=True):
    id: str = msgspec.field(name="_id")
    text: str
    title: str | None = None


def _texts(file: Path) -> Iterator[CorpusDocument]:
    decode = msgspec.json.Decoder(_JsonRow).decode
    seen: set[str] = set()
    for number, line in enumerate(lines_of(file), start=1):
        try:
            row = decode(line)
        except msgspec.MsgspecError as err:
            raise BadRequestError(f'{file}:{number}: {err}; each line is {{"_id": "…", "text": "…"}}') from err
        if row.id in seen:
            raise BadRequestError(f"{file}:{number}: id {row.id!r} is used twice; give every line its own id")
        seen.add(row.id)
        yield CorpusDocument(row.id, row.title or "", row.text)
    if not seen:
        raise BadRequestError(f"{file} is empty; a dataset needs at least one line")


def rows_of(file: Path, count: int, layout: str, separator: str | None = None) -> Iterator[tuple[str, list[str]]]:
    """Yield (FILE:LINE, fields) of a table with `count` fields; errors name the layout."""
    if not file.is_file():
        raise NotFoundError(f"no file {file}; create it with lines such as: {layout}")
    empty = True
    for number, line in enumerate(lines_of(file), start=1):
        empty = False
        fields = [field.strip() for field in line.split(separator)]
        if len(fields) != count or not all(fields[:-1]):
            raise BadRequestError(f"{file}:{number} does not have {count} fields; write: {layout}")
        yield f"{file}:{number}", fields
    if empty:
        raise BadRequestError(f"{file} is empty; add lines such as: {layout}")


def lines_of(file: Path) -> Iterator[str]:
    """Yield the lines of a plain or gzipped file that are not blank."""
    opened = gzip.open if file.suffix == ".gz" else open
    try:
        with opened(file, "rt", encoding="utf-8-sig", newline="\n") as stream:
            for line in stream:
                if line.strip():
                    yield line.rstrip("\r\n")
    except UnicodeDecodeError as err:
        raise BadRequestError(f"{file} is not valid UTF-8 ({err.reason}); save it as UTF-8") from err
    except (OSError, EOFError) as err:
        raise BadRequestError(f"cannot read {file}: {err}; download or unpack it again") from err


def _file(folder: Path, name: str) -> Path:
    found = next((folder / each for each in (name, f"{name}.gz") if (folder / each).is_file()), None)
    if found is None:
        raise NotFoundError(
            f"{folder} has no {name} or {name}.gz; give a folder with corpus.jsonl, queries.jsonl and qrels/"
        )
    return found


def _splits(folder: Path) -> list[str]:
    names = {path.stem for path in (folder / "qrels").glob("*.tsv")}
    return [each for each in SPLITS if each in names] + sorted(names - set(SPLITS))


def _split(folder: Path, wanted: str | None) -> Path:
    found = _splits(folder)
    if not found:
        raise NotFoundError(f"{folder / 'qrels'} has no .tsv file; put the judgments there, as in qrels/test.tsv")
    if wanted is not None and wanted not in found:
        raise NotFoundError(f"{folder} has no split {wanted!r}; choose from {', '.join(found)} with --split")
    return folder / "qrels" / f"{wanted or found[0]}.tsv"


def _hash(documents: Sequence[CorpusDocument]) -> str:
    digest = blake2b(digest_size=8)
    for each in documents:
        for part in (each.id, each.title, each.text):
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "little") + data)  # lengths tell texts apart
    return digest.hexdigest()


def shuffle_key(identity: str) -> bytes:
    return blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=8).digest()
