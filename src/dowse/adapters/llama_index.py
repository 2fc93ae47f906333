"""Retriever for LlamaIndex, whose nodes have citations and scores, and documents of its readers for an index."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import Document, NodeWithScore, QueryBundle, TextNode

from dowse.adapters.metadata import loaded, metadata
from dowse.ingest.documents import NewDocument
from dowse.ports import Retriever

_RANDOM_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # made by LlamaIndex, new at every load
SHOWN = ("citation", "title")  # metadata that a language model reads; the rest is for programs


class LlamaIndexRetriever(BaseRetriever):
    """`BaseRetriever` over an Engine or any object with `retrieve(query, top_k)`; the caller closes it."""

    def __init__(self, retriever: Retriever, top_k: int | None = None) -> None:
        super().__init__()
        self._retriever = retriever
        self._top_k = top_k

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        nodes = []
        for hit in self._retriever.retrieve(query_bundle.query_str, self._top_k):
            fields = metadata(hit)
            hidden = [name for name in fields if name not in SHOWN]
            node = TextNode(
                id_=hit.id, text=hit.text, metadata=fields,
                excluded_llm_metadata_keys=hidden, excluded_embed_metadata_keys=list(fields),
            )  # fmt: skip
            nodes.append(NodeWithScore(node=node, score=hit.final_score))
        return nodes


def from_llama_index(documents: Iterable[Document], source: str = "documents") -> Iterator[NewDocument]:
    """Return the documents of a LlamaIndex reader for `Engine.add`."""
    rows = ((None if _RANDOM_ID.fullmatch(each.id_) else each.id_, each.text, each.metadata) for each in documents)
    return loaded(rows, source)
