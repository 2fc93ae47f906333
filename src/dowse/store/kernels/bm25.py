"""BM25 formula: term counts enter, a score leaves; the same for the reference store and the fast one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from math import log1p

from dowse.ports import Bm25


def inverse_frequency(chunks: int, containing: int) -> float:
    """Lucene's idf, ln(1 + (N − n + .5)/(n + .5)): positive however common the term is."""
    return log1p((max(chunks, containing) - containing + 0.5) / (containing + 0.5))


def query_weights(terms: Iterable[str], chunks: int, containing: Callable[[str], int]) -> dict[str, float]:
    """Term → idf × how often the query says it, for the terms that occur at all."""
    return {
        term: times * inverse_frequency(chunks, found)
        for term, times in Counter(terms).items()
        if (found := containing(term)) > 0
    }


def attainable(terms: Iterable[str], chunks: int, containing: Callable[[str], int]) -> float:
    """What `term_score` adds up to as every term, known or not, becomes frequent: the sum of the weights."""
    return sum(times * inverse_frequency(chunks, containing(term)) for term, times in Counter(terms).items())


def length_norm(constants: Bm25, length: float, mean_length: float) -> float:
    """k1·(1 − b + b·length/mean): what a count is held against, more in a chunk that is longer than others."""
    return constants.k1 * (1 - constants.b + constants.b * length / mean_length)


def term_score(weight: float, frequency: int, norm: float) -> float:
    """weight · tf/(tf + norm), as Lucene has it since version 8 (no factor k1 + 1)."""
    return weight * frequency / (frequency + norm)
