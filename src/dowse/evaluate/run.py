"""A collection and a way of asking go in; every question is asked as a user would, and figures by question come out."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import fsum
from typing import Any

import numpy as np

from dowse.evaluate.bootstrap import Figures
from dowse.evaluate.collection import Collection
from dowse.evaluate.datasets import Dataset, Question
from dowse.evaluate.long_documents import by_document
from dowse.evaluate.metrics import DEEPEST, MAIN, METRICS, scored
from dowse.ports import Embedder, Matrix, Progress, Reporter
from dowse.query.assemble import Parts
from dowse.query.pipeline import Prepared, finished, prepared
from dowse.query.plan.profiles import Profile, named
from dowse.tokenizer import Tokenizer
from dowse.types import Chunk, ChunkId, Degradation, QueryRequest, QueryResult, Role, ScoredChunk

CHUNKS_PER_DOCUMENT = 3  # asked for, for each document wanted, where one can have several; chosen


@dataclass(frozen=True)
class Setting:
    """A way of asking: a request whose text each question takes, and knobs of the profile that no request has."""

    name: str
    request: QueryRequest
    knobs: tuple[tuple[str, Any], ...] = ()  # fields of Profile, with other values

    def profiles(self, known: tuple[Profile, ...]) -> tuple[Profile, ...]:
        """With the knobs turned in the one that is asked for."""
        if not self.knobs:
            return known
        asked = named(self.request.profile, known)
        return tuple(replace(each, **dict(self.knobs)) if each is asked else each for each in known)


DEFAULT = Setting("default", QueryRequest(""))


@dataclass(frozen=True, eq=False)
class Answered:
    """A question and what came of it."""

    question: Question
    ranking: tuple[str, ...]
    metrics: Mapping[str, float]
    cpu_ms: float = 0.0
    confidence: float = 0.0  # the result's own, by which a doubtful answer could be withheld


@dataclass(frozen=True, eq=False)
class Run:
    """All questions of one collection, asked in one way."""

    dataset: str
    split: str
    setting: str
    answered: tuple[Answered, ...]
    degraded: tuple[Degradation, ...] = ()

    def figures(self, metric: str = MAIN) -> Figures:
        """One a question, in the dataset's order."""
        return np.array([each.metrics[metric] for each in self.answered])

    @cached_property
    def metrics(self) -> dict[str, float]:
        return {name: float(self.figures(name).mean()) for name in METRICS}

    @property
    def cpu_ms_per_query(self) -> float:
        return fsum(each.cpu_ms for each in self.answered) / len(self.answered)


def mean_metrics(runs: Sequence[Run]) -> dict[str, float]:
    """Each collection counts the same, however many questions it has."""
    return {name: fsum(run.metrics[name] for run in runs) / len(runs) for name in METRICS}


def graded_run(dataset: Dataset, name: str, rankings: Mapping[str, Sequence[str]]) -> Run:
    """Figures for rankings that came from elsewhere; a question without one found nothing."""
    answered = (
        Answered(each, found := tuple(rankings.get(each.id, ())), scored(found, dataset.grades[each.id]))
        for each in dataset.questions
    )
    return Run(dataset.name, dataset.split, name, tuple(answered))


class Asker:
    """Asks a collection. Question vectors are kept, so that a second way of asking costs no second embedding."""

    def __init__(self, collection: Collection, parts: Parts | None = None) -> None:
        self.collection = collection
        self.parts = parts or Parts()
        self.reader = collection.store.reader()
        self.tokenizer = Tokenizer()
        self.embedder = _Remembered(collection.embedder) if collection.embedder else None
        self._cut = self.reader.stats.chunks > self.reader.stats.documents
        self._chunks: dict[ChunkId, Chunk] = {}

    def run(self, setting: Setting, report: Reporter | None = None) -> Run:
        dataset = self.collection.dataset
        lost: dict[Degradation, None] = {}
        answered = []
        for number, question in enumerate(dataset.questions, start=1):
            one, result = self._answered(setting, question)
            lost |= dict.fromkeys(result.degraded)
            answered.append(one)
            if report and (number % 20 == 0 or number == len(dataset.questions)):
                report(Progress(f"{dataset.name}: {setting.name}", number, len(dataset.questions)))
        return Run(dataset.name, dataset.split, setting.name, tuple(answered), tuple(lost))

    def result(self, setting: Setting, question: Question, *, explain: bool = False) -> QueryResult:
        """As deep as any metric looks, but with the candidates that a user's question would have."""
        parts = replace(self.parts, profiles=setting.profiles(self.parts.profiles))
        depth = named(setting.request.profile, parts.profiles).adjusted(setting.request).depth
        wanted = DEEPEST * CHUNKS_PER_DOCUMENT if self._cut else DEEPEST
        request = replace(setting.request, text=question.text, top_k=wanted, explain=explain)
        return finished(self.prepared(request, parts, depth))

    def prepared(self, request: QueryRequest, parts: Parts, depth: int) -> Prepared:
        """As the product prepares it, with so many candidates a leg.

        Where documents are in pieces, a leg brings as many chunks as so many documents have on average, and fusion is
        told which belong together.
        """
        families = self.collection.families
        stats = self.reader.stats
        if families is not None and stats.documents:
            depth = round(depth * stats.chunks / stats.documents)
        request = replace(request, depth=depth)
        ready = prepared(request, self.reader, self.embedder, self.tokenizer, parts=parts, only_shown=True)
        return ready if families is None else replace(ready, waves=by_document(ready.waves, families))

    def chunks(self, ids: Sequence[ChunkId]) -> list[Chunk]:
        """Chunks by id, in this order; each is fetched once."""
        missing = [each for each in ids if each not in self._chunks]
        self._chunks.update(self.reader.get(missing) if missing else {})
        return [self._chunks[each] for each in ids]

    def labelled(self, result: QueryResult, question: Question) -> list[tuple[str, ScoredChunk]]:
        """Each hit with the id under which the judgments know it."""
        label = self.collection.label
        seen: set[str] = set()
        rows = []
        for chunk in result.chunks:
            rows.append((label(question, chunk, seen), chunk))
            seen.add(rows[-1][0])
        return rows

    def ranking(self, result: QueryResult, question: Question) -> tuple[str, ...]:
        """Documents, each at its first chunk's place."""
        return tuple(dict.fromkeys(name for name, _ in self.labelled(result, question)))

    def _answered(self, setting: Setting, question: Question) -> tuple[Answered, QueryResult]:
        saved_ms = 0.0
        if self.embedder is not None and "dense" in setting.request.legs:
            saved_ms = self.embedder.saved_ms(question.text)
        started_s = time.process_time()
        result = self.result(setting, question)
        spent_ms = 1000 * (time.process_time() - started_s)
        ranking = self.ranking(result, question)
        metrics = scored(ranking, self.collection.dataset.grades[question.id])
        return Answered(question, ranking, metrics, spent_ms + saved_ms, result.confidence or 0.0), result


@dataclass(frozen=True)
class _Vector:
    vector: Matrix  # one row
    cpu_ms: float


@dataclass(frozen=True, eq=False)
class _Remembered:
    """Satisfies `dowse.ports.Embedder` for questions: each is embedded once."""

    inner: Embedder
    clock: Callable[[], float] = time.process_time
    known: dict[str, _Vector] = field(default_factory=dict)

    @property
    def model(self) -> str:
        return self.inner.model

    @property
    def dimension(self) -> int:
        return self.inner.dimension

    def embed(self, texts: Sequence[str], *, role: Role) -> Matrix:
        return np.concatenate([self._vector(text, role) for text in texts])

    def saved_ms(self, text: str) -> float:
        """What embedding this text took when it was done, which the next time will lack."""
        found = self.known.get(text)
        return found.cpu_ms if found else 0.0

    def _vector(self, text: str, role: Role) -> Matrix:
        found = self.known.get(text)
        if found is None:
            started_s = self.clock()
            vector = self.inner.embed([text], role=role)
            found = self.known[text] = _Vector(vector, 1000 * (self.clock() - started_s))
        return found.vector
