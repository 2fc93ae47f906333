"""What a snapshot keeps of what it is asked: a filter as the chunks that pass it, terms as where they are said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dowse.persist.forward import WORD_LEGS, Asked, ForwardReader, Slots
from dowse.persist.kernel import Kernel, Norm, Packed, Rows, Run, Wanted
from dowse.persist.vectors import VectorReader
from dowse.ports import Mask, Values
from dowse.types import Leg

_OFTEN = 32  # legs asked about the same few chunks before more is kept of them, which takes as long as some 30: 2.7 ms


class Few:
    """The few chunks that pass a filter: a leg scores them one and all.

    What each of them says is gone through, and once that was often, turned around: a filter that comes again and again
    is worth a run of its own, in which a question finds its entries at once, and a copy of its vectors. 500 chunks, ms:
    a leg of words .01 instead of .07, cosines .03 instead of .06; for some 1.7 KB a chunk.
    """

    def __init__(self, slots: Slots, forward: ForwardReader, kernel: Kernel) -> None:
        self.slots = slots  # ascending
        self._forward = forward
        self._kernel = kernel
        self._times = 0
        self._turned: tuple[Run, dict[Leg, NDArray[np.uint32]]] | None = None
        self._vectors: Packed | None = None

    def _often(self) -> bool:
        self._times += 1
        return self._times > _OFTEN

    def vectors(self, reader: VectorReader, rows: Rows | None) -> Packed | None:
        """Those of the chunks side by side, if it is worth it; `rows` are theirs."""
        if self._vectors is None and rows is not None and self._often():
            self._vectors = reader.beside(rows)
        return self._vectors

    def score(self, leg: Leg, asked: Asked, norm: Norm) -> Values:
        """By place among the slots."""
        if self._turned is None:
            if not self._often():
                return self._forward.score(self.slots, {leg: asked}, {leg: norm})[leg]
            lengths = self._forward.lengths.by_leg[:, self.slots]
            self._turned = self._forward.turned(self.slots), dict(zip(WORD_LEGS, lengths, strict=True))
        run, lengths_of = self._turned
        own = Norm(lengths_of[leg], norm.base, norm.slope)
        return self._kernel.sums(run, Wanted(asked.hashes, asked.weights, own))

    def places(self, slots: Slots) -> Slots | None:
        """Where some slots are among these, if all of them are."""
        own = self.slots
        if not len(own):
            return None
        at = np.minimum(own.searchsorted(slots), len(own) - 1)
        return at if (own[at] == slots).all() else None


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

    `few` are chunks that were scored one and all, and their scores: fusion asks for some of them again.
    """

    asked: Asked
    spans: list[tuple[Run, Slots, Slots]]
    attainable: float
    few: tuple[Few, Values] | None = None


def counted(terms: Sequence[str]) -> dict[str, int]:
    """How often each is said; a `Counter` takes three times as long to make."""
    said: dict[str, int] = {}
    for term in terms:
        said[term] = said.get(term, 0) + 1
    return said


def known(questions: Mapping[Leg, Question], slots: Slots) -> dict[Leg, Values]:
    """Of the legs that scored all these slots among others, their scores."""
    found: dict[Leg, Values] = {}
    places: dict[Few, Slots | None] = {}  # the legs of a query were asked about the same few
    for leg, question in questions.items():
        if question.few is None:
            continue
        few, scores = question.few
        if few not in places:
            places[few] = few.places(slots)
        if (at := places[few]) is not None:
            found[leg] = scores[at]
    return found
