"""A collection goes in; each question's candidates come out with their exact score in every leg.

With these, a setting of the fusion is tried in a fraction of a millisecond, by the product's own formulas and without
asking the index again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dowse.errors import NoRecallError
from dowse.evaluate.bootstrap import Figures
from dowse.evaluate.datasets import Question
from dowse.evaluate.metrics import ndcg
from dowse.evaluate.run import Asker
from dowse.identity import number_id
from dowse.ports import Ids, Progress, Reporter
from dowse.query.fuse import RankTable, Table, ZScore
from dowse.query.pipeline import prepared, run
from dowse.query.profiles import Profile
from dowse.query.ranking import order
from dowse.query.weights import Alpha, ByLeg, Weights
from dowse.types import Leg, QueryRequest

DEEPEST_LEG = 200  # candidates per leg that are kept, so that every depth up to it can be tried
_K = 10


@dataclass(frozen=True)
class Knobs:
    """What can be turned in the fusion."""

    alpha: float  # weight of the dense leg
    prose_share: float = 0.5  # of what is left for words
    exponent: float = 1.5
    depth: int = 100

    @classmethod
    def of(cls, profile: Profile) -> Knobs:
        return cls(profile.alpha, 0.5, profile.exponent, profile.depth)

    @property
    def leg_weights(self) -> tuple[tuple[Leg, float], ...]:
        words = 1 - self.alpha
        prose = words * self.prose_share
        return (("dense", self.alpha), ("bm25_code", words - prose), ("bm25_nlp", prose))

    @property
    def weights(self) -> Weights:
        # Equal shares are what `alpha` means; then a word leg that found nothing leaves its share to the other.
        return Alpha(self.alpha) if self.prose_share == 0.5 else ByLeg(self.leg_weights)


@dataclass(frozen=True, eq=False)
class Pool:
    """One question's candidates. A row is a leg, a column a chunk."""

    question: Question
    legs: tuple[Leg, ...]
    ids: Ids
    labels: tuple[str, ...]  # by which the judgments know each chunk
    scores: Table
    ranks: RankTable
    grades: Mapping[str, float]

    def figure(self, knobs: Knobs) -> float:
        """nDCG@10 of this question with the knobs so turned."""
        near = (self.ranks > 0) & (self.ranks <= knobs.depth)
        chosen = np.flatnonzero(near.any(axis=0))
        if not len(chosen):
            return 0.0
        found = {leg: int(row.sum()) for leg, row in zip(self.legs, near, strict=True)}
        settled = knobs.weights.settle(found)
        weights = np.array([settled[leg] for leg in self.legs])
        scores = self.scores[:, chosen]
        values = ZScore(knobs.exponent).parts(scores, self.ranks[:, chosen], weights).sum(axis=0)
        best = chosen[order(values, self.ids[chosen])]
        ranking = dict.fromkeys(self.labels[at] for at in best.tolist())
        return ndcg(list(ranking)[:_K], self.grades, _K)


def figures(pools: Sequence[Pool], knobs: Knobs) -> Figures:
    return np.array([pool.figure(knobs) for pool in pools])


def pools_of(asker: Asker, profile: str, report: Reporter | None = None) -> list[Pool]:
    questions = asker.collection.dataset.questions
    found = []
    for number, question in enumerate(questions, start=1):
        found.append(_pool(asker, profile, question))
        if report and (number % 20 == 0 or number == len(questions)):
            report(Progress(f"{asker.collection.dataset.name}: candidates", number, len(questions)))
    return found


def _pool(asker: Asker, profile: str, question: Question) -> Pool:
    request = QueryRequest(question.text, profile=profile, fusion="z", depth=DEEPEST_LEG)
    ready = prepared(request, asker.reader, asker.embedder, asker.tokenizer, parts=asker.parts)
    names = [[step.stage.name for step in wave] for wave in ready.waves]
    through_fusion = ready.waves[: names.index(["fuse"]) + 1]
    fused = run(through_fusion, ready.slate, None, None).slate.fused
    if fused is None:
        raise NoRecallError(f"no leg answered {question.id!r}; run `dowse doctor`")
    chunks = asker.chunks([number_id(each) for each in fused.ids.tolist()])
    label = asker.collection.label
    return Pool(
        question,
        tuple(column.leg for column in fused.columns),
        fused.ids,
        tuple(label(question, chunk, frozenset()) for chunk in chunks),
        np.array([column.scores for column in fused.columns]),
        np.array([column.ranks for column in fused.columns]),
        asker.collection.dataset.grades[question.id],
    )
