"""LangChain: EnsembleRetriever (weighted RRF) over a BM25Retriever and an in-memory vector store."""

from __future__ import annotations

from typing import Any

from collection import K, Texts, main
from json_server import versions

DEEP = 100


def load() -> tuple[Any, Any]:
    from langchain_classic.retrievers import EnsembleRetriever
    from langchain_community.retrievers import BM25Retriever
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import InMemoryVectorStore

    class Known(Embeddings):
        def __init__(self, texts: Texts) -> None:
            self._texts = texts

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [self._texts.vector(text).tolist() for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return list(self._texts.vector(text).tolist())

    def index(texts: Texts, setting: str) -> Any:
        """default: weights 0.5, ten of each leg, split at blanks. best: 100 of each, lower case, stemmed."""
        k = K if setting == "default" else DEEP
        documents = [
            Document(page_content=text, metadata={"name": name})
            for name, text in zip(texts.ids, texts.texts, strict=True)
        ]
        words = BM25Retriever.from_documents(
            documents, **({} if setting == "default" else {"preprocess_func": stemmed()})
        )
        words.k = k
        store = InMemoryVectorStore(Known(texts))
        store.add_documents(documents)
        both = EnsembleRetriever(retrievers=[words, store.as_retriever(search_kwargs={"k": k})], weights=[0.5, 0.5])
        return lambda question, _vector: [each.metadata["name"] for each in both.invoke(question)]

    return index, lambda: {"versions": versions("langchain", "langchain-classic", "langchain-community", "rank-bm25")}


def stemmed() -> Any:
    import re

    import Stemmer

    stem = Stemmer.Stemmer("english").stemWords
    return lambda text: stem(re.findall(r"\w+", text.lower()))


if __name__ == "__main__":
    main(load)
