"""Candidate pools for tuning: the candidates of each query with their exact score in every leg.

With a pool, a fusion setting is tried in a fraction of a millisecond with the formulas of the product and without
the index. Other constants of BM25 need other pools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec
import numpy as np

from dowse.errors import NoRecallError
from dowse.evaluate.datasets import JudgedQuery
from dowse.evaluate.metrics import Figures, ndcg
from dowse.evaluate.run import QueryRunner, SearchSetting
from dowse.identity import number_id
from dowse.ports import STANDARD, Bm25, Ids, Mask, Matrix, Order, Progress, Ranks, Reporter, Table, Values
from dowse.query.assemble import Parts
from dowse.query.pipeline import run
from dowse.query.plan.profiles import Profile
from dowse.query.stages.fusion import ZScore
from dowse.query.stages.leg_weights import Alpha, ByLeg, LegWeights
from dowse.query.stages.neighbour_smoothing import smoothed
from dowse.query.stages.sort import order
from dowse.query.stages.state import Column, Fused
from dowse.types import Leg, QueryRequest

DEEPEST_LEG = 200  # candidates per leg; every depth up to it can be tried
_K = 10


class Knobs(msgspec.Struct, frozen=True):
    """Settings of the word legs and of fusion that can be tuned."""

    alpha: float  # weight of the dense leg
    prose_share: float = 0.5  # share of the prose leg in the weight of words
    exponent: float = 2.0
    depth: int = 100
    hubness: float = 0.0
    smoothing: float = 0.0
    bm25: Bm25 = STANDARD

    @classmethod
    def of(cls, profile: Profile) -> Knobs:
        constants = Bm25(profile.k1, profile.b)
        return cls(profile.alpha, 0.5, profile.exponent, profile.depth, profile.hubness, profile.smoothing, constants)

    @property
    def leg_weights(self) -> tuple[tuple[Leg, float], ...]:
        words = 1 - self.alpha
        prose = words * self.prose_share
        return (("dense", self.alpha), ("bm25_code", words - prose), ("bm25_nlp", prose))

    @property
    def weights(self) -> LegWeights:
        # `alpha` means equal shares; a word leg without results leaves its share to the other.
        return Alpha(self.alpha) if self.prose_share == 0.5 else ByLeg(self.leg_weights)


class CandidateVectors(msgspec.Struct, frozen=True, eq=False):
    """Vectors of all candidates of a collection, for neighbour smoothing without a store."""

    ids: Ids  # rising
    matrix: Matrix
    there: Mask

    def vectors(self, ids: Ids) -> tuple[Matrix, Mask]:
        rows = np.searchsorted(self.ids, ids)
        return self.matrix[rows], self.there[rows]


class CandidatePool(msgspec.Struct, frozen=True, eq=False):
    """Candidates of one query. A row is a leg, a column a chunk."""

    question: JudgedQuery
    legs: tuple[Leg, ...]
    ids: Ids
    labels: tuple[str, ...]  # ids of the chunks in the judgments
    scores: Table
    ranks: Ranks
    grades: Mapping[str, float]
    named: bool = False  # the query contains a name, which skips neighbour smoothing
    vectors: CandidateVectors | None = None  # None: the chunks have no vectors to smooth by

    def figure(self, knobs: Knobs) -> float:
        """Compute nDCG@10 of this query with the given settings."""
        near = (self.ranks > 0) & (self.ranks <= knobs.depth)
        chosen = np.flatnonzero(near.any(axis=0))
        if not len(chosen):
            return 0.0
        found = {leg: int(row.sum()) for leg, row in zip(self.legs, near, strict=True)}
        settled = knobs.weights.by_leg(found)
        fused = self._fused(ZScore(knobs.exponent), chosen, np.array([settled[leg] for leg in self.legs]))
        if self.vectors is not None and not self.named and (knobs.hubness or knobs.smoothing):
            fused = smoothed(fused, self.vectors, knobs.hubness, knobs.smoothing)
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


def figures(pools: Sequence[CandidatePool], knobs: Knobs) -> Figures:
    return np.array([pool.figure(knobs) for pool in pools])


def pools_of(
    runner: QueryRunner, profile: str, bm25: Bm25 = STANDARD, report: Reporter | None = None
) -> list[CandidatePool]:
    """Make the pools of a collection. Other constants of BM25 find and score other candidates."""
    questions = runner.collection.dataset.questions
    asked = QueryRequest("", profile=profile, fusion="z")
    turned = SearchSetting("", asked, (("k1", bm25.k1), ("b", bm25.b)))
    parts = replace(runner.parts, profiles=turned.profiles(runner.parts.profiles))
    found = []
    for number, question in enumerate(questions, start=1):
        found.append(_pool(runner, replace(asked, text=question.text), parts, question))
        if report and (number % 20 == 0 or number == len(questions)):
            phase = f"{runner.collection.dataset.name}: candidates, k1 {bm25.k1:g}, b {bm25.b:g}"
            report(Progress(phase, number, len(questions)))
    if runner.embedder is None:
        return found
    ids = np.unique(np.concatenate([pool.ids for pool in found]))
    vectors = CandidateVectors(ids, *runner.reader.vectors(ids))
    return [msgspec.structs.replace(pool, vectors=vectors) for pool in found]


def _pool(runner: QueryRunner, request: QueryRequest, parts: Parts, question: JudgedQuery) -> CandidatePool:
    ready = runner.prepared(request, parts, DEEPEST_LEG)
    names = [[step.stage.name for step in wave] for wave in ready.waves]
    through_fusion = ready.waves[: names.index(["fuse"]) + 1]
    fused = run(through_fusion, ready.state, None, None).state.fused
    if fused is None:
        raise NoRecallError(f"no leg returned candidates for query {question.id!r}; run `dowse doctor`")
    chunks = runner.chunks([number_id(each) for each in fused.ids.tolist()])
    label = runner.collection.label
    return CandidatePool(
        question,
        tuple(column.leg for column in fused.columns),
        fused.ids,
        tuple(label(question, chunk, frozenset()) for chunk in chunks),
        np.array([column.scores for column in fused.columns]),
        np.array([column.ranks for column in fused.columns]),
        runner.collection.dataset.grades[question.id],
        bool(ready.state.query.mentions),
    )
