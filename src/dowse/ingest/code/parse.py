"""Syntax of source code: text and a grammar enter; definitions, calls and imports leave.

Places are rows (lines from 0): chunks are whole lines, and rows need no translation between the bytes of tree-sitter
and characters. A parse that takes too long, or finds mostly errors, returns nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate
from time import thread_time
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from dowse.ingest.code.grammars import Grammar
from dowse.ingest.code.names import called, clipped, imported, name_and_scope, summary_of

if TYPE_CHECKING:
    from tree_sitter import Node

    Captured = tuple[int, dict[str, list[Node]]]  # pattern, nodes by capture
    Match = tuple[str, Node, Node, Node | None]  # kind, definition, name, scope

PARSE_S = 0.5  # of CPU for any file, and
PARSE_S_PER_MB = 0.75  # for each megabyte of it; chosen: well-formed source takes a sixth of that
READ_BYTES = 16384  # a block of input; the limit is checked at each, every 2 ms
MOST_ERROR = 0.3  # share of the bytes; chosen: above it the tree is guesswork, below it errors are local
LONGEST_ERROR = 5_000  # tokens; a query over n of them in one flat list takes n² time: 20 ms at this length
MOST_LOOKED_AT = 100_000  # nodes, when errors are added up; chosen: some 20 ms
DEEPEST = 16  # levels of a qualified name; chosen, it bounds the cost of nested files
LONGEST_NAME_CHARS = 120  # chosen
LONGEST_SIGNATURE_CHARS = 200  # chosen
LONGEST_SUMMARY_CHARS = 300  # chosen: two or three sentences
MOST_COMMENT = 60  # lines that are read for a summary; chosen
LONGEST_INDENT_BYTES = 60  # chosen: a definition further right follows other code, as in a minified file
MINOR, SCOPE = "minor.", "scope."
METHOD_HOLDERS = frozenset(
    ("class", "interface", "struct", "union", "enum", "record", "trait", "object", "impl", "annotation")
)
_ANNOTATION = re.compile(rb"\s*(?:@\w|\[)")
_LABELS = re.compile(r"\"([^\"]*)\"")
_HEAD_WORD = re.compile(r"\w+")


class Definition(NamedTuple):
    """Named part of a file. Its rows include the comments and decorators above it."""

    name: str
    kind: str
    qualified_name: str
    first_row: int
    row: int  # of the name
    stop_row: int  # exclusive
    parent: int  # place in the list of the major one around it; -1 at the top
    minor: bool  # makes no chunk of its own
    symbol: bool  # False: it only encloses others
    signature: str
    summary: str | None


class Syntax(msgspec.Struct, frozen=True):
    """Definitions, calls and imports of a file, in the order of its lines."""

    definitions: list[Definition]
    nodes: list[Node]  # of the definitions
    root: Node
    calls: list[tuple[int, str]]  # row and name, sorted
    imports: list[tuple[int, str]]  # row and path, sorted
    above: dict[int, int]  # last row → first row of the comments and decorators on rows of their own
    summary: str | None  # of the file as a whole


class SourceText(msgspec.Struct, frozen=True):
    """Text of a file as lines, as bytes and by line starts."""

    lines: list[str]
    data: bytes
    starts: list[int]  # of the lines, in bytes

    def text(self, node: Node) -> str:
        return self.data[node.start_byte : node.end_byte].decode("utf-8", "replace")


def lead(above: dict[int, int], row: int) -> int:
    """Return the first row of the comments and decorators right above a row, or the row."""
    while (first := above.get(row - 1)) is not None:
        row = first
    return row


def parse(text: str, lines: list[str], offsets: list[int], grammar: Grammar) -> Syntax | None:
    """Parse a text; None when it has too many errors or takes too long. `offsets` count characters."""
    from tree_sitter import QueryCursor

    data = text.encode()
    root = _root(data, grammar)
    if root is None:
        return None
    starts = (
        offsets if len(data) == len(text) else list(accumulate((len(line.encode()) + 1 for line in lines), initial=0))
    )
    source = SourceText(lines, data, starts)
    matches, found = _captured(QueryCursor(grammar.query).matches(root))
    above = _standing_alone(found["above"], source)
    return Syntax(
        definitions=_definitions(matches, source, above, grammar.name),
        nodes=[node for _, node, _, _ in matches],
        root=root,
        calls=_calls(found["call"], source),
        imports=sorted(
            (node.start_point[0], path)
            for node in found["import"]
            for path in imported(source.text(node), grammar.name)
            if path
        ),
        above=above,
        summary=_docstring(root, source, grammar.name)
        or summary_of(lines[: min(_comment_rows(above), MOST_COMMENT)], LONGEST_SUMMARY_CHARS),
    )


def _root(data: bytes, grammar: Grammar) -> Node | None:
    from tree_sitter import Parser

    until = thread_time() + PARSE_S + PARSE_S_PER_MB * len(data) / 1e6
    parsing, late = True, False

    def read(offset: int, _point: object) -> bytes:
        """Ends the text when the time is up: the binding has no other way to stop a parse.

        Never after it: queries read names through this, too, and would ask for ever.
        """
        nonlocal late
        late = late or (parsing and thread_time() > until)
        return b"" if late else data[offset : offset + READ_BYTES]

    root = Parser(grammar.language).parse(read).root_node
    parsing = False
    return None if late or (root.has_error and _too_broken(root, len(data))) else root


def _too_broken(root: Node, size_bytes: int) -> bool:
    """Tell whether errors are too large a part of the file, or too long for a query over them."""
    wrong_bytes, looked_at = 0, 0
    stack = [root]
    while stack:
        node = stack.pop()
        looked_at += node.child_count
        if looked_at > MOST_LOOKED_AT:
            return True
        if node.is_error:
            # Its tokens: a brace that a macro hides makes one error of a file whose definitions are whole.
            wrong_bytes += sum(each.end_byte - each.start_byte for each in node.children if not each.child_count)
            if node.child_count > LONGEST_ERROR or wrong_bytes > MOST_ERROR * size_bytes:
                return True
        stack += [child for child in node.children if child.has_error]
    return False


def _captured(found: Iterable[Captured]) -> tuple[list[Match], dict[str, list[Node]]]:
    """Return definitions in order, outer before inner, and the nodes of other captures.

    Of two definitions on one name, that of the earlier pattern counts.
    """
    by_name: dict[int, tuple[int, Match]] = {}
    references: dict[str, list[Node]] = {"call": [], "import": [], "above": []}
    for pattern, captures in found:
        kind = next(each for each in captures if each not in ("name", "scope") and each[0] != "_")
        if kind in references:
            references[kind] += captures[kind]
            continue
        node = captures[kind][0]
        name = captures.get("name", [node])[0]
        known = by_name.get(name.start_byte)
        if known is None or pattern < known[0]:
            by_name[name.start_byte] = (pattern, (kind, node, name, captures.get("scope", [None])[0]))
    matches = [match for _, match in by_name.values()]
    matches.sort(key=lambda match: (match[1].start_byte, -match[1].end_byte, match[2].start_byte))
    return matches, references


def _definitions(matches: list[Match], source: SourceText, above: dict[int, int], language: str) -> list[Definition]:
    made: list[Definition] = []
    around: list[tuple[int, int, int]] = []  # where it ends, its index, its depth
    for at, (capture, node, name_node, scope_node) in enumerate(matches):
        start, end = node.start_byte, node.end_byte
        while around and around[-1][0] <= start:
            around.pop()
        minor, symbol = capture.startswith(MINOR), not capture.startswith(SCOPE)
        kind = capture.rpartition(".")[2]
        body = None if minor else node.child_by_field_name("body")
        signature = "" if minor else _signature(node, name_node, body, source)
        if kind == "block":
            kind, name, scope = *_block_name(signature), ""
        else:
            name = source.text(name_node) if name_node is not node else kind
            name, scope = name_and_scope(name, source.text(scope_node) if scope_node else "")
        name = name[:LONGEST_NAME_CHARS]
        outer = made[around[-1][1]] if around else None
        depth = around[-1][2] + 1 if around else 0
        if kind == "function" and ((outer and outer.kind in METHOD_HOLDERS) or scope):
            kind = "method"
        around_it = outer.qualified_name if outer and depth < DEEPEST else ""
        whole = ".".join([part for part in (around_it, scope, name) if part]) if around_it or scope else name
        row = name_node.start_point[0]
        top = node.start_point[0]
        stop, column = node.end_point
        first = top if minor else lead(above, top)
        parent = -1 if outer is None else outer.parent if outer.minor else around[-1][1]
        summary = _docstring(body, source, language)
        if not minor and not summary:
            summary = summary_of(source.lines[first : min(row, first + MOST_COMMENT)], LONGEST_SUMMARY_CHARS)
        made.append(
            Definition(
                name, kind, whole, first, row, max(stop + (column > 0), row + 1),
                parent, minor, symbol, signature or name, summary,
            )
        )  # fmt: skip
        around.append((end, at, depth))
    return made


def _signature(node: Node, name: Node, body: Node | None, source: SourceText) -> str:
    """Return the text before the body, in one line, without annotations on lines of their own."""
    row, name_row = node.start_point[0], name.start_point[0]
    if name_row > row and _ANNOTATION.match(source.data, source.starts[row]):
        row = name_row
    start = source.starts[row]
    if node.start_byte - start > LONGEST_INDENT_BYTES:
        start = node.start_byte
    stop = source.starts[name_row + 1] if body is None else body.start_byte
    head = source.data[start : min(max(stop, name.end_byte), start + 8 * LONGEST_SIGNATURE_CHARS)]
    return clipped(head.decode("utf-8", "replace"), LONGEST_SIGNATURE_CHARS).rstrip(" \t{:=;(")


def _block_name(signature: str) -> tuple[str, str]:
    """Return kind and name of a block: `resource "queue" "jobs"` is the resource queue.jobs."""
    word = _HEAD_WORD.match(signature)
    kind = word.group() if word else "block"
    return kind, ".".join(_LABELS.findall(signature)) or kind


def _docstring(body: Node | None, source: SourceText, language: str) -> str | None:
    """Return the docstring of a Python body."""
    if language != "python" or body is None:
        return None
    children = (body.named_child(at) for at in range(min(body.named_child_count, MOST_COMMENT)))
    first = next((child for child in children if child is not None and child.type != "comment"), None)
    if first is None or first.type != "expression_statement" or not first.child_count:
        return None
    text = first.child(0)
    if text is None or text.type != "string":
        return None
    inner = source.text(text).strip("rRuUbBfF").strip("\"'")
    return summary_of(inner.strip().split("\n"), LONGEST_SUMMARY_CHARS)


def _comment_rows(above: dict[int, int]) -> int:
    """Count the rows of comments at the beginning of the file."""
    ends = {first: last for last, first in above.items()}
    row = 0
    while (last := ends.get(row)) is not None:
        row = last + 1
    return row


def _standing_alone(nodes: Sequence[Node], source: SourceText) -> dict[int, int]:
    """Return rows of comments and decorators that have the row for themselves, last row to first."""
    rows: dict[int, int] = {}
    for node in nodes:
        (first, left), (last, right) = node.start_point, node.end_point
        if source.data[source.starts[first] : source.starts[first] + left].strip() not in (b"", b"template"):
            continue
        if right == 0:  # some grammars count the line's end in
            rows[last - 1] = first
        elif not source.data[source.starts[last] + right : source.starts[last + 1]].strip():
            rows[last] = first
    return rows


def _calls(nodes: Sequence[Node], source: SourceText) -> list[tuple[int, str]]:
    named = [(node.start_byte, node.start_point[0], called(source.text(node))) for node in nodes]
    return [(row, name) for _, row, name in sorted(each for each in named if each[2]) if name]
