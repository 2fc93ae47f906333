"""Lists become one: the legs' lists go in, their union in one order, with values in [0,1], comes out.

Three formulas, each a small value with two functions: what each leg adds, and how the sum maps to [0,1]. In
all of them a row is a leg and a column is a chunk; a score is NaN where a chunk has no vector yet, a rank
counts from 1 and is 0 where the leg did not bring the chunk.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, isfinite
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np

from dowse.errors import BadRequestError, NoRecallError
from dowse.fusion_kernel import Sums, Tables
from dowse.ports import Found, Ids, Slots, StoreReader, Values
from dowse.query.stages.leg_weights import Weights
from dowse.query.stages.sort import order, order_of_ascending, ranked
from dowse.query.stages.state import Column, Fused, Ranking, Ranks, Slate
from dowse.types import LEGS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Table = NDArray[np.float64]
    RankTable = NDArray[np.int64]
else:
    Table = RankTable = Any

FLAT = 1e-6  # a standard deviation below this is rounding noise (lab/quality.md section 1)
STEEPEST = 700.0  # e^710 is beyond a float
Id = TypeVar("Id", str, int)


def reciprocal_rank_fusion(
    lists: Mapping[str, Sequence[Id]],
    weights: Mapping[str, float] | None = None,
    k: int = 60,
    missing_rank: int | None = None,
) -> list[tuple[Id, float]]:
    """Σ over the lists of weight/(k + rank), best first, ties by id; rank counts from 1.

    k = 60 and equal weights are the original's (Cormack, Clarke and Büttcher, SIGIR 2009). Weights default to
    1 and are not normalised; a list of weight 0 is left out. An id counts once per list, at its first place.
    Where a list does not have an id it adds nothing, or weight/(k + missing_rank) when that is given.
    """
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
    """A formula. `weights` has one entry a leg, at least one of them above 0."""

    @property
    def name(self) -> str: ...

    def parts(self, scores: Table, ranks: RankTable, weights: Values) -> Table:
        """What each leg adds to each chunk."""
        ...

    def unit(self, raw: Values, weights: Values) -> Values:
        """The sums, mapped to [0,1] without changing their order."""
        ...


@dataclass(frozen=True)
class ZScore:
    """Σ w·sign(z)·|z|^exponent, with z = (s − mean)/sd of the leg over the union; w normalised to Σw = 1.

    sd is the population's; a leg with sd < 1e-6 adds 0 everywhere. A chunk without a vector is left out of
    the dense leg's mean and sd and has z = 0. In [0,1]: 1/(1 + e^−sum).
    """

    exponent: float = 2.0
    name: str = "z"

    def parts(self, scores: Table, ranks: RankTable, weights: Values) -> Table:
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


@dataclass(frozen=True)
class MinMax:
    """Σ w·(s − min)/(max − min) of the leg over the union; w normalised to Σw = 1, so the sum is in [0,1] as
    it is.

    A leg whose scores are all equal adds 0, and so does the dense leg to a chunk without a vector.
    """

    name: str = "minmax"

    def parts(self, scores: Table, ranks: RankTable, weights: Values) -> Table:
        known = ~np.isnan(scores)
        low = np.where(known, scores, np.inf).min(axis=1, keepdims=True, initial=np.inf)
        high = np.where(known, scores, -np.inf).max(axis=1, keepdims=True, initial=-np.inf)
        spread = high > low
        above = np.where(known & spread, scores - np.where(spread, low, 0.0), 0.0)
        return _shares(weights) * above / np.where(spread, high - low, 1.0)

    def unit(self, raw: Values, weights: Values) -> Values:
        return np.clip(raw, 0.0, 1.0)  # the weights' sum may be off 1 by a rounding


@dataclass(frozen=True)
class ReciprocalRank:
    """Σ w/(rank_constant + rank), rank from 1, w as given; see `reciprocal_rank_fusion`.

    Where a leg did not bring a chunk it adds 0, or w/(rank_constant + missing_rank). In [0,1]:
    ·(rank_constant + 1)/Σw, so that the first of every list has 1 (C-13).
    """

    rank_constant: int = 60
    missing_rank: int | None = None
    name: str = "rrf"

    def parts(self, scores: Table, ranks: RankTable, weights: Values) -> Table:
        absent = 0.0 if self.missing_rank is None else 1 / (self.rank_constant + self.missing_rank)
        votes = np.where(ranks > 0, 1 / (self.rank_constant + np.maximum(ranks, 1)), absent)
        added: Table = weights[:, None] * votes
        return added

    def unit(self, raw: Values, weights: Values) -> Values:
        attainable = float(weights.sum()) / (self.rank_constant + 1)
        unit: Values = np.clip(raw / attainable, 0.0, 1.0)
        return unit


def _shares(weights: Values) -> Table:
    shares: Table = (weights / weights.sum())[:, None]
    return shares


class Fuse(msgspec.Struct, frozen=True):
    """Complete scoring, then one formula: every chunk of the union has its exact score in every leg.

    A leg that was given no weight brings no candidates either, so that weight 0 is the same as leaving the
    leg out. Each variant of the question is a voter of its own: its legs count its weight (C-22).
    """

    store: StoreReader
    method: Method
    weights: Weights
    name: str = "fuse"

    def __call__(self, slate: Slate, /) -> Slate:
        lists, weights = weighed(slate, self.weights)
        return slate.changed(fused=fused(self.store, self.method, lists, weights))


def weighed(slate: Slate, weights: Weights) -> tuple[list[Ranking], Values]:
    """The lists that take part, question first and legs in order, and what each of them counts."""
    if not slate.lists:
        reasons = "; ".join(f"{each.stage}: {each.reason}" for each in slate.degraded)
        raise NoRecallError(f"no leg answered ({reasons}); run `dowse doctor`")
    asked = slate.query.asked
    rows: list[tuple[Ranking, float]] = []
    for variant in sorted({each.variant for each in slate.lists}):
        own = [each for each in slate.lists if each.variant == variant]
        settled = weights.settle({each.leg: len(each.found.ids) for each in own})
        own = [each for each in own if settled[each.leg] > 0 or not len(each.found.ids)]
        own.sort(key=lambda each: LEGS.index(each.leg))
        rows += [(each, settled[each.leg] * asked[variant].weight) for each in own]
    return [each for each, _ in rows], np.array([weight for _, weight in rows], np.float64)


def fused(store: StoreReader, method: Method, lists: list[Ranking], weights: Values) -> Fused:
    union = _union([each.found for each in lists], store.tables)
    ids = union.ids
    scores = _exact(store, lists, union)
    ranks, parts, raw = _compiled_sums(store.tables, method, union, scores, weights) or _sums(
        method, union, scores, weights
    )
    best = order_of_ascending(raw)
    # Of tables this small the call is what costs, and `take` has a quarter of an index's.
    scores, ranks, parts, raw = scores.take(best, 1), ranks.take(best, 1), parts.take(best, 1), raw.take(best)
    columns = tuple(
        Column(each.leg, float(weights[at]), len(each.found.ids), scores[at], ranks[at], parts[at], each.variant)
        for at, each in enumerate(lists)
    )
    slots = None if union.slots is None else union.slots[best]
    return Fused(method, ids[best], raw, method.unit(raw, weights), columns, slots=slots)


class _Union(NamedTuple):
    """Each chunk once, by id ascending. And of all lists in a row: how long they are, and where an entry is among the
    chunks. `settled` says that all lists are in the order of exact scores.
    """

    ids: Ids
    slots: Slots | None
    sizes: Ranks
    places: Ranks
    settled: bool


def _union(lists: list[Found], tables: Tables | None = None) -> _Union:
    every = np.concatenate([each.ids for each in lists])
    ids, first, places = _each_once(every) if tables is None else tables.union(every)
    slots = [each.slots for each in lists if each.slots is not None]
    known = np.concatenate(slots)[first] if len(slots) == len(lists) else None
    sizes = np.array([len(each.ids) for each in lists], np.int64)
    return _Union(ids, known, sizes, places, all(each.settled for each in lists))


def _each_once(every: Ids) -> tuple[Ids, Ranks, Ranks]:
    """`np.unique` with its inverse, without the cost of its many choices."""
    order = every.argsort()
    ids = every[order]
    new = np.empty(len(ids), np.bool_)
    new[:1] = True
    np.not_equal(ids[1:], ids[:-1], out=new[1:])
    ids = ids[new]
    return ids, order[new], ids.searchsorted(every)


def _exact(store: StoreReader, lists: list[Ranking], union: _Union) -> Table:
    ids, slots = union.ids, union.slots
    if not len(ids):  # nothing to ask about; an empty store does not even know its vectors' length
        return np.zeros((len(lists), 0))
    words = {
        variant: store.score_words(
            {each.leg: each.terms for each in lists if each.variant == variant and each.vector is None}, ids, slots
        )
        for variant in {each.variant for each in lists}
    }
    return np.array(
        [
            words[each.variant][each.leg] if each.vector is None else store.score_vectors(each.vector, ids, slots)
            for each in lists
        ],
        np.float64,
    )


def _compiled_sums(tables: Tables | None, method: Method, union: _Union, scores: Table, weights: Values) -> Sums | None:
    """None where there is nothing compiled for this method and these scores."""
    if tables is None or not isinstance(method, ZScore) or method.exponent != 2:
        return None
    return tables.squares(scores, union.places, union.sizes, weights / weights.sum(), FLAT)


def _sums(method: Method, union: _Union, scores: Table, weights: Values) -> Sums:
    ranks = _ranks(union, scores)
    parts = method.parts(scores, ranks, weights)
    return ranks, parts, parts.sum(axis=0)


def _ranks(union: _Union, scores: Table) -> RankTable:
    """Ranks by exact score among a leg's own chunks; the order of an approximate leg is forgotten."""
    ranks = np.zeros(scores.shape, np.int64)
    owners, places = np.repeat(np.arange(len(union.sizes)), union.sizes), union.places
    if union.settled or _falling(scores[owners, places], owners, places):  # a sort would change nothing
        starts = union.sizes.cumsum() - union.sizes
        ranks[owners, places] = np.arange(1, len(places) + 1) - starts[owners]
        return ranks
    for number, row in enumerate(scores):
        ranks[number] = _sorted_ranks(places[owners == number], row, union.ids)
    return ranks


def _falling(given: Values, owners: Ranks, places: Ranks) -> bool:
    """Whether scores fall in every list, and ids ascend where they do not; as exact legs give them."""
    falling = given[1:] < given[:-1]
    falling |= owners[1:] != owners[:-1]
    if not falling.all():  # places ascend as ids do
        falling |= (given[1:] == given[:-1]) & (places[1:] > places[:-1])
    return bool(falling.all()) and not np.isnan(given).any()


def _sorted_ranks(places: Ranks, scores: Values, ids: Ids) -> Ranks:
    ranks = np.zeros(len(ids), np.int64)
    brought = np.zeros(len(ids), np.bool_)
    brought[places] = ~np.isnan(scores[places])  # a chunk named twice has one place
    rows = np.flatnonzero(brought)
    ranks[rows[order(scores[rows], ids[rows])]] = np.arange(1, len(rows) + 1)
    return ranks
