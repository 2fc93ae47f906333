"""Collection of texts and vectors from which every framework of the quality benchmark is filled.

Only the standard library and numpy: every peer of the benchmark runs it, so that all rank with the same vectors.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from json_server import each_timed, read, rows, serve

K = 10  # depth of the metric


class Texts:
    """Ids, texts and vectors of documents; texts and vectors of queries."""

    def __init__(self, folder: str) -> None:
        found = list(rows(f"{folder}/corpus.jsonl"))
        self.ids = [row["id"] for row in found]
        self.texts = [row["text"] for row in found]
        self.vectors = np.load(f"{folder}/corpus.npy")
        self.questions: list[str] = read(f"{folder}/queries.json")
        self.asked = np.load(f"{folder}/queries.npy")
        self._of_text = dict(zip(self.texts, self.vectors, strict=True)) | dict(
            zip(self.questions, self.asked, strict=True)
        )

    def vector(self, text: str) -> Any:
        return self._of_text[text]


class Judged:
    """Engine under test.

    `index(texts, setting)` returns a function from a query and its vector to ids, best first.
    """

    def __init__(
        self, index: Callable[[Texts, str], Callable[[str, Any], list[str]]], facts: Callable[[], Any]
    ) -> None:
        self._index = index
        self._facts = facts

    def rank(self, folder: str, setting: str) -> dict[str, Any]:
        texts = Texts(folder)
        started = time.process_time()
        ask = self._index(texts, setting)
        index_s = time.process_time() - started
        pairs = list(zip(texts.questions, texts.asked, strict=True))
        ask(*pairs[0])
        return each_timed(lambda pair: ask(*pair)[:K], pairs) | {"index_cpu_s": index_s}

    def facts(self) -> dict[str, Any]:
        """Return versions, and CPU seconds of importing."""
        found: dict[str, Any] = self._facts()
        return found


def main(load: Callable[[], tuple[Any, Any]]) -> None:
    """Serve a peer whose `load` imports it; until then this process spent its CPU on imports only."""
    index, facts = load()
    spent = time.process_time()
    serve(Judged(index, lambda: {**facts(), "import_cpu_s": spent}))
