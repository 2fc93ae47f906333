"""Memories: what is asked twice is computed once, and nothing old is ever given for something new."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Thread

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dowse.models.embed_hash import HashEmbedder
from dowse.ports import Candidate, Matrix
from dowse.query.cache import CachedEmbedder, CachedReranker, Caches, LruCache
from dowse.types import Role
from factories import document
from values import replace


@dataclass(frozen=True)
class CountingEmbedder:
    """A hash embedder that remembers what it was asked."""

    inner: HashEmbedder = field(default_factory=HashEmbedder)
    asked: list[str] = field(default_factory=list)
    model: str = "counting"
    dimension: int = 256

    def embed(self, texts: Sequence[str], *, role: Role) -> Matrix:
        self.asked.extend(texts)
        return self.inner.embed(texts, role=role)


@dataclass(frozen=True)
class LengthReranker:
    """Judges by length, skips what it is told to, and remembers what it was asked."""

    model: str = "length"
    asked: list[str] = field(default_factory=list)
    skips: set[str] = field(default_factory=set)

    def score(
        self, query: str, candidates: Sequence[Candidate], *, timeout_s: float | None = None
    ) -> Sequence[float | None]:
        self.asked.extend(each.chunk.text for each in candidates)
        return [None if each.chunk.text in self.skips else 1 / (1 + len(each.chunk.text)) for each in candidates]


def candidates(*texts: str) -> list[Candidate]:
    return [Candidate(document(text, text).chunks[0], 0.5) for text in texts]


def test_memory_keeps_the_most_recently_used() -> None:
    memory: LruCache[str, int] = LruCache(2)
    memory.put("a", 1)
    memory.put("b", 2)
    assert memory.get("a") == 1
    memory.put("c", 3)
    assert (memory.get("a"), memory.get("b"), memory.get("c")) == (1, None, 3)
    assert len(memory) == 2


@given(st.lists(st.integers(0, 20)), st.integers(1, 5))
def test_memory_never_grows_beyond_its_limit(keys: list[int], limit: int) -> None:
    memory: LruCache[int, int] = LruCache(limit)
    for key in keys:
        memory.put(key, key)
        assert len(memory) <= limit
    recent = list(dict.fromkeys(reversed(keys)))[:limit]
    assert all(memory.get(key) == key for key in recent)


def test_memory_survives_many_threads() -> None:
    memory: LruCache[int, int] = LruCache(10)

    def work(start: int) -> None:
        for key in range(start, start + 500):
            memory.put(key % 17, key)
            memory.get((key + 3) % 17)

    threads = [Thread(target=work, args=[start]) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(memory) == 10


def test_question_is_embedded_once() -> None:
    inner = CountingEmbedder()
    cached = CachedEmbedder(inner, Caches().vectors)
    first = cached.embed(["one", "two"], role="query")
    second = cached.embed(["two", "three", "one", "two"], role="query")
    assert inner.asked == ["one", "two", "three"]
    assert np.array_equal(second, inner.inner.embed(["two", "three", "one", "two"], role="query"))
    assert np.array_equal(first, inner.inner.embed(["one", "two"], role="query"))


def test_nobody_can_change_what_is_remembered() -> None:
    cached = CachedEmbedder(CountingEmbedder(), Caches().vectors)
    cached.embed(["one"], role="query")[0, :] = 0
    assert np.linalg.norm(cached.embed(["one"], role="query")[0]) > 0.9


def test_chunks_and_other_models_are_not_mixed_up_with_questions() -> None:
    caches, inner = Caches(), CountingEmbedder()
    cached = CachedEmbedder(inner, caches.vectors)
    cached.embed(["one"], role="chunk")
    cached.embed(["one"], role="chunk")
    CachedEmbedder(replace(inner, model="other"), caches.vectors).embed(["one"], role="query")
    cached.embed(["one"], role="query")
    assert inner.asked == ["one"] * 4


def test_judgement_is_asked_once_for_a_question_and_a_text() -> None:
    inner = LengthReranker()
    cached = CachedReranker(inner, Caches().scores)
    assert cached.score("q", candidates("aa", "bbbb")) == [1 / 3, 1 / 5]
    assert cached.score("q", candidates("bbbb", "c", "aa")) == [1 / 5, 1 / 2, 1 / 3]
    assert inner.asked == ["aa", "bbbb", "c"]
    cached.score("another question", candidates("aa"))
    assert inner.asked[-1] == "aa"


def test_changed_chunk_never_gets_an_old_score() -> None:
    """Design 6: "keyed so that a changed chunk never gets an old score": same place, new text or new prefix."""
    inner = LengthReranker()
    cached = CachedReranker(inner, Caches().scores)
    (before,) = candidates("text")
    changed = replace(
        before.chunk, text="longer text", content_hash=document("x", "longer text").chunks[0].content_hash
    )
    prefixed = replace(before.chunk, content_hash="00" * 16)
    cached.score("q", [before])
    assert cached.score("q", [Candidate(changed, 0.5)]) == [1 / (1 + len("longer text"))]
    cached.score("q", [Candidate(prefixed, 0.5)])
    assert inner.asked == ["text", "longer text", "text"]


def test_what_was_not_judged_is_asked_again() -> None:
    inner = LengthReranker(skips={"late"})
    cached = CachedReranker(inner, Caches().scores)
    assert cached.score("q", candidates("late", "x")) == [None, 1 / 2]
    inner.skips.clear()
    assert cached.score("q", candidates("late", "x")) == [1 / 5, 1 / 2]
    assert inner.asked == ["late", "x", "late"]


def test_models_do_not_share_judgements() -> None:
    caches, one, other = Caches(), LengthReranker("one"), LengthReranker("other")
    CachedReranker(one, caches.scores).score("q", candidates("x"))
    CachedReranker(other, caches.scores).score("q", candidates("x"))
    assert other.asked == ["x"]
