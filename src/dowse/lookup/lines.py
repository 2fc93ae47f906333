"""The chunks of a document enter; its lines leave, each once, as they were indexed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dowse.errors import BadRequestError, NotFoundError
from dowse.types import Chunk

MOST_LINES = 2000  # of one answer; chosen: about 100 KB


@dataclass(frozen=True)
class Lines:
    """A range of lines, both ends included and counted from 1. `total` is the last line that was indexed."""

    first: int
    last: int
    total: int
    texts: tuple[str, ...]


def lines_of(chunks: Sequence[Chunk], path: str, start: int | None = None, end: int | None = None) -> Lines:
    """From the index and not from the disk: what was masked stays masked, and no file is opened.

    A line that no chunk holds was blank. A document without line numbers is numbered from 1 through its chunks.
    """
    texts = _numbered(chunks) if any(chunk.start_line for chunk in chunks) else _counted(chunks)
    total = max(texts, default=0)
    first = 1 if start is None else start
    last = min(total if end is None else end, total, first + MOST_LINES - 1)
    if first < 1 or (end is not None and end < first):
        raise BadRequestError(
            f"lines {first} to {end if end is not None else total} are no range; give start ≥ 1 ≤ end"
        )
    if first > max(total, 1):
        raise NotFoundError(f"{path} has {total} lines, not {first}; ask for a smaller start")
    return Lines(first, last, total, tuple(texts.get(number, "") for number in range(first, last + 1)))


def _numbered(chunks: Sequence[Chunk]) -> dict[int, str]:
    """By line number. Chunks of prose overlap; the parts agree where they do."""
    found: dict[int, str] = {}
    for chunk in chunks:
        if chunk.start_line is not None:
            for offset, line in enumerate(chunk.text.split("\n")):
                found.setdefault(chunk.start_line + offset, line)
    return found


def _counted(chunks: Sequence[Chunk]) -> dict[int, str]:
    lines = [line for chunk in chunks for line in chunk.text.split("\n")]
    return dict(enumerate(lines, start=1))
