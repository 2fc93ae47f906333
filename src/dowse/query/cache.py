"""Per-engine caches of query vectors and reranker scores, bounded, least recently used first out.

A score is stored under the hash of the scored text, so a changed chunk never gets an old score.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from threading import Lock
from typing import Generic, TypeVar

import msgspec
import numpy as np

from dowse.ports import Candidate, Embedder, Matrix, Reranker, Vector
from dowse.types import Chunk, Role

VECTORS = 2_000  # queries; 1.5 KB each at 384 dimensions, so 3 MB; chosen
SCORES = 50_000  # about 300 bytes each, so 15 MB: 1,000 queries with a window of 50; chosen

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
T = TypeVar("T")
VectorKey = tuple[str, str]
"""Model and query."""
ScoreKey = tuple[str, ...]
"""Model, query, content hash, name, kind and summary."""


class LruCache(Generic[K, V]):
    """Cache of the `limit` most recently used values. Safe to share between threads."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | None:
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key]

    def put(self, key: K, value: V) -> None:
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._limit:
                self._values.popitem(last=False)


def uncached(llm: T) -> T:
    """Return the language model without its memory of replies, if it has any."""
    found: T = getattr(llm, "uncached", llm)
    return found


class Caches(msgspec.Struct, frozen=True, eq=False):
    """Caches of one engine, shared by its queries."""

    vectors: LruCache[VectorKey, Vector] = msgspec.field(default_factory=lambda: LruCache(VECTORS))
    scores: LruCache[ScoreKey, float] = msgspec.field(default_factory=lambda: LruCache(SCORES))


class CachedEmbedder(msgspec.Struct, frozen=True, eq=False):
    """Embedder that caches the vectors of queries; the store caches those of chunks."""

    inner: Embedder
    cache: LruCache[VectorKey, Vector]

    @property
    def model(self) -> str:
        return self.inner.model

    @property
    def dimension(self) -> int:
        return self.inner.dimension

    def embed(self, texts: Sequence[str], *, role: Role) -> Matrix:
        if role != "query" or not texts:
            return self.inner.embed(texts, role=role)
        known = {text: self.cache.get((self.model, text)) for text in texts}
        missing = [text for text, vector in known.items() if vector is None]
        if missing:
            for text, row in zip(missing, self.inner.embed(missing, role=role), strict=True):
                vector = row.copy()  # a view would keep the whole batch alive, and could be written to
                vector.setflags(write=False)
                self.cache.put((self.model, text), vector)
                known[text] = vector
        return np.array([known[text] for text in texts], np.float32)


class CachedReranker(msgspec.Struct, frozen=True, eq=False):
    """Reranker that caches the scores of one that reads text, name and summary.

    A reranker that reads links or earlier scores must not be cached: they change without the key. Candidates without a
    score are scored again.
    """

    inner: Reranker
    cache: LruCache[ScoreKey, float]

    @property
    def model(self) -> str:
        return self.inner.model

    def score(
        self, query: str, candidates: Sequence[Candidate], *, timeout_s: float | None = None
    ) -> Sequence[float | None]:
        keys = [self._key(query, each.chunk) for each in candidates]
        scores = [self.cache.get(key) for key in keys]
        missing = [at for at, score in enumerate(scores) if score is None]
        if not missing:
            return scores
        fresh = self.inner.score(query, [candidates[at] for at in missing], timeout_s=timeout_s)
        for at, score in zip(missing, fresh, strict=True):
            scores[at] = score
            if score is not None:
                self.cache.put(keys[at], score)
        return scores

    def _key(self, query: str, chunk: Chunk) -> ScoreKey:
        about = (chunk.symbol_name, chunk.symbol_kind, chunk.summary)
        return (self.model, query, chunk.content_hash or chunk.text, *(each or "" for each in about))
