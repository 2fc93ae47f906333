"""A folder in BEIR layout goes in; its documents, questions and judgments come out, with what was odd counted.

    corpus.jsonl[.gz]    {"_id", "title", "text"}
    queries.jsonl[.gz]   {"_id", "text"}
    qrels/<split>.tsv    query-id, corpus-id, score

Other fields are not read: only `text` is the question.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path

import msgspec

from dowse.errors import BadRequestError, NotFoundError

SPLITS = ("test", "dev", "train")  # which one is taken when a set has several and none is asked for
SHOWN = 3  # odd ids that a note names

Grades = Mapping[str, Mapping[str, float]]
"""Question id → document id → grade; above 0 is relevant."""


@dataclass(frozen=True)
class Text:
    """A document of a collection."""

    id: str
    title: str
    text: str


@dataclass(frozen=True)
class Question:
    id: str
    text: str


@dataclass(frozen=True, eq=False)
class Dataset:
    """A collection and one split of its judgments. Every question here has at least one relevant document."""

    name: str
    split: str
    documents: tuple[Text, ...]
    questions: tuple[Question, ...]
    grades: Grades
    content_hash: str  # of the documents: names the cached index
    notes: tuple[str, ...] = ()

    def limited(self, count: int | None) -> Dataset:
        """The same `count` questions whenever it is asked: those whose ids have the smallest hashes."""
        if count is None or count >= len(self.questions):
            return self
        if count < 1:
            raise BadRequestError(f"--limit-queries is {count}; give a number of at least 1")
        kept = {each.id for each in sorted(self.questions, key=lambda each: _shuffle_key(each.id))[:count]}
        return replace(self, questions=tuple(each for each in self.questions if each.id in kept))


def load(folder: Path, split: str | None = None) -> Dataset:
    if not folder.is_dir():
        raise NotFoundError(f"no dataset folder {folder}; give one with corpus.jsonl, queries.jsonl and qrels/")
    documents = tuple(_texts(_file(folder, "corpus.jsonl")))
    questions = tuple(Question(each.id, each.text) for each in _texts(_file(folder, "queries.jsonl")))
    place = _split(folder, split)
    grades = read_grades(place)
    known = {each.id for each in documents}
    kept, notes = judged(questions, grades, known, place)
    if split is None and len(found := _splits(folder)) > 1:
        notes = (f"split {place.stem} of {', '.join(found)}; choose another with --split", *notes)
    return Dataset(folder.resolve().name, place.stem, documents, kept, grades, _hash(documents), notes)


def judged(
    questions: Sequence[Question], grades: Grades, known: Iterable[str], place: Path
) -> tuple[tuple[Question, ...], tuple[str, ...]]:
    """The questions that can be scored, and a note for each kind of oddity; an error when none can."""
    documents = set(known)
    kept = tuple(each for each in questions if any(grade > 0 for grade in grades.get(each.id, {}).values()))
    if not kept:
        raise BadRequestError(f"{place} judges none of the questions as answered; check that the ids are the same")
    asked = {each.id for each in questions}
    odd = (
        ("questions without a relevant document, left out", [q.id for q in questions if q not in set(kept)]),
        ("judged questions that are not in queries.jsonl, left out", [each for each in grades if each not in asked]),
        (
            "judged documents that are not in the corpus, counted as not found",
            sorted({doc for each in kept for doc in grades[each.id] if doc not in documents}),
        ),
    )
    return kept, tuple(f"{len(ids)} {what} ({_some(ids)})" for what, ids in odd if ids)


def read_grades(file: Path) -> Grades:
    """Judgments as tab-separated `query-id, corpus-id, score`, with or without a header."""
    grades: dict[str, dict[str, float]] = {}
    for number, line in enumerate(lines_of(file), start=1):
        fields = line.split("\t")
        if len(fields) != 3:
            raise BadRequestError(f"{file}:{number} has {len(fields)} fields; write query-id<TAB>corpus-id<TAB>score")
        question, document, score = fields
        if number == 1 and score == "score":
            continue
        own = grades.setdefault(question, {})
        if document in own:
            raise BadRequestError(f"{file}:{number} judges {document!r} for {question!r} again; keep one of the two")
        own[document] = grade_of(score, f"{file}:{number}")
    if not grades:
        raise BadRequestError(f"{file} holds no judgments; choose another split with --split")
    return grades


def grade_of(text: str, where: str) -> float:
    try:
        grade = float(text)
    except ValueError as err:
        raise BadRequestError(f"{where}: the grade {text!r} is not a number; write 0 for wrong, 1 for right") from err
    if not -1e6 < grade < 1e6:  # NaN and infinity, too
        raise BadRequestError(f"{where}: the grade {text!r} is out of range; write 0 for wrong, 1 for right")
    return grade


class _Row(msgspec.Struct, frozen=True):
    id: str = msgspec.field(name="_id")
    text: str
    title: str | None = None


def _texts(file: Path) -> Iterator[Text]:
    decode = msgspec.json.Decoder(_Row).decode
    seen: set[str] = set()
    for number, line in enumerate(lines_of(file), start=1):
        try:
            row = decode(line)
        except msgspec.MsgspecError as err:
            raise BadRequestError(f'{file}:{number}: {err}; each line is {{"_id": "…", "text": "…"}}') from err
        if row.id in seen:
            raise BadRequestError(f"{file}:{number}: the id {row.id!r} is there twice; give every line its own")
        seen.add(row.id)
        yield Text(row.id, row.title or "", row.text)
    if not seen:
        raise BadRequestError(f"{file} is empty; a dataset needs at least one line in it")


def lines_of(file: Path) -> Iterator[str]:
    """Lines that are not blank, of a plain or gzipped file."""
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


def _hash(documents: Sequence[Text]) -> str:
    digest = blake2b(digest_size=8)
    for each in documents:
        for part in (each.id, each.title, each.text):
            data = part.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "little") + data)  # lengths, so that no two sets run together
    return digest.hexdigest()


def _shuffle_key(identity: str) -> bytes:
    return blake2b(identity.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:SHOWN]) + (", …" if len(ids) > SHOWN else "")
