"""bm25s alone: no vectors, its own tokenizer."""

from __future__ import annotations

from typing import Any

from collection import K, Texts, main
from json_server import versions


def load() -> tuple[Any, Any]:
    import bm25s
    import Stemmer

    def index(texts: Texts, setting: str) -> Any:
        """default: its tokenizer with English stop words. best: the Snowball stemmer, k1 1.2, b 0.75."""
        best = setting != "default"
        options = {"stopwords": "en", "stemmer": Stemmer.Stemmer("english") if best else None, "show_progress": False}
        made = bm25s.BM25(k1=1.2, b=0.75) if best else bm25s.BM25()
        made.index(bm25s.tokenize(texts.texts, **options), show_progress=False)

        def ask(question: str, _vector: Any) -> list[str]:
            found, scores = made.retrieve(bm25s.tokenize([question], **options), k=K, show_progress=False)
            return [texts.ids[row] for row, score in zip(found[0], scores[0], strict=True) if score > 0]

        return ask

    return index, lambda: {"versions": versions("bm25s", "PyStemmer")}


if __name__ == "__main__":
    main(load)
