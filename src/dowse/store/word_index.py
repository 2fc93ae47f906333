"""BM25 index of one snapshot: terms enter, chunks with their scores leave, for one pair of constants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from threading import Lock

import msgspec
import numpy as np

from dowse.ports import Bm25, Mask, Values
from dowse.store.kernels.bm25 import inverse_frequency
from dowse.store.kernels.numpy_kernel import Best, Kernel, Norm, ScoreAccumulator, Spans, joined
from dowse.store.segments.forward import WORD_LEGS, ForwardReader, LegTerms, Slots, hash_term
from dowse.store.segments.inverted import InvertedReader, TermFrequencies
from dowse.types import Leg

_QUERIES = 64  # lists of terms that are remembered; chosen


class WordQuery(msgspec.Struct, frozen=True, eq=False):
    """Terms looked up in one leg: their weights, their postings, and the most that a chunk could score."""

    terms: LegTerms
    spans: list[Spans]
    attainable: float


class Segments(msgspec.Struct, frozen=True, eq=False):
    """The parts of a snapshot that word search reads."""

    forward: ForwardReader
    inverted: InvertedReader
    frequencies: TermFrequencies
    kernel: Kernel
    rows: int
    dead: Slots


class WordIndex:
    """BM25 search with one pair of constants, immutable but for looked-up terms; shared between threads."""

    def __init__(self, segments: Segments, constants: Bm25) -> None:
        self._segments = segments
        self._constants = constants
        self._living = segments.rows - len(segments.dead)
        self._tail = np.arange(segments.inverted.covered, segments.rows)  # chunks that no run covers yet
        self._queries: dict[tuple[Leg, tuple[str, ...]], WordQuery] = {}
        self._lock = Lock()

    @cached_property
    def norms(self) -> dict[Leg, Norm]:
        """Length norms by leg, against the mean tokens of a living chunk, which count as at least 1."""
        k1, b = self._constants.k1, self._constants.b
        norms: dict[Leg, Norm] = {}
        known = self._segments.forward.lengths
        for leg, lengths, tokens in zip(WORD_LEGS, known.by_leg, known.sums.tolist(), strict=True):
            living = tokens - int(lengths[self._segments.dead].sum(dtype=np.int64))
            norms[leg] = Norm(lengths, k1 * (1 - b), k1 * b / max(living / max(self._living, 1), 1.0))
        return norms

    def query(self, leg: Leg, terms: Sequence[str]) -> WordQuery:
        """Look terms up; remembered, because a leg, fusion and later stages look up the same."""
        key = leg, tuple(terms)
        found = self._queries.get(key)
        if found is None:
            found = self._looked_up(leg, count_terms(terms))
            with self._lock:
                if len(self._queries) >= _QUERIES:
                    self._queries.clear()
                self._queries[key] = found
        return found

    def best(self, leg: Leg, query: WordQuery, k: int, mask: Mask, sums: ScoreAccumulator) -> Best:
        """Return at least the best k that pass the mask. The accumulator gets the scores of all that pass it."""
        found = self._segments.kernel.best(query.spans, query.terms.weights, self.norms[leg], mask, k, sums)
        if len(self._tail):
            tail = self._tail[mask[self._tail]] if len(mask) else self._tail
            late = holding(tail, self.exact(tail, {leg: query})[leg])
            sums.add(*late)
            found = joined([found, late])
        return found

    def exact(self, slots: Slots, queries: Mapping[Leg, WordQuery]) -> dict[Leg, Values]:
        return self._segments.forward.score(slots, {leg: each.terms for leg, each in queries.items()}, self.norms)

    def held(self, slots: Slots, terms: Mapping[Leg, Sequence[str]]) -> Sequence[Mapping[Leg, tuple[str, ...]]]:
        return self._segments.forward.held(slots, terms)

    def _looked_up(self, leg: Leg, counts: Mapping[str, int]) -> WordQuery:
        """Weigh terms by the number of living chunks that hold them; terms that none holds are only attainable."""
        pairs = sorted((hash_term(term, leg), times) for term, times in counts.items())
        hashes = np.array([each for each, _ in pairs], np.uint32)
        found, spans = self._segments.frequencies.of(hashes)
        frequencies = found.tolist()
        weights = [times * inverse_frequency(self._living, n) for (_, times), n in zip(pairs, frequencies, strict=True)]
        terms, attainable = LegTerms(hashes, np.array(weights)), sum(weights)
        if 0 in frequencies:
            held = np.flatnonzero(found)
            terms = LegTerms(hashes[held], terms.weights[held])
            spans = [(run, starts[held], ends[held]) for run, starts, ends in spans]
        return WordQuery(terms, spans, attainable)


def count_terms(terms: Sequence[str]) -> dict[str, int]:
    """Count terms; a `Counter` takes three times as long."""
    counts: dict[str, int] = {}
    for term in terms:
        counts[term] = counts.get(term, 0) + 1
    return counts


def holding(slots: Slots, scores: Values) -> Best:
    """Return the slots that hold a term; no score is below 0."""
    hits = scores.nonzero()[0]
    return slots[hits], scores[hits]
