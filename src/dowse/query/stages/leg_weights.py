"""Leg weights: from the requested weights and the legs that answered.

A leg that is down leaves its weight to the others, even to one of weight 0: results of the wrong kind, with a note,
help more than none. A leg that found nothing keeps its weight: with alpha 0 (words only) an unknown word finds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec

from dowse.types import LEGS, Leg


class LegWeights(Protocol):
    """Rule that gives each leg that answered a weight. `found` has the number of chunks by leg, at least one leg."""

    def by_leg(self, found: Mapping[Leg, int]) -> dict[Leg, float]: ...


class Alpha(msgspec.Struct, frozen=True):
    """Weights `alpha` of the dense leg and 1 − `alpha` of the words. They add up to 1.

    The two word legs share their weight equally; if only one found chunks, it has all of it. While only a share c of
    the chunks has a vector, the weight of the dense leg is c·alpha/(c·alpha + 1 − alpha). Else the best of a few
    embedded chunks would outrank every word.
    """

    alpha: float
    coverage: float = 1.0  # share of the chunks that have a vector

    def by_leg(self, found: Mapping[Leg, int]) -> dict[Leg, float]:
        words: list[Leg] = [leg for leg in found if leg in LEGS and leg != "dense"]
        firing = [leg for leg in words if found[leg]] or words
        dense = self._dense(found, words)
        weights = dict.fromkeys(words, 0.0) | {leg: (1 - dense) / len(firing) for leg in firing}
        return _with_plugged(weights | {"dense": dense} if "dense" in found else weights, found)

    def _dense(self, found: Mapping[Leg, int], words: list[Leg]) -> float:
        if "dense" not in found:
            return 0.0
        if not words:
            return 1.0
        if self.alpha in (0.0, 1.0):  # pure: the other channel stays off even if this one found nothing
            return self.alpha
        words_found = sum(found[leg] for leg in words)
        if bool(found["dense"]) == bool(words_found):
            covered = self.coverage * self.alpha
            return covered / (covered + 1 - self.alpha)
        return 1.0 if found["dense"] else 0.0


class ByLeg(msgspec.Struct, frozen=True):
    """Literal weights by leg, not normalised, so that equal ones give the textbook's unweighted sum."""

    weights: tuple[tuple[Leg, float], ...]

    def by_leg(self, found: Mapping[Leg, int]) -> dict[Leg, float]:
        given = dict(self.weights)
        weights = _with_plugged({leg: given[leg] for leg in found if leg in given}, found)
        return weights if any(weights.values()) else dict.fromkeys(found, 1.0)


def _with_plugged(weights: dict[Leg, float], found: Mapping[Leg, int]) -> dict[Leg, float]:
    """Return the weights, and for each leg of the user that has none the mean of those above 0."""
    if len(weights) == len(found):
        return weights
    counted = [weight for weight in weights.values() if weight > 0]
    mean = sum(counted) / len(counted) if counted else 1.0
    return {leg: weights.get(leg, mean) for leg in found}
