"""The inner loops of a search: mapped arrays and a query go in, nearest codes, dot products and BM25 sums come out.

numpy alone does all of it. Compiled loops (`kernel_fast`, the extra `fast`) do it four to fifteen times as fast, but
importing their compiler takes a second: they are for processes that live on, such as `dowse serve`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dowse.errors import BadRequestError

CHOICES = ("auto", "numpy", "fast")
Rows = NDArray[np.int64]
Codes = NDArray[np.uint64]
Mask = NDArray[np.bool_]
Spans = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]  # a term's first entry, its end, its weight
Best = tuple[NDArray[np.int64], NDArray[np.float64]]  # slots and their scores
COARSE_STEPS = 127  # of a row's largest value
FINE_STEPS = np.float32(254)  # of a coarse step: half of one is ±127
_SCAN_ROWS = 1 << 14  # rows at a time, so that a block stays in the cache


@dataclass(frozen=True, eq=False)
class ChunkTerms:
    """The forward index, mapped: what each chunk says and how often. See `forward`."""

    terms: NDArray[np.uint32]
    counts: NDArray[np.uint16]
    ends: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Run:
    """A run of the inverted index, mapped: which chunks say each term and how often. See `inverted`."""

    terms: NDArray[np.uint32]
    ends: NDArray[np.int64]
    slots: NDArray[np.uint32]
    counts: NDArray[np.uint16]


class Packed(NamedTuple):
    """Vectors, mapped: a value is (coarse + fine/254)·scale of its row. See `vectors`."""

    coarse: NDArray[np.int8]
    fine: NDArray[np.int8]
    scales: NDArray[np.float32]


class Norm(NamedTuple):
    """What BM25 adds to a count for the length of a chunk: base + slope·length."""

    lengths: NDArray[np.uint32]  # tokens by slot, in a row: half of what the legs side by side take of a cache
    base: float
    slope: float


class Wanted(NamedTuple):
    """A query's terms in one leg, ascending by hash; the arrays run parallel."""

    hashes: NDArray[np.uint32]
    weights: NDArray[np.float64]
    norm: Norm


class Kernel(Protocol):
    """All give the same numbers, but for the last bits of a float32 sum."""

    def nearest_codes(self, columns: Sequence[Codes], query: Codes, count: int, allowed: Rows | None) -> Rows:
        """At least `count` rows whose sign codes differ least from the query's, ascending; of those allowed."""
        ...

    def coarse_dots(self, rows: Rows, kept: Packed, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Dot products of some rows, from the coarse half of each value."""
        ...

    def dots(self, rows: Rows, kept: Packed, vector: NDArray[np.float32]) -> NDArray[np.float32]: ...

    def unpacked(self, rows: Rows, kept: Packed) -> NDArray[np.float32]:
        """The rows as they were packed, up to half a step of the fine half."""
        ...

    def bm25(self, slots: Rows, said: ChunkTerms, wanted: Sequence[Wanted]) -> NDArray[np.float64]:
        """A leg a row, a slot a column."""
        ...

    def find(self, run: Run, hashes: NDArray[np.uint32]) -> tuple[Rows, Rows]:
        """Where the entries of each hash begin and end; the same where the run has none. Hashes ascend."""
        ...

    def sums(self, run: Run, wanted: Wanted) -> NDArray[np.float64]:
        """By slot, what the entries of a run add up to; as `bm25` of all its chunks."""
        ...

    def best(self, run: Run, spans: Spans, norm: Norm, mask: Mask, k: int) -> Best:
        """The best k slots of a run that pass the mask, in any order, and all that equal the last of them."""
        ...


class NumpyKernel:
    """Satisfies `Kernel` with whole-array operations."""

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
        limit = int(np.searchsorted(np.cumsum(np.bincount(distances)), count))
        chosen = np.flatnonzero(distances <= limit)
        return allowed[chosen] if few and allowed is not None else chosen

    def coarse_dots(self, rows: Rows, kept: Packed, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        found: NDArray[np.float32] = _dots(kept.coarse[rows], vector) * kept.scales[rows]
        return found

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

    def bm25(self, slots: Rows, said: ChunkTerms, wanted: Sequence[Wanted]) -> NDArray[np.float64]:
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

    def find(self, run: Run, hashes: NDArray[np.uint32]) -> tuple[Rows, Rows]:
        at = run.terms.searchsorted(hashes)
        there = np.flatnonzero(at < len(run.terms))
        there = there[run.terms[at[there]] == hashes[there]]
        starts, ends = np.zeros((2, len(hashes)), np.int64)
        first = at[there]
        starts[there] = np.where(first > 0, run.ends[first - 1], 0)
        ends[there] = run.ends[first]
        return starts, ends

    def sums(self, run: Run, wanted: Wanted) -> NDArray[np.float64]:
        return _added_up(run, (*self.find(run, wanted.hashes), wanted.weights), wanted.norm)

    def best(self, run: Run, spans: Spans, norm: Norm, mask: Mask, k: int) -> Best:
        sums = _added_up(run, spans, norm)
        found = np.flatnonzero(sums)
        found = found[mask[found]]
        scores = sums[found]
        if len(found) > k:
            among = scores >= np.partition(scores, len(scores) - k)[len(scores) - k]
            found, scores = found[among], scores[among]
        return found, scores


def entries(slots: Rows, all_ends: NDArray[np.int64]) -> tuple[Rows, Rows]:
    """Positions of all entries of the chunks, and where each chunk's end among them."""
    starts = np.where(slots > 0, all_ends[slots - 1], 0)
    sizes = all_ends[slots] - starts
    ends = np.cumsum(sizes)
    position = np.repeat(starts - (ends - sizes), sizes)
    position += np.arange(len(position))
    return position, ends


def _added_up(run: Run, spans: Spans, norm: Norm) -> NDArray[np.float64]:
    sums = np.zeros(len(norm.lengths))
    for start, end, weight in zip(*(each.tolist() for each in spans), strict=True):
        slots, frequency = run.slots[start:end], run.counts[start:end].astype(np.float64)
        sums[slots] += weight * frequency / (frequency + (norm.base + norm.slope * norm.lengths[slots]))
    return sums


def _dots(rows: NDArray[np.int8], vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """Row by row, not `rows @ vector`: that wakes the threads of BLAS for less work than waking them costs.

    3,700 rows of 384, CPU ms: .44 against .44 with one thread, .71 against 7.9 with two threads on a busy machine.
    """
    return np.asarray(np.vecdot(rows.astype(np.float32), vector), np.float32)


NUMPY: Kernel = NumpyKernel()


def open_kernel(name: str, *, lives_on: bool = False) -> Kernel:
    """`auto` is the fast one where it is installed and the process lives on, else numpy's."""
    if name not in CHOICES:
        raise BadRequestError(f"unknown kernel {name!r}; choose from {', '.join(CHOICES)}")
    if name == "numpy" or (name == "auto" and not (lives_on and find_spec("numba"))):
        return NUMPY
    try:
        from dowse.persist.kernel_fast import FastKernel
    except ImportError as err:
        raise BadRequestError(f"the fast kernel is not installed ({err}); run `pip install 'dowse[fast]'`") from err
    return FastKernel()
