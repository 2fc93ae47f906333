"""Embedder without a model, for tests: deterministic unit vectors of hashed stems and subwords."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from zlib import crc32

import numpy as np

from dowse.errors import BadRequestError
from dowse.models.checks import unit_rows
from dowse.ports import Matrix
from dowse.tokenizer import Tokenizer
from dowse.types import Role

DIMENSION = 256  # chosen: small enough for tests, large enough that collisions do not decide a ranking
SMALLEST = 8
_SUBWORD = 4  # characters; chosen
_SUBWORD_WEIGHT = 0.25  # chosen: shared subwords help (config, configure), a shared word counts more


class HashEmbedder:
    """`dowse.ports.Embedder` that compares words and their parts, not their meaning."""

    def __init__(self, dimension: int = DIMENSION) -> None:
        if dimension < SMALLEST:
            raise BadRequestError(
                f"a hash embedder needs {SMALLEST} dimensions or more, not {dimension}; try 'hash:256'"
            )
        self.model = f"hash-{dimension}"
        self.dimension = dimension
        self._tokenizer = Tokenizer()

    def embed(self, texts: Sequence[str], *, role: Role) -> Matrix:
        matrix = np.zeros((len(texts), self.dimension))
        for row, text in enumerate(texts):
            for feature, weight in self._features(text):
                number = crc32(feature.encode("utf-8", "surrogatepass"))
                sign = 1 if number & 1 else -1
                matrix[row, (number >> 1) % self.dimension] += sign * weight
        matrix[~matrix.any(axis=1), 0] = 1.0  # a text without words, or whose words cancel out
        return unit_rows(matrix, rows=len(texts), dimension=self.dimension, model=self.model)

    def _features(self, text: str) -> Iterator[tuple[str, float]]:
        """Yield words with the root of their count as weight, and subwords with less."""
        terms = self._tokenizer(text)
        for word, count in Counter([*terms.prose, *terms.code]).items():
            weight = count**0.5
            yield word, weight
            marked = f"<{word}>"
            for start in range(len(marked) - _SUBWORD + 1):
                yield "#" + marked[start : start + _SUBWORD], weight * _SUBWORD_WEIGHT
