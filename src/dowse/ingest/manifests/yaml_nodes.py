"""YAML nodes with their lines: the text of a file enters, trees leave.

They are built from the parser's events and without recursion. Deep nesting and aliases that multiply cannot cost
memory: both are refused at a limit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Literal, NamedTuple

import msgspec

from dowse.errors import BadRequestError

DEEPEST = 100  # chosen: a custom resource's schema nests about 40 deep
MOST_NODES = 200_000  # chosen, with aliases written out: a file of 4 MB written by people has fewer
MERGE = "<<"

Event = Any  # of PyYAML, which does not type what its events carry
# The parser counts these as ends of lines; ours is the newline alone.
_OTHER_LINE_ENDS = re.compile("[\r\x85\u2028\u2029]")


class NotYamlError(Exception):
    """Text that is no YAML, for example a template. It has to be read in another way."""


class Node(msgspec.Struct, frozen=True):
    """Value and its lines, counted from 0; `last` is its last line, not the one behind it."""

    kind: Literal["map", "list", "text"]
    first: int
    last: int
    size: int  # nodes in it, with aliases written out
    text: str = ""
    pairs: tuple[tuple[Node, Node], ...] = ()
    items: tuple[Node, ...] = ()

    def get(self, *keys: str) -> Node | None:
        """Return the value at a path of keys; merged maps count where the map itself has no such key."""
        node: Node | None = self
        for key in keys:
            node = node and next((value for name, value in node.members() if name == key), None)
        return node

    def text_at(self, *keys: str) -> str:
        """Return the scalar at a path of keys, "" when there is none."""
        found = self.get(*keys)
        return found.text.strip() if found and found.kind == "text" else ""

    def named(self) -> list[tuple[Node, Node]]:
        """Return the pairs of a map whose keys are plain text, without merged ones."""
        return [(key, value) for key, value in self.pairs if key.kind == "text"]

    def after(self, line: int, stop: int) -> int:
        """Return the line of the first key of a map behind this line, or `stop`."""
        return min((key.first for key, _ in self.pairs if key.first > line), default=stop)

    def members(self) -> Iterator[tuple[str, Node]]:
        """Return the plain text keys of a map with their values; merged ones after its own, each key once."""
        seen: set[str] = set()
        merged = [value for key, value in self.pairs if key.text == MERGE]
        maps = [self, *(each for value in merged for each in (value, *value.items) if each.kind == "map")]
        for pairs in (each.pairs for each in maps):
            for key, value in pairs:
                if key.kind == "text" and key.text != MERGE and key.text not in seen:
                    seen.add(key.text)
                    yield key.text, value


class YamlDocument(msgspec.Struct, frozen=True):
    """Document of a file. `first` is its line from 0, behind the `---` that opens it."""

    first: int
    root: Node  # an empty text where the document has none


class _Open(NamedTuple):
    """Map or list whose end is not read yet."""

    kind: Literal["map", "list"]
    first: int
    flow: bool
    anchor: str | None
    children: list[Node]


def compose(text: str) -> list[YamlDocument]:
    """Return all documents. Raise NotYamlError for other text, BadRequestError beyond a limit."""
    import yaml

    clean = _OTHER_LINE_ENDS.sub(" ", text)
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # a build without libyaml has only the slow one
    try:
        builder = _Builder()
        for event in yaml.parse(clean, Loader=loader):
            if action := builder.actions.get(type(event).__name__):
                action(event)
        return builder.documents
    except (yaml.YAMLError, UnicodeEncodeError) as err:
        raise NotYamlError(str(err)) from err


def roots_of(text: str) -> list[Node]:
    """Return the roots of all documents; none where `compose` raises, which the file's own reader reports."""
    try:
        return [document.root for document in compose(text)]
    except (NotYamlError, BadRequestError):
        return []


class _Builder:
    """Builder of nodes from events, with a stack of its own."""

    def __init__(self) -> None:
        self.documents: list[YamlDocument] = []
        self._stack: list[_Open] = []
        self._anchors: dict[str, Node] = {}
        self._first = 0
        self.actions: dict[str, Callable[[Event], None]] = {
            "ScalarEvent": self._scalar,
            "MappingStartEvent": partial(self._open, "map"),
            "SequenceStartEvent": partial(self._open, "list"),
            "MappingEndEvent": self._end,
            "SequenceEndEvent": self._end,
            "AliasEvent": self._alias,
            "DocumentStartEvent": self._start_document,
        }

    def _start_document(self, event: Event) -> None:
        explicit = getattr(event, "explicit", False)
        self._first = event.start_mark.line + 1 if explicit else (0 if not self.documents else event.start_mark.line)
        self._anchors = {}

    def _scalar(self, event: Event) -> None:
        first, end = event.start_mark.line, event.end_mark
        block = event.style in ("|", ">")
        # The mark behind a block of text lies on the line of what follows.
        last = max(first, end.line - 1 if block and end.column == 0 else end.line)
        self._add(Node("text", first, last, 1, text=event.value), event.anchor)

    def _open(self, kind: Literal["map", "list"], event: Event) -> None:
        if len(self._stack) >= DEEPEST:
            raise BadRequestError(
                f"YAML nested more than {DEEPEST} deep at line {event.start_mark.line + 1}; "
                "leave it out with a line in .dowseignore"
            )
        flow = bool(event.flow_style)
        self._stack.append(_Open(kind, event.start_mark.line, flow, event.anchor, []))

    def _end(self, event: Event) -> None:
        done = self._stack.pop()
        own = done.children
        last = event.end_mark.line if done.flow else max((each.last for each in own), default=done.first)
        size = 1 + sum(each.size for each in own)
        pairs = tuple(zip(own[::2], own[1::2], strict=True)) if done.kind == "map" else ()
        items = tuple(own) if done.kind == "list" else ()
        self._add(Node(done.kind, done.first, max(done.first, last), size, pairs=pairs, items=items), done.anchor)

    def _alias(self, event: Event) -> None:
        line, name = event.start_mark.line, event.anchor
        target = self._anchors.get(name)
        if target is None:
            raise NotYamlError(f"the alias *{name} at line {line + 1} has no anchor above it")
        # The alias has its own line; its value has others.
        node = Node(target.kind, line, line, target.size, target.text, target.pairs, target.items)
        self._add(node, None)

    def _add(self, node: Node, anchor: str | None) -> None:
        if node.size > MOST_NODES:
            raise BadRequestError(
                f"the aliases of this YAML file multiply to more than {MOST_NODES:,} values at line {node.first + 1}; "
                "leave it out with a line in .dowseignore"
            )
        if anchor:
            self._anchors[anchor] = node
        if self._stack:
            self._stack[-1].children.append(node)
        else:
            self.documents.append(YamlDocument(self._first, node))
