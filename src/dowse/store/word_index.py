"""BM25 index of one snapshot: terms enter, chunks with their scores leave, for one pair of constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property, partial, reduce
from threading import Lock

import msgspec
import numpy as np

from dowse.ports import Bm25, Mask, Values
from dowse.store.kernels.bm25 import inverse_frequency
from dowse.store.kernels.numpy_kernel import Best, Kernel, Norm, ScoreAccumulator, Spans, joined
from dowse.store.segments.forward import WORD_LEGS, ForwardReader, Hashes, LegTerms, Slots, hash_term
from dowse.store.segments.inverted import InvertedReader
from dowse.types import Leg

_LOOKS = 100  # terms that are counted one by one before a sort is worth it; chosen
_QUERIES = 64  # lists of terms that are remembered; chosen


class WordQuery(msgspec.Struct, frozen=True, eq=False):
    """Terms looked up in one leg: their weights, their postings, and the most that a chunk could score."""

    terms: LegTerms
    spans: list[Spans]
    attainable: float


class TermCounts:
    """Document frequencies of some chunks.

    The first look-ups scan all entries: a sort takes much longer than one scan, and every update changes the chunks.
    """

    def __init__(self, terms: Hashes) -> None:
        """`terms` are all entries of the chunks."""
        self.terms = terms
        self._looked = 0
        self._sorted: tuple[Hashes, Slots] | None = None

    def of(self, hashes: Hashes) -> Slots:
        self._looked += len(hashes)
        if self._sorted is None and self._looked <= _LOOKS:
            return np.array([np.count_nonzero(self.terms == each) for each in hashes], np.int64)
        if self._sorted is None:
            self._sorted = np.unique(self.terms, return_counts=True)
        terms, counts = self._sorted
        if not len(terms):
            return np.zeros(len(hashes), np.int64)
        at = np.minimum(np.searchsorted(terms, hashes), len(terms) - 1)
        return np.where(terms[at] == hashes, counts[at], 0)


class TermFrequencies:
    """Document frequencies of one snapshot: runs and chunks that no run covers, without deleted chunks."""

    def __init__(
        self,
        inverted: InvertedReader,
        forward: ForwardReader,
        dead: Slots,
        kernel: Kernel,
        before: TermFrequencies | None = None,
    ) -> None:
        """`before` is of an earlier snapshot of the same generation, whose deleted chunks come first among these."""
        self.inverted = inverted
        self.forward = forward
        self.dead = dead
        self.kernel = kernel
        self._gathered: tuple[int, Hashes] = before._known() if before else (0, np.empty(0, np.uint32))

    def of(self, hashes: Hashes) -> tuple[Slots, list[Spans]]:
        """Return frequencies and postings of ascending hashes, without runs that hold none of the terms."""
        holding, spans = np.zeros(len(hashes), np.int64), []
        for run, starts, ends in self.inverted.find(self.kernel, hashes):
            sizes = ends - starts
            if len(self.inverted.runs) == 1 or sizes.any():  # of one run there is nothing to leave out
                holding += sizes
                spans.append((run, starts, ends))
        if len(self._tail_terms.terms):
            holding += self._tail_terms.of(hashes)
        if len(self.dead):
            holding -= self._dead_terms.of(hashes)
        return holding, spans

    def holding(self, hashes: Hashes) -> Slots:
        """Return the chunks that hold all terms of ascending hashes, deleted ones too."""
        found: list[Slots] = []
        for run in self.inverted.runs:
            starts, ends = self.kernel.find(run, hashes)
            lists = sorted((run.slots[start:end] for start, end in zip(starts, ends, strict=True)), key=len)
            found.append(reduce(partial(np.intersect1d, assume_unique=True), lists).astype(np.int64))
        terms, slots, _ = self.forward.entries(self.inverted.covered, self.forward.lengths.by_leg.shape[1])
        counts = np.bincount(slots[np.isin(terms, hashes)])
        return np.concatenate([*found, np.flatnonzero(counts == len(hashes))])

    @cached_property
    def _tail_terms(self) -> TermCounts:
        return TermCounts(self.forward.terms_from(self.inverted.covered))

    @cached_property
    def _dead_terms(self) -> TermCounts:
        known, terms = self._gathered
        return TermCounts(np.concatenate([terms, self.forward.terms_of(self.dead[known:])]))

    def _known(self) -> tuple[int, Hashes]:
        """Return how many deleted chunks the gathered terms are of, and these: an update deletes a few more."""
        found: TermCounts | None = vars(self).get("_dead_terms")
        return self._gathered if found is None else (len(self.dead), found.terms)


class WordIndex:
    """BM25 search with one pair of constants, immutable but for looked-up terms; shared between threads."""

    def __init__(self, segments: TermFrequencies, rows: int, constants: Bm25) -> None:
        self._segments = segments
        self._constants = constants
        self._living = rows - len(segments.dead)
        self._tail = np.arange(segments.inverted.covered, rows)  # chunks that no run covers yet
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
            found = self._looked_up(leg, Counter(terms))
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

    def _looked_up(self, leg: Leg, counts: Mapping[str, int]) -> WordQuery:
        """Weigh terms by the number of living chunks that hold them; terms that none holds are only attainable."""
        pairs = sorted((hash_term(term, leg), times) for term, times in counts.items())
        hashes = np.array([each for each, _ in pairs], np.uint32)
        found, spans = self._segments.of(hashes)
        frequencies = found.tolist()
        weights = [times * inverse_frequency(self._living, n) for (_, times), n in zip(pairs, frequencies, strict=True)]
        terms, attainable = LegTerms(hashes, np.array(weights)), sum(weights)
        if 0 in frequencies:
            held = np.flatnonzero(found)
            terms = LegTerms(hashes[held], terms.weights[held])
            spans = [(run, starts[held], ends[held]) for run, starts, ends in spans]
        return WordQuery(terms, spans, attainable)


def holding(slots: Slots, scores: Values) -> Best:
    """Return the slots that hold a term; no score is below 0."""
    hits = scores.nonzero()[0]
    return slots[hits], scores[hits]
