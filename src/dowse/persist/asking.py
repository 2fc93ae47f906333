"""What a snapshot keeps of what it is asked: a filter as the chunks that pass it, terms as where they are said."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dowse.persist.forward import WORD_LEGS, Asked, ForwardReader, Slots
from dowse.persist.kernel import Best, Kernel, Norm, Run
from dowse.ports import Mask, Values
from dowse.types import Leg

_OFTEN = 16  # times a leg is asked about a few chunks before their words are turned around; that takes as long as 12


class Few:
    """The few chunks that pass a filter: a leg scores them one and all.

    What each of them says is gone through, and once that was often, turned around: a filter that comes again and again
    is worth a run of its own, in which a question finds its entries at once. 500 chunks, a leg: .01 ms instead of .07.
    """

    def __init__(self, slots: Slots, forward: ForwardReader, kernel: Kernel) -> None:
        self.slots = slots  # ascending
        self._forward = forward
        self._kernel = kernel
        self._times = 0
        self._turned: tuple[Run, dict[Leg, NDArray[np.uint32]]] | None = None

    def score(self, leg: Leg, asked: Asked, norm: Norm) -> Values:
        """By place among the slots."""
        self._times += 1
        if self._turned is None:
            if self._times <= _OFTEN:
                return self._forward.score(self.slots, {leg: asked}, {leg: norm})[leg]
            lengths = self._forward.lengths.by_leg[:, self.slots]
            self._turned = self._forward.turned(self.slots), dict(zip(WORD_LEGS, lengths, strict=True))
        run, lengths_of = self._turned
        starts, ends = self._kernel.find(run, asked.hashes)
        return self._kernel.sums(run, (starts, ends, asked.weights), Norm(lengths_of[leg], norm.base, norm.slope))


@dataclass(frozen=True)
class Selection:
    """The living chunks that pass a filter: as a mask over slots, and as the rows of their vectors."""

    mask: Mask
    count: int
    few: Few | None = None  # the chunks themselves, where there are few
    owners: NDArray[np.uint32] | None = None  # by row of the vectors, the slot it belongs to

    @cached_property
    def vectors(self) -> Slots | None:
        """None: all of them."""
        if self.owners is None or self.count == len(self.mask):
            return None
        return np.flatnonzero(self.mask[self.owners])


@dataclass(eq=False)
class Question:
    """A list of terms put to a leg: what is asked, where the runs have it, and the most a chunk could score.

    `few` are slots that were scored one and all, ascending, and their scores: fusion asks for some of them again.
    """

    asked: Asked
    spans: list[tuple[Run, Slots, Slots]]
    attainable: float
    few: Best | None = None

    def known(self, slots: Slots) -> Values | None:
        """Their scores, if all were among the few."""
        few = self.few
        if few is None or not len(few[0]):
            return None
        own, scores = few
        at = np.minimum(own.searchsorted(slots), len(own) - 1)
        return scores[at] if (own[at] == slots).all() else None
