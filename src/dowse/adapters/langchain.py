"""Retriever and vector store for LangChain, and documents of its loaders for an index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore

from dowse.adapters.collection import DocumentCollection, StoredDocument
from dowse.adapters.foreign_filters import langchain_filter
from dowse.adapters.metadata import loaded, metadata
from dowse.engine import Engine
from dowse.engine import open as open_engine
from dowse.errors import BadRequestError
from dowse.filters import Clause, Filter
from dowse.ingest.documents import NewDocument
from dowse.ports import Matrix
from dowse.types import Role

SOURCE = "langchain"
LangChainFilter = Mapping[str, Any] | Clause | Filter | None


class LangChainRetriever(BaseRetriever):
    """`BaseRetriever` over an Engine or any object with `retrieve(query, top_k)`; the caller closes it."""

    retriever: Any  # ports.Retriever: a Protocol, which pydantic cannot check
    top_k: int | None = None

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, top_k: int | None = None
    ) -> list[Document]:
        return [
            Document(page_content=hit.text, id=hit.id, metadata=metadata(hit))
            for hit in self.retriever.retrieve(query, top_k or self.top_k)
        ]


class LangChainEmbedder:
    """Embedding model of LangChain as one of Dowse; the name is stored with the index."""

    def __init__(self, embeddings: Embeddings, model: str = "") -> None:
        self.embeddings = embeddings
        self.model = model or getattr(embeddings, "model", "") or type(embeddings).__name__
        self.dimension = len(embeddings.embed_query("dimension"))

    def embed(self, texts: Sequence[str], *, role: Role) -> Matrix:
        as_query = role == "query"
        rows = [*map(self.embeddings.embed_query, texts)] if as_query else self.embeddings.embed_documents(list(texts))
        vectors: Matrix = np.array(rows, np.float32).reshape(len(texts), self.dimension)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-12))
        return vectors


class LangChainVectorStore(VectorStore):
    """`VectorStore` over an open Engine: hybrid search, and no vectors from outside.

    A long document is found by its passages: `page_content` is the passage, `id` and `metadata` are the document's.
    """

    def __init__(self, engine: Engine, source: str = SOURCE) -> None:
        self.engine = engine
        self._documents = DocumentCollection(engine, source)

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        path: str | Path = ".dowse",
        source: str = SOURCE,
        **more: Any,
    ) -> LangChainVectorStore:
        """Open or create the index at `path` and add texts. Without `embedding`, Dowse uses its own model."""
        embedder = "auto" if embedding is None else LangChainEmbedder(embedding)
        store = cls(open_engine(path, embedder=embedder), source)
        store.add_texts(texts, metadatas, ids=ids, **more)
        return store

    def add_documents(
        self, documents: list[Document], *, ids: Sequence[str | None] | None = None, **more: Any
    ) -> list[str]:
        """Add or replace documents by id, and return their ids."""
        given = [each.id for each in documents] if ids is None else list(ids)
        if len(given) != len(documents):
            raise BadRequestError(f"expected {len(documents)} ids for as many documents, got {len(given)}")
        names = [each or str(uuid4()) for each in given]
        rows = zip(names, documents, strict=True)
        self._documents.put((name, each.page_content, each.metadata) for name, each in rows)
        return names

    def delete(self, ids: list[str] | None = None, **more: Any) -> bool:
        """Delete documents by id; without ids all of this store."""
        wanted = [info.path for info in self._documents.infos()] if ids is None else ids
        self._documents.remove(wanted)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        return [_document(each) for each in self._documents.get(self._documents.infos(ids))]

    def similarity_search(
        self, query: str, k: int = 4, *, filter: LangChainFilter = None, **fields: Any
    ) -> list[Document]:
        """Return passages. `filter` is a dict of LangChain or a filter of Dowse; `fields` are those of a request."""
        return [document for document, _ in self.similarity_search_with_score(query, k, filter=filter, **fields)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, *, filter: LangChainFilter = None, **fields: Any
    ) -> list[tuple[Document, float]]:
        """Return passages with scores in [0, 1], best first."""
        found = self._documents.search(query, k, langchain_filter(filter), **fields)
        return [(_document(each), each.score or 0.0) for each in found]

    def _similarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **fields: Any
    ) -> list[tuple[Document, float]]:
        return self.similarity_search_with_score(query, k, **fields)

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **fields: Any
    ) -> list[Document]:
        """Return passages that differ from each other; 1 - `lambda_mult` is the penalty for similarity."""
        return self.similarity_search(query, k, mmr=True, diversity=1 - lambda_mult, **fields)


def from_langchain(documents: Iterable[Document], source: str = "documents") -> Iterator[NewDocument]:
    """Return the documents of a LangChain loader for `Engine.add`."""
    return loaded(((each.id, each.page_content, each.metadata) for each in documents), source)


def _document(each: StoredDocument) -> Document:
    return Document(id=each.id, page_content=each.text, metadata=each.metadata)
