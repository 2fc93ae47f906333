"""What a snapshot keeps of what it is asked: a filter as the chunks that pass it, terms as where they are said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock, local
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from dowse.ports import Mask, Values
from dowse.store.kernels.numpy_kernel import Kernel, Norm, Rows, Run, Spans, Tally, Wanted
from dowse.store.segments.forward import WORD_LEGS, Asked, ForwardReader, Slots
from dowse.store.segments.vectors import Layers, VectorReader
from dowse.types import Leg

_OFTEN = 21  # word legs asked about the same few chunks before these are turned, which takes as long as some 30: 2.2 ms
_CODES_AFTER, _VECTORS_AFTER = 1, 10  # questions to a filter before its codes are copied, which takes .1 ms, and more
_ROOM_BYTES = 1 << 26  # that copies for the filters of one moment take together at most; chosen


class Few:
    """The few chunks that pass a filter: a word leg scores them one and all.

    What each of them says is gone through, and once that was often, turned around: a filter that comes again and again
    is worth a run of its own, in which a question finds its entries at once. 500 chunks: .01 ms a leg instead of .07,
    for some .9 KB a chunk.
    """

    def __init__(self, slots: Slots, forward: ForwardReader, kernel: Kernel) -> None:
        self.slots = slots  # ascending
        self._forward = forward
        self._kernel = kernel
        self._times = 0
        self._turned: tuple[Run, dict[Leg, NDArray[np.uint32]]] | None = None

    def score(self, leg: Leg, asked: Asked, norm: Norm) -> Values:
        """By place among the slots."""
        if self._turned is None:
            self._times += 1
            if self._times <= _OFTEN:
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


class Room:
    """What copies may take together, for as long as the filters are remembered that they are for."""

    def __init__(self, all_bytes: int = _ROOM_BYTES) -> None:
        self._all_bytes = self._left_bytes = all_bytes
        self._lock = Lock()

    def has(self, wanted_bytes: int) -> bool:
        """If so, it is taken."""
        with self._lock:
            if wanted_bytes > self._left_bytes:
                return False
            self._left_bytes -= wanted_bytes
            return True

    def empty(self) -> None:
        """The filters are forgotten, and what was copied for them."""
        with self._lock:
            self._left_bytes = self._all_bytes


class Beside:
    """The vectors of the chunks that pass a filter, copied side by side when it comes again: first their codes, which
    are 48 bytes a chunk of 384 dimensions, and when it comes often, all of them, 772 more.

    10,000 of 100,000 chunks pass: distances of the codes .01 ms instead of .1, the whole dense leg .21 instead of .44.
    """

    def __init__(self, reader: VectorReader, rows: Rows, room: Room) -> None:
        self._reader = reader
        self._rows = rows
        self._room = room
        self._times = 0
        self._layers: Layers | None = None
        self._copying = Lock()

    def layers(self) -> Layers | None:
        """What is copied so far. Asked once a question."""
        if self._copying.acquire(blocking=False):  # who comes while another copies takes what there is
            try:
                self._copy_more()
            finally:
                self._copying.release()
        return self._layers

    def _copy_more(self) -> None:
        self._times += 1
        reader, layers, count = self._reader, self._layers, len(self._rows)
        if layers is None and self._times > _CODES_AFTER and self._room.has(reader.code_bytes * count):
            self._layers = reader.codes_beside(self._rows)
        if layers and not layers.kept and self._times > _VECTORS_AFTER and self._room.has(reader.row_bytes * count):
            self._layers = Layers(layers.signs, reader.beside(self._rows))


@dataclass(frozen=True)
class Selection:
    """The living chunks that pass a filter: as a mask over slots, and as the rows of their vectors."""

    mask: Mask
    count: int
    few: Few | None = None  # the chunks themselves, where there are few
    reader: VectorReader | None = None
    room: Room = field(default_factory=Room)

    @property
    def refusing(self) -> Mask:
        """The mask, or none where nothing is refused: not to look at it saves a word leg a third."""
        return self.mask[:0] if self.count == len(self.mask) else self.mask

    @cached_property
    def vectors(self) -> Slots | None:
        """None: all of them."""
        if self.reader is None or self.count == len(self.mask):
            return None
        return np.flatnonzero(self.mask[self.reader.slots])

    @cached_property
    def beside(self) -> Beside | None:
        """None where all vectors are looked at, or most: what is copied would be half of the index."""
        rows = self.vectors
        if self.reader is None or rows is None or 2 * len(rows) > self.reader.rows:
            return None
        return Beside(self.reader, rows, self.room)


@dataclass(eq=False)
class Question:
    """A list of terms put to a leg: what is asked, where the runs have it, and the most a chunk could score.

    `few` are chunks that were scored one and all, and their scores: fusion asks for some of them again.
    """

    asked: Asked
    spans: list[Spans]
    attainable: float
    few: tuple[Few, Values] | None = None


class Tallies(local):
    """A thread's own: by leg, what the last question found, some of which fusion asks for again in the same thread."""

    def __init__(self) -> None:
        self._of: dict[Leg, tuple[Tally, ref[Question], Mask]] = {}

    def begin(self, leg: Leg) -> Tally:
        """To be filled with what a question finds, and kept. One that is not, since the search was interrupted, is let
        go: what was added up in it would count for the next question, too.
        """
        return self._of.pop(leg)[0] if leg in self._of else Tally()

    def keep(self, leg: Leg, tally: Tally, question: Question, mask: Mask) -> None:
        """What the question found among the chunks that pass the mask; an empty one lets all pass."""
        self._of[leg] = tally, ref(question), mask

    def known(self, questions: Mapping[Leg, Question], slots: Slots) -> dict[Leg, Values]:
        """Of the legs that were asked this last, the scores of these slots, if all of them passed the mask."""
        found: dict[Leg, Values] = {}
        for leg, question in questions.items():
            if leg in self._of:
                tally, last, mask = self._of[leg]
                if last() is question and (not len(mask) or mask[slots].all()):
                    found[leg] = tally.sums[slots]
        return found


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
