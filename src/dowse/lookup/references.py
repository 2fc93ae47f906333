"""References to a name: the lines of indexed text that contain it as a whole word.

The search compares text, it does not parse code: equal names of different things are not distinguished, and no line
with the name is missed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from dowse.errors import BadRequestError
from dowse.filters import Filter
from dowse.identity import number_id
from dowse.ports import StoreReader
from dowse.tokenizer import Tokenizer
from dowse.types import Chunk

MOST_CHUNKS = 2000  # to search; chosen: a name in more of them is a common word
_SEPARATORS = re.compile(r"::|->|[.#/\\]")
_NAME_CHARACTER = r"[\w$]"


class ReferenceLine(msgspec.Struct, frozen=True):
    """Line with the name. `line` is None for text without line numbers, as in a chat."""

    chunk: Chunk
    text: str
    line: int | None
    definition: bool  # first line with the name in the chunk that defines it


class References(msgspec.Struct, frozen=True):
    """References by path and line. `cut`: more chunks have the name than were searched."""

    name: str
    found: tuple[ReferenceLine, ...]
    cut: bool = False


def references(name: str, reader: StoreReader, tokenizer: Tokenizer, where: Filter = ()) -> References:
    """Find a name, case-sensitive; `Owner.member` finds the member in chunks that contain the owner, too."""
    parts = [part for part in _SEPARATORS.split(name.strip().removesuffix("()")) if part]
    terms = tokenizer.code(parts[-1]) if parts else []
    if not terms:
        raise BadRequestError(f"cannot search for {name!r}; give a name as written in code, such as retryBudget")
    hits = reader.search_words("bm25_code", [terms[-1]], MOST_CHUNKS, where)
    chunks = reader.get([number_id(each) for each in hits.ids.tolist()])
    found: dict[tuple[str, int | None, str], ReferenceLine] = {}
    for chunk in chunks.values():
        known = "\n".join((chunk.text, chunk.context_prefix, chunk.qualified_name or "", *chunk.imports))
        if all(_word(part).search(known) for part in parts[:-1]):
            for each in _lines(chunk, parts[-1]):
                held = found.get(_key(each))
                found[_key(each)] = each if held is None or each.definition else held
    ordered = sorted(found.values(), key=lambda each: (each.chunk.source_uri, each.line or 0, each.text))
    return References(name, tuple(ordered), cut=len(hits.ids) == MOST_CHUNKS)


def _lines(chunk: Chunk, name: str) -> Iterator[ReferenceLine]:
    wanted = _word(name)
    own = name in (chunk.symbol_name, _SEPARATORS.split(chunk.qualified_name or "")[-1])
    for offset, text in enumerate(chunk.text.split("\n")):
        if wanted.search(text):
            line = None if chunk.start_line is None else chunk.start_line + offset
            yield ReferenceLine(chunk, text.strip(), line, definition=own)
            own = False


def _key(reference: ReferenceLine) -> tuple[str, int | None, str]:
    """Return the key of a line; overlapping chunks repeat lines."""
    chunk = reference.chunk
    return (chunk.document_id, reference.line, "" if reference.line else f"{chunk.id}{reference.text}")


def _word(name: str) -> re.Pattern[str]:
    return re.compile(f"(?<!{_NAME_CHARACTER}){re.escape(name)}(?!{_NAME_CHARACTER})")
