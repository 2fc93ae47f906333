"""Failure analysis: queries where one run loses most to another, with the scores of each stage."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dowse.errors import NotFoundError
from dowse.evaluate.datasets import JudgedQuery
from dowse.evaluate.metrics import MAIN
from dowse.evaluate.run import EvalRun, QueryRunner, SearchSetting
from dowse.lookup.locate import chunks_at
from dowse.query.context import cited, titled
from dowse.types import AnyChunk, ScoredChunk

_LISTED = 3  # relevant documents that a failure lists
_SNIPPET = 80  # characters


class RelevantDocument(msgspec.Struct, frozen=True):
    """Relevant document and its rank in each run."""

    document: str
    ranks: tuple[tuple[str, int | None], ...]  # by run; None: not found
    why: tuple[str, ...]  # its place and the score of each stage, as text


class Failure(msgspec.Struct, frozen=True):
    """Query with a worse score in the judged run than in another."""

    dataset: str
    question: JudgedQuery
    value: float
    better: str  # the run that does best
    better_value: float
    relevant: tuple[RelevantDocument, ...]
    instead: tuple[str, ...]  # the first result, its place and its scores, unless it is relevant

    @property
    def loss(self) -> float:
        return self.better_value - self.value


def worst(runner: QueryRunner, judged: SearchSetting, runs: Sequence[EvalRun], count: int) -> list[Failure]:
    """List the queries where the first run loses most to the best of the others."""
    ours, *others = runs
    losses = []
    for number, mine in enumerate(ours.answered):
        best = max(others, key=lambda run: run.answered[number].metrics[MAIN])
        lost = best.answered[number].metrics[MAIN] - mine.metrics[MAIN]
        if lost > 0:
            losses.append((lost, number, best))
    losses.sort(key=lambda row: (-row[0], row[1]))
    return [_failure(runner, judged, runs, number, best) for _, number, best in losses[:count]]


def _failure(
    runner: QueryRunner, judged: SearchSetting, runs: Sequence[EvalRun], number: int, best: EvalRun
) -> Failure:
    mine, theirs = runs[0].answered[number], best.answered[number]
    question = mine.question
    grades = runner.collection.dataset.grades[question.id]
    chunks: dict[str, ScoredChunk] = {}
    for name, chunk in runner.labelled(runner.result(judged, question, explain=True), question):
        chunks.setdefault(name, chunk)
    right = [each for each in theirs.ranking if grades.get(each, 0.0) > 0]
    right += [each for each, grade in grades.items() if grade > 0 and each not in right]
    relevant = []
    for document in right[:_LISTED]:
        rankings = ((run.setting, run.answered[number].ranking) for run in runs)
        ranks = tuple((name, own.index(document) + 1 if document in own else None) for name, own in rankings)
        why = _why(chunks[document]) if document in chunks else _not_found(runner, document)
        relevant.append(RelevantDocument(document, ranks, why))
    instead: tuple[str, ...] = () if mine.ranking else ("no result",)
    if mine.ranking and (first := mine.ranking[0]) in chunks and grades.get(first, 0.0) <= 0:
        instead = (f"{first} is first", *_why(chunks[first]))
    return Failure(
        runs[0].dataset, question, mine.metrics[MAIN], best.setting, theirs.metrics[MAIN], tuple(relevant), instead
    )


def _why(chunk: ScoredChunk) -> tuple[str, ...]:
    return (_place(chunk), *(f"{score.stage}: {score.why}" for score in chunk.scores))


def _not_found(runner: QueryRunner, target: str) -> tuple[str, ...]:
    try:
        places = [_place(chunk) for chunk in chunks_at(runner.collection.store, target)[:1]]
    except NotFoundError:  # a document of a collection has no place but its id
        places = []
    return (*places, "not among the candidates of any leg")


def _place(chunk: AnyChunk) -> str:
    """Name a chunk by path and lines, title, and the beginning of its text."""
    text = " ".join(chunk.text.split())
    short = f"{text[:_SNIPPET]}…" if len(text) > _SNIPPET else text
    return " · ".join(part for part in (cited(chunk), titled(chunk), short) if part)
