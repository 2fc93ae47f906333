"""The conformance suites of LangChain and Haystack, run against an index."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import dowse

MISSING = [name for name in ("langchain_tests", "haystack") if find_spec(name) is None]
if MISSING and os.environ.get("DOWSE_REQUIRE_FRAMEWORKS"):
    pytest.fail(f"{MISSING} is not installed", pytrace=False)
elif MISSING:
    pytest.skip(f"{MISSING} is not installed", allow_module_level=True)

from haystack.dataclasses import Document as HaystackDocument  # noqa: E402
from haystack.document_stores.types import DocumentStore  # noqa: E402
from haystack.testing.document_store import (  # noqa: E402
    CountDocumentsByFilterTest,
    DocumentStoreBaseExtendedTests,
)
from langchain_core.retrievers import BaseRetriever  # noqa: E402
from langchain_core.vectorstores import VectorStore  # noqa: E402
from langchain_tests.integration_tests import (  # noqa: E402
    RetrieversIntegrationTests,
    VectorStoreIntegrationTests,
)

from dowse.adapters import (  # noqa: E402
    HaystackDocumentStore,
    LangChainEmbedder,
    LangChainRetriever,
    LangChainVectorStore,
)


class TestLangChainVectorStore(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, tmp_path: Path) -> Iterator[VectorStore]:
        with dowse.open(tmp_path / ".dowse", embedder="hash") as engine:
            yield LangChainVectorStore(engine)


class TestLangChainVectorStoreWithEmbeddingsOfLangChain(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, tmp_path: Path) -> Iterator[VectorStore]:
        store = LangChainVectorStore.from_texts([], self.get_embeddings(), path=tmp_path / ".dowse")
        yield store
        store.engine.close()


class TestLangChainRetriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _engine(self, tmp_path: Path) -> Iterator[None]:
        with dowse.open(tmp_path / ".dowse", embedder=None) as engine:
            engine.add([{"id": str(number), "text": f"retry number {number}"} for number in range(5)])
            self.engine = engine
            yield

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return LangChainRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"retriever": self.engine}

    @property
    def retriever_query_example(self) -> str:
        return "retry"

    @property
    def num_results_arg_name(self) -> str:
        return "top_k"


class TestHaystackDocumentStore(DocumentStoreBaseExtendedTests, CountDocumentsByFilterTest):
    @pytest.fixture
    def document_store(self, tmp_path: Path) -> Iterator[DocumentStore]:
        with dowse.open(tmp_path / ".dowse", embedder=None) as engine:
            yield HaystackDocumentStore(engine=engine)

    @staticmethod
    def assert_documents_are_equal(received: list[HaystackDocument], expected: list[HaystackDocument]) -> None:
        """In any order, and without vectors: Dowse makes its own."""
        assert sorted((each.id, each.content, sorted(each.meta.items())) for each in received) == sorted(
            (each.id, each.content, sorted(each.meta.items())) for each in expected
        )

    def test_write_documents(self, document_store: DocumentStore) -> None:
        """Without a policy, a known id is replaced."""
        assert document_store.write_documents([HaystackDocument(id="1", content="old")]) == 1
        assert document_store.write_documents([HaystackDocument(id="1", content="new")]) == 1
        assert [each.content for each in document_store.filter_documents()] == ["new"]


def test_embeddings_of_langchain_become_unit_vectors() -> None:
    embedder = LangChainEmbedder(VectorStoreIntegrationTests.get_embeddings())
    for role in ("query", "chunk"):
        rows = embedder.embed(["a", "b"], role=role)
        assert rows.shape == (2, embedder.dimension)
        assert [round(float(row @ row), 5) for row in rows] == [1, 1]
