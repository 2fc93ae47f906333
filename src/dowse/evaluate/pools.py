"""A collection goes in; each question's candidates come out with their exact score in every leg.

With these, a setting of the fusion is tried in a fraction of a millisecond, by the product's own formulas and without
asking the index again. Other constants of BM25 need candidates of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dowse.errors import NoRecallError
from dowse.evaluate.bootstrap import Figures
from dowse.evaluate.datasets import Question
from dowse.evaluate.metrics import ndcg
from dowse.evaluate.run import Asker, Setting
from dowse.identity import number_id
from dowse.ports import STANDARD, Bm25, Ids, Mask, Matrix, Progress, Reporter, Slots, Values
from dowse.query.assemble import Parts
from dowse.query.pipeline import run
from dowse.query.plan.profiles import Profile
from dowse.query.stages.fusion import RankTable, Table, ZScore
from dowse.query.stages.leg_weights import Alpha, ByLeg, Weights
from dowse.query.stages.neighbour_smoothing import with_company
from dowse.query.stages.sort import Order, order
from dowse.query.stages.state import Column, Fused
from dowse.types import Leg, QueryRequest

DEEPEST_LEG = 200  # candidates per leg that are kept, so that every depth up to it can be tried
_K = 10


@dataclass(frozen=True)
class Knobs:
    """What can be turned in the word legs and in the fusion."""

    alpha: float  # weight of the dense leg
    prose_share: float = 0.5  # of what is left for words
    exponent: float = 2.0
    depth: int = 100
    crowd: float = 0.0
    pull: float = 0.0
    bm25: Bm25 = STANDARD

    @classmethod
    def of(cls, profile: Profile) -> Knobs:
        constants = Bm25(profile.k1, profile.b)
        return cls(profile.alpha, 0.5, profile.exponent, profile.depth, profile.crowd, profile.pull, constants)

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
class Kept:
    """Vectors of all candidates of a collection, each once; in the place of a store for
    `dowse.query.stages.neighbour_smoothing`.
    """

    ids: Ids  # rising
    matrix: Matrix
    there: Mask

    @classmethod
    def of(cls, asker: Asker, pools: Sequence[Pool]) -> Kept:
        ids = np.unique(np.concatenate([pool.ids for pool in pools]))
        return cls(ids, *asker.reader.vectors(ids))

    def vectors(self, ids: Ids, slots: Slots | None = None) -> tuple[Matrix, Mask]:
        rows = np.searchsorted(self.ids, ids)
        return self.matrix[rows], self.there[rows]


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
    named: bool = False  # the question names a thing, so that no company is asked
    kept: Kept | None = None  # None: the chunks have no vectors, and keep no company

    def figure(self, knobs: Knobs) -> float:
        """nDCG@10 of this question with the knobs so turned."""
        near = (self.ranks > 0) & (self.ranks <= knobs.depth)
        chosen = np.flatnonzero(near.any(axis=0))
        if not len(chosen):
            return 0.0
        found = {leg: int(row.sum()) for leg, row in zip(self.legs, near, strict=True)}
        settled = knobs.weights.settle(found)
        fused = self._fused(ZScore(knobs.exponent), chosen, np.array([settled[leg] for leg in self.legs]))
        if self.kept is not None and not self.named and (knobs.crowd or knobs.pull):
            fused = with_company(fused, self.kept, knobs.crowd, knobs.pull)
        label = dict(zip(self.ids.tolist(), self.labels, strict=True))
        ranking = dict.fromkeys(label[each] for each in fused.ids.tolist())
        return ndcg(list(ranking)[:_K], self.grades, _K)

    def _fused(self, method: ZScore, chosen: Order, weights: Values) -> Fused:
        scores, ranks = self.scores[:, chosen], self.ranks[:, chosen]
        parts = method.parts(scores, ranks, weights)
        raw = parts.sum(axis=0)
        best = order(raw, self.ids[chosen])
        columns = tuple(
            Column(leg, float(weights[at]), 0, scores[at, best], ranks[at, best], parts[at, best])
            for at, leg in enumerate(self.legs)
        )
        return Fused(method, self.ids[chosen][best], raw[best], raw[best], columns)


def figures(pools: Sequence[Pool], knobs: Knobs) -> Figures:
    return np.array([pool.figure(knobs) for pool in pools])


def pools_of(asker: Asker, profile: str, bm25: Bm25 = STANDARD, report: Reporter | None = None) -> list[Pool]:
    """With other constants the word legs find others, and score all of them anew."""
    questions = asker.collection.dataset.questions
    asked = QueryRequest("", profile=profile, fusion="z")
    turned = Setting("", asked, (("k1", bm25.k1), ("b", bm25.b)))
    parts = replace(asker.parts, profiles=turned.profiles(asker.parts.profiles))
    found = []
    for number, question in enumerate(questions, start=1):
        found.append(_pool(asker, replace(asked, text=question.text), parts, question))
        if report and (number % 20 == 0 or number == len(questions)):
            phase = f"{asker.collection.dataset.name}: candidates, k1 {bm25.k1:g}, b {bm25.b:g}"
            report(Progress(phase, number, len(questions)))
    if asker.embedder is None:
        return found
    kept = Kept.of(asker, found)
    return [replace(pool, kept=kept) for pool in found]


def _pool(asker: Asker, request: QueryRequest, parts: Parts, question: Question) -> Pool:
    ready = asker.prepared(request, parts, DEEPEST_LEG)
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
        bool(ready.slate.query.mentions),
    )
