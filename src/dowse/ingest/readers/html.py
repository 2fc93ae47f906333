"""Elements of an HTML tree go in; the text that a visitor reads, where it may be cut and its lines come out.

The parser tells no lines, so each stretch of text is looked up in the source, onwards from the one before.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING

from dowse.ingest.chunking.sections import Mark

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode


@dataclass(frozen=True)
class HtmlText:
    """What was written."""

    text: str
    marks: tuple[Mark, ...]
    lines: tuple[tuple[int, int], ...]  # of the source, first and last, for each line of the text


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BLOCKS = _names(
    "address article aside blockquote body caption dd details div dl dt fieldset figcaption figure footer form header "
    "hr html li main ol p pre section summary table tbody tfoot thead tr ul h1 h2 h3 h4 h5 h6"
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_TIGHT = _names("li tr dt dd thead tbody tfoot caption ul ol")  # no blank line before
_CELLS = _names("td th")
_ESCAPED = re.compile(r"[&<>\"'\r\xa0]|[^\x00-\x7f]")
_BODY = re.compile(r"<body\b", re.IGNORECASE)
_BLANK_LINES = re.compile(r"\A(?:[^\S\n]*\n)+")
_LOOKED_FOR_CHARS = 40  # chosen: enough to tell one place from the next


def write_text(root: LexborNode, source: str) -> HtmlText:
    writer = _Writer(source)
    enter, leave = writer.enter, writer.leave
    for node, entering in _walk(root):
        if entering:
            enter(node)
        else:
            leave(node)
    text = "".join(writer.parts).rstrip()
    return HtmlText(text, tuple(mark for mark in writer.marks if mark.start < len(text)), tuple(writer.lines))


def _walk(root: LexborNode) -> Iterator[tuple[LexborNode, bool]]:
    """Every node, entered and left, in order; a list in place of recursion."""
    above: list[LexborNode] = [root]
    node = root.first_child
    yield root, True
    while above:
        if node is None:
            node = above.pop()
            yield node, False
            node = node.next if above else None
            continue
        yield node, True
        if node.is_element_node and node.first_child is not None:
            above.append(node)
            node = node.first_child
        else:
            yield node, False
            node = node.next


@dataclass
class _Writer:
    """The text so far, and where it may be cut."""

    source: str
    parts: list[str] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    lines: list[tuple[int, int]] = field(default_factory=list)  # of the source, first and last, for each line begun
    length: int = 0
    at: int = 0  # in the source
    blank: str = ""  # what to write before the next text
    pre: int = 0
    wrapped: bool = False  # the last text ended with its line
    first_cell: bool = True
    heading: Mark | None = None
    heading_part: int = 0
    pending: Mark | None = None
    line_starts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.line_starts = list(accumulate((len(line) + 1 for line in self.source.split("\n")[:-1]), initial=0))
        body = _BODY.search(self.source)
        self.at = body.start() if body else 0

    def enter(self, node: LexborNode) -> None:
        if node.is_text_node:
            self._text(node.text_content or "")
            return
        tag = node.tag or ""
        if tag in _HEADINGS:
            self._break("\n\n")
            self.pending = Mark(0, _HEADINGS[tag])
        elif tag in _CELLS:
            self.blank = self.blank if self.first_cell else " | "
            self.first_cell = False
        elif tag in _BLOCKS:
            self._break("\n" if tag in _TIGHT else "\n\n")
            self._open(tag, node)
        elif tag == "br":
            self._break("\n")
        elif tag == "img" and node.attributes.get("alt"):
            self._text(str(node.attributes["alt"]), find=False)

    def leave(self, node: LexborNode) -> None:
        tag = node.tag or ""
        if tag in _HEADINGS:
            self._end_heading()
            self._break("\n\n")
        elif tag in _BLOCKS:
            self.pre -= tag == "pre"
            self._break("\n" if tag in _TIGHT else "\n\n")

    def _open(self, tag: str, node: LexborNode) -> None:
        if tag == "pre":
            self.pre += 1
        elif tag == "tr":
            self.first_cell = True
        elif tag == "table":
            row = node.css_first("tr")
            cells = [" ".join(cell.text().split()) for cell in row.css("th")] if row is not None else []
            self.pending = Mark(0, lead=" | ".join(cells))
        if self.pending is None and tag not in ("thead", "tbody", "tfoot", "tr"):
            self.pending = Mark(0)

    def _break(self, blank: str) -> None:
        if len(blank) > len(self.blank) or not self.blank.startswith("\n"):
            self.blank = blank

    def _text(self, text: str, *, find: bool = True) -> None:
        shown = _BLANK_LINES.sub("", text).rstrip() if self.pre else " ".join(text.split())
        if find and shown and (self.wrapped or "\n" in text or "\n" in self.blank or not self.parts):
            self._find(text)
            self.wrapped = "\n" in text[len(text.rstrip()) :]
        if not shown.strip():
            if text and not self.blank and self.parts:
                self.blank = " "
            return
        if not self.pre and text[0].isspace() and not self.blank:
            self.blank = " "
        self._write(shown, text.strip().count("\n"))
        self.blank = ("\n" if "\n" in text[len(text.rstrip()) :] and self.pre else " ") if text[-1].isspace() else ""

    def _write(self, shown: str, source_lines: int) -> None:
        """`source_lines`: line ends in what the source has for it."""
        blank = self.blank if self.parts else ""
        line = bisect_right(self.line_starts, self.at)
        self.lines += [(line, line)] * (blank.count("\n") if self.parts else 1)
        self.length += len(blank)
        if self.pending is not None:
            mark = Mark(self.length, self.pending.level, self.pending.title, self.pending.lead)
            self.pending = None
            if mark.level:
                self.heading, self.heading_part = mark, len(self.parts) + 1
            else:
                self.marks.append(mark)
        self.parts += (blank, shown)
        self.length += len(shown)
        kept = shown.count("\n")
        stop = len(self.line_starts)
        self.lines += [(min(line + more + 1, stop),) * 2 for more in range(kept)]
        self.lines[-1] = (self.lines[-1][0], min(max(self.lines[-1][1], line + source_lines), stop))

    def _end_heading(self) -> None:
        """Known only now: the title is all that was written since."""
        if self.heading is not None:
            self.marks.append(replace(self.heading, title="".join(self.parts[self.heading_part :])))
        self.heading = self.pending = None

    def _find(self, text: str) -> None:
        """Where the text stands in the source. What is escaped there is passed over; what is not found stays behind."""
        bare = text.lstrip()
        skipped = text[: len(text) - len(bare)]
        escaped = _ESCAPED.search(bare)
        plain = bare[: min(escaped.start() if escaped else len(bare), _LOOKED_FOR_CHARS)]
        found = self.source.find(">" + skipped + bare[:_LOOKED_FOR_CHARS], self.at)
        if found < 0 and escaped:
            found = self.source.find(">" + skipped + (plain or "&"), self.at)
        if found < 0 and len(plain) > 8:
            found = self.source.find(plain, self.at) - 1
        if found >= 0:
            self.at = found + 1 + len(skipped)
