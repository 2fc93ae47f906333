"""The forward index: the terms of every chunk, kept so that any few hundred chunks get their exact BM25 at once.

An inverted index finds the best chunks of one leg; fusion also needs the score of what the other legs found. Files,
one row a chunk, both legs of a chunk side by side:

    terms    32-bit hash of every distinct term, ascending inside a chunk
    counts   how often that term occurs in that chunk
    ends     where a chunk's entries end in the two files above
    lengths  tokens of the chunk in each leg, exact, without stop words

A term is stored as the CRC-32 of its UTF-8 bytes and not as a number from a dictionary: nothing to keep consistent.
A wrong hit needs a candidate to hold a term that collides with a query's term: about 8 in 100,000 queries of 12 terms
over 300 candidates (computed in shared/lab/words.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from dowse.persist.arrays import PartReader, PartWriter
from dowse.persist.kernel import Kernel, Postings, Wanted, entries
from dowse.text import Terms
from dowse.types import Leg

WORD_LEGS: tuple[Leg, ...] = ("bm25_code", "bm25_nlp")
# CRC-32 starts from these. A start value acts like an XOR on a term's first bytes, so it must lead out of ASCII:
# with 0 and 1, "b" in one leg would be "c" in the other.
_SEEDS = {"bm25_code": 0, "bm25_nlp": 0xA5A5A5A5}
_MEMORY_LIMIT = 1_000_000
_MAX_COUNT = np.iinfo(np.uint16).max

Slots = NDArray[np.int64]


def hash_term(term: str, leg: Leg) -> int:
    return crc32(term.encode("utf-8", "surrogatepass"), _SEEDS[leg])


class _Hashes(dict[str, int]):
    """Term → hash in one leg, remembered; emptied when full."""

    def __init__(self, leg: Leg) -> None:
        super().__init__()
        self._leg = leg

    def __missing__(self, term: str) -> int:
        if len(self) >= _MEMORY_LIMIT:
            self.clear()
        value = self[term] = hash_term(term, self._leg)
        return value


class ForwardWriter:
    """Appends chunks to a part."""

    def __init__(self, part: PartWriter) -> None:
        self._part = part
        self._hashes = [_Hashes(leg) for leg in WORD_LEGS]

    def append(self, rows: Sequence[Terms]) -> None:
        legs: tuple[list[Sequence[str]], ...] = (
            [row.code for row in rows],
            [[*row.prose, *row.stops] for row in rows],
        )
        sizes = [np.fromiter(map(len, tokens), np.int64, len(rows)) for tokens in legs]
        streams = [
            map(hashes.__getitem__, chain.from_iterable(tokens))
            for hashes, tokens in zip(self._hashes, legs, strict=True)
        ]
        terms, counts, distinct = _count_terms(streams, sizes)
        before = self._part.size("terms") // 4
        self._part.append("terms", terms)
        self._part.append("counts", np.minimum(counts, _MAX_COUNT).astype("<u2"))
        self._part.append("ends", (before + np.cumsum(distinct)).astype("<i8"))
        lengths = [(len(row.code), len(row.prose)) for row in rows]
        self._part.append("lengths", np.array(lengths, "<u4"))


def _count_terms(
    streams: Sequence[Iterable[int]], sizes: Sequence[Slots]
) -> tuple[NDArray[np.uint32], NDArray[Any], NDArray[Any]]:
    """Distinct terms and their counts for a batch of chunks, and how many distinct terms each chunk has.

    Every token becomes one sortable key, chunk number above term hash, so that one sort counts all chunks at once.
    """
    chunks = len(sizes[0])
    number = np.arange(chunks, dtype=np.uint64) << np.uint64(32)
    keys = np.concatenate(
        [
            np.fromiter(stream, np.uint64, int(each.sum())) | np.repeat(number, each)
            for stream, each in zip(streams, sizes, strict=True)
        ]
    )
    keys.sort()
    is_first = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=is_first[1:])
    first = np.flatnonzero(is_first)
    counts = np.diff(first, append=len(keys))
    keys = keys[first]
    distinct = np.bincount((keys >> np.uint64(32)).astype(np.intp), minlength=chunks)
    return keys.astype("<u4"), counts, distinct


class ForwardReader:
    """Exact BM25 of any chunks, in all legs at once."""

    def __init__(self, part: PartReader, kernel: Kernel) -> None:
        self._kernel = kernel
        self._postings = Postings(
            part.array("terms", "<u4"),
            part.array("counts", "<u2"),
            part.array("ends", "<i8"),
            part.array("lengths", "<u4", len(WORD_LEGS)),
        )
        self.lengths = self._postings.lengths

    def score(
        self, slots: Slots, weights: Mapping[Leg, Mapping[str, float]], mean_lengths: Mapping[Leg, float]
    ) -> dict[Leg, NDArray[np.float64]]:
        """By leg, one value a slot. `weights`: query term → weight, by leg."""
        legs = list(weights)
        query = sorted(
            (hash_term(term, leg), number, weight)
            for number, leg in enumerate(legs)
            for term, weight in weights[leg].items()
        )
        if not query or not len(slots):
            return {leg: np.zeros(len(slots)) for leg in legs}
        hashes, numbers, values = zip(*query, strict=True)
        wanted = Wanted(
            np.array(hashes, np.uint32),
            np.array(numbers, np.int64),
            np.array(values, np.float64),
            np.array([WORD_LEGS.index(leg) for leg in legs], np.int64),
            np.array([mean_lengths[leg] for leg in legs], np.float64),
        )
        return dict(zip(legs, self._kernel.bm25(slots, self._postings, wanted), strict=True))

    def held(self, slots: Slots, terms: Mapping[Leg, Sequence[str]]) -> list[dict[Leg, tuple[str, ...]]]:
        """By slot and leg, which of the terms the chunk holds; none for a slot below 0."""
        asked = [(leg, term) for leg, of_leg in terms.items() for term in dict.fromkeys(of_leg)]
        wanted = np.array([hash_term(term, leg) for leg, term in asked], np.uint32)
        found: list[dict[Leg, tuple[str, ...]]] = []
        for slot in slots.tolist():
            own = self._own_terms(slot)
            at = np.searchsorted(own, wanted)
            there = (own[np.minimum(at, len(own) - 1)] == wanted).tolist() if len(own) else [False] * len(asked)
            said = [pair for pair, holds in zip(asked, there, strict=True) if holds]
            found.append({leg: tuple(term for each, term in said if each == leg) for leg in terms})
        return found

    def _own_terms(self, slot: int) -> NDArray[np.uint32]:
        """Hashes of one chunk's terms, ascending."""
        if slot < 0:
            return np.empty(0, np.uint32)
        start = int(self._postings.ends[slot - 1]) if slot else 0
        return self._postings.terms[start : int(self._postings.ends[slot])]

    def terms_of(self, slots: Slots) -> NDArray[np.uint32]:
        """All entries of the chunks, one chunk after the other."""
        found: NDArray[np.uint32] = self._postings.terms[entries(slots, self._postings.ends)[0]]
        return found


class DeadTerms:
    """How many dead chunks hold a term: what an append-only inverted index counts too much."""

    def __init__(self, forward: ForwardReader, dead: Slots) -> None:
        self._terms, self._counts = np.unique(forward.terms_of(dead), return_counts=True)

    def count(self, leg: Leg) -> Callable[[str], int]:
        def of_term(term: str) -> int:
            at = int(np.searchsorted(self._terms, hash_term(term, leg)))
            wanted = hash_term(term, leg)
            return int(self._counts[at]) if at < len(self._terms) and self._terms[at] == wanted else 0

        return of_term
