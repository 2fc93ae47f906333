"""Document store and retriever for Haystack pipelines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from haystack import component, default_from_dict, default_to_dict
from haystack.dataclasses import Document
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.errors import FilterError

from dowse.adapters.collection import DocumentCollection, StoredDocument
from dowse.adapters.foreign_filters import haystack_filter
from dowse.engine import Engine
from dowse.engine import open as open_engine
from dowse.errors import BadRequestError
from dowse.filters import Filter
from dowse.ports import Embedder

HaystackFilter = dict[str, Any] | None


class HaystackDocumentStore:
    """`DocumentStore` over an index: the folder `path`, opened on first use, or an open engine.

    Dowse embeds the text itself; `embedding` and `blob` of a document are not stored. By default, writing a known id
    replaces the document.
    """

    def __init__(
        self,
        path: str | Path = ".dowse",
        *,
        source: str = "haystack",
        embedder: str | Embedder | None = "auto",
        engine: Engine | None = None,
    ) -> None:
        self.path = path if engine is None else engine.path
        self.source = source
        self.embedder = embedder
        self._engine = engine

    @property
    def engine(self) -> Engine:
        if self._engine is None:
            self._engine = open_engine(self.path, embedder=self.embedder)
        return self._engine

    @property
    def collection(self) -> DocumentCollection:
        return DocumentCollection(self.engine, self.source)

    def to_dict(self) -> dict[str, Any]:
        name = self.embedder if isinstance(self.embedder, str | None) else self.embedder.model
        found: dict[str, Any] = default_to_dict(self, path=str(self.path), source=self.source, embedder=name)
        return found

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> HaystackDocumentStore:
        store: HaystackDocumentStore = default_from_dict(cls, data)
        return store

    def count_documents(self) -> int:
        return len(self.collection.infos())

    def count_documents_by_filter(self, filters: dict[str, Any]) -> int:
        return len(self.collection.infos(where=_where(filters)))

    def filter_documents(self, filters: HaystackFilter = None) -> list[Document]:
        return [_document(each) for each in self._stored(filters)]

    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
        """Write documents and return their number. BadRequestError names those that could not be written."""
        if not isinstance(documents, list) or not all(isinstance(each, Document) for each in documents):
            raise ValueError("write_documents needs a list of Haystack documents")
        if policy in (DuplicatePolicy.FAIL, DuplicatePolicy.SKIP):
            known = {info.path for info in self.collection.infos([each.id for each in documents])}
            if known and policy is DuplicatePolicy.FAIL:
                raise DuplicateDocumentError(f"the documents {', '.join(sorted(known))} exist already")
            documents = [each for each in documents if each.id not in known]
        self.collection.put((each.id, each.content or "", each.meta) for each in documents)
        return len(documents)

    def delete_documents(self, document_ids: list[str]) -> None:
        self.collection.remove(document_ids)

    def delete_all_documents(self) -> None:
        self.delete_by_filter({})

    def delete_by_filter(self, filters: dict[str, Any]) -> int:
        """Delete the documents that pass a filter, and return their number."""
        return self.collection.remove([info.path for info in self.collection.infos(where=_where(filters))])

    def update_by_filter(self, filters: dict[str, Any], meta: dict[str, Any]) -> int:
        """Set metadata of the documents that pass a filter, and return their number."""
        found = self._stored(filters)
        self.collection.put((each.id, each.text, each.metadata | meta) for each in found)
        return len(found)

    def _stored(self, filters: HaystackFilter) -> Sequence[StoredDocument]:
        return self.collection.get(self.collection.infos(where=_where(filters)))


@component
class HaystackRetriever:
    """Component that searches a `HaystackDocumentStore`. Documents are passages, with scores in [0, 1]."""

    def __init__(self, document_store: HaystackDocumentStore, filters: HaystackFilter = None, top_k: int = 10) -> None:
        self.document_store = document_store
        self.filters = filters
        self.top_k = top_k

    def to_dict(self) -> dict[str, Any]:
        store = self.document_store.to_dict()
        found: dict[str, Any] = default_to_dict(self, document_store=store, filters=self.filters, top_k=self.top_k)
        return found

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> HaystackRetriever:
        fields = data["init_parameters"]
        store = HaystackDocumentStore.from_dict(fields["document_store"])
        return cls(store, fields["filters"], fields["top_k"])

    @component.output_types(documents=list[Document])
    def run(self, query: str, filters: HaystackFilter = None, top_k: int | None = None) -> dict[str, Any]:
        """Search. Filters of the call are added to those of the component."""
        where = (*_where(self.filters), *_where(filters))
        found = self.document_store.collection.search(query, top_k or self.top_k, where)
        return {"documents": [_document(each) for each in found]}


def _where(filters: HaystackFilter) -> Filter:
    try:
        return haystack_filter(filters)
    except BadRequestError as err:
        raise FilterError(str(err)) from err


def _document(each: StoredDocument) -> Document:
    return Document(id=each.id, content=each.text, meta=each.metadata, score=each.score)
