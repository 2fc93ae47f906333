"""Retriever for LangChain; its documents have citations and scores."""

from __future__ import annotations

from typing import Any

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from dowse.adapters.metadata import metadata


class LangChainRetriever(BaseRetriever):
    """`BaseRetriever` over an open Engine or any object with `retrieve(query, top_k)`.

    The caller closes it.
    """

    retriever: Any  # ports.Retriever: a Protocol, which pydantic cannot check
    top_k: int | None = None

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        return [
            Document(page_content=hit.text, id=hit.id, metadata=metadata(hit))
            for hit in self.retriever.retrieve(query, self.top_k)
        ]
