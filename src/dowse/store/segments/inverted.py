"""Inverted index: rows of the forward index enter, the chunks that hold a term leave.

It consists of runs. A run covers a range of slots and is never changed. New chunks wait in the forward index, where a
query scores all of them, until they are worth a run. Neighbouring runs are merged: down to eight while a writer works,
to one or two when it ends. So an update of a few chunks writes only their rows. The files of a run:

    run-0-5120.terms   32-bit hash of every distinct term of both legs, ascending
    run-0-5120.ends    where a term's entries end in the two files below
    run-0-5120.slots   the chunks that hold the term, ascending
    run-0-5120.counts  how often each of them holds it

Deleted chunks stay in it; the caller's mask excludes them. Why not tantivy: docs/decisions/0012-inverted-index.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from dowse.errors import CorruptIndexError
from dowse.store.kernels.numpy_kernel import ChunkTerms, Kernel, Run, Spans
from dowse.store.segments.arrays import PartReader, PartWriter
from dowse.store.segments.forward import Entries, Hashes, entries_between, last_places

_PREFIX = "run-"
_TYPES = {"terms": "<u4", "ends": "<i8", "slots": "<u4", "counts": "<u2"}
_TAIL_ROWS = 512  # chunks that may wait: scoring them takes 0.02 ms compiled, 0.3 ms in numpy
_MOST_RUNS = 8  # while writing; chosen: a run more costs a query 0.01 ms, a run less merges more often
_STEP = 32  # how many times as long as its right neighbour a run is in the end; chosen: few runs
_PIECE_ENTRIES = 1 << 21  # entries sorted at a time: some 60 MB, and a cache's worth of locality


class SlotRange(msgspec.Struct, frozen=True, order=True):
    """Range of slots that a run covers, and the names of its files."""

    first: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.first

    def file(self, kind: str) -> str:
        return f"{_PREFIX}{self.first}-{self.end}.{kind}"


def _stretches(names: Sequence[str]) -> list[SlotRange]:
    """Return the runs among a part's files, in order."""
    found = {name.removeprefix(_PREFIX).split(".")[0] for name in names if name.startswith(_PREFIX)}
    return sorted(SlotRange(*map(int, each.split("-"))) for each in found)


def _run(stretch: SlotRange, array: Callable[[str, str], NDArray[Any]]) -> Run:
    return Run(*(array(stretch.file(kind), dtype) for kind, dtype in _TYPES.items()))


class InvertedWriter:
    """Writer of runs, which readers see when the part is published."""

    def __init__(self, part: PartWriter) -> None:
        self._part = part
        self._runs = _stretches(list(part.state.files))
        for name in os.listdir(part.folder):
            if name.startswith(_PREFIX) and name not in part.state.files:  # what a crashed writer left
                (part.folder / name).unlink()

    def catch_up(self, rows: int) -> None:
        """Cover the rows of the forward index with runs, but for a tail."""
        covered = self._runs[-1].end if self._runs else 0
        if rows - covered > _TAIL_ROWS:
            self._add(SlotRange(covered, rows))
        while len(self._runs) > _MOST_RUNS:
            sizes = [left.size + right.size for left, right in pairwise(self._runs)]
            at = sizes.index(min(sizes))
            self._merge(at, at + 2)

    def merge(self) -> bool:
        """Merge runs until each is 32 times as long as the next; return whether anything changed.

        All of a group at once: in pairs, the entries of the last run would be written once for each merge.
        """
        before = len(self._runs)
        end = before
        while end:
            first, last = end - 1, self._runs[end - 1]
            while first and self._runs[first - 1].size < _STEP * (last.end - self._runs[first].first):
                first -= 1
            if first < end - 1:
                self._merge(first, end)
            end = first
        return len(self._runs) != before

    def _add(self, stretch: SlotRange) -> None:
        before = max(stretch.first - 1, 0)
        ends = self._part.array("ends", "<i8", before)
        start = int(ends[before]) if stretch.first else 0
        said = ChunkTerms(self._part.array("terms", "<u4", start), self._part.array("counts", "<u2", start), ends)
        terms, slots, counts = entries_between(said, stretch.first, stretch.end)

        def between(low: int, high: int) -> Entries:
            chosen = np.flatnonzero((terms >= low) & (terms <= high - 1))
            return _by_term(terms[chosen], slots[chosen], counts[chosen])

        self._write(stretch, len(terms), between)
        self._runs.append(stretch)

    def _merge(self, first: int, end: int) -> None:
        """Merge neighbouring runs into one."""
        parts = self._runs[first:end]
        runs = [_run(each, self._part.array) for each in parts]

        def between(low: int, high: int) -> Entries:
            return _merged([_entries_between(run, low, high) for run in runs])

        whole = SlotRange(parts[0].first, parts[-1].end)
        self._write(whole, sum(len(run.slots) for run in runs), between)
        for each in parts:
            for kind in _TYPES:
                self._part.drop(each.file(kind))
        self._runs[first:end] = [whole]

    def _write(self, stretch: SlotRange, entries: int, between: Callable[[int, int], Entries]) -> None:
        """Write a run in pieces by hash, so that memory does not grow with the run."""
        pieces = max(-(-entries // _PIECE_ENTRIES), 1)
        bounds = [round(number * 2**32 / pieces) for number in range(pieces + 1)]
        written = 0
        for low, high in pairwise(bounds):
            terms, slots, counts = between(low, high)
            last = last_places(terms)
            files: dict[str, NDArray[Any]] = {
                "terms": terms[last],
                "ends": written + 1 + last,
                "slots": slots,
                "counts": counts,
            }
            for kind, values in files.items():
                self._part.append(stretch.file(kind), values.astype(_TYPES[kind], copy=False))
            written += len(terms)


def _by_term(terms: NDArray[np.uint32], slots: NDArray[np.uint32], counts: NDArray[np.uint16]) -> Entries:
    """Sort entries by term; slots, which ascend already, stay in order inside a term.

    By the lower halves of the terms, then by the upper ones: a stable sort of 16-bit numbers counts them, which takes
    5 ms for the words of 4,000 chunks. A sort of 64-bit numbers, term above place, took 18 on an AMD with AVX-512.
    """
    order = np.argsort(terms.astype(np.uint16), kind="stable")
    upper = (terms >> np.uint32(16)).astype(np.uint16)
    order = order[np.argsort(upper[order], kind="stable")]
    return terms[order], slots[order], counts[order]


def _merged(parts: Sequence[Entries]) -> Entries:
    """Merge the sorted entries of neighbouring runs. The stable sort uses their order: 5 ms for two of 350,000
    entries, where another sort takes 12.
    """
    terms, slots, counts = map(np.concatenate, zip(*parts, strict=True))
    keys = terms.astype(np.uint64)
    keys <<= np.uint64(32)
    keys |= np.arange(len(keys), dtype=np.uint64)
    keys.sort(kind="stable")
    order = (keys & np.uint64(0xFFFFFFFF)).view(np.int64)
    keys >>= np.uint64(32)
    return keys.astype(np.uint32), slots[order], counts[order]


def _entries_between(run: Run, low: int, high: int) -> Entries:
    first, end = np.searchsorted(run.terms, np.array([low, high], np.uint64)).tolist()
    start = int(run.ends[first - 1]) if first else 0
    terms = np.repeat(run.terms[first:end], np.diff(run.ends[first:end], prepend=start))
    span = slice(start, start + len(terms))
    return terms, run.slots[span], run.counts[span]


class InvertedReader:
    """Runs of one snapshot."""

    def __init__(self, part: PartReader) -> None:
        stretches = self._stretches = _stretches(list(part.state.files))
        if [each.first for each in stretches] != [0, *(each.end for each in stretches)][: len(stretches)]:
            raise CorruptIndexError(f"a part of the word index in {part.folder} is missing; run `dowse rebuild`")
        self.covered = stretches[-1].end if stretches else 0
        self.runs = [_run(each, part.unchecked) for each in stretches]
        self._part = part

    def find(self, kernel: Kernel, hashes: Hashes) -> Iterator[Spans]:
        """Yield by run where the entries of ascending hashes are. What a query has not read yet is checked first."""
        for stretch, run in zip(self._stretches, self.runs, strict=True):
            self._part.check([stretch.file("terms"), stretch.file("ends")])
            starts, ends = kernel.find(run, hashes)
            self._part.check_items([stretch.file("slots"), stretch.file("counts")], starts, ends)
            yield run, starts, ends

    def disagreeing(self, entries: Callable[[int, int], Entries]) -> Iterator[str]:
        """Yield the runs that hold other entries than these, given by range of slots."""
        for stretch, run in zip(self._stretches, self.runs, strict=True):
            wanted = _by_term(*entries(stretch.first, stretch.end))
            found = _entries_between(run, 0, 2**32)
            if not all(np.array_equal(found[number], wanted[number]) for number in range(3)):
                yield f"words of the rows {stretch.first} to {stretch.end}"
