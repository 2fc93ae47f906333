"""A store without words, vectors, edges or services is searched with what it has, and the rest is in `degraded`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from dowse import ports
from dowse.errors import BusyError, DowseError, StorageError, UnavailableError
from dowse.filters import Filter
from dowse.models.embed_hash import HashEmbedder
from dowse.ports import (
    Bm25,
    ChunkGraph,
    ChunkReader,
    Found,
    Ids,
    Mask,
    ServiceReader,
    StoreStats,
    VectorSearch,
    WordSearch,
)
from dowse.query.pipeline import answer
from dowse.query.retrievers import RetrievalPipeline
from dowse.store.memory import MemoryReader, MemoryStore
from dowse.tokenizer import Tokenizer
from dowse.types import Chunk, ChunkId, DocumentInfo, Leg, QueryRequest, QueryResult
from factories import document

EMBEDDER = HashEmbedder()
QUESTION = "how does retry_call wait before the next try"
TEXTS = (
    "retry_call waits before the next try",
    "the budget of a request",
    "a try that fails waits",
    "the map of roads",
)
PARTS: dict[str, type] = {
    "word search": WordSearch,
    "vector search": VectorSearch,
    "chunk graph": ChunkGraph,
    "service graph": ServiceReader,
}
STAGES = {
    "word search": {"bm25_code", "bm25_nlp", "confidence"},
    "vector search": {"dense"},
    "chunk graph": {"graph", "exact"},
    "service graph": {"services"},
}


def methods(port: type) -> set[str]:
    return {name for name in vars(port) if not name.startswith("_")}


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    store = MemoryStore()
    store.put([document(f"{n}.md", text) for n, text in enumerate(TEXTS)])
    store.publish()
    store.use_model(EMBEDDER.model, EMBEDDER.dimension)
    waiting = store.pending(100)
    store.put_vectors(
        [each.content_hash for each in waiting], EMBEDDER.embed([each.text for each in waiting], role="chunk")
    )
    return store


@dataclass(frozen=True)
class Without:
    """A reader that does not have the methods of some ports."""

    inner: MemoryReader
    missing: frozenset[str]

    def session(self, constants: Bm25) -> Without:
        return self

    def __getattr__(self, name: str) -> Any:
        if name in self.missing:
            raise AttributeError(name)
        return getattr(self.inner, name)


def ask(reader: Any, **fields: Any) -> QueryResult:
    request = QueryRequest(QUESTION, graph=True, expand_graph=True, **fields)
    return answer(request, reader, EMBEDDER, Tokenizer())


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_a_store_lacks_costs_its_stages_and_is_named(store: MemoryStore, part: str) -> None:
    result = ask(Without(store.reader(), frozenset(methods(PARTS[part]))), explain=True)
    assert result.chunks[0].text == TEXTS[0]
    assert {each.stage for each in result.degraded} == STAGES[part]
    assert {each.reason for each in result.degraded} == {f"this store has no {part}"}
    assert all(chunk.scores for chunk in result.chunks)


def test_a_store_with_words_alone_ranks_as_a_query_of_its_word_legs(store: MemoryStore) -> None:
    missing = frozenset().union(*(methods(port) for name, port in PARTS.items() if name != "word search"))
    words: tuple[Leg, ...] = ("bm25_code", "bm25_nlp")
    found = answer(QueryRequest(QUESTION), Without(store.reader(), missing), EMBEDDER, Tokenizer())  # type: ignore[arg-type]
    wanted = answer(QueryRequest(QUESTION, legs=words), store.reader(), EMBEDDER, Tokenizer())
    assert [each.id for each in found.chunks] == [each.id for each in wanted.chunks]


def test_a_store_of_chunks_alone_answers_nothing_and_says_why(store: MemoryStore) -> None:
    result = ask(Without(store.reader(), frozenset().union(*map(methods, PARTS.values()))))
    assert result.nothing_found
    assert {"dense", "bm25_code", "bm25_nlp", "fuse"} <= {each.stage for each in result.degraded}


class Lines:
    """A store of one's own: rows and word search, as short as it gets."""

    def __init__(self, inner: MemoryStore) -> None:
        self._inner = inner.reader()
        self.stats = StoreStats(len(TEXTS), len(TEXTS), 0)

    def reader(self) -> Lines:
        return self

    def documents(self, source: str | None = None, under: str = "") -> Sequence[DocumentInfo]:
        return ()

    def get(self, ids: Collection[ChunkId]) -> Mapping[ChunkId, Chunk]:
        return self._inner.get(ids)

    def passing(self, ids: Ids, where: Filter) -> Mask:
        return self._inner.passing(ids, where)

    def document(self, document_id: str) -> DocumentInfo | None:
        return None

    def documents_of(self, document_ids: Collection[str]) -> Sequence[DocumentInfo]:
        return ()

    def document_chunks(self, document_id: str) -> Sequence[Chunk]:
        return ()

    def search_words(self, leg: Leg, terms: Sequence[str], k: int, where: Filter) -> Found:
        return self._inner.search_words(leg, terms, k, where)

    def score_words(self, terms: Mapping[Leg, Sequence[str]], ids: Ids) -> Any:
        return self._inner.score_words(terms, ids)

    def held_terms(self, terms: Mapping[Leg, Sequence[str]], ids: Ids) -> Any:
        return self._inner.held_terms(terms, ids)

    def attainable_words(self, terms: Mapping[Leg, Sequence[str]]) -> Mapping[Leg, float]:
        return self._inner.attainable_words(terms)


def test_a_retriever_takes_a_store_of_rows_and_words(store: MemoryStore) -> None:
    own = Lines(store)
    reader: ChunkReader = own
    assert isinstance(reader, Lines)
    assert RetrievalPipeline(own, EMBEDDER).retrieve("the map of roads", top_k=1)[0].text == TEXTS[3]


@pytest.mark.parametrize("method", ["search_words", "search_vectors", "neighbours", "service_edges"])
def test_a_storage_failure_ends_the_query(store: MemoryStore, method: str) -> None:
    def fail(*given: object, **named: object) -> None:
        raise StorageError("the disk fails")

    reader = Without(store.reader(), frozenset())
    object.__setattr__(reader, method, fail)
    with pytest.raises(StorageError, match="the disk fails"):
        ask(reader)


def test_only_unavailable_degrades_and_storage_and_lock_errors_are_none() -> None:
    for kind in (StorageError, BusyError):
        assert issubclass(kind, DowseError)
        assert not issubclass(kind, UnavailableError)


def test_a_port_has_at_most_eight_methods_of_its_own() -> None:
    found = {name: methods(each) for name, each in vars(ports).items() if getattr(each, "_is_protocol", False)}
    assert {"ChunkReader", "WordSearch", "StoreReader", "StoreWriter", "Store"} <= set(found)
    assert {name for name, own in found.items() if len(own) > 8} == set()
