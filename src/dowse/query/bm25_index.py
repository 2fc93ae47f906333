"""Word index in memory: BM25 over a list of chunks, without a store; also a leg of the pipeline."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import log1p
from typing import Any

from dowse.filters import Filter, by_document, by_section_type, matches
from dowse.ports import STANDARD
from dowse.query.rows import chunk_of, hit_of
from dowse.tokenizer import STOP_WORDS
from dowse.types import Chunk, ScoredChunk

# A word with its joins and signs, such as bert-base, 94.2 and c++, and the parts of it.
_RUN = re.compile(r"\w+(?:[-.'/&+]\w+)*[+#]*")
_PART = re.compile(r"[^\W_]+")


class BM25Index:
    """BM25 index of chunks, or of any objects with id and text; words are not stemmed, joined words count twice.

    Scores are Lucene's, ln(1 + (N − n + 0.5)/(n + 0.5)) · tf/(tf + norm), so that no term counts against a chunk.
    """

    name = "bm25"

    def __init__(self, *, remove_stopwords: bool = True, k1: float = STANDARD.k1, b: float = STANDARD.b) -> None:
        self._remove_stopwords = remove_stopwords
        self._k1, self._b = k1, b
        self._chunks: list[Chunk] = []
        self._lengths: list[int] = []
        self._postings: dict[str, dict[int, int]] = {}

    def build_index(self, chunks: Sequence[Any]) -> None:
        """Index these chunks instead of any earlier ones."""
        made = [chunk_of(each) for each in chunks]
        if not made:
            raise ValueError("cannot build an index of no chunks; give at least one")
        if None in made:
            raise ValueError(f"chunk {made.index(None)} has no id and text; give chunks, hits or objects with both")
        postings: dict[str, dict[int, int]] = {}
        lengths: list[int] = []
        kept = [chunk for chunk in made if chunk is not None]
        for at, chunk in enumerate(kept):
            counts = Counter(self.tokenize(chunk.text))
            lengths.append(counts.total())
            for term, count in counts.items():
                postings.setdefault(term, {})[at] = count
        self._chunks, self._lengths, self._postings = kept, lengths, postings

    def is_built(self) -> bool:
        return bool(self._chunks)

    def chunk_count(self) -> int:
        return len(self._chunks)

    def search(
        self,
        query: str,
        n_results: int = 10,
        paper_id: str | None = None,
        section_type: str | None = None,
        *,
        where: Filter = (),
    ) -> list[ScoredChunk]:
        """Return the best chunks that hold a term and pass the filters; the first has score 1.

        Filters apply after scoring, so that they do not change the weight of a term. The raw BM25 is `bm25_nlp_score`.
        """
        if not self.is_built():
            raise RuntimeError("the index is not built; call build_index(chunks) first")
        if type(n_results) is not int or n_results < 1:
            raise ValueError(f"n_results is {n_results!r}; give a whole number of at least 1")
        where = (*where, *((by_document(paper_id),) if paper_id else ()))
        where = (*where, *((by_section_type(section_type),) if section_type else ()))
        scores = self._scores(query)
        found = [at for at in scores if matches(self._chunks[at], where)]
        found.sort(key=lambda at: (-scores[at], self._chunks[at].id))
        best = scores[found[0]] if found else 1.0
        return [
            hit_of(self._chunks[at], bm25_nlp_score=scores[at], final_score=scores[at] / best)
            for at in found[:n_results]
        ]

    def tokenize(self, text: str) -> list[str]:
        """Return lower-case words; of a joined word the whole and its parts."""
        tokens: list[str] = []
        for run in _RUN.findall(text.lower()):
            parts = _PART.findall(run)
            tokens += [run] if parts == [run] or len(parts) < 2 else [run, *parts]
        return [each for each in tokens if each not in STOP_WORDS] if self._remove_stopwords else tokens

    _tokenize = tokenize

    def _scores(self, query: str) -> dict[int, float]:
        mean = max(sum(self._lengths) / len(self._lengths), 1.0)
        scores: dict[int, float] = {}
        for term, times in Counter(self.tokenize(query)).items():
            holders = self._postings.get(term, {})
            weight = times * log1p((len(self._chunks) - len(holders) + 0.5) / (len(holders) + 0.5))
            for at, count in holders.items():
                norm = self._k1 * (1 - self._b + self._b * self._lengths[at] / mean)
                scores[at] = scores.get(at, 0.0) + weight * count / (count + norm)
        return scores
