"""Context for a language model: numbered, cited passages of a result within a budget of tokens."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from math import ceil

import msgspec

from dowse.errors import BadRequestError
from dowse.filters import Filter
from dowse.ports import ChunkReader
from dowse.query.stages.parents import visible_parents
from dowse.types import AnyChunk, Chunk, ChunkId, QueryResult

SMALLEST_BUDGET = 50  # tokens; chosen: less holds no passage worth citing
_LETTERS_PER_TOKEN = 4  # of a long word; the usual rule of thumb for English and code
_PIECES = re.compile(r"[^\W\d_]+|\d|[^\w\s]|_|\n")

Count = Callable[[str], int]


class Passage(msgspec.Struct, frozen=True):
    """A part of one document, cited by its number."""

    number: int  # from 1, best first
    citation: str  # source_uri:first-last
    title: str
    text: str
    tokens: int  # with its heading
    chunk_ids: tuple[ChunkId, ...]  # the hits it covers


class Context(msgspec.Struct, frozen=True):
    """Passages that fit. `left_out` counts the hits that do not."""

    query: str
    passages: tuple[Passage, ...]
    tokens: int
    budget_tokens: int
    left_out: int = 0

    @property
    def text(self) -> str:
        """All passages, each below a line `[1] file:lines · title`."""
        return "\n\n".join(_block(each.number, each.citation, each.title, each.text) for each in self.passages)


def estimated_tokens(text: str) -> int:
    """Estimate tokens of English and code from above: one for every digit, sign and line, more for long words."""
    return sum(ceil(len(piece) / _LETTERS_PER_TOKEN) for piece in _PIECES.findall(text))


def assembled(
    result: QueryResult, reader: ChunkReader, budget_tokens: int, where: Filter = (), count: Count = estimated_tokens
) -> Context:
    """Return passages in the order of the hits; `where` is the filter of the query, for sections.

    A section replaces its parts when two of them are hits and it fits. No passage repeats another. A hit that does not
    fit is skipped.
    """
    if budget_tokens < SMALLEST_BUDGET:
        raise BadRequestError(f"budget_tokens is {budget_tokens}; give at least {SMALLEST_BUDGET}")
    shared = Counter(hit.parent_id for hit in result.chunks if hit.parent_id is not None)
    above = reader.get([each for each, times in shared.items() if times > 1])
    sections = {each: chunk for each, chunk in above.items() if chunk.level == "section"}
    parents = visible_parents(reader, sections, where)
    passages: list[Passage] = []
    held: list[AnyChunk] = []
    answered: set[ChunkId] = set()
    used = left_out = 0
    for hit in result.chunks:
        if hit.id in answered:
            continue
        number = len(passages) + 1
        for chosen in _candidates(hit, result, parents, held):  # with the blank line after it
            tokens = count(_block(number, cited(chosen), titled(chosen), chosen.text) + "\n\n")
            if used + tokens <= budget_tokens:
                break
        else:
            left_out += 1
            continue
        own = tuple(each.id for each in result.chunks if each.id not in answered and _holds(chosen, each))
        passages.append(Passage(number, cited(chosen), titled(chosen), chosen.text.strip("\n"), tokens, own))
        held.append(chosen)
        answered |= set(own)
        used += tokens
    return Context(result.query, tuple(passages), used, budget_tokens, left_out)


def _candidates(
    hit: AnyChunk, result: QueryResult, parents: Mapping[ChunkId, Chunk], held: list[AnyChunk]
) -> Iterator[AnyChunk]:
    """Yield passages for a hit: its section, a longer hit that contains it, itself; none that repeats a passage."""
    parent = parents.get(hit.parent_id or "")
    longer = [each for each in result.chunks if each.id != hit.id and _holds(each, hit)]
    wider = [*((parent,) if parent else ()), *sorted(longer, key=lambda each: (-len(each.text), each.id))]
    yield from (each for each in wider if not any(_holds(each, other) for other in held))
    yield hit


def _holds(outer: AnyChunk, inner: AnyChunk) -> bool:
    """Return whether a chunk contains another: itself, its part, its lines, or the same words elsewhere."""
    if inner.id == outer.id or inner.text.strip() in outer.text:
        return True
    if inner.document_id != outer.document_id:
        return False
    if outer.start_line is None or inner.start_line is None:
        return inner.parent_id == outer.id
    last, inner_last = outer.end_line or outer.start_line, inner.end_line or inner.start_line
    return outer.start_line <= inner.start_line and inner_last <= last


def cited(chunk: AnyChunk) -> str:
    if chunk.start_line is not None:
        return f"{chunk.source_uri}:{chunk.start_line}-{chunk.end_line or chunk.start_line}"
    return f"{chunk.source_uri}, page {chunk.page}" if chunk.page is not None else chunk.source_uri


def titled(chunk: AnyChunk) -> str:
    return chunk.qualified_name or chunk.symbol_name or chunk.section_path or chunk.document_title


def _block(number: int, citation: str, title: str, text: str) -> str:
    heading = f"[{number}] {citation} · {title}" if title else f"[{number}] {citation}"
    return f"{heading}\n{text}".rstrip("\n")
