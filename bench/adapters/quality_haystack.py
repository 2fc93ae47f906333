"""Haystack: a pipeline of an in-memory BM25 retriever, an embedding retriever and a DocumentJoiner."""

from __future__ import annotations

from typing import Any

from collection import K, Texts, main
from json_server import versions

DEEP = 100


def load() -> tuple[Any, Any]:
    from haystack import Document, Pipeline
    from haystack.components.joiners import DocumentJoiner
    from haystack.components.retrievers.in_memory import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    def index(texts: Texts, setting: str) -> Any:
        """default: ten of each, concatenated by score. best: 100 of each, reciprocal rank fusion, BM25Okapi."""
        best = setting != "default"
        store = InMemoryDocumentStore(**({"bm25_algorithm": "BM25Okapi"} if best else {}))
        store.write_documents(
            [
                Document(id=name, content=text, embedding=vector.tolist())
                for name, text, vector in zip(texts.ids, texts.texts, texts.vectors, strict=True)
            ]
        )
        k = DEEP if best else K
        both = Pipeline()
        both.add_component("words", InMemoryBM25Retriever(store, top_k=k))
        both.add_component("vectors", InMemoryEmbeddingRetriever(store, top_k=k))
        both.add_component("join", DocumentJoiner("reciprocal_rank_fusion") if best else DocumentJoiner())
        both.connect("words", "join")
        both.connect("vectors", "join")

        def ask(question: str, vector: Any) -> list[str]:
            found = both.run({"words": {"query": question}, "vectors": {"query_embedding": vector.tolist()}})
            return [each.id for each in found["join"]["documents"]]

        return ask

    return index, lambda: {"versions": versions("haystack-ai")}


if __name__ == "__main__":
    main(load)
