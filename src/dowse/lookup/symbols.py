"""A name goes in, as someone remembers it; the symbols that may be meant come out, the likeliest first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from dowse.errors import BadRequestError
from dowse.identity import number_id
from dowse.link_names import SYMBOL, symbol_names
from dowse.ports import StoreReader
from dowse.tokenizer import Tokenizer
from dowse.types import Chunk, ChunkId

Match = Literal["exact", "case", "start", "part"]

_CANDIDATES = 400  # of which the best are shown; chosen


@dataclass(frozen=True)
class Symbol:
    """A definition, and how well the name fits it."""

    name: str  # qualified
    match: Match  # exact; case: but for upper and lower; start: begins so; part: holds all words of it
    chunk: Chunk
    kind: str | None = None
    start_line: int | None = None  # where the name stands
    end_line: int | None = None  # of the definition, which may go on in further chunks
    signature: str | None = None


def symbols(
    name: str, reader: StoreReader, tokenizer: Tokenizer, *, kind: str | None = None, limit: int = 20
) -> tuple[Symbol, ...]:
    """Definitions by name: exact ones first, then those that differ in case, begin so, or hold its words.

    `Service.GetQuote` and `Service::GetQuote` ask for a member. Each definition once, with its best match.
    """
    asked = name.strip().removesuffix("()").replace("::", ".").replace("#", ".").replace("->", ".")
    if not asked:
        raise BadRequestError("no name to look for; type for example: dowse symbols RetryBudget")
    candidates = list(_candidates(asked, reader, tokenizer))[:_CANDIDATES]
    chunks = reader.get({chunk_id for chunk_id, _, _ in candidates})
    found: dict[tuple[str, str, int | None], Symbol] = {}
    for chunk_id, called, match in candidates:
        for symbol in _symbols(chunks[chunk_id], called, match) if chunk_id in chunks else ():
            if kind is None or symbol.kind == kind:
                found.setdefault((symbol.chunk.document_id, symbol.name, symbol.start_line), symbol)
    return tuple(sorted(found.values(), key=_order)[:limit])


def _candidates(asked: str, reader: StoreReader, tokenizer: Tokenizer) -> Iterator[tuple[ChunkId, str, Match]]:
    """Chunks, and the name by which they came in."""
    named = reader.named(SYMBOL, [asked])
    yield from ((each.chunk_id, each.name, "exact") for each in named if each.name == asked)
    yield from ((each.chunk_id, each.name, "case") for each in named if each.name != asked)
    for each in reader.names_from(SYMBOL, asked, _CANDIDATES):
        if not each.name[len(asked) :].startswith("."):  # the members of what was asked for are not it
            yield each.chunk_id, each.name, "start"
    terms = list(dict.fromkeys(tokenizer.code(asked)))
    if not terms:
        return
    words = set(terms) - {asked.lower()} or set(terms)
    numbers = reader.search_words("bm25_code", terms, _CANDIDATES, ()).ids.tolist()
    for chunk in reader.get([number_id(number) for number in numbers]).values():
        for symbol in _all(chunk):
            last = tokenizer.code(symbol.name.rpartition(".")[2])
            if not words.isdisjoint(last) and words <= set(tokenizer.code(symbol.name)):
                yield chunk.id, symbol.name, "part"


def _symbols(chunk: Chunk, called: str, match: Match) -> Iterator[Symbol]:
    """The definitions of a chunk that go by a name."""
    for symbol in _all(chunk):
        if called in symbol_names(symbol.name):
            yield replace(symbol, match=match)


def _all(chunk: Chunk) -> Iterator[Symbol]:
    """Every definition of a chunk; a chunk that does not list them is one itself."""
    own = chunk.qualified_name or chunk.symbol_name
    for each in chunk.defines:
        signature = chunk.signature if each.qualified_name == own else None
        yield Symbol(each.qualified_name, "part", chunk, each.kind, each.start_line, each.end_line, signature)
    if own and own not in {each.qualified_name for each in chunk.defines}:
        yield Symbol(own, "part", chunk, chunk.symbol_kind, chunk.start_line, chunk.end_line, chunk.signature)


def _order(symbol: Symbol) -> tuple[int, int, int, str, int]:
    """By match; then short names before long ones; then by place."""
    ranks: tuple[Match, ...] = ("exact", "case", "start", "part")
    level = 0 if symbol.chunk.level == "chunk" else 1
    return ranks.index(symbol.match), level, len(symbol.name), symbol.chunk.source_uri, symbol.start_line or 0
