"""Exact text: chunks that hold a version, number, flag or short name of the query as it is spelled rank first.

Tokenizers split `4.7.0`, `BERT-base`, `C++` or `--no-cache`, so their parts alone would find other chunks.
"""

from __future__ import annotations

import re

import msgspec

from dowse.filters import Contains, phrase_expression
from dowse.identity import number_id, searchable_text
from dowse.ports import QuerySession
from dowse.query.stages.sort import put_first
from dowse.query.stages.state import Hit, QueryState
from dowse.tokenizer import STOP_WORDS
from dowse.types import Chunk

MOST = 10  # chunks per literal; chosen: a page of hits
MOST_WORDS = 3  # of a query, without stop words, that is about its literals; chosen
_LITERAL = re.compile(
    r"v?\d+(?:\.\d+)+[\w.+-]*"  # 4.7.0, 94.2, v1.2.3-rc1
    r"|[A-Za-z]\w?(?:\+\+|\#)"  # C++, C#
    r"|\.[A-Za-z][\w-]+"  # .NET, .env
    r"|--?[A-Za-z][\w-]*"  # --no-cache
    r"|(?=[^-]*[A-Z0-9])[A-Za-z0-9]+(?:-[A-Za-z0-9]+)+"  # BERT-base, utf-8
)


def literals(text: str) -> tuple[str, ...]:
    """Return the words of a short query that tokenizers would split."""
    words = [word for each in text.split() if (word := each.strip("`'\",;:?!()[]"))]
    if sum(word.lower() not in STOP_WORDS for word in words) > MOST_WORDS:
        return ()
    return tuple(dict.fromkeys(word.rstrip(".") for word in words if _LITERAL.fullmatch(word.rstrip("."))))


class ExactText(msgspec.Struct, frozen=True):
    """Stage that ranks chunks first that hold all literals of the query; they get the best value of all hits."""

    store: QuerySession
    name: str = "literal"

    def __call__(self, state: QueryState, /) -> QueryState:
        wanted = literals(state.query.text)
        if not wanted:
            return state
        expressions = [phrase_expression(each) for each in wanted]

        def holds(chunk: Chunk) -> bool:
            text = searchable_text(chunk)
            return all(each.search(text) for each in expressions)

        turned = [
            _turned(hit, holds(hit.found), [each for each in hit.passages if holds(each.found)]) for hit in state.hits
        ]
        first = [hit for hit in turned if holds(hit.found)]
        first += self._looked_up(state, wanted, first)
        if not first:
            return state
        best = max((hit.value for hit in state.hits), default=1.0)
        why = f"contains {' and '.join(wanted)}"
        return state.changed(hits=put_first(self.name, first, turned, best, lambda _: why))

    def _looked_up(self, state: QueryState, wanted: tuple[str, ...], there: list[Hit]) -> list[Hit]:
        """Return chunks with all literals that are not among these hits, nor of the documents that groups show."""
        where = (*state.query.where, *(Contains("text", each) for each in wanted))
        terms = dict(state.query.terms)
        ids: dict[str, None] = {}
        for leg in ("bm25_code", "bm25_nlp"):
            if terms.get(leg):
                found = self.store.search_words(leg, terms[leg], MOST, where).ids.tolist()
                ids |= dict.fromkeys(map(number_id, found))
        grouped = any(hit.passages for hit in state.hits)
        known = {hit.found.id for hit in there} | {hit.found.document_id for hit in there if grouped}
        chunks = self.store.get([each for each in ids if each not in known]).values()
        return [Hit(chunk, 0.0) for chunk in chunks if chunk.document_id not in known]


def _turned(hit: Hit, holds: bool, passages: list[Hit]) -> Hit:
    """Return the hit of a document with a passage in front that holds the literals, if its first one does not."""
    if holds or not passages:
        return hit
    others = tuple(each for each in (hit.changed(passages=()), *hit.passages) if each is not passages[0])
    return passages[0].changed(value=hit.value, copies=passages[0].copies, passages=others)
