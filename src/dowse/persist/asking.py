"""What a snapshot keeps of what it is asked: a filter as the chunks that pass it, terms as where they are said."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dowse.persist.forward import Asked, Slots
from dowse.persist.kernel import Best, Run
from dowse.ports import Mask, Values


@dataclass(frozen=True)
class Selection:
    """The living chunks that pass a filter: as a mask over slots, and as the rows of their vectors."""

    mask: Mask
    count: int
    few: Slots | None = None  # the slots themselves, where there are few
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
