"""Fusion: the lists of the legs become one ranked list with values in [0,1].

Three formulas, each with two functions: the addends of each leg, and the map of their sum to [0,1]. A row of a table is
a leg, a column a chunk. A score is NaN where a chunk has no vector yet; a rank is 0 where the leg did not find it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import fsum, isfinite
from typing import NamedTuple, Protocol

import msgspec
import numpy as np

from dowse.errors import BadRequestError, NoRecallError
from dowse.fusion_kernel import FusionKernel, Sums
from dowse.ports import Found, Ids, QuerySession, Ranks, Table, Values
from dowse.query.stages.leg_weights import LegWeights
from dowse.query.stages.sort import Id, order, order_of_ascending, ranked
from dowse.query.stages.state import Column, Fused, QueryState, Ranking
from dowse.types import LEGS, Leg

FLAT = 1e-6  # a standard deviation below this is rounding noise
STEEPEST = 700.0  # e^710 is beyond a float


def reciprocal_rank_fusion(
    lists: Mapping[str, Sequence[Id]],
    weights: Mapping[str, float] | None = None,
    k: int = 60,
    missing_rank: int | None = None,
) -> list[tuple[Id, float]]:
    """Return Σ over the lists of weight/(k + rank), best first, ties by id; rank counts from 1.

    k = 60 and equal weights are the original's (Cormack, Clarke and Büttcher, SIGIR 2009). Weights default to
    1 and are not normalised; a list of weight 0 is left out. An id counts once per list, at its first place.
    A list without the id adds nothing, or weight/(k + missing_rank) if that is given.
    """
    if not isinstance(lists, Mapping):
        raise BadRequestError("give the lists by name, as in {'dense': ids, 'bm25_code': ids, 'bm25_nlp': ids}")
    given = dict.fromkeys(lists, 1.0) if weights is None else dict(weights)
    _check_votes(lists, given, k, missing_rank)
    places = {
        name: {each: rank for rank, each in enumerate(dict.fromkeys(ids), start=1)}
        for name, ids in lists.items()
        if given[name] > 0
    }
    absent = 0.0 if missing_rank is None else 1 / (k + missing_rank)
    # fsum is exact, so the order in which the lists are named cannot decide a tie.
    return ranked(
        (
            each,
            fsum(given[n] / (k + at[each]) if each in at else given[n] * absent for n, at in places.items()),
        )
        for each in dict.fromkeys(each for at in places.values() for each in at)
    )


def _check_votes(
    lists: Mapping[str, Sequence[Hashable]], weights: Mapping[str, float], k: int, missing_rank: int | None
) -> None:
    if set(weights) != set(lists):
        raise BadRequestError(f"weights are for {sorted(weights)}, lists are {sorted(lists)}; give one weight to each")
    for name, weight in weights.items():
        if not (isfinite(weight) and weight >= 0):
            raise BadRequestError(f"the weight of {name!r} is {weight}; give a number of at least 0")
    if k < 0:
        raise BadRequestError(f"k is {k}; give a number of at least 0")
    if missing_rank is not None and missing_rank < 1:
        raise BadRequestError(f"missing_rank is {missing_rank}; ranks count from 1")


class Method(Protocol):
    """A fusion formula. `weights` has one entry per leg, at least one of them above 0."""

    @property
    def name(self) -> str: ...

    def parts(self, scores: Table, ranks: Ranks, weights: Values) -> Table:
        """Return the addend of each leg for each chunk."""

    def unit(self, raw: Values, weights: Values) -> Values:
        """Return the sums mapped to [0,1] in the same order."""


class ZScore(msgspec.Struct, frozen=True):
    """Σ w·sign(z)·|z|^exponent, with z = (s − mean)/sd of the leg over the union; w normalised to Σw = 1.

    sd is the population's; a leg with sd < 1e-6 adds 0 everywhere. A chunk without a vector is left out of
    the dense leg's mean and sd and has z = 0. In [0,1]: 1/(1 + e^−sum).
    """

    exponent: float = 2.0
    name: str = "z"

    def parts(self, scores: Table, ranks: Ranks, weights: Values) -> Table:
        unknown = np.isnan(scores)
        if unknown.any():
            count = np.maximum((~unknown).sum(axis=1, keepdims=True), 1)
            mean = np.where(unknown, 0.0, scores).sum(axis=1, keepdims=True) / count
            apart = np.where(unknown, 0.0, scores - mean)
        else:
            count = max(scores.shape[1], 1)
            apart = scores - scores.sum(axis=1, keepdims=True) / count
        deviation = np.sqrt((apart * apart).sum(axis=1, keepdims=True) / count)
        deviation[deviation < FLAT] = np.inf  # so that z is 0 where all are alike
        z: Table = apart / deviation
        return _shares(weights) * np.copysign(np.abs(z) ** self.exponent, z)

    def unit(self, raw: Values, weights: Values) -> Values:
        return 1.0 / (1.0 + np.exp(np.minimum(-raw, STEEPEST)))


class MinMax(msgspec.Struct, frozen=True):
    """Σ w·(s − min)/(max − min) of the leg over the union; w normalised to Σw = 1, so the sum is in [0,1].

    A leg whose scores are all equal adds 0, and so does the dense leg to a chunk without a vector.
    """

    name: str = "minmax"

    def parts(self, scores: Table, ranks: Ranks, weights: Values) -> Table:
        known = ~np.isnan(scores)
        low = np.where(known, scores, np.inf).min(axis=1, keepdims=True, initial=np.inf)
        high = np.where(known, scores, -np.inf).max(axis=1, keepdims=True, initial=-np.inf)
        spread = high > low
        above = np.where(known & spread, scores - np.where(spread, low, 0.0), 0.0)
        return _shares(weights) * above / np.where(spread, high - low, 1.0)

    def unit(self, raw: Values, weights: Values) -> Values:
        return np.clip(raw, 0.0, 1.0)  # the weights' sum may be off 1 by a rounding


class ReciprocalRank(msgspec.Struct, frozen=True):
    """Σ w/(rank_constant + rank), rank from 1, w as given; see `reciprocal_rank_fusion`.

    A leg that did not find a chunk adds 0, or w/(rank_constant + missing_rank). In [0,1]:
    ·(rank_constant + 1)/Σw, so that the first of every list has 1.
    """

    rank_constant: int = 60
    missing_rank: int | None = None
    name: str = "rrf"

    def parts(self, scores: Table, ranks: Ranks, weights: Values) -> Table:
        absent = 0.0 if self.missing_rank is None else 1 / (self.rank_constant + self.missing_rank)
        votes = np.where(ranks > 0, 1 / (self.rank_constant + np.maximum(ranks, 1)), absent)
        return np.multiply(weights[:, None], votes)

    def unit(self, raw: Values, weights: Values) -> Values:
        attainable = float(weights.sum()) / (self.rank_constant + 1)
        return np.clip(raw / attainable, 0.0, 1.0)


def _shares(weights: Values) -> Table:
    shares: Table = (weights / weights.sum())[:, None]
    return shares


class Fuse(msgspec.Struct, frozen=True):
    """Stage that scores every chunk of the union exactly in every leg, and applies one formula.

    A leg of weight 0 adds no candidates either, as if it were off. Each variant of the query votes with its own weight.
    """

    store: QuerySession
    method: Method
    weights: LegWeights
    kernel: FusionKernel | None = None  # compiled arithmetic; None: numpy
    name: str = "fuse"

    def __call__(self, state: QueryState, /) -> QueryState:
        lists, weights = weighed(state, self.weights)
        return state.changed(fused=fused(self.store, self.method, lists, weights, self.kernel))


def weighed(state: QueryState, weights: LegWeights) -> tuple[list[Ranking], Values]:
    """Return the lists that take part, the query's first and legs in order, and their weights."""
    if not state.lists:
        reasons = "; ".join(f"{each.stage}: {each.reason}" for each in state.degraded)
        raise NoRecallError(f"no leg answered ({reasons}); run `dowse doctor`")
    wordings = state.query.wordings
    rows: list[tuple[Ranking, float]] = []
    for variant in sorted({each.variant for each in state.lists}):
        own = [each for each in state.lists if each.variant == variant]
        by_leg = weights.by_leg({each.leg: len(each.found.ids) for each in own})
        own = [each for each in own if by_leg[each.leg] > 0 or not len(each.found.ids)]
        own.sort(key=lambda each: LEGS.index(each.leg) if each.leg in LEGS else len(LEGS))  # stable
        rows += [(each, by_leg[each.leg] * wordings[variant].weight) for each in own]
    return [each for each, _ in rows], np.array([weight for _, weight in rows], np.float64)


def fused(
    store: QuerySession, method: Method, lists: list[Ranking], weights: Values, kernel: FusionKernel | None = None
) -> Fused:
    union = _union([each.found for each in lists], kernel)
    ids = union.ids
    scores = exact_scores(store, lists, ids)
    ranks, parts, raw = _compiled_sums(kernel, method, union, scores, weights) or _sums(method, union, scores, weights)
    best = order_of_ascending(raw)
    # The call dominates for tables this small, and `take` costs a quarter of indexing.
    scores, ranks, parts, raw = scores.take(best, 1), ranks.take(best, 1), parts.take(best, 1), raw.take(best)
    columns = tuple(
        Column(each.leg, float(weights[at]), len(each.found.ids), scores[at], ranks[at], parts[at], each.variant)
        for at, each in enumerate(lists)
    )
    return Fused(method, ids[best], raw, method.unit(raw, weights), columns)


class _Union(NamedTuple):
    """Each chunk once, by ascending id; lengths of the lists; position of each list entry among the chunks."""

    ids: Ids
    sizes: Ranks
    places: Ranks


def _union(lists: list[Found], kernel: FusionKernel | None = None) -> _Union:
    every = np.concatenate([each.ids for each in lists])
    ids, places = _each_once(every) if kernel is None else kernel.union(every)
    return _Union(ids, np.array([len(each.ids) for each in lists], np.int64), places)


def _each_once(every: Ids) -> tuple[Ids, Ranks]:
    """Return `np.unique` with its inverse, at less cost."""
    ids = np.sort(every)
    new = np.empty(len(ids), np.bool_)
    new[:1] = True
    np.not_equal(ids[1:], ids[:-1], out=new[1:])
    ids = ids[new]
    return ids, ids.searchsorted(every)


def exact_scores(store: QuerySession, lists: list[Ranking], ids: Ids) -> Table:
    """Score the chunks in every list; a row is a list."""
    if not len(ids):  # an empty store has no vector dimension
        return np.zeros((len(lists), 0))
    terms: dict[int, dict[Leg, tuple[str, ...]]] = {}
    for each in lists:
        if each.terms is not None:
            terms.setdefault(each.variant, {})[each.leg] = each.terms
    words = {variant: store.score_words(of_variant, ids) for variant, of_variant in terms.items()}
    rows: list[Values] = []
    for each in lists:
        if each.terms is not None:
            rows.append(words[each.variant][each.leg])
        else:
            rows.append(_given(each.found, ids) if each.vector is None else store.score_vectors(each.vector, ids))
    return np.array(rows, np.float64)


def _given(found: Found, ids: Ids) -> Values:
    """Return the scores of a plugged-in leg; a chunk that it did not find has 0, or its lowest score if lower."""
    scores = dict(zip(found.ids.tolist(), found.scores.tolist(), strict=True))
    lowest = min(0.0, *scores.values()) if scores else 0.0
    return np.array([scores.get(each, lowest) for each in ids.tolist()], np.float64)


def _compiled_sums(
    kernel: FusionKernel | None, method: Method, union: _Union, scores: Table, weights: Values
) -> Sums | None:
    if kernel is None or not isinstance(method, ZScore) or method.exponent != 2:
        return None
    return kernel.squares(scores, union.places, union.sizes, weights / weights.sum(), FLAT)


def _sums(method: Method, union: _Union, scores: Table, weights: Values) -> Sums:
    ranks = _ranks(union, scores)
    parts = method.parts(scores, ranks, weights)
    return ranks, parts, parts.sum(axis=0)


def _ranks(union: _Union, scores: Table) -> Ranks:
    """Return ranks by exact score among the chunks that a leg found, whatever order it gave."""
    ranks = np.zeros(scores.shape, np.int64)
    owners, places = np.repeat(np.arange(len(union.sizes)), union.sizes), union.places
    if _falling(scores[owners, places], owners, places):  # a sort would change nothing
        starts = union.sizes.cumsum() - union.sizes
        ranks[owners, places] = np.arange(1, len(places) + 1) - starts[owners]
        return ranks
    for number, row in enumerate(scores):
        ranks[number] = _sorted_ranks(places[owners == number], row, union.ids)
    return ranks


def _falling(given: Values, owners: Ranks, places: Ranks) -> bool:
    """Return whether each list is sorted by falling score, then ascending id, as exact legs are."""
    falling = given[1:] < given[:-1]
    falling |= owners[1:] != owners[:-1]
    if not falling.all():  # places ascend as ids do
        falling |= (given[1:] == given[:-1]) & (places[1:] > places[:-1])
    return bool(falling.all()) and not np.isnan(given).any()


def _sorted_ranks(places: Ranks, scores: Values, ids: Ids) -> Ranks:
    ranks = np.zeros(len(ids), np.int64)
    brought = np.zeros(len(ids), np.bool_)
    brought[places] = ~np.isnan(scores[places])  # a chunk counts once
    rows = np.flatnonzero(brought)
    ranks[rows[order(scores[rows], ids[rows])]] = np.arange(1, len(rows) + 1)
    return ranks
