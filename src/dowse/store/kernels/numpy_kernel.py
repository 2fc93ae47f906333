"""Kernel of a search in numpy: mapped arrays and a query enter; nearest codes, dot products and BM25 sums leave.

The same loops in C (`native_kernel`) are three to nine times as fast; these are for installations without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from dowse.errors import BadRequestError
from dowse.fusion_kernel import FusionKernel
from dowse.ports import Ids

CHOICES = ("auto", "numpy", "native")
Rows = NDArray[np.int64]
Codes = NDArray[np.uint64]
Mask = NDArray[np.bool_]
Values = NDArray[np.float64]
Best = tuple[NDArray[np.int64], Values]  # slots and their scores
COARSE_STEPS = 127  # of a row's largest value
FINE_STEPS = np.float32(254)  # of a coarse step: half of one is ±127
_SCAN_ROWS = 1 << 14  # rows at a time, so that a block stays in the cache


class ChunkTerms(msgspec.Struct, frozen=True, eq=False):
    """Forward index, mapped: the terms of each chunk and their counts. See `forward`."""

    terms: NDArray[np.uint32]
    counts: NDArray[np.uint16]
    ends: NDArray[np.int64]


class Run(msgspec.Struct, frozen=True, eq=False):
    """Run of the inverted index, mapped: the chunks that hold each term, and the counts. See `inverted`."""

    terms: NDArray[np.uint32]
    ends: NDArray[np.int64]
    slots: NDArray[np.uint32]
    counts: NDArray[np.uint16]


Spans = tuple[Run, Rows, Rows]
"""Run, and where the entries of each of some terms begin and end in it."""


class Packed(NamedTuple):
    """Vectors, mapped: a value is (coarse + fine/254)·scale of its row. See `vectors`."""

    coarse: NDArray[np.int8]
    fine: NDArray[np.int8]
    scales: NDArray[np.float32]


class Norm(NamedTuple):
    """Length norm that BM25 adds to a count: base + slope·length."""

    lengths: NDArray[np.uint32]  # tokens by slot
    base: float
    slope: float


class WeightedTerms(NamedTuple):
    """Terms of a query in one leg with their weights, ascending by hash; the arrays run parallel."""

    hashes: NDArray[np.uint32]
    weights: NDArray[np.float64]
    norm: Norm


class ScoreAccumulator:
    """BM25 sums of one leg by slot, 0 but for the chunks that a query found.

    Fusion reads some of the sums again: from the forward index that takes 0.09 ms.
    """

    def __init__(self) -> None:
        self.sums = np.empty(0)
        self.found = np.empty(0, np.uint32)  # slots that may have a sum
        self.size = 0  # of those

    def grow(self, rows: int) -> None:
        """Make room for so many rows and an eighth more, so that an update does not need new arrays."""
        if len(self.sums) < rows:
            room = rows + rows // 8
            self.sums, self.found, self.size = np.zeros(room), np.empty(room + 1, np.uint32), 0

    def add(self, slots: Rows, scores: Values) -> None:
        """Add sums that were computed elsewhere."""
        self.sums[slots] = scores
        self.found[self.size : self.size + len(slots)] = slots
        self.size += len(slots)


class Kernel(Protocol):
    """Inner loops of a search. All kernels give the same numbers, but for the last bits of a float32 sum."""

    @property
    def fusion(self) -> FusionKernel | None:
        """The fusion arithmetic compiled with it; None: numpy does it."""
        ...

    def nearest_codes(self, columns: Sequence[Codes], query: Codes, count: int, allowed: Rows | None) -> Rows:
        """At least `count` rows whose sign codes differ least from the query's, ascending; of those allowed."""
        ...

    def nearest(
        self, rows: Rows, kept: Packed, vector: NDArray[np.float32], k: int
    ) -> tuple[Rows, NDArray[np.float32]]:
        """At least the k of the rows with the largest products, in any order: places among the rows, and products.

        The coarse half of the values leaves out what cannot be among them.
        """
        ...

    def dots(self, rows: Rows, kept: Packed, vector: NDArray[np.float32]) -> NDArray[np.float32]: ...

    def unpacked(self, rows: Rows, kept: Packed) -> NDArray[np.float32]:
        """The rows as they were packed, up to half a step of the fine half."""
        ...

    def bm25(self, slots: Rows, said: ChunkTerms, wanted: Sequence[WeightedTerms]) -> NDArray[np.float64]:
        """A leg a row, a slot a column."""
        ...

    def slots_of(self, known: Ids, slots: Rows, wanted: Ids) -> tuple[Rows, int]:
        """Slots of the wanted ids among known ones, which ascend; −1 for the others, and how many these are."""
        ...

    def find(self, run: Run, hashes: NDArray[np.uint32]) -> tuple[Rows, Rows]:
        """Where the entries of each hash begin and end; the same where the run has none. Hashes ascend."""
        ...

    def sums(self, run: Run, wanted: WeightedTerms) -> NDArray[np.float64]:
        """Return the sums of a run's entries by slot, as `bm25` of all its chunks."""
        ...

    def best(
        self, runs: Sequence[Spans], weights: Values, norm: Norm, mask: Mask, k: int, tally: ScoreAccumulator
    ) -> Best:
        """At least the best k slots of all runs that pass the mask, in any order, and all that equal the last of them.
        An empty mask lets all pass.

        The accumulator holds the sums of all slots that pass the mask, and may hold those of others.
        """
        ...


class NumpyKernel:
    """Kernel of whole-array operations. Satisfies `Kernel`."""

    fusion = None

    def nearest_codes(self, columns: Sequence[Codes], query: Codes, count: int, allowed: Rows | None) -> Rows:
        total = len(columns[0])
        few = allowed is not None and 2 * len(allowed) < total  # else a scan of all is cheaper than picking
        picked = [column[allowed] for column in columns] if few else columns
        distances = np.zeros(len(picked[0]), np.uint16)
        for start in range(0, len(distances), _SCAN_ROWS):
            block = distances[start : start + _SCAN_ROWS]
            for column, word in zip(picked, query, strict=True):
                block += np.bitwise_count(column[start : start + _SCAN_ROWS] ^ word)
        if allowed is not None and not few:
            refused = np.ones(total, np.bool_)
            refused[allowed] = False
            distances[refused] = 64 * len(columns) + 1
        limit = min(int(np.searchsorted(np.cumsum(np.bincount(distances)), count)), 64 * len(columns))
        chosen = np.flatnonzero(distances <= limit)
        return allowed[chosen] if few and allowed is not None else chosen

    def nearest(
        self, rows: Rows, kept: Packed, vector: NDArray[np.float32], k: int
    ) -> tuple[Rows, NDArray[np.float32]]:
        if len(rows) <= 2 * k:
            return np.arange(len(rows)), self.dots(rows, kept, vector)
        scales, behind = kept.scales[rows], len(rows) - k
        rough = _dots(kept.coarse[rows], vector) * scales
        least = self.dots(rows[np.argpartition(rough, behind)[behind:]], kept, vector).min()
        among = np.flatnonzero(rough + doubt(vector) * scales >= least)
        found = self.dots(rows[among], kept, vector)
        best = found >= np.partition(found, len(found) - k)[len(found) - k]
        return among[best], found[best]

    def dots(self, rows: Rows, kept: Packed, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        sums = _dots(kept.coarse[rows], vector) + _dots(kept.fine[rows], vector) / FINE_STEPS
        found: NDArray[np.float32] = sums * kept.scales[rows]
        return found

    def unpacked(self, rows: Rows, kept: Packed) -> NDArray[np.float32]:
        found = kept.fine[rows].astype(np.float32)
        found /= FINE_STEPS
        found += kept.coarse[rows]
        found *= kept.scales[rows][:, None]
        return found

    def bm25(self, slots: Rows, said: ChunkTerms, wanted: Sequence[WeightedTerms]) -> NDArray[np.float64]:
        position, ends = entries(slots, said.ends)
        terms = said.terms[position]
        hashes = np.concatenate([each.hashes for each in wanted])
        # kind="sort" on a short list of wanted values is one vectorised comparison per value, no sort.
        hits = np.flatnonzero(np.isin(terms, hashes, kind="sort"))
        order = hashes.argsort(kind="stable")
        which = order[np.searchsorted(hashes, terms[hits], sorter=order)]
        row = np.searchsorted(ends, hits, side="right")
        frequency = said.counts[position[hits]].astype(np.float64)
        of_leg = np.repeat(np.arange(len(wanted)), [len(each.hashes) for each in wanted])[which]
        norms = np.array([each.norm.base + each.norm.slope * each.norm.lengths[slots] for each in wanted])
        weights = np.concatenate([each.weights for each in wanted])
        part = weights[which] * frequency / (frequency + norms[of_leg, row])
        sums = np.bincount(of_leg * len(slots) + row, part, norms.size).reshape(norms.shape)
        return np.asarray(sums, np.float64)

    def slots_of(self, known: Ids, slots: Rows, wanted: Ids) -> tuple[Rows, int]:
        if not len(known):
            return np.full(len(wanted), -1, np.int64), len(wanted)
        at = known.searchsorted(wanted)
        at[at == len(known)] = 0
        there = known[at] == wanted
        return np.where(there, slots[at], -1), len(wanted) - int(np.count_nonzero(there))

    def find(self, run: Run, hashes: NDArray[np.uint32]) -> tuple[Rows, Rows]:
        at = run.terms.searchsorted(hashes)
        there = np.flatnonzero(at < len(run.terms))
        there = there[run.terms[at[there]] == hashes[there]]
        starts, ends = np.zeros((2, len(hashes)), np.int64)
        first = at[there]
        starts[there] = np.where(first > 0, run.ends[first - 1], 0)
        ends[there] = run.ends[first]
        return starts, ends

    def sums(self, run: Run, wanted: WeightedTerms) -> NDArray[np.float64]:
        sums = np.zeros(len(wanted.norm.lengths))
        _add_up(run, (*self.find(run, wanted.hashes), wanted.weights), wanted.norm, sums)
        return sums

    def best(
        self, runs: Sequence[Spans], weights: Values, norm: Norm, mask: Mask, k: int, tally: ScoreAccumulator
    ) -> Best:
        tally.sums[tally.found[: tally.size]] = 0
        tally.size = 0
        tally.grow(len(norm.lengths))
        for run, starts, ends in runs:
            _add_up(run, (starts, ends, weights), norm, tally.sums)
        found = np.flatnonzero(tally.sums[: len(norm.lengths)])
        tally.add(found, tally.sums[found])
        found = found[mask[found]] if len(mask) else found
        scores = tally.sums[found]
        if len(found) > k:
            among = scores >= np.partition(scores, len(scores) - k)[len(scores) - k]
            found, scores = found[among], scores[among]
        return found, scores


def joined(parts: Sequence[Best]) -> Best:
    """Concatenate the results of all parts."""
    if not parts:
        return np.empty(0, np.int64), np.empty(0)
    return np.concatenate([slots for slots, _ in parts]), np.concatenate([scores for _, scores in parts])


def doubt(vector: NDArray[np.float32]) -> np.float32:
    """The most that a product with the coarse half is off by, in units of the row's scale: half a step of each value,
    and a little for rounding.
    """
    return np.float32(0.501 * np.abs(vector).sum())


def entries(slots: Rows, all_ends: NDArray[np.int64]) -> tuple[Rows, Rows]:
    """Positions of all entries of the chunks, and where each chunk's end among them."""
    starts = np.where(slots > 0, all_ends[slots - 1], 0)
    sizes = all_ends[slots] - starts
    ends = np.cumsum(sizes)
    position = np.repeat(starts - (ends - sizes), sizes)
    position += np.arange(len(position))
    return position, ends


def _add_up(run: Run, terms: tuple[Rows, Rows, Values], norm: Norm, sums: Values) -> None:
    for start, end, weight in zip(*(each.tolist() for each in terms), strict=True):
        slots, frequency = run.slots[start:end], run.counts[start:end].astype(np.float64)
        sums[slots] += weight * frequency / (frequency + (norm.base + norm.slope * norm.lengths[slots]))


def _dots(rows: NDArray[np.int8], vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Row by row, not `rows @ vector`: that wakes the threads of BLAS for less work than waking them costs.

    3,700 rows of 384, CPU ms: 0.44 against 0.44 with one thread, 0.71 against 7.9 with two threads on a busy machine.
    """
    return np.asarray(np.vecdot(rows.astype(np.float32), vector), np.float32)


NUMPY: Kernel = NumpyKernel()


def open_kernel(name: str) -> Kernel:
    """Open a kernel. `auto` is the compiled one where it was built, else numpy's; `fast` is an old name of `native`."""
    if name not in (*CHOICES, "fast"):
        raise BadRequestError(f"unknown kernel {name!r}; choose from {', '.join(CHOICES)}")
    if name == "numpy":
        return NUMPY
    try:
        from dowse.store.kernels.native_kernel import NativeKernel
    except ImportError as err:
        if name == "auto":
            return NUMPY
        raise BadRequestError(
            f"the native kernel was not built ({err}); install a C compiler and Python's headers, then Dowse again"
        ) from err
    return NativeKernel()
