"""Retriever for LlamaIndex; its nodes have citations and scores."""

from __future__ import annotations

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from dowse.adapters.metadata import metadata
from dowse.ports import Retriever

SHOWN = ("citation", "title")  # metadata that a language model reads; the rest is for programs


class LlamaIndexRetriever(BaseRetriever):
    """`BaseRetriever` over an open Engine or any object with `retrieve(query, top_k)`.

    The caller closes it.
    """

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
