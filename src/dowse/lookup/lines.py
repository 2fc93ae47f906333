"""Lines of an indexed document, put together from its chunks."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dowse.errors import BadRequestError, NotFoundError
from dowse.types import Chunk

MOST_LINES = 2000  # of one result; chosen: about 100 KB


class Lines(msgspec.Struct, frozen=True):
    """Range of lines, both ends included and counted from 1. `total` is the last indexed line."""

    first: int
    last: int
    total: int
    texts: tuple[str, ...]


def lines_of(chunks: Sequence[Chunk], path: str, start: int | None = None, end: int | None = None) -> Lines:
    """Return lines from the index, not from disk: masked text stays masked, and no file is opened.

    Lines that no chunk holds were blank. A document without line numbers is numbered from 1 through its chunks.
    """
    texts = _texts(chunks)
    total = max(texts, default=0)
    first = 1 if start is None else start
    last = min(total if end is None else end, total, first + MOST_LINES - 1)
    if first < 1 or (end is not None and end < first):
        raise BadRequestError(f"invalid range of lines: {first} to {end or total}; give 1 ≤ start ≤ end")
    if first > max(total, 1):
        raise NotFoundError(f"{path} has {total} lines, not {first}; give a smaller start")
    return Lines(first, last, total, tuple(texts.get(number, "") for number in range(first, last + 1)))


def text_of(chunks: Sequence[Chunk]) -> str:
    """Return the whole text of a document from its chunks."""
    texts = _texts(chunks)
    return "\n".join(texts.get(number, "") for number in range(1, max(texts, default=0) + 1))


def _texts(chunks: Sequence[Chunk]) -> dict[int, str]:
    """Map line numbers to lines. Chunks of prose overlap with equal text."""
    if not any(chunk.start_line for chunk in chunks):
        return dict(enumerate((line for chunk in chunks for line in chunk.text.split("\n")), start=1))
    found: dict[int, str] = {}
    for chunk in chunks:
        if chunk.start_line is not None:
            for offset, line in enumerate(chunk.text.split("\n")):
                found.setdefault(chunk.start_line + offset, line)
    return found
