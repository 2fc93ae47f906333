"""Chroma: its HNSW index over the same vectors; a local collection has no hybrid search."""

from __future__ import annotations

from typing import Any

from collection import K, Texts, main
from json_server import versions


def load() -> tuple[Any, Any]:
    import chromadb
    from chromadb.config import Settings

    def index(texts: Texts, setting: str) -> Any:
        """default: as it comes, but for cosine. best: ef 200 when building and searching."""
        client = chromadb.EphemeralClient(settings=Settings(anonymized_telemetry=False, allow_reset=True))
        client.reset()
        wide = {} if setting == "default" else {"hnsw:construction_ef": 200, "hnsw:search_ef": 200}
        made = client.create_collection("documents", metadata={"hnsw:space": "cosine", **wide})
        for first in range(0, len(texts.ids), 5000):
            some = slice(first, first + 5000)
            made.add(ids=texts.ids[some], embeddings=texts.vectors[some])
        return lambda _question, vector: made.query(query_embeddings=[vector], n_results=K, include=[])["ids"][0]

    return index, lambda: {"versions": versions("chromadb")}


if __name__ == "__main__":
    main(load)
