"""Pages of a list within a budget of tokens, with cursors."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from dowse.errors import BadRequestError
from dowse.identity import text_hash
from dowse.query.context import estimated_tokens

DEFAULT_TOKENS = 2000  # chosen: answers are small unless the agent asks for more
MOST_TOKENS = 8000  # chosen: agents truncate much longer answers
FRAME_TOKENS = 150  # for heading, cursor and notes; a test checks every answer against its budget
_DIGITS = 8  # of a digest in a cursor: short to copy, and long enough to detect typing errors
_CURSOR = re.compile(rf"(\d{{1,6}})-([0-9a-f]{{{_DIGITS}}})-([0-9a-f]{{{_DIGITS}}})")

T = TypeVar("T")
U = TypeVar("U")
Encodings = Callable[[Any], Sequence[str]]


class TokenPage(Struct, Generic[T], frozen=True):
    """Range of a list."""

    items: tuple[T, ...]
    cursor: str = ""  # of the next page; empty on the last page
    moved: bool = False  # the items before this page have changed since the cursor was made

    @property
    def end(self) -> dict[str, Any]:
        """Fields of an answer that continue the list."""
        return {"truncated": bool(self.cursor), "cursor": self.cursor}


class TokenPaging(Struct, frozen=True):
    """Paging of one call. `call` identifies its arguments; a cursor is valid only for the same call."""

    call: str
    cursor: str = ""
    limit: int | None = None
    budget_tokens: int = DEFAULT_TOKENS

    def page(
        self, rows: Sequence[T], key: Callable[[T], str], make: Callable[[T], U], encodings: Encodings
    ) -> TokenPage[U]:
        """Make items until an encoding fills the budget; always one, or empty pages would never end."""
        start, before = self.start
        left = self.budget_tokens - FRAME_TOKENS
        made: list[U] = []
        used: list[int] = []
        for row in rows[start:] if self.limit is None else rows[start : start + self.limit]:
            item = make(row)
            sizes = [estimated_tokens(text) + 1 for text in encodings(item)]
            used = [sum(pair) for pair in zip(used, sizes, strict=True)] if used else sizes
            if made and max(used) > left:
                break
            made.append(item)
        stop = start + len(made)
        keys = [key(row) for row in rows[:stop]]
        cursor = f"{stop}-{_digest(self.call)}-{_digest(*keys)}" if stop < len(rows) else ""
        return TokenPage(tuple(made), cursor, bool(before) and before != _digest(*keys[:start]))

    @property
    def item_tokens(self) -> int:
        """Return the limit for the text of one item; quotes and line breaks take twice the space in JSON."""
        return max((self.budget_tokens - FRAME_TOKENS) // 3, 1)

    @property
    def start(self) -> tuple[int, str]:
        """Return the start of the page and the digest of the items before it."""
        if not self.cursor:
            return 0, ""
        found = _CURSOR.fullmatch(self.cursor.strip())
        if found is None:
            raise BadRequestError(
                f"invalid cursor {self.cursor!r}; copy the one from the previous answer, or omit it to start again"
            )
        if found[2] != _digest(self.call):
            raise BadRequestError(
                "this cursor belongs to a different call; repeat the arguments of that call, or omit the cursor"
            )
        return int(found[1]), found[3]


def _digest(*texts: str) -> str:
    return text_hash("\0".join(texts))[:_DIGITS]
