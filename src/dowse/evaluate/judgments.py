"""Judgments of an index's own content go in, from a file or from the index; questions to that index come out.

A line of a file is `query <TAB> target <TAB> grade`; a target is a chunk's id, a document's id or path, or FILE:10 or
FILE:10-40. A target of several chunks is found when one of them is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from pathlib import Path

from dowse.errors import BadRequestError, ModelMismatchError, NotFoundError
from dowse.evaluate.collection import Collection, Label
from dowse.evaluate.datasets import Dataset, Grades, Question, grade_of, judged, lines_of
from dowse.lookup.locate import chunks_at
from dowse.models.in_use import SPEC
from dowse.ports import Embedder
from dowse.store.embedded import EmbeddedStore
from dowse.store.sql.judgments import Judgment, Judgments
from dowse.types import Chunk, ChunkId

LAYOUT = "query<TAB>FILE:LINE, chunk or document<TAB>grade"

Places = Mapping[str, Mapping[ChunkId, Sequence[str]]]
"""By question, the targets that a chunk fulfils, best grade first."""


def read_judgments(file: Path) -> Grades:
    """By query text, which is its own id."""
    grades: dict[str, dict[str, float]] = {}
    for number, line in enumerate(lines_of(file), start=1):
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) != 3 or not all(fields):
            raise BadRequestError(f"{file}:{number} has {len(fields)} fields; write {LAYOUT}")
        query, target, grade = fields
        if target in grades.get(query, {}):
            raise BadRequestError(f"{file}:{number} judges {target} for {query!r} again; keep one of the two lines")
        grades.setdefault(query, {})[target] = grade_of(grade, f"{file}:{number}")
    if not grades:
        raise BadRequestError(f"{file} holds no judgments; a line is {LAYOUT}")
    return grades


def kept_grades(kept: Sequence[Judgment]) -> Grades:
    if not kept:
        raise NotFoundError("the index holds no judgments yet; make some with `dowse judge QUERY`")
    grades: dict[str, dict[str, float]] = {}
    for each in kept:
        grades.setdefault(each.query, {})[each.target] = each.grade
    return grades


@contextmanager
def judged_index(folder: Path, embedder: Embedder | None, file: Path | None) -> Iterator[Collection]:
    """An existing index, with the judgments of a file or, without one, those that the index keeps."""
    store = EmbeddedStore(folder, read_only=True, create=False)
    try:
        check_model(store, embedder)
        grades = read_judgments(file) if file else kept_grades(Judgments(store.database).all())
        places, lost = _places(store, grades)
        questions = tuple(Question(query, query) for query in grades)
        name = file or folder
        known = [target for own in grades.values() for target in own if target not in lost]
        kept, notes = judged(questions, grades, known, name)
        dataset = Dataset(name.stem or name.name, "judgments", (), kept, grades, "", notes)
        yield Collection(dataset, store, embedder, _label(places))
    finally:
        store.close()


def model_of(folder: Path) -> str | None:
    """What opens the model that an index has vectors of: its name, or the folder or address it was first named by."""
    store = EmbeddedStore(folder, read_only=True, create=False)
    try:
        model = store.reader().stats.model
        return None if model is None else store.fact(SPEC + model) or model
    finally:
        store.close()


def check_model(store: EmbeddedStore, embedder: Embedder | None) -> None:
    """Vectors of one model say nothing to a question embedded by another."""
    model = store.reader().stats.model
    if embedder is not None and model is not None and embedder.model != model:
        raise ModelMismatchError(
            f"the index in {store.folder} has vectors of {model}, not of {embedder.model}; "
            f"use --embedder {model}, or run `dowse reembed {embedder.model}` to change the index"
        )


def _places(store: EmbeddedStore, grades: Grades) -> tuple[Places, Set[str]]:
    """Where the targets are, and those that are nowhere."""
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


def _label(places: Places) -> Label:
    def label(question: Question, chunk: Chunk, seen: Set[str]) -> str:
        """The best target that the chunk fulfils and no better hit has; a chunk nobody judged goes by its id."""
        targets = places[question.id].get(chunk.id, ())
        return next((each for each in targets if each not in seen), targets[0] if targets else chunk.id)

    return label
