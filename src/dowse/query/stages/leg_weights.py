"""How much each leg counts: what was asked and what was found go in, a weight per answering leg comes out.

A leg that is down leaves its weight to the others, even to one that was given none: an answer of the wrong
kind, with a note, helps more than no answer. A leg that answered "nothing found" is believed: with alpha 0
(words only) a word that occurs nowhere finds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from dowse.types import Leg


class Weights(Protocol):
    """`found` has the number of chunks of every leg that answered, at least one."""

    def settle(self, found: Mapping[Leg, int]) -> dict[Leg, float]: ...


@dataclass(frozen=True)
class Alpha:
    """Dense against words: `alpha` and 1 − `alpha`. The weights add up to 1.

    The two word legs are one channel (C-05) and share its weight equally; when only one of them found
    something, it has all of it. While only a share c of the chunks has a vector, the dense leg speaks for that share:
    its weight is c·alpha/(c·alpha + 1 − alpha). Else the best of a few embedded chunks would outrank every word.
    """

    alpha: float
    coverage: float = 1.0  # share of the chunks that have a vector

    def settle(self, found: Mapping[Leg, int]) -> dict[Leg, float]:
        words: list[Leg] = [leg for leg in found if leg != "dense"]
        firing = [leg for leg in words if found[leg]] or words
        dense = self._dense(found, words)
        settled: dict[Leg, float] = {leg: 0.0 for leg in found} | {leg: (1 - dense) / len(firing) for leg in firing}
        return settled | {"dense": dense} if "dense" in found else settled

    def _dense(self, found: Mapping[Leg, int], words: list[Leg]) -> float:
        if "dense" not in found:
            return 0.0
        if not words:
            return 1.0
        if self.alpha in (0.0, 1.0):  # pure: the other channel is not asked even when this one found nothing
            return self.alpha
        words_found = sum(found[leg] for leg in words)
        if bool(found["dense"]) == bool(words_found):
            spoken_for = self.coverage * self.alpha
            return spoken_for / (spoken_for + 1 - self.alpha)
        return 1.0 if found["dense"] else 0.0


@dataclass(frozen=True)
class ByLeg:
    """Literal weights, kept as they are, so that equal ones give the textbook's unweighted sum."""

    weights: tuple[tuple[Leg, float], ...]

    def settle(self, found: Mapping[Leg, int]) -> dict[Leg, float]:
        given = dict(self.weights)
        settled = {leg: given[leg] for leg in found}
        return settled if any(settled.values()) else dict.fromkeys(found, 1.0)
