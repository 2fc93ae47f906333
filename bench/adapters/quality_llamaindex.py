"""LlamaIndex: QueryFusionRetriever over a vector index and BM25Retriever, without generated queries."""

from __future__ import annotations

from typing import Any

from collection import K, Texts, main
from json_server import versions

DEEP = 100


def load() -> tuple[Any, Any]:
    from llama_index.core import Settings, VectorStoreIndex
    from llama_index.core.embeddings import BaseEmbedding
    from llama_index.core.llms import MockLLM
    from llama_index.core.retrievers import QueryFusionRetriever
    from llama_index.core.schema import TextNode
    from llama_index.retrievers.bm25 import BM25Retriever

    class Known(BaseEmbedding):
        def _get_query_embedding(self, query: str) -> list[float]:
            return list(Known.texts.vector(query).tolist())

        def _get_text_embedding(self, text: str) -> list[float]:
            return list(Known.texts.vector(text).tolist())

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_query_embedding(query)

    def index(texts: Texts, setting: str) -> Any:
        """default: reciprocal_rerank over ten of each, as in its guide. best: relative_score over 100."""
        Known.texts = texts
        Settings.llm, Settings.embed_model = MockLLM(), Known()
        k = K if setting == "default" else DEEP
        nodes = [
            TextNode(id_=name, text=text or " ", embedding=vector.tolist())
            for name, text, vector in zip(texts.ids, texts.texts, texts.vectors, strict=True)
        ]
        vectors = VectorStoreIndex(nodes).as_retriever(similarity_top_k=k)
        words = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=k)
        mode = "reciprocal_rerank" if setting == "default" else "relative_score"
        both = QueryFusionRetriever([vectors, words], similarity_top_k=K, num_queries=1, mode=mode, use_async=False)
        return lambda question, _vector: [each.node.node_id for each in both.retrieve(question)]

    return index, lambda: {"versions": versions("llama-index-core", "llama-index-retrievers-bm25", "bm25s")}


if __name__ == "__main__":
    main(load)
