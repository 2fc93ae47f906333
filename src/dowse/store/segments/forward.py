"""Forward index: the terms of every chunk, so that any few hundred chunks get their exact BM25 at once.

An inverted index finds the best chunks of one leg; fusion also needs the scores of chunks that other legs found. Files,
one row a chunk, both legs of a chunk side by side:

    terms    32-bit hash of every distinct term, ascending inside a chunk
    counts   how often that term occurs in that chunk
    ends     where a chunk's entries end in the two files above
    lengths  tokens of the chunk in each leg, exact, without stop words

A term is stored as the CRC-32 of its UTF-8 bytes and not as a number from a dictionary: nothing to keep consistent.
A wrong hit needs a candidate to hold a term that collides with a query's term: about 8 in 100,000 queries of 12 terms
over 300 candidates (computed).
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Mapping, Sequence
from zlib import crc32

import msgspec
import numpy as np
from numpy.typing import NDArray

from dowse.store.kernels.numpy_kernel import ChunkTerms, Kernel, Norm, Run, WeightedTerms, entries
from dowse.store.segments.arrays import PartReader, PartWriter
from dowse.tokenizer import CACHE_LIMIT, LONGEST_CACHED, RunTerms, Terms, Tokenizer
from dowse.types import Leg

WORD_LEGS: tuple[Leg, ...] = ("bm25_code", "bm25_nlp")
# CRC-32 starts from these. A start value acts like an XOR on a term's first bytes, so it must lead out of ASCII:
# with 0 and 1, "b" in one leg would be "c" in the other.
_SEEDS = {"bm25_code": 0, "bm25_nlp": 0xA5A5A5A5}
_MAX_COUNT = np.iinfo(np.uint16).max
_MORE_ROWS = 1024  # that lengths have room for, and an eighth; chosen
_ENTRIES = ("terms", "counts")
_KEPT_RUNS = 50_000  # words kept from one writer to the next, some 9 MB; chosen

Slots = NDArray[np.int64]
Hashes = NDArray[np.uint32]
Entries = tuple[Hashes, NDArray[np.uint32], NDArray[np.uint16]]  # terms, slots, counts


class LegTerms(msgspec.Struct, frozen=True, eq=False):
    """Terms of a query in one leg that some living chunk holds, ascending by hash."""

    hashes: Hashes
    weights: NDArray[np.float64]


def hash_term(term: str, leg: Leg) -> int:
    return crc32(term.encode("utf-8", "surrogatepass"), _SEEDS[leg])


# The terms of both legs, as 64-bit numbers: above the hash a bit that says for which leg's length the term counts, so
# far apart that both are added up at once. Stop words count for none.
Packed = bytes
_HASH_BITS, _LENGTH_BITS = 32, 31
_IN_CODE, _IN_PROSE = 1 << _HASH_BITS, 1 << _HASH_BITS + _LENGTH_BITS


def packed(terms: RunTerms) -> Packed:
    code, prose, stops = terms
    # `hash_term` without the calls, which took a third of the time.
    found = [crc32(term.encode("utf-8", "surrogatepass")) | _IN_CODE for term in code]
    seed = _SEEDS["bm25_nlp"]
    found += [crc32(term.encode("utf-8", "surrogatepass"), seed) | _IN_PROSE for term in prose]
    if stops:
        found += [crc32(term.encode("utf-8", "surrogatepass"), seed) for term in stops]
    return array("Q", found).tobytes()


class TermCache(dict[bytes, Packed]):
    """Stored terms by run of word characters, emptied when full; shared by the writers of a store."""

    def __init__(self) -> None:
        super().__init__()
        self.tokenizer = Tokenizer()

    def trim(self) -> None:
        """Free memory until the next writer."""
        if len(self) > _KEPT_RUNS:
            self.clear()

    def __missing__(self, run: bytes) -> Packed:
        if words := self.tokenizer.joined(run):
            whole = crc32(run.lower()) | _IN_CODE
            value = b"".join([self[word] for word in words]) + whole.to_bytes(8, sys.byteorder)
        else:
            value = packed(self.tokenizer.of_run(run))
        if len(run) <= LONGEST_CACHED:
            if len(self) >= CACHE_LIMIT:
                self.clear()
            self[run] = value
        return value


class ForwardWriter:
    """Writer of the terms of chunks."""

    def __init__(self, part: PartWriter, runs: TermCache | None = None) -> None:
        self._part = part
        self._runs = TermCache() if runs is None else runs

    def append_texts(self, texts: Sequence[str]) -> None:
        """Append the terms of texts; words seen before are not tokenized again: half the time of `append`."""
        rows: list[Packed] = []
        for text in texts:
            runs = self._runs.tokenizer.runs(text)
            if runs is None:
                rows.append(_of_terms(self._runs.tokenizer(text)))
            else:
                rows.append(b"".join(map(self._runs.__getitem__, runs)))
        self._write(rows)

    def append(self, rows: Sequence[Terms]) -> None:
        self._write([_of_terms(each) for each in rows])

    def _write(self, rows: Sequence[Packed]) -> None:
        said = np.frombuffer(b"".join(rows), np.uint64)
        sizes = np.array([len(each) // said.itemsize for each in rows], np.int64)
        terms, counts, ends = _count_terms(said, sizes)
        self._part.append("ends", (ends + self._part.size("terms") // 4).astype("<i8"))
        self._part.append("terms", terms)
        self._part.append("counts", np.minimum(counts, _MAX_COUNT).astype("<u2"))
        self._part.append("lengths", _lengths(said, sizes))


def _of_terms(terms: Terms) -> Packed:
    return packed((tuple(terms.code), tuple(terms.prose), tuple(terms.stops)))


def _lengths(said: NDArray[np.uint64], sizes: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Count the terms of each chunk of a batch in each leg."""
    counted = np.zeros(len(said) + 1, np.uint64)
    np.cumsum(said >> np.uint64(_HASH_BITS), out=counted[1:])
    ends = np.cumsum(sizes)
    both = counted[ends] - counted[ends - sizes]
    found = np.empty((len(sizes), len(WORD_LEGS)), "<u4")
    found[:, 0] = both & np.uint64((1 << _LENGTH_BITS) - 1)
    found[:, 1] = both >> np.uint64(_LENGTH_BITS)
    return found


def _count_terms(
    said: NDArray[np.uint64], sizes: NDArray[np.int64]
) -> tuple[NDArray[np.uint32], NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct terms of a batch of chunks, their counts, and where each chunk's terms end.

    Chunks are sorted one by one: half the time of a sort of all their terms with their numbers above them.
    """
    terms, ends, start = said.astype("<u4"), np.cumsum(sizes), 0
    for end in ends.tolist():
        terms[start:end].sort()
        start = end
    is_last = np.empty(len(terms), np.bool_)
    np.not_equal(terms[1:], terms[:-1], out=is_last[:-1])
    is_last[ends[sizes > 0] - 1] = True
    last = np.flatnonzero(is_last)
    counts = np.empty(len(last), np.int64)
    counts[:1] = last[:1] + 1
    np.subtract(last[1:], last[:-1], out=counts[1:])
    return terms[last], counts, np.searchsorted(last, ends)


class ChunkLengths:
    """Token counts of chunks, a row a leg, and their sums.

    It shares the rows of an earlier snapshot: to split the legs apart takes 0.2 ms at 100,000 chunks.
    """

    by_leg: NDArray[np.uint32]
    sums: NDArray[np.int64]
    _room: NDArray[np.uint32]

    def __init__(self, rows: NDArray[np.uint32], before: ChunkLengths | None = None) -> None:
        known = 0
        if before is not None and len(rows) <= before._room.shape[1]:
            known, self._room = before.by_leg.shape[1], before._room
        else:
            self._room = np.empty((len(WORD_LEGS), len(rows) + len(rows) // 8 + _MORE_ROWS), np.uint32)
        self._room[:, known : len(rows)] = rows[known:].T
        self.by_leg = self._room[:, : len(rows)]
        self.sums = rows[known:].sum(axis=0, dtype=np.int64) + (before.sums if before is not None and known else 0)


def last_places(terms: Hashes) -> Slots:
    """Return the last place of each distinct term; equal ones are neighbours."""
    is_last = np.ones(len(terms), np.bool_)
    np.not_equal(terms[1:], terms[:-1], out=is_last[:-1])
    return np.flatnonzero(is_last)


def entries_between(said: ChunkTerms, first: int, end: int) -> Entries:
    """Return the entries of a range of chunks, as they are stored."""
    start = int(said.ends[first - 1]) if first else 0
    ends = said.ends[first:end]
    slots = np.repeat(np.arange(first, end, dtype=np.uint32), np.diff(ends, prepend=start))
    span = slice(start, start + len(slots))
    return said.terms[span], slots, said.counts[span]


class ForwardReader:
    """Reader of the forward index: exact BM25 of any chunks, in all legs at once."""

    def __init__(self, part: PartReader, kernel: Kernel, before: ForwardReader | None = None) -> None:
        """`before` is the reader of an earlier snapshot of the same part."""
        self._kernel = kernel
        self._part = part
        terms, counts = part.unchecked("terms", "<u4"), part.unchecked("counts", "<u2")
        self._said = ChunkTerms(terms, counts, part.array("ends", "<i8"))
        self._unchecked = part.unread(_ENTRIES)
        self.lengths: ChunkLengths = ChunkLengths(
            part.array("lengths", "<u4", len(WORD_LEGS)), before.lengths if before else None
        )

    def score(
        self, slots: Slots, asked: Mapping[Leg, LegTerms], norms: Mapping[Leg, Norm]
    ) -> dict[Leg, NDArray[np.float64]]:
        """Return one value a slot, by leg."""
        if not len(slots) or not any(len(each.hashes) for each in asked.values()):
            return {leg: np.zeros(len(slots)) for leg in asked}
        self._check(slots)
        wanted = [WeightedTerms(each.hashes, each.weights, norms[leg]) for leg, each in asked.items()]
        return dict(zip(asked, self._kernel.bm25(slots, self._said, wanted), strict=True))

    def turned(self, slots: Slots) -> Run:
        """Invert the words of some chunks: a run in which a chunk is its place among these slots."""
        self._check(slots)
        position, ends = entries(slots, self._said.ends)
        keys = self._said.terms[position].astype(np.uint64) << np.uint64(_HASH_BITS)
        keys |= np.arange(len(keys), dtype=np.uint64)
        keys.sort()  # one number each: half the time of an argsort of the terms
        terms, order = (keys >> np.uint64(_HASH_BITS)).astype(np.uint32), keys.astype(np.uint32)
        places = np.repeat(np.arange(len(slots), dtype=np.uint32), np.diff(ends, prepend=0))
        last = last_places(terms)
        found = Run(terms[last], last + 1, places[order], self._said.counts[position[order]])
        for each in msgspec.structs.astuple(found):
            each.setflags(write=False)  # as mapped files are: numba compiles again for a writable array
        return found

    def held(self, slots: Slots, terms: Mapping[Leg, Sequence[str]]) -> list[dict[Leg, tuple[str, ...]]]:
        """Return the terms that each chunk holds, by leg; none for a slot below 0."""
        asked = {leg: [(hash_term(term, leg), term) for term in dict.fromkeys(each)] for leg, each in terms.items()}
        wanted = np.array([each for of_leg in asked.values() for each, _ in of_leg], np.uint32)
        there = np.flatnonzero(slots >= 0)
        self._check(slots[there])
        position, ends = entries(slots[there], self._said.ends)
        own = self._said.terms[position]
        hits = np.flatnonzero(np.isin(own, wanted, kind="sort"))
        rows = there[np.searchsorted(ends, hits, side="right")]
        said: list[set[int]] = [set() for _ in range(len(slots))]
        for row, each in zip(rows.tolist(), own[hits].tolist(), strict=True):
            said[row].add(each)
        return [
            {leg: tuple(term for each, term in of_leg if each in mine) for leg, of_leg in asked.items()}
            for mine in said
        ]

    def terms_of(self, slots: Slots) -> NDArray[np.uint32]:
        """Return all entries of the chunks, one chunk after the other."""
        self._check(slots)
        found: NDArray[np.uint32] = self._said.terms[entries(slots, self._said.ends)[0]]
        return found

    def terms_from(self, first: int) -> NDArray[np.uint32]:
        """Return all entries of the chunks from one on, without a copy."""
        self._check(np.arange(first, len(self._said.ends)))
        return self._said.terms[int(self._said.ends[first - 1]) if first else 0 :]

    def entries(self, first: int, end: int) -> Entries:
        self._check(np.arange(first, end))
        return entries_between(self._said, first, end)

    def _check(self, slots: Slots) -> None:
        """Check the entries of some chunks for damage, those that no query has read yet."""
        if self._unchecked:
            ends = self._said.ends
            self._part.check_items(_ENTRIES, np.where(slots > 0, ends[slots - 1], 0), ends[slots])
            self._unchecked = self._part.unread(_ENTRIES)
