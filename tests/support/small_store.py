"""A small real store to ask: texts go in, a way of preparing queries over them comes out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dowse.models.embed_hash import HashEmbedder
from dowse.ports import Embedder
from dowse.query.pipeline import Prepared, prepared
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
class Desk:
    """Where questions are asked."""

    store: MemoryStore
    embedder: Embedder | None
    tokenizer: Tokenizer

    @property
    def reader(self) -> MemoryReader:
        return self.store.reader()

    def prepare(self, request: QueryRequest) -> Prepared:
        return prepared(request, self.reader, self.embedder, self.tokenizer)


def texts(*given: str) -> list[Document]:
    """A document for each text."""
    return [document(f"{number}.md", text) for number, text in enumerate(given or TEXTS)]


def desk(documents: Sequence[Document] = (), *, vectors: bool = True) -> Desk:
    store, embedder = MemoryStore(), HashEmbedder()
    store.put(list(documents) or texts())
    store.publish()
    if vectors:
        store.use_model(embedder.model, embedder.dimension)
        pending = store.pending(1000)
        store.put_vectors(
            [each.content_hash for each in pending], embedder.embed([each.text for each in pending], role="chunk")
        )
    return Desk(store, embedder if vectors else None, Tokenizer())
