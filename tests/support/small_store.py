"""Small in-memory store of a few texts, for tests that run queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dowse.models.embed_hash import HashEmbedder
from dowse.ports import Embedder
from dowse.query.pipeline import PreparedQuery, prepared
from dowse.store.memory import MemoryReader, MemoryStore
from dowse.tokenizer import Tokenizer
from dowse.types import Document, QueryRequest
from factories import document

TEXTS = (
    "retry with backoff doubles the pause after each failed call",
    "the consumer restarts when the queue is full",
    "idempotent writes are chosen over distributed locks",
    "the gateway is deployed with helm and watched during rollout",
    "jitter spreads the retries of many clients so that they do not meet",
    "paging the owner of a service happens through the schedule",
    "a failed payment is retried three times and then reported",
    "leases are renewed by a heartbeat every ten seconds",
)


@dataclass(frozen=True, eq=False)
class SmallStore:
    """Store with the embedder and tokenizer that queries need."""

    store: MemoryStore
    embedder: Embedder | None
    tokenizer: Tokenizer

    @property
    def reader(self) -> MemoryReader:
        return self.store.reader()

    def prepare(self, request: QueryRequest) -> PreparedQuery:
        return prepared(request, self.reader, self.embedder, self.tokenizer)


def texts(*given: str) -> list[Document]:
    """Make one document for each text."""
    return [document(f"{number}.md", text) for number, text in enumerate(given or TEXTS)]


def small_store(documents: Sequence[Document] = (), *, vectors: bool = True) -> SmallStore:
    store, embedder = MemoryStore(), HashEmbedder()
    store.put(list(documents) or texts())
    store.publish()
    if vectors:
        store.use_model(embedder.model, embedder.dimension)
        pending = store.pending(1000)
        store.put_vectors(
            [each.content_hash for each in pending], embedder.embed([each.text for each in pending], role="chunk")
        )
    return SmallStore(store, embedder if vectors else None, Tokenizer())
