"""A passage and a question enter; its lines leave, cut into pieces of which some match, the telling ones picked out.

What was indexed is not trusted: control characters and marks that reorder text on the screen are taken out here, and
the templates escape the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dowse.serve.plain_text import Marker, clean
from dowse.tokenizer import Tokenizer

SNIPPET_LINES = 6  # chosen: ten hits fit on two screens
LONGEST_LINE_CHARS = 600  # of a line that is shown; chosen: minified code has megabytes in one


@dataclass(frozen=True)
class Piece:
    """A stretch of a line."""

    text: str
    marked: bool = False


@dataclass(frozen=True)
class ShownLine:
    number: int | None
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Passage:
    """All lines, and the few that tell most."""

    lines: tuple[ShownLine, ...]
    telling: tuple[ShownLine, ...]

    @property
    def is_cut(self) -> bool:
        return len(self.telling) < len(self.lines)


@dataclass(frozen=True)
class Reader:
    """Marks the words of one question."""

    marker: Marker | None = None

    @classmethod
    def of(cls, query: str) -> Reader:
        return cls(Marker(query, Tokenizer()) if query.strip() else None)

    def passage(self, text: str, first_number: int | None, most_lines: int = SNIPPET_LINES) -> Passage:
        texts = clean(text).strip("\n").split("\n")
        skipped = len(text) - len(text.lstrip("\n"))
        first = None if first_number is None else first_number + skipped
        lines = tuple(self.line(each, None if first is None else first + offset) for offset, each in enumerate(texts))
        start = _best_start([sum(piece.marked for piece in line.pieces) for line in lines], most_lines)
        return Passage(lines, lines[start : start + most_lines])

    def line(self, text: str, number: int | None) -> ShownLine:
        """One line, already clean or of a few characters; cut where nobody reads on."""
        text = clean(text).replace("\n", " ")
        if len(text) > LONGEST_LINE_CHARS:
            text = text[:LONGEST_LINE_CHARS] + "…"
        return ShownLine(number, _pieces(text, self.marker.marks(text) if self.marker else ()))


def _pieces(text: str, marks: Sequence[tuple[int, int]]) -> tuple[Piece, ...]:
    found, at = [], 0
    for start, stop in marks:
        found += [Piece(text[at:start])] if start > at else []
        found.append(Piece(text[start:stop], True))
        at = stop
    return (*found, Piece(text[at:])) if at < len(text) or not found else tuple(found)


def _best_start(marks: Sequence[int], size: int) -> int:
    """Of the windows with most matches, the one that begins a line before its first match, or nearest to that."""
    sums = [sum(marks[at : at + size]) for at in range(max(len(marks) - size, 0) + 1)]
    if not any(marks):
        return 0
    best = [at for at, found in enumerate(sums) if found == max(sums)]
    first = next(at for at in range(best[0], len(marks)) if marks[at])
    return min(best, key=lambda at: abs(at - (first - 1)))
