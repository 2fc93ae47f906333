"""LlamaIndex: any Retriever goes in, a `BaseRetriever` whose nodes carry citations and scores comes out."""

from __future__ import annotations

from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from dowse.adapters.metadata import metadata
from dowse.ports import Retriever

SHOWN = ("citation", "title")  # what a language model reads beside the text; the rest is for programs


class LlamaIndexRetriever(BaseRetriever):
    """Give it an open Engine, or anything else with `retrieve(query, top_k)`; who opened it closes it."""

    def __init__(self, retriever: Retriever, top_k: int | None = None) -> None:
        super().__init__()
        self._retriever = retriever
        self._top_k = top_k

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        nodes = []
        for hit in self._retriever.retrieve(query_bundle.query_str, self._top_k):
            beside = metadata(hit)
            hidden = [name for name in beside if name not in SHOWN]
            node = TextNode(
                id_=hit.id, text=hit.text, metadata=beside,
                excluded_llm_metadata_keys=hidden, excluded_embed_metadata_keys=list(beside),
            )  # fmt: skip
            nodes.append(NodeWithScore(node=node, score=hit.final_score))
        return nodes
