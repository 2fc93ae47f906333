"""Chunks of code by symbol: definitions of a file enter, the spans of its chunks leave.

A function that fits is one chunk. A class is opened unless it is small: its head and each of its methods are
chunks. Small neighbours share a chunk, and a long part is cut where a statement starts.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from dowse.ingest.chunking.pack import Budget, Span, pack
from dowse.ingest.code.parse import METHOD_HOLDERS, Syntax, lead

if TYPE_CHECKING:
    from tree_sitter import Node

TOP = -1  # the file itself, as an owner
SMALL = 1 / 5  # share of the target; chosen: a getter, a prototype, a function of two or three lines
SMALL_HOLDER = 1 / 2  # share of the target up to which a class stays whole; chosen
CLOSER_CHARS = 24  # kept free below the limit, so that the brackets that close what encloses a function fit in
CONSTRUCTORS = frozenset(("__init__", "constructor", "initialize", "new", "__construct"))
HOLDERS = METHOD_HOLDERS | {"namespace", "module"}


class CodeSpan(NamedTuple):
    """Part of the text that becomes a chunk."""

    span: Span  # in characters
    owner: int  # place of the definition that it is, or is a part of; TOP
    holder: int  # place of the definition that was opened to get at it; TOP


class _Block(NamedTuple):
    """Whole rows of one owner, before neighbours are joined and long ones are cut."""

    first: int
    stop: int
    owner: int
    holder: int
    run: bool  # holds nothing but small ones


def cut(syntax: Syntax, text: str, offsets: list[int], budget: Budget) -> list[CodeSpan]:
    """Return spans in order that hold every line that is not blank. `offsets` are those of the rows."""
    cutter = _Cutter(syntax, text, offsets, budget)
    return [stretch for block in cutter.merged(cutter.blocks()) for stretch in cutter.stretches(block)]


class _Cutter:
    """Cutter of one file."""

    def __init__(self, syntax: Syntax, text: str, offsets: list[int], budget: Budget) -> None:
        self.syntax = syntax
        self.text = text
        self.offsets = offsets
        self.budget = budget
        self.small_chars = int(budget.target_chars * SMALL)
        self.tiny_chars = budget.tiny_chars
        self.inside: dict[int, list[int]] = {}  # by definition, those that make chunks in it
        for at, each in enumerate(syntax.definitions):
            if not each.minor:
                self.inside.setdefault(each.parent, []).append(at)
        self.opened = self._opened()
        self.comments = set(syntax.above.values())
        self._statements: dict[int, list[int]] = {}

    def size(self, first: int, stop: int) -> int:
        return self.offsets[stop] - self.offsets[first]

    def _opened(self) -> list[bool]:
        """Tell by definition whether it is opened: too large, and everything around it opened."""
        definitions = self.syntax.definitions
        whole_chars = self.budget.limit_chars - CLOSER_CHARS
        holder_chars = int(self.budget.target_chars * SMALL_HOLDER)
        opened: list[bool] = []
        for at, each in enumerate(definitions):
            if each.minor or (each.parent != TOP and not opened[each.parent]):
                opened.append(False)
                continue
            holder = at in self.inside and each.kind in HOLDERS
            opened.append(self.size(each.first_row, each.stop_row) > (holder_chars if holder else whole_chars))
        return opened

    def blocks(self) -> list[_Block]:
        """Return the rows of the file, cut at every definition whose surroundings are opened."""
        made: list[_Block] = []
        open_ones: list[int] = []
        row = 0

        def add(stop: int, owner: int, holder: int) -> None:
            nonlocal row
            if stop > row and not self.text[self.offsets[row] : self.offsets[stop]].isspace():
                made.append(_Block(row, stop, owner, holder, self.size(row, stop) <= self.small_chars))
            row = max(stop, row)

        definitions = self.syntax.definitions
        for at, each in enumerate(definitions):
            if each.minor or (each.parent != TOP and not self.opened[each.parent]):
                continue
            while open_ones and each.parent != open_ones[-1]:
                closed = open_ones.pop()
                add(definitions[closed].stop_row, closed, closed)
            around = open_ones[-1] if open_ones else TOP
            add(each.first_row, around, around)
            if self.opened[at]:
                open_ones.append(at)
            else:
                add(each.stop_row, at, each.parent)
        for closed in reversed(open_ones):
            add(definitions[closed].stop_row, closed, closed)
        add(len(self.offsets) - 1, TOP, TOP)
        return made

    def merged(self, blocks: list[_Block]) -> list[_Block]:
        made: list[_Block] = []
        for block in blocks:
            if made and self._joins(made[-1], block):
                last = made.pop()
                # What is still to be cut must be cut by the one whose statements it holds.
                inner = last.owner == TOP or self.size(block.first, block.stop) > self.budget.limit_chars
                owner, holder = (block.owner, block.holder) if inner else (last.owner, last.holder)
                block = _Block(last.first, block.stop, owner, holder, last.run and block.run)
            made.append(block)
        return made

    def _joins(self, left: _Block, right: _Block) -> bool:
        offsets, tiny, limit = self.offsets, self.tiny_chars, self.budget.limit_chars
        start, between, stop = offsets[left.first], offsets[right.first], offsets[right.stop]
        left_chars = offsets[left.stop] - start
        if stop - between > limit:
            leads = self._is_head(left) and self._is_head(right)
            return leads and left_chars < tiny and self.syntax.definitions[right.owner].parent == left.owner
        together = stop - start
        if together > limit:
            return False
        if stop - between < tiny and not self._is_head(right):
            return True
        if left.holder != right.holder:
            return False
        if left_chars < tiny:
            return True
        if together > self.budget.target_chars or not left.run:
            return False
        return right.run or (self._is_head(left) and self._is_constructor(right))

    def _is_constructor(self, block: _Block) -> bool:
        """Tell whether a block is a constructor: it completes the head of a class."""
        if block.owner in (TOP, block.holder):
            return False
        each = self.syntax.definitions[block.owner]
        return each.kind == "constructor" or each.name in CONSTRUCTORS

    def _is_head(self, block: _Block) -> bool:
        """Tell whether an opened definition begins here: its name must not end the chunk before."""
        return block.owner != TOP and block.first <= self.syntax.definitions[block.owner].row < block.stop

    def stretches(self, block: _Block) -> list[CodeSpan]:
        span = (self.offsets[block.first], min(self.offsets[block.stop], len(self.text)))
        if span[1] - span[0] <= self.budget.limit_chars:
            return [CodeSpan(span, block.owner, block.holder)]
        rows = self._statement_rows(block.owner)
        inside = rows[bisect_left(rows, block.first + 1) : bisect_left(rows, block.stop)]
        starts = (span[0], *(self.offsets[row] for row in inside), span[1])
        return [CodeSpan(part, block.owner, block.holder) for part in pack(self.text, pairwise(starts), self.budget)]

    def _statement_rows(self, owner: int) -> list[int]:
        """Return rows where statements of an owner start, and where parts of long statements start."""
        if owner not in self._statements:
            node = self.syntax.root if owner == TOP else self.syntax.nodes[owner]
            children = (self.syntax.nodes[at] for at in self.inside.get(owner, ()))
            skipped = {(child.start_byte, child.end_byte) for child in children}
            rows = _part_rows(node, skipped, self.budget.target_chars)
            # Comments go with what is below them; between them there is no cut.
            rows -= self.comments
            self._statements[owner] = sorted({lead(self.syntax.above, row) for row in rows})
        return self._statements[owner]


def _part_rows(node: Node, skipped: set[tuple[int, int]], longest_bytes: int) -> set[int]:
    """Return rows where the children of a node start, and those of every longer child."""
    rows: set[int] = set()
    stack = [node]
    while stack:
        for child in stack.pop().children:
            rows.add(child.start_point[0])
            size = (child.start_byte, child.end_byte)
            if size[1] - size[0] > longest_bytes and size not in skipped:
                stack.append(child)
    return rows
