"""Where a name is used: a name goes in, the lines of indexed text that hold it as a whole word come out.

By the letters, not by a compiler: two things of one name are not told apart, and nothing that holds the name is missed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from dowse.errors import BadRequestError
from dowse.filters import Filter
from dowse.identity import number_id
from dowse.ports import StoreReader
from dowse.tokenizer import Tokenizer
from dowse.types import Chunk

MOST_CHUNKS = 2000  # that are looked through; chosen: a name in more of them is a word, not a reference
_SEPARATORS = re.compile(r"::|->|[.#/\\]")
_BESIDE = r"[\w$]"


@dataclass(frozen=True)
class Reference:
    """A line that holds the name. `line` is None where the text has no lines of a file, as in a chat."""

    chunk: Chunk
    text: str
    line: int | None
    definition: bool  # the name is the chunk's own, and this is where it says so


@dataclass(frozen=True)
class References:
    """By path and line. `cut` says that more chunks than were looked through hold the name."""

    name: str
    found: tuple[Reference, ...]
    cut: bool = False


def references(name: str, reader: StoreReader, tokenizer: Tokenizer, where: Filter = ()) -> References:
    """Of `Owner.member` the member is looked for, in chunks that hold the owner's name as well; case counts."""
    parts = [part for part in _SEPARATORS.split(name.strip().removesuffix("()")) if part]
    terms = tokenizer.code(parts[-1]) if parts else []
    if not terms:
        raise BadRequestError(
            f"{name!r} is no name to look for; give one as it stands in the code, such as retryBudget"
        )
    hits = reader.search_words("bm25_code", [terms[-1]], MOST_CHUNKS, where)
    chunks = reader.get([number_id(each) for each in hits.ids.tolist()])
    found: dict[tuple[str, int | None, str], Reference] = {}
    for chunk in chunks.values():
        if all(_word(part).search(_known_of(chunk)) for part in parts[:-1]):
            for each in _lines(chunk, parts[-1]):
                held = found.get(_key(each))
                found[_key(each)] = each if held is None or each.definition else held
    ordered = sorted(found.values(), key=lambda each: (each.chunk.source_uri, each.line or 0, each.text))
    return References(name, tuple(ordered), cut=len(hits.ids) == MOST_CHUNKS)


def _lines(chunk: Chunk, name: str) -> Iterator[Reference]:
    wanted = _word(name)
    own = name in (chunk.symbol_name, _SEPARATORS.split(chunk.qualified_name or "")[-1])
    for offset, text in enumerate(chunk.text.split("\n")):
        if wanted.search(text):
            line = None if chunk.start_line is None else chunk.start_line + offset
            yield Reference(chunk, text.strip(), line, definition=own)
            own = False


def _key(reference: Reference) -> tuple[str, int | None, str]:
    """Chunks of prose overlap: one line of a file is one reference."""
    chunk = reference.chunk
    return (chunk.document_id, reference.line, "" if reference.line else f"{chunk.id}{reference.text}")


def _known_of(chunk: Chunk) -> str:
    return "\n".join((chunk.text, chunk.context_prefix, chunk.qualified_name or "", *chunk.imports))


def _word(name: str) -> re.Pattern[str]:
    return re.compile(f"(?<!{_BESIDE}){re.escape(name)}(?!{_BESIDE})")
