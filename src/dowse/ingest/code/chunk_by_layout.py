"""Chunks of code by layout: text of any language enters, spans that keep definitions together leave.

It needs no grammar. Indentation and blank lines show where a definition starts in nearly all languages. A block that is
too long is cut where its own members start, and the enclosing definitions lead each chunk.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import msgspec

from dowse.ingest.chunking.document import SEPARATOR, ChunkSpan, starts_of
from dowse.ingest.chunking.pack import CODE, Budget, Span, pack, windows

LONGEST_DEFINITION_CHARS = 120  # chosen: name and first parameters
LONGEST_LINE_CHARS = 400  # chosen: no definition is longer, and no pattern is tried on a minified file
DEEPEST_COLUMN = 64  # chosen: what is indented further is data, and the recursion stays shallow
BLANK = -1  # the indentation of a line without text

# Lines that continue or close what is above them, so nothing may start there.
_CLOSER = re.compile(
    r"[)}\]]|[{(\[]\s*$|(?:end|else|elif|elsif|except|finally|catch|then|fi|done|esac|rescue|ensure|when)\b"
    r"|#endif|#else|</"
)
# Lines that never enclose the lines below: comments, directives, access labels, lone brackets.
_TRANSPARENT = re.compile(r"[#)}\]]|//|/?\*|[{(\[]\s*$|(?:public|private|protected|signals|default)\b[^(]*:\s*$")
# Comments, decorators and attributes above a definition belong to it.
_PREAMBLE = re.compile(r"[@#*]|//|/\*|--|\[.*\]$|$")
_LONGEST_PREAMBLE_LINES = 20  # chosen
_MODIFIERS = (
    "export|default|public|private|protected|internal|static|final|abstract|async|unsafe|extern|const|inline|virtual"
    r"|override|open|sealed|data|partial|suspend|local|declare|template\s*<.*?>|pub(?:\([^)]*\))?"
)
_WORDS = (
    "def|defp|defmodule|class|func|fn|function|fun|interface|struct|enum|trait|impl|module|namespace|object|type|record"
    "|protocol|extension|message|service|resource|variable|provider|sub|procedure|package|union|macro|mod"
)
_NOT_NAMES = "if|for|while|switch|catch|return|else|do|try|with|foreach|elif|match|select|unless|until"
_KEYWORD = re.compile(rf"(?:(?:{_MODIFIERS})\s+)*(?:{_WORDS})\b")
# In the manner of C, `int main(void) {`, and of JavaScript, `const main = () => {`.
_OPENING = re.compile(
    rf"(?!(?:{_NOT_NAMES})\b)[\w$][^=;(]*\(|(?:(?:export|const|let|var|default)\s+)*[\w.$]+\s*[:=].*(?:=>|\bfunction\b)"
)
_KEY = re.compile(r"(?:- )?[\"']?[\w./$-]+[\"']?\s*:\s*(?:[\[{|>&].*)?$|\[.*\]\s*$|<\w[^/]*>\s*$")
_KEYED = frozenset(("yaml", "json", "toml", "ini", "xml"))


def pieces_by_layout(text: str, language: str | None) -> list[ChunkSpan]:
    """Return spans within the budget that cover the text."""
    budget = CODE.fitted(text)
    if len(text) <= budget.limit_chars:
        return [ChunkSpan((0, len(text)))]
    layout = layout_of(text)
    keyed = language in _KEYED
    members = layout.starts if keyed else [line for line in layout.starts if _defines(layout, line)]
    spans = cut(layout, layout.starts, members, (0, len(layout.lines)), budget)
    return list(map(ChunkSpan, spans, enclosing(layout, spans, _is_key if keyed else _is_definition)))


class Layout(msgspec.Struct, frozen=True):
    """Lines of a text, their indentation, and where blocks start."""

    text: str
    lines: list[str]
    offsets: list[int]  # of each line, and of the end
    indents: list[int]  # in characters; BLANK for a line without text
    starts: list[int]  # lines, rising

    def span(self, first: int, stop: int) -> Span:
        return self.offsets[first], min(self.offsets[stop], len(self.text))


def layout_of(text: str) -> Layout:
    lines = text.split("\n")
    stripped = [line.lstrip() for line in lines]
    indents = [len(line) - len(rest) if rest else BLANK for line, rest in zip(lines, stripped, strict=True)]
    starts: list[int] = []
    above = BLANK
    last = ""
    after_blank = True
    for at, (indent, rest) in enumerate(zip(indents, stripped, strict=True)):
        if indent == BLANK:
            after_blank = True
            continue
        closed = indent == above and last[0] in ")}]"
        if (after_blank or indent < above or closed) and indent <= DEEPEST_COLUMN and not _CLOSER.match(rest):
            starts.append(at)
        above, last, after_blank = indent, rest, False
    return Layout(text, lines, starts_of(text), indents, starts)


def _is_definition(line: str) -> bool:
    if len(line) > LONGEST_LINE_CHARS:
        return False
    return bool(_KEYWORD.match(line)) or (line.endswith("{") and bool(_OPENING.match(line)))


def _is_key(line: str) -> bool:
    return len(line) <= LONGEST_LINE_CHARS and bool(_KEY.match(line))


def _defines(layout: Layout, line: int) -> bool:
    """Tell whether a definition starts here, maybe below its comments and decorators."""
    for text in layout.lines[line : line + _LONGEST_PREAMBLE_LINES]:
        rest = text.lstrip()
        if not _PREAMBLE.match(rest):
            return _is_definition(rest.rstrip())
    return False


def cut(layout: Layout, starts: list[int], members: list[int], lines: Span, budget: Budget) -> list[Span]:
    """Return spans that cover the lines [first, stop); a block that fits is packed with its siblings only.

    The file is cut wherever something starts. Within a block that is too long only its `members` count: cutting a
    function body at each of its blank lines leaves crumbs and parts its name from it.
    """
    first, stop = lines
    inner = starts[bisect_right(starts, first) : bisect_left(starts, stop)]
    if not inner:
        return windows(layout.text, layout.span(first, stop), budget)
    level = min(layout.indents[line] for line in inner)
    blocks = pairwise((first, *(line for line in inner if layout.indents[line] == level), stop))
    spans: list[Span] = []
    siblings: list[Span] = []
    for start, end in blocks:
        span = layout.span(start, end)
        if span[1] - span[0] <= budget.limit_chars:
            siblings.append(span)
            continue
        packed = pack(layout.text, siblings, budget)
        parts = cut(layout, members, members, (start, end), budget)
        spans += _joined(packed, parts, budget) if packed and _tiny(packed[-1], budget) else packed + parts
        siblings = []
    packed = pack(layout.text, siblings, budget)
    return _joined(spans, packed, budget) if packed and _tiny(packed[0], budget) else spans + packed


def _tiny(span: Span, budget: Budget) -> bool:
    return span[1] - span[0] < budget.tiny_chars


def _joined(left: list[Span], right: list[Span], budget: Budget) -> list[Span]:
    """Join both lists, with one span across the seam where the limit allows."""
    if not left or right[0][1] - left[-1][0] > budget.limit_chars:
        return left + right
    return [*left[:-1], (left[-1][0], right[0][1]), *right[1:]]


def enclosing(layout: Layout, spans: Iterable[Span], defines: Callable[[str], bool]) -> Iterator[str]:
    """Return for each span the definitions around its first line, outermost first.

    One pass down the lines for all spans; `above` holds the lines that enclose the current one, each deeper than the
    one before.
    """
    above: list[int] = []
    line = 0
    for span in spans:
        first = bisect_right(layout.offsets, span[0]) - 1
        last = bisect_left(layout.offsets, span[1]) - 1
        while layout.indents[first] == BLANK and first < last:
            first += 1
        while line < first:
            indent = layout.indents[line]
            if indent != BLANK and not _TRANSPARENT.match(layout.lines[line], indent):
                while above and layout.indents[above[-1]] >= indent:
                    above.pop()
                above.append(line)
            line += 1
        around = (layout.lines[each].strip() for each in above if layout.indents[each] < layout.indents[first])
        found = [each.rstrip(" \t{:")[:LONGEST_DEFINITION_CHARS] for each in around if defines(each)]
        yield SEPARATOR.join(found)
