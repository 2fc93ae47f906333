"""A long list and a budget of tokens go in; the stretch of it that fits, and a cursor to the next one, come out."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from dowse.errors import BadRequestError
from dowse.identity import text_hash
from dowse.query.context import estimated_tokens

DEFAULT_TOKENS = 2000  # issue 7: an answer is small unless more is asked for
MOST_TOKENS = 8000  # lab/ecosystem.md section 3: agents cut or set aside what is much longer
FRAME_TOKENS = 150  # for what stands around the items: heading, cursor, hints; a test holds every answer to its budget
_DIGITS = 8  # of a digest in a cursor: short to copy, and a mistyped cursor is not taken for another
_CURSOR = re.compile(rf"(\d{{1,6}})-([0-9a-f]{{{_DIGITS}}})-([0-9a-f]{{{_DIGITS}}})")

T = TypeVar("T")
U = TypeVar("U")
Faces = Callable[[Any], Sequence[str]]


@dataclass(frozen=True)
class Page(Generic[T]):
    """A stretch of a list."""

    items: tuple[T, ...]
    cursor: str = ""  # to what comes next; empty at the end
    moved: bool = False  # what stood before this page is not what stood there when the cursor was made

    @property
    def truncated(self) -> bool:
        return bool(self.cursor)


@dataclass(frozen=True)
class Paging:
    """One call's way through a list. `call` says what was asked, so that a cursor serves that question only."""

    call: str
    cursor: str = ""
    limit: int | None = None
    budget_tokens: int = DEFAULT_TOKENS

    def page(self, rows: Sequence[T], key: Callable[[T], str], make: Callable[[T], U], faces: Faces) -> Page[U]:
        """As many items, made of rows, as fit: `faces` are the forms an item is sent in, and each has to fit.

        The first item is always there, for an answer without one would never end.
        """
        start, before = self.start
        left = self.budget_tokens - FRAME_TOKENS
        made: list[U] = []
        used: list[int] = []
        for row in rows[start:] if self.limit is None else rows[start : start + self.limit]:
            item = make(row)
            sizes = [estimated_tokens(face) + 1 for face in faces(item)]
            used = [sum(pair) for pair in zip(used, sizes, strict=True)] if used else sizes
            if made and max(used) > left:
                break
            made.append(item)
        stop = start + len(made)
        keys = [key(row) for row in rows[:stop]]
        cursor = f"{stop}-{_digest(self.call)}-{_digest(*keys)}" if stop < len(rows) else ""
        return Page(tuple(made), cursor, bool(before) and before != _digest(*keys[:start]))

    @property
    def room_tokens(self) -> int:
        """What one item's text may take, so that it fits in any form: quotation marks and breaks double in JSON."""
        return max((self.budget_tokens - FRAME_TOKENS) // 3, 1)

    @property
    def start(self) -> tuple[int, str]:
        """Where the page begins, and the digest of what stood before it."""
        if not self.cursor:
            return 0, ""
        found = _CURSOR.fullmatch(self.cursor.strip())
        if found is None:
            raise BadRequestError(
                f"{self.cursor!r} is no cursor; copy the one of the answer before, or leave it out to start anew"
            )
        if found[2] != _digest(self.call):
            raise BadRequestError(
                "this cursor belongs to another call; repeat that call's arguments with it, or leave it out"
            )
        return int(found[1]), found[3]


def _digest(*texts: str) -> str:
    return text_hash("\0".join(texts))[:_DIGITS]
