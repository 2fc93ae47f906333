"""Packing of text blocks into spans of about 256 tokens, at most 384.

A span is a half-open pair of character offsets. A line of any length and a file of any shape are cut by the same few
lines of code. Line numbers are looked up once, when a span becomes a chunk.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

Span = tuple[int, int]

TARGET_TOKENS = 256  # chosen: where the default embedder cuts its input
LIMIT_TOKENS = 384  # chosen: a section or symbol up to here stays whole
OVERLAP = 0.1  # share of the target; chosen: a sentence or two
TINY = 1 / 16  # share of the target below which a block joins its neighbour; chosen: a heading, or one short line


class Budget(msgspec.Struct, frozen=True):
    """Sizes of a chunk in characters, and where it may be cut: the first of `breaks` that is found wins."""

    target_chars: int
    limit_chars: int
    overlap_chars: int
    breaks: tuple[str, ...]

    @property
    def tiny_chars(self) -> int:
        return int(self.target_chars * TINY)

    def fitted(self, text: str) -> Budget:
        """Return the budget for this text.

        Tokens follow UTF-8 bytes, not characters: Chinese has three bytes and nearly one token a character, and would
        fill a chunk three times over.
        """
        if text.isascii():
            return self
        share = len(text) / len(text.encode("utf-8", "surrogatepass"))
        sizes = (self.target_chars, self.limit_chars, self.overlap_chars)
        target, limit, overlap = (int(size * share) for size in sizes)
        return replace(self, target_chars=target, limit_chars=limit, overlap_chars=overlap)


def _budget(chars_per_token: float, overlap: float, breaks: tuple[str, ...]) -> Budget:
    target = int(TARGET_TOKENS * chars_per_token)
    return Budget(target, int(LIMIT_TOKENS * chars_per_token), int(target * overlap), breaks)


# 4 characters a token for English prose, 3.2 for code: estimates.
PROSE = _budget(4.0, OVERLAP, ("\n\n", "\n", ". ", " "))
CODE = _budget(3.2, 0.0, ("\n\n", "\n", " "))


def windows(text: str, span: Span, budget: Budget) -> list[Span]:
    """Cut a span that has no structure; the rest stays whole up to the limit.

    A cut lies in the second half of the target, so a span never gives more than twice the pieces it needs.
    """
    start, stop = span
    spans: list[Span] = []
    while stop - start > budget.limit_chars:
        cut = _cut(text, start, budget)
        spans.append((start, cut))
        start = _overlap_start(text, cut, budget)
    return [*spans, (start, stop)]


def pack(text: str, blocks: Iterable[Span], budget: Budget) -> list[Span]:
    """Join neighbouring blocks up to the target; a block over the limit is cut and never joined."""
    spans: list[Span] = []
    open_span: Span | None = None
    for start, stop in blocks:
        if open_span and stop - open_span[0] <= budget.target_chars:
            open_span = (open_span[0], stop)
            continue
        if open_span:
            spans.append(open_span)
        open_span = (start, stop)
        if stop - start > budget.limit_chars:
            spans += windows(text, (start, stop), budget)
            open_span = None
    return [*spans, open_span] if open_span else spans


def _cut(text: str, start: int, budget: Budget) -> int:
    lowest, highest = start + budget.target_chars // 2, start + budget.target_chars
    breaks = ((text.rfind(mark, lowest, highest), len(mark)) for mark in budget.breaks)
    return next((at + size for at, size in breaks if at >= 0), highest)


def _overlap_start(text: str, cut: int, budget: Budget) -> int:
    """Return where the next window starts: at a line, sentence or word within the overlap."""
    if not budget.overlap_chars:
        return cut
    earliest = cut - budget.overlap_chars
    breaks = ((text.find(mark, earliest, cut - len(mark)), len(mark)) for mark in budget.breaks)
    return next((at + size for at, size in breaks if at >= 0), earliest)
