"""Caches of one snapshot: the chunks that pass a filter, and copies of their vectors."""

from __future__ import annotations

from functools import cached_property
from threading import Lock

import msgspec
import numpy as np
from numpy.typing import NDArray

from dowse.ports import Mask, Values
from dowse.store.kernels.numpy_kernel import Kernel, Norm, Rows, Run, WeightedTerms
from dowse.store.segments.forward import WORD_LEGS, ForwardReader, LegTerms, Slots
from dowse.store.segments.vectors import VectorCopy, VectorReader
from dowse.types import Leg

_OFTEN = 21  # searches of the same set before it gets a run, which takes as long as some 30 of them: 2.2 ms
_CODES_AFTER, _VECTORS_AFTER = 1, 10  # queries with a filter before its codes (0.1 ms), then its vectors are copied
_BUDGET_BYTES = 1 << 26  # of all filters' vector copies in one snapshot; chosen


class SmallFilterSet:
    """Chunks of a filter that few pass: a word leg scores all of them.

    It reads the forward index first. A filter that repeats gets an inverted run of its own, in which a query finds its
    entries at once: for 500 chunks 0.01 ms a leg instead of 0.07, with 0.9 KB a chunk.
    """

    def __init__(self, slots: Slots, forward: ForwardReader, kernel: Kernel) -> None:
        self.slots = slots  # ascending
        self._forward = forward
        self._kernel = kernel
        self._times = 0
        self._turned: tuple[Run, dict[Leg, NDArray[np.uint32]]] | None = None

    def score(self, leg: Leg, terms: LegTerms, norm: Norm) -> Values:
        """Score all chunks of the set, in the order of `slots`."""
        if self._turned is None:
            self._times += 1
            if self._times <= _OFTEN:
                return self._forward.score(self.slots, {leg: terms}, {leg: norm})[leg]
            lengths = np.ascontiguousarray(self._forward.lengths.by_leg[:, self.slots])
            self._turned = self._forward.turned(self.slots), dict(zip(WORD_LEGS, lengths, strict=True))
        run, lengths_of = self._turned
        own = Norm(lengths_of[leg], norm.base, norm.slope)
        return self._kernel.sums(run, WeightedTerms(terms.hashes, terms.weights, own))

    def places(self, slots: Slots) -> Slots | None:
        """Return the places of some slots in the set; None if one is not in it."""
        own = self.slots
        if not len(own):
            return None
        at = np.minimum(own.searchsorted(slots), len(own) - 1)
        return at if (own[at] == slots).all() else None


class MemoryBudget:
    """Bytes that the vector copies of all remembered filters may take together."""

    def __init__(self, all_bytes: int = _BUDGET_BYTES) -> None:
        self._all_bytes = self._left_bytes = all_bytes
        self._lock = Lock()

    def take(self, wanted_bytes: int) -> bool:
        """Take bytes of the budget if it has them; return whether it had."""
        with self._lock:
            if wanted_bytes > self._left_bytes:
                return False
            self._left_bytes -= wanted_bytes
            return True

    def reset(self) -> None:
        """Give back all bytes, when the filters are forgotten."""
        with self._lock:
            self._left_bytes = self._all_bytes


class FilterVectors:
    """Filter-local vector copy: sign codes when a filter repeats, whole vectors when it repeats often.

    Codes take 48 bytes a chunk of 384 dimensions, vectors 772 more. With 10,000 of 100,000 chunks the scan of the codes
    takes 0.01 ms instead of 0.1, the dense leg 0.21 instead of 0.44.
    """

    def __init__(self, reader: VectorReader, rows: Rows, budget: MemoryBudget) -> None:
        self._reader = reader
        self._rows = rows
        self._budget = budget
        self._times = 0
        self._layers: VectorCopy | None = None
        self._copying = Lock()

    def layers(self) -> VectorCopy | None:
        """Return the copies so far; called once a query."""
        if self._copying.acquire(blocking=False):  # another thread copies: take the copies so far
            try:
                self._copy_more()
            finally:
                self._copying.release()
        return self._layers

    def _copy_more(self) -> None:
        self._times += 1
        reader, layers, count = self._reader, self._layers, len(self._rows)
        if layers is None and self._times > _CODES_AFTER and self._budget.take(reader.code_bytes * count):
            self._layers = reader.copy_codes(self._rows)
        if layers and not layers.kept and self._times > _VECTORS_AFTER and self._budget.take(reader.row_bytes * count):
            self._layers = VectorCopy(layers.signs, reader.copy_rows(self._rows))


class Selection(msgspec.Struct, frozen=True, eq=False, dict=True):
    """Living chunks that pass a filter: as a mask over slots, and as the rows of their vectors."""

    mask: Mask
    refusing: Mask  # the mask, empty where all pass: a word leg without a mask takes two thirds of the time
    count: int
    small: SmallFilterSet | None  # the chunks themselves, where there are few
    reader: VectorReader | None
    budget: MemoryBudget

    @cached_property
    def vectors(self) -> Slots | None:
        """Rows of the chunks' vectors; None: all rows."""
        if self.reader is None or self.count == len(self.mask):
            return None
        return np.flatnonzero(self.mask[self.reader.slots])

    @cached_property
    def vector_copy(self) -> FilterVectors | None:
        """Copy of the vectors; None where more than half of the index passes."""
        rows = self.vectors
        if self.reader is None or rows is None or 2 * len(rows) > self.reader.rows:
            return None
        return FilterVectors(self.reader, rows, self.budget)
