"""Memories of a long-lived engine: questions' vectors and rerankers' judgements go in once, and come out again.

A judgement is kept under the hash of the text that was judged, so a changed chunk never gets an old score. Sizes are
bounded: what was not used for longest goes first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Generic, TypeVar

import numpy as np

from dowse.ports import Candidate, Embedder, Matrix, Reranker, Vector
from dowse.types import Role

VECTORS = 2_000  # questions; 1.5 KB each at 384 dimensions, so 3 MB; chosen
SCORES = 50_000  # judgements; about 300 bytes each, so 15 MB: 1,000 questions with a window of 50; chosen

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
VectorKey = tuple[str, str]
"""Model and question."""
ScoreKey = tuple[str, str, str]
"""Model, question and content hash."""


class Memory(Generic[K, V]):
    """The `limit` most recently used values. Safe to share between threads."""

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


@dataclass(frozen=True, eq=False)
class Caches:
    """What one engine remembers between queries."""

    vectors: Memory[VectorKey, Vector] = field(default_factory=lambda: Memory(VECTORS))
    scores: Memory[ScoreKey, float] = field(default_factory=lambda: Memory(SCORES))


@dataclass(frozen=True, eq=False)
class CachedEmbedder:
    """Satisfies `dowse.ports.Embedder`. Only questions are remembered; chunks have the store's cache by content."""

    inner: Embedder
    memory: Memory[VectorKey, Vector]

    @property
    def model(self) -> str:
        return self.inner.model

    @property
    def dimension(self) -> int:
        return self.inner.dimension

    def embed(self, texts: Sequence[str], *, role: Role) -> Matrix:
        if role != "query":
            return self.inner.embed(texts, role=role)
        known = {text: self.memory.get((self.model, text)) for text in texts}
        missing = [text for text, vector in known.items() if vector is None]
        if missing:
            for text, row in zip(missing, self.inner.embed(missing, role=role), strict=True):
                vector = row.copy()  # a view would keep the whole batch alive, and could be written to
                vector.setflags(write=False)
                self.memory.put((self.model, text), vector)
                known[text] = vector
        rows = [vector for text in texts if (vector := known[text]) is not None]
        return np.array(rows, np.float32).reshape(len(texts), self.dimension)


@dataclass(frozen=True, eq=False)
class CachedReranker:
    """Satisfies `dowse.ports.Reranker`, around one that judges by prefix and text alone, which is what is hashed.

    Not around one that looks at names, links or the value so far: those change without the hash changing. What was
    not judged is not remembered, so it is asked again.
    """

    inner: Reranker
    memory: Memory[ScoreKey, float]

    @property
    def model(self) -> str:
        return self.inner.model

    def score(
        self, query: str, candidates: Sequence[Candidate], *, timeout_s: float | None = None
    ) -> Sequence[float | None]:
        keys = [(self.model, query, each.chunk.content_hash) for each in candidates]
        scores = [self.memory.get(key) for key in keys]
        missing = [at for at, score in enumerate(scores) if score is None]
        if not missing:
            return scores
        fresh = self.inner.score(query, [candidates[at] for at in missing], timeout_s=timeout_s)
        for at, score in zip(missing, fresh, strict=True):
            scores[at] = score
            if score is not None:
                self.memory.put(keys[at], score)
        return scores
