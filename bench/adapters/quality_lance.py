"""LanceDB: hybrid search with its own full-text index and RRF over the same vectors, scanned exactly."""

from __future__ import annotations

import tempfile
from typing import Any

from collection import K, Texts, main
from json_server import versions

DEEP = 100


def load() -> tuple[Any, Any]:
    import lancedb
    from lancedb.rerankers import LinearCombinationReranker, RRFReranker

    def index(texts: Texts, setting: str) -> Any:
        """default: RRF over ten. best: linear combination of 100, the vectors weighted by 0.7, its default."""
        table = lancedb.connect(tempfile.mkdtemp(prefix="dowse-bench-")).create_table(
            "documents",
            [
                {"name": name, "text": text, "vector": vector}
                for name, text, vector in zip(texts.ids, texts.texts, texts.vectors, strict=True)
            ],
        )
        table.create_fts_index("text")
        best = setting != "default"
        reranker = LinearCombinationReranker() if best else RRFReranker()

        def ask(question: str, vector: Any) -> list[str]:
            search = table.search(query_type="hybrid").vector(vector).text(plain(question)).distance_type("cosine")
            return list(search.rerank(reranker).limit(DEEP if best else K).to_arrow()["name"].to_pylist())

        return ask

    return index, lambda: {"versions": versions("lancedb")}


def plain(question: str) -> str:
    """Remove characters that are syntax in its query language."""
    return "".join(char if char.isalnum() else " " for char in question)


if __name__ == "__main__":
    main(load)
