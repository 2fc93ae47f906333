"""The text of a source file and its grammar go in; the definitions, calls and imports in it come out.

Everything is told in rows (lines from 0): chunks are whole lines, and rows need no translation between the bytes that
tree-sitter counts and our characters. A parse that takes too long, or finds more error than program, gives nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, count
from operator import add
from time import thread_time
from typing import TYPE_CHECKING, NamedTuple

from dowse.ingest.code.grammars import Grammar
from dowse.ingest.code.names import called, clipped, imported, name_and_scope, summary_of

if TYPE_CHECKING:
    from tree_sitter import Node

    Captured = tuple[int, dict[str, list[Node]]]  # pattern, nodes by capture
    Match = tuple[str, Node, Node, Node | None]  # kind, definition, name, scope

PARSE_S = 0.5  # of CPU for any file, and
PARSE_S_PER_MB = 0.75  # for each megabyte of it; chosen: well-formed source takes a sixth of that
READ_BYTES = 16384  # how much the parser gets at a time, and so how often the limit is looked at: every 2 ms
MOST_ERROR = 0.3  # share of the bytes; chosen: above it the tree is guesswork, below it errors are local
LONGEST_ERROR = 5_000  # tokens; a query over n of them in one flat list takes n² time: 20 ms at this length
MOST_LOOKED_AT = 100_000  # nodes, when errors are added up; chosen: some 20 ms
DEEPEST = 16  # levels that a qualified name tells; chosen, and it bounds what nested files cost
LONGEST_NAME_CHARS = 120  # chosen
LONGEST_SIGNATURE_CHARS = 200  # chosen
LONGEST_SUMMARY_CHARS = 300  # chosen: two or three sentences
MOST_COMMENT = 60  # lines that are read for a summary; chosen
LONGEST_INDENT_BYTES = 60  # chosen: what stands further left on the line is other code, as in a minified file
MINOR, SCOPE = "minor.", "scope."
METHOD_HOLDERS = frozenset(
    ("class", "interface", "struct", "union", "enum", "record", "trait", "object", "impl", "annotation")
)
_ANNOTATION = re.compile(rb"\s*(?:@\w|\[)")
_LABELS = re.compile(r"\"([^\"]*)\"")
_HEAD_WORD = re.compile(r"\w+")


class Definition(NamedTuple):
    """Something with a name. Its rows begin with the comments and decorators above it. A tuple: there are very many."""

    name: str
    kind: str
    qualified_name: str
    first_row: int
    row: int  # where the name stands
    stop_row: int  # exclusive
    parent: int  # place in the list of the major one around it; -1 at the top
    minor: bool  # makes no chunk of its own
    symbol: bool  # False: it only encloses others
    signature: str
    summary: str | None


@dataclass(frozen=True)
class Syntax:
    """What a file defines and uses, in the order of its lines."""

    definitions: list[Definition]
    nodes: list[Node]  # of the definitions
    root: Node
    calls: list[tuple[int, str]]  # row and name, sorted
    imports: list[tuple[int, str]]  # row and path, sorted
    above: dict[int, int]  # last row → first row of the comments and decorators that stand alone
    summary: str | None  # of the file as a whole

    def lead(self, row: int) -> int:
        return lead(self.above, row)


@dataclass(frozen=True)
class Source:
    """A file's text in the three shapes that are needed of it."""

    lines: list[str]
    data: bytes
    starts: list[int]  # of the lines, in bytes

    def text(self, node: Node) -> str:
        return self.data[node.start_byte : node.end_byte].decode("utf-8", "replace")


def line_starts(sizes: Iterable[int]) -> list[int]:
    """Where lines of these sizes begin, each with its end of one; and where the last one ends."""
    return list(map(add, accumulate(sizes, initial=0), count()))


def lead(above: dict[int, int], row: int) -> int:
    """The row where what stands at `row` begins, with the comments and decorators right above it."""
    while (first := above.get(row - 1)) is not None:
        row = first
    return row


def parse(text: str, lines: list[str], offsets: list[int], grammar: Grammar) -> Syntax | None:
    """None when the text is not, or not in time, understood. `offsets` are those of the lines, in characters."""
    from tree_sitter import QueryCursor

    data = text.encode()
    root = _root(data, grammar)
    if root is None:
        return None
    starts = offsets if len(data) == len(text) else line_starts([len(line.encode()) for line in lines])
    source = Source(lines, data, starts)
    defined, found = _parted(QueryCursor(grammar.query).matches(root))
    matches = _matches(defined)
    above = _standing_alone(found["above"], source)
    return Syntax(
        definitions=_definitions(matches, source, above, grammar.name),
        nodes=[node for _, node, _, _ in matches],
        root=root,
        calls=_calls(found["call"], source),
        imports=_imports(found["import"], source, grammar.name),
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
    """Whether errors are too large a part of the file, or so long that a query over them would not end."""
    wrong_bytes, looked_at = 0, 0
    stack = [root]
    while stack:
        node = stack.pop()
        looked_at += node.child_count
        if looked_at > MOST_LOOKED_AT:
            return True
        if node.is_error:
            wrong_bytes += node.end_byte - node.start_byte
            if node.child_count > LONGEST_ERROR or wrong_bytes > MOST_ERROR * size_bytes:
                return True
        stack += [child for child in node.children if child.has_error]
    return False


def _parted(found: Iterable[Captured]) -> tuple[list[Captured], dict[str, list[Node]]]:
    """The matches that are definitions, and the nodes of the others by what they were captured as."""
    definitions: list[Captured] = []
    references: dict[str, list[Node]] = {"call": [], "import": [], "above": []}
    for match in found:
        captures = match[1]
        for kind, nodes in references.items():
            if kind in captures:
                nodes += captures[kind]
                break
        else:
            definitions.append(match)
    return definitions, references


def _matches(found: Iterable[Captured]) -> list[Match]:
    """In the order of the text, outer before inner; of two matches on one name the earlier pattern's."""
    by_name: dict[int, tuple[int, Match]] = {}
    for pattern, captures in found:
        kind = next(each for each in captures if each not in ("name", "scope") and each[0] != "_")
        node = captures[kind][0]
        name = captures.get("name", [node])[0]
        known = by_name.get(name.start_byte)
        if known is None or pattern < known[0]:
            by_name[name.start_byte] = (pattern, (kind, node, name, captures.get("scope", [None])[0]))
    matches = [match for _, match in by_name.values()]
    matches.sort(key=lambda match: (match[1].start_byte, -match[1].end_byte, match[2].start_byte))
    return matches


def _definitions(matches: list[Match], source: Source, above: dict[int, int], language: str) -> list[Definition]:
    made: list[Definition] = []
    around: list[tuple[int, int, int]] = []  # where it ends, its place, how deep it stands
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
        summary = summary if minor or summary or first == row else _comment(first, row, source)
        made.append(
            Definition(
                name, kind, whole, first, row, max(stop + (column > 0), row + 1),
                parent, minor, symbol, signature or name, summary,
            )
        )  # fmt: skip
        around.append((end, at, depth))
    return made


def _comment(first: int, row: int, source: Source) -> str | None:
    return summary_of(source.lines[first : min(row, first + MOST_COMMENT)], LONGEST_SUMMARY_CHARS)


def _signature(node: Node, name: Node, body: Node | None, source: Source) -> str:
    """What stands before the body, in one line; annotations on lines of their own are left out."""
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
    """`resource "queue" "jobs"` is the resource queue.jobs; a block without labels is called like its kind."""
    word = _HEAD_WORD.match(signature)
    kind = word.group() if word else "block"
    return kind, ".".join(_LABELS.findall(signature)) or kind


def _docstring(body: Node | None, source: Source, language: str) -> str | None:
    """What the first statement of a Python body says, if it is a text."""
    if language != "python" or body is None:
        return None
    first = _first_statement(body)
    if first is None or first.type != "expression_statement" or not first.child_count:
        return None
    text = first.child(0)
    if text is None or text.type != "string":
        return None
    inner = source.text(text).strip("rRuUbBfF").strip("\"'")
    return summary_of(inner.strip().split("\n"), LONGEST_SUMMARY_CHARS)


def _first_statement(body: Node) -> Node | None:
    for at in range(min(body.named_child_count, MOST_COMMENT)):
        child = body.named_child(at)
        if child is not None and child.type != "comment":
            return child
    return None


def _comment_rows(above: dict[int, int]) -> int:
    """How many rows of comments the file begins with."""
    ends = {first: last for last, first in above.items()}
    row = 0
    while (last := ends.get(row)) is not None:
        row = last + 1
    return row


def _standing_alone(nodes: Sequence[Node], source: Source) -> dict[int, int]:
    """Rows of comments, decorators and the like that share them with nothing else."""
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


def _calls(nodes: Sequence[Node], source: Source) -> list[tuple[int, str]]:
    names: dict[bytes, str | None] = {}
    found: list[tuple[int, int, str]] = []
    data = source.data
    for node in nodes:
        start = node.start_byte
        text = data[start : node.end_byte]
        name = names.get(text, "")
        if name == "":  # not met before
            name = names[text] = called(text.decode("utf-8", "replace"))
        if name is not None:
            found.append((start, node.start_point[0], name))
    found.sort()
    return [(row, name) for _, row, name in found]


def _imports(nodes: Sequence[Node], source: Source, language: str) -> list[tuple[int, str]]:
    return sorted(
        (node.start_point[0], path) for node in nodes for path in imported(source.text(node), language) if path
    )
