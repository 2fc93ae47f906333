"""txtai: one Embeddings index with `hybrid`, its own BM25 beside a faiss vector index, weighted by 0.5."""

from __future__ import annotations

from typing import Any

from collection import K, Texts, main
from json_server import versions


def load() -> tuple[Any, Any]:
    import numpy as np
    from txtai import Embeddings

    def index(texts: Texts, setting: str) -> Any:
        """default: hybrid as it is. best: vectors weighted by 0.7, words by 0.3."""
        settings: dict[str, Any] = {
            "method": "external",
            "transform": lambda some: np.array([texts.vector(text) for text in some], np.float32),
            "hybrid": True,
        }
        made = Embeddings(settings)
        made.index((name, text, None) for name, text in zip(texts.ids, texts.texts, strict=True))
        weight = 0.5 if setting == "default" else 0.7
        return lambda question, _vector: [str(name) for name, _ in made.search(question, K, weight)]

    return index, lambda: {"versions": versions("txtai", "faiss-cpu", "torch")}


if __name__ == "__main__":
    main(load)
