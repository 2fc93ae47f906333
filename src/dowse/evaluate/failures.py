"""Runs of the same questions go in; the questions where the first loses most to another come out, with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dowse.evaluate.datasets import Question
from dowse.evaluate.metrics import MAIN
from dowse.evaluate.run import Answered, Asker, Run, Setting
from dowse.types import ScoredChunk

_LISTED = 3  # relevant documents whose places are told


@dataclass(frozen=True)
class Relevant:
    """Where a relevant document stands."""

    document: str
    ranks: tuple[tuple[str, int | None], ...]  # by run; None: not found
    why: tuple[str, ...]  # what each stage gave it, in words


@dataclass(frozen=True)
class Failure:
    """A question that the judged run answers worse than another."""

    dataset: str
    question: Question
    value: float
    better: str  # the run that does best
    better_value: float
    relevant: tuple[Relevant, ...]
    instead: tuple[str, ...]  # what stands first and should not, and why; empty when the first is right

    @property
    def loss(self) -> float:
        return self.better_value - self.value


def worst(asker: Asker, judged: Setting, runs: Sequence[Run], count: int) -> list[Failure]:
    """The first run is judged by the best of the others, question by question; most lost first."""
    ours, *others = runs
    losses = []
    for number, mine in enumerate(ours.answered):
        best = max(others, key=lambda run: run.answered[number].metrics[MAIN])
        lost = best.answered[number].metrics[MAIN] - mine.metrics[MAIN]
        if lost > 0:
            losses.append((lost, number, best))
    losses.sort(key=lambda row: (-row[0], row[1]))
    return [_failure(asker, judged, runs, number, best) for _, number, best in losses[:count]]


def _failure(asker: Asker, judged: Setting, runs: Sequence[Run], number: int, best: Run) -> Failure:
    mine, theirs = runs[0].answered[number], best.answered[number]
    question = mine.question
    grades = asker.collection.dataset.grades[question.id]
    chunks: dict[str, ScoredChunk] = {}
    for name, chunk in asker.labelled(asker.result(judged, question, explain=True), question):
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


def _relevant(document: str, answers: Sequence[tuple[str, Answered]], chunks: Mapping[str, ScoredChunk]) -> Relevant:
    ranks = tuple((name, _rank(answer.ranking, document)) for name, answer in answers)
    found = chunks.get(document)
    return Relevant(document, ranks, _why(found) if found else ("no leg brought it among its candidates",))


def _instead(mine: Answered, grades: Mapping[str, float], chunks: Mapping[str, ScoredChunk]) -> tuple[str, ...]:
    if not mine.ranking:
        return ("nothing was found",)
    first = mine.ranking[0]
    if grades.get(first, 0.0) > 0 or first not in chunks:
        return ()
    return (f"{first} stands first", *_why(chunks[first]))


def _rank(ranking: Sequence[str], document: str) -> int | None:
    return ranking.index(document) + 1 if document in ranking else None


def _why(chunk: ScoredChunk) -> tuple[str, ...]:
    return tuple(f"{score.stage}: {score.why}" for score in chunk.scores)
