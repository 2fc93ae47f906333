"""Failure analysis: queries where one run loses most to another, with the scores of each stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from dowse.evaluate.datasets import JudgedQuery
from dowse.evaluate.metrics import MAIN
from dowse.evaluate.run import EvalRun, QueryRunner, ScoredQuery, SearchSetting
from dowse.types import ScoredChunk

_LISTED = 3  # relevant documents that a failure lists


class RelevantDocument(msgspec.Struct, frozen=True):
    """Relevant document and its rank in each run."""

    document: str
    ranks: tuple[tuple[str, int | None], ...]  # by run; None: not found
    why: tuple[str, ...]  # score of each stage, as text


class Failure(msgspec.Struct, frozen=True):
    """Query with a worse score in the judged run than in another."""

    dataset: str
    question: JudgedQuery
    value: float
    better: str  # the run that does best
    better_value: float
    relevant: tuple[RelevantDocument, ...]
    instead: tuple[str, ...]  # the first result and its scores, unless it is relevant

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
    return Failure(
        runs[0].dataset,
        question,
        mine.metrics[MAIN],
        best.setting,
        theirs.metrics[MAIN],
        tuple(
            _relevant(each, [(run.setting, run.answered[number]) for run in runs], chunks) for each in right[:_LISTED]
        ),
        _instead(mine, grades, chunks),
    )


def _relevant(
    document: str, answers: Sequence[tuple[str, ScoredQuery]], chunks: Mapping[str, ScoredChunk]
) -> RelevantDocument:
    ranks = tuple(
        (name, answer.ranking.index(document) + 1 if document in answer.ranking else None) for name, answer in answers
    )
    found = chunks.get(document)
    return RelevantDocument(document, ranks, _why(found) if found else ("not among the candidates of any leg",))


def _instead(mine: ScoredQuery, grades: Mapping[str, float], chunks: Mapping[str, ScoredChunk]) -> tuple[str, ...]:
    if not mine.ranking:
        return ("no result",)
    first = mine.ranking[0]
    if grades.get(first, 0.0) > 0 or first not in chunks:
        return ()
    return (f"{first} is first", *_why(chunks[first]))


def _why(chunk: ScoredChunk) -> tuple[str, ...]:
    return tuple(f"{score.stage}: {score.why}" for score in chunk.scores)
