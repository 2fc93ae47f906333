"""Evaluation run: all queries of a collection with one setting, and their metrics."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import fsum
from typing import Any

import msgspec
import numpy as np
from msgspec import structs

from dowse.evaluate.collection import Collection
from dowse.evaluate.datasets import Dataset, JudgedQuery
from dowse.evaluate.metrics import DEEPEST, MAIN, METRICS, Figures, scored
from dowse.ports import Embedder, Matrix, Progress, Reporter
from dowse.query.assemble import Parts
from dowse.query.pipeline import PreparedQuery, finished, prepared
from dowse.query.plan.profiles import Profile, named
from dowse.tokenizer import Tokenizer
from dowse.types import Chunk, ChunkId, Degradation, QueryRequest, QueryResult, Role, ScoredChunk

CHUNKS_PER_DOCUMENT = 3  # chunks requested for each document, where one can have several; chosen


class SearchSetting(msgspec.Struct, frozen=True):
    """Request for all queries, and changed fields of its profile."""

    name: str
    request: QueryRequest
    knobs: tuple[tuple[str, Any], ...] = ()  # changed fields of Profile

    def profiles(self, known: tuple[Profile, ...]) -> tuple[Profile, ...]:
        """Return the profiles, with the changes in the requested one."""
        if not self.knobs:
            return known
        asked = named(self.request.profile, known)
        return tuple(structs.replace(each, **dict(self.knobs)) if each is asked else each for each in known)


DEFAULT = SearchSetting("default", QueryRequest(""))


class ScoredQuery(msgspec.Struct, frozen=True, eq=False):
    """Query with its ranking and metrics."""

    question: JudgedQuery
    ranking: tuple[str, ...]
    metrics: Mapping[str, float]
    cpu_ms: float = 0.0
    confidence: float = 0.0  # of the result


class EvalRun(msgspec.Struct, frozen=True, eq=False):
    """All queries of one collection, asked with one setting."""

    dataset: str
    split: str
    setting: str
    answered: tuple[ScoredQuery, ...]
    degraded: tuple[Degradation, ...] = ()

    def figures(self, metric: str = MAIN) -> Figures:
        """Return one figure for each query, in the order of the dataset."""
        return np.array([each.metrics[metric] for each in self.answered])

    @property
    def metrics(self) -> dict[str, float]:
        return {name: float(self.figures(name).mean()) for name in METRICS}

    @property
    def cpu_ms_per_query(self) -> float:
        return fsum(each.cpu_ms for each in self.answered) / len(self.answered)


def mean_metrics(runs: Sequence[EvalRun]) -> dict[str, float]:
    """Average over collections; each counts the same, however many queries it has."""
    return {name: fsum(run.metrics[name] for run in runs) / len(runs) for name in METRICS}


def graded_run(dataset: Dataset, name: str, rankings: Mapping[str, Sequence[str]]) -> EvalRun:
    """Score rankings of another system; a query without a ranking has no results."""
    answered = (
        ScoredQuery(each, found := tuple(rankings.get(each.id, ())), scored(found, dataset.grades[each.id]))
        for each in dataset.questions
    )
    return EvalRun(dataset.name, dataset.split, name, tuple(answered))


class QueryRunner:
    """Runner of the queries of a collection. Query vectors are cached for the next setting."""

    def __init__(self, collection: Collection, parts: Parts | None = None) -> None:
        self.collection = collection
        self.parts = parts or Parts()
        self.reader = collection.store.reader()
        self.tokenizer = Tokenizer()
        self.embedder = _TimedEmbedder(collection.embedder) if collection.embedder else None
        self._chunks: dict[ChunkId, Chunk] = {}

    def run(self, setting: SearchSetting, report: Reporter | None = None) -> EvalRun:
        dataset = self.collection.dataset
        lost: dict[Degradation, None] = {}
        answered = []
        for number, question in enumerate(dataset.questions, start=1):
            one, result = self._answered(setting, question)
            lost |= dict.fromkeys(result.degraded)
            answered.append(one)
            if report and (number % 20 == 0 or number == len(dataset.questions)):
                report(Progress(f"{dataset.name}: {setting.name}", number, len(dataset.questions)))
        return EvalRun(dataset.name, dataset.split, setting.name, tuple(answered), tuple(lost))

    def result(self, setting: SearchSetting, question: JudgedQuery, *, explain: bool = False) -> QueryResult:
        """Run a query down to the deepest rank of a metric, with the candidates of a normal query."""
        parts = replace(self.parts, profiles=setting.profiles(self.parts.profiles))
        depth = named(setting.request.profile, parts.profiles).adjusted(setting.request).depth
        request = replace(setting.request, text=question.text, top_k=DEEPEST, explain=explain)
        if self.collection.cut:
            request = replace(request, group="document")
        elif self.reader.stats.chunks > self.reader.stats.documents:
            request = replace(request, top_k=DEEPEST * CHUNKS_PER_DOCUMENT)
        return finished(self.prepared(request, parts, depth))

    def prepared(self, request: QueryRequest, parts: Parts, depth: int) -> PreparedQuery:
        """Prepare a query as the product does, with `depth` candidates for each leg."""
        request = replace(request, depth=depth)
        return prepared(request, self.reader, self.embedder, self.tokenizer, parts=parts, only_shown=True)

    def chunks(self, ids: Sequence[ChunkId]) -> list[Chunk]:
        """Return chunks by id in this order; each is read from the store once."""
        missing = [each for each in ids if each not in self._chunks]
        self._chunks.update(self.reader.get(missing) if missing else {})
        return [self._chunks[each] for each in ids]

    def labelled(self, result: QueryResult, question: JudgedQuery) -> list[tuple[str, ScoredChunk]]:
        """Return each hit with its id in the judgments."""
        label = self.collection.label
        seen: set[str] = set()
        rows = []
        for chunk in result.chunks:
            rows.append((label(question, chunk, seen), chunk))
            seen.add(rows[-1][0])
        return rows

    def ranking(self, result: QueryResult, question: JudgedQuery) -> tuple[str, ...]:
        """Rank documents by their first chunk."""
        return tuple(dict.fromkeys(name for name, _ in self.labelled(result, question)))

    def _answered(self, setting: SearchSetting, question: JudgedQuery) -> tuple[ScoredQuery, QueryResult]:
        saved_ms = 0.0
        if self.embedder is not None and "dense" in setting.request.legs:
            saved_ms = self.embedder.saved_ms(question.text)
        started_s = time.process_time()
        result = self.result(setting, question)
        spent_ms = 1000 * (time.process_time() - started_s)
        ranking = self.ranking(result, question)
        metrics = scored(ranking, self.collection.dataset.grades[question.id])
        return ScoredQuery(question, ranking, metrics, spent_ms + saved_ms, result.confidence or 0.0), result


class _TimedEmbedder:
    """`dowse.ports.Embedder` that embeds each query once and keeps the CPU time that this took."""

    def __init__(self, inner: Embedder) -> None:
        self.model, self.dimension = inner.model, inner.dimension
        self._inner = inner
        self._known: dict[str, tuple[Matrix, float]] = {}

    def embed(self, texts: Sequence[str], *, role: Role) -> Matrix:
        for text in texts:
            if text not in self._known:
                started_s = time.process_time()
                vector = self._inner.embed([text], role=role)
                self._known[text] = vector, 1000 * (time.process_time() - started_s)
        return np.concatenate([self._known[text][0] for text in texts])

    def saved_ms(self, text: str) -> float:
        """Return the CPU time of the first embedding of a text, which a later query does not spend."""
        return self._known[text][1] if text in self._known else 0.0
