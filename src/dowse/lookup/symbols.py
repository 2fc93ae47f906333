"""Symbols by a name as a person remembers it, the best match first."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from difflib import get_close_matches
from typing import Literal, get_args

import msgspec
from msgspec.structs import replace

from dowse.errors import BadRequestError
from dowse.identity import number_id
from dowse.link_names import SYMBOL, Name, symbol_names
from dowse.ports import StoreReader
from dowse.tokenizer import Tokenizer
from dowse.types import Chunk, ChunkId, CorpusType

Match = Literal["exact", "case", "start", "part", "near"]

_CANDIDATES = 400  # before the limit; chosen
_NEAR = 10  # names that differ by a letter or two; chosen
_NEAR_CUTOFF = 0.8  # of difflib's ratio; chosen: one letter of five may differ
_COMPARED = 20_000  # names with the same first letters; chosen: some 50 ms


class SymbolMatch(msgspec.Struct, frozen=True):
    """Definition, and how well the name fits it."""

    name: str  # qualified
    match: Match  # exact; case: differs in case; start: begins with the name; part: contains its words; near: a typo
    chunk: Chunk
    kind: str | None = None
    start_line: int | None = None  # of the name
    end_line: int | None = None  # of the definition, which may have several chunks
    signature: str | None = None


def symbols(
    name: str, reader: StoreReader, tokenizer: Tokenizer, *, kind: str | None = None, limit: int = 20
) -> tuple[SymbolMatch, ...]:
    """Find definitions: exact matches first, then other case or underscores, prefixes, its words, then typos.

    `Service.GetQuote` and `Service::GetQuote` name a member. Each definition is returned once, with its best match.
    """
    wanted = name.strip().removesuffix("()").replace("::", ".").replace("#", ".").replace("->", ".")
    if not wanted:
        raise BadRequestError("missing name; type for example: dowse symbols RetryBudget")
    candidates = list(_candidates(wanted, reader, tokenizer))[:_CANDIDATES]
    if not any(match in ("exact", "case") for _, _, match in candidates):
        near = list(_near(wanted, reader))
        candidates = [*(each for each in near if each[2] == "case"), *candidates] or near
    chunks = reader.get({chunk_id for chunk_id, _, _ in candidates})
    found: dict[tuple[str, str, int | None], SymbolMatch] = {}
    for chunk_id, called, match in candidates:
        for symbol in _all(chunks[chunk_id]) if chunk_id in chunks else ():
            if called in symbol_names(symbol.name) and kind in (None, symbol.kind):
                key = (symbol.chunk.document_id, symbol.name, symbol.start_line)
                found.setdefault(key, replace(symbol, match=match))
    return tuple(sorted(_whole(found.values()), key=_order)[:limit])


def _whole(found: Collection[SymbolMatch]) -> list[SymbolMatch]:
    """Drop the pieces of a long definition: code that has the name of a symbol and does not define it."""
    defined = {(each.chunk.document_id, each.name) for each in found if _defines(each)}
    pieces: dict[tuple[str, str], SymbolMatch] = {}
    kept: list[SymbolMatch] = []
    for each in sorted(found, key=lambda each: each.start_line or 0):
        key = each.chunk.document_id, each.name
        if _defines(each) or each.chunk.corpus_type != CorpusType.CODE_LOGIC:
            kept.append(each)
        elif key not in defined:  # a reader without definitions: the first piece stands for all
            pieces.setdefault(key, each)
    return [*kept, *pieces.values()]


def _defines(symbol: SymbolMatch) -> bool:
    return any(each.qualified_name == symbol.name for each in symbol.chunk.defines)


def _near(wanted: str, reader: StoreReader) -> Iterator[tuple[ChunkId, str, Match]]:
    """Yield the chunks of names that differ in underscores (`urlfor`) or by a typo."""
    known: dict[str, list[Name]] = {}
    for each in reader.names_from(SYMBOL, wanted[:2], _COMPARED):
        known.setdefault(_joined(each.name), []).append(each)
    same = _joined(wanted)
    close = [same] if same in known else get_close_matches(same, known, n=_NEAR, cutoff=_NEAR_CUTOFF)
    yield from (
        (each.chunk_id, each.name, "case" if name == same else "near") for name in close for each in known[name]
    )


def _joined(name: str) -> str:
    return name.replace("_", "").lower()


def _candidates(wanted: str, reader: StoreReader, tokenizer: Tokenizer) -> Iterator[tuple[ChunkId, str, Match]]:
    """Yield chunks with the matching name and the kind of match."""
    named = reader.named(SYMBOL, [wanted])
    yield from ((each.chunk_id, each.name, "exact") for each in named if each.name == wanted)
    yield from ((each.chunk_id, each.name, "case") for each in named if each.name != wanted)
    for each in reader.names_from(SYMBOL, wanted, _CANDIDATES):
        if not each.name[len(wanted) :].startswith("."):  # not members of the symbol itself
            yield each.chunk_id, each.name, "start"
    terms = list(dict.fromkeys(tokenizer.code(wanted)))
    if not terms:
        return
    words = set(terms) - {wanted.lower()} or set(terms)
    numbers = reader.search_words("bm25_code", terms, _CANDIDATES, ()).ids.tolist()
    for chunk in reader.get([number_id(number) for number in numbers]).values():
        for symbol in _all(chunk):
            last = tokenizer.code(symbol.name.rpartition(".")[2])
            if not words.isdisjoint(last) and words <= set(tokenizer.code(symbol.name)):
                yield chunk.id, symbol.name, "part"


def _all(chunk: Chunk) -> Iterator[SymbolMatch]:
    """Yield every definition of a chunk; a chunk without a list is one definition."""
    own = chunk.qualified_name or chunk.symbol_name
    for each in chunk.defines:
        signature = chunk.signature if each.qualified_name == own else None
        yield SymbolMatch(each.qualified_name, "part", chunk, each.kind, each.start_line, each.end_line, signature)
    if own and own not in {each.qualified_name for each in chunk.defines}:
        yield SymbolMatch(own, "part", chunk, chunk.symbol_kind, chunk.start_line, chunk.end_line, chunk.signature)


def _order(symbol: SymbolMatch) -> tuple[int, int, int, str, int]:
    """Sort by match, then by length of the name, then by path and line."""
    ranks: tuple[Match, ...] = get_args(Match)
    level = 0 if symbol.chunk.level == "chunk" else 1
    return ranks.index(symbol.match), level, len(symbol.name), symbol.chunk.source_uri, symbol.start_line or 0
