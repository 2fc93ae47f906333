"""The text of a YAML file goes in; its documents come out as trees of nodes that know their lines.

Built from the parser's events and without recursion, so that neither deep nesting nor aliases that multiply can cost
memory: both are refused at a limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import msgspec

from dowse.errors import BadRequestError

DEEPEST = 100  # chosen: a custom resource's schema nests about 40 deep
MOST_NODES = 200_000  # chosen, with aliases written out: a file of 4 MB has fewer that are meant to be read
MERGE = "<<"

Event = Any  # of PyYAML, which does not type what its events carry
# The parser counts these as ends of lines; ours is the newline alone.
_OTHER_LINE_ENDS = re.compile("[\r\x85\u2028\u2029]")


class NotYamlError(Exception):
    """The text is no YAML, or not yet: a template, for example. It is to be read in another way."""


class Node(msgspec.Struct, frozen=True):
    """A value and the lines it stands on, counted from 0; `last` is its last line, not the one behind it."""

    kind: Literal["map", "list", "text"]
    first: int
    last: int
    size: int  # nodes in it, with aliases written out
    text: str = ""
    pairs: tuple[tuple[Node, Node], ...] = ()
    items: tuple[Node, ...] = ()

    def get(self, *keys: str) -> Node | None:
        """The value down a path of keys; merged maps count where the map itself has no such key."""
        node: Node | None = self
        for key in keys:
            node = node and _value(node, key)
        return node

    def text_at(self, *keys: str) -> str:
        """A scalar down a path of keys, "" when there is none."""
        found = self.get(*keys)
        return found.text.strip() if found and found.kind == "text" else ""

    def members(self) -> Iterator[tuple[str, Node]]:
        """The keys of a map that are plain text, with their values; merged ones after its own, each key once."""
        seen: set[str] = set()
        for pairs in (self.pairs, *(each.pairs for each in _merged(self))):
            for key, value in pairs:
                if key.kind == "text" and key.text != MERGE and key.text not in seen:
                    seen.add(key.text)
                    yield key.text, value


def _value(node: Node, key: str) -> Node | None:
    for name, value in node.pairs:
        if name.text == key:
            return value
    return next((value for name, value in node.members() if name == key), None) if _merges(node) else None


def _merges(node: Node) -> bool:
    return any(key.text == MERGE for key, _ in node.pairs)


def _merged(node: Node) -> Iterator[Node]:
    for key, value in node.pairs:
        if key.text == MERGE:
            yield from [value] if value.kind == "map" else [each for each in value.items if each.kind == "map"]


@dataclass(frozen=True)
class YamlDocument:
    """One of the documents of a file. `first` is its line 0-based, behind the `---` that opens it."""

    first: int
    root: Node | None


class _Open(NamedTuple):
    """A map or list that is being read."""

    kind: Literal["map", "list"]
    first: int
    flow: bool
    anchor: str | None
    children: list[Node]


def compose(text: str) -> list[YamlDocument]:
    """All documents. Raises NotYamlError for what is no YAML, BadRequestError for what must not be read."""
    import yaml

    clean = _OTHER_LINE_ENDS.sub(" ", text)
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # a build without libyaml has the slow one alone
    try:
        return _composed(yaml.parse(clean, Loader=loader))
    except (yaml.YAMLError, UnicodeEncodeError) as err:
        raise NotYamlError(str(err)) from err


def _composed(events: Iterator[Event]) -> list[YamlDocument]:
    builder = _Builder()
    for event in events:
        builder.take(event)
    return builder.documents


class _Builder:
    """Turns events into nodes, with a stack of its own."""

    def __init__(self) -> None:
        self.documents: list[YamlDocument] = []
        self._stack: list[_Open] = []
        self._anchors: dict[str, Node] = {}
        self._first = 0
        self._root: Node | None = None
        self._actions = {
            "ScalarEvent": self._scalar,
            "MappingStartEvent": self._start_map,
            "SequenceStartEvent": self._start_list,
            "MappingEndEvent": self._end,
            "SequenceEndEvent": self._end,
            "AliasEvent": self._alias,
            "DocumentStartEvent": self._start_document,
            "DocumentEndEvent": self._end_document,
        }

    def take(self, event: Event) -> None:
        action = self._actions.get(type(event).__name__)
        if action:
            action(event)

    def _start_document(self, event: Event) -> None:
        explicit = getattr(event, "explicit", False)
        self._first = event.start_mark.line + 1 if explicit else (0 if not self.documents else event.start_mark.line)
        self._root = None
        self._anchors = {}

    def _end_document(self, event: Event) -> None:
        self.documents.append(YamlDocument(self._first, self._root))

    def _scalar(self, event: Event) -> None:
        first, end = event.start_mark.line, event.end_mark
        block = event.style in ("|", ">")
        # The mark behind a block of text lies on the line of what follows.
        last = max(first, end.line - 1 if block and end.column == 0 else end.line)
        self._add(Node("text", first, last, 1, text=event.value), event.anchor)

    def _start_map(self, event: Event) -> None:
        self._open("map", event)

    def _start_list(self, event: Event) -> None:
        self._open("list", event)

    def _open(self, kind: Literal["map", "list"], event: Event) -> None:
        if len(self._stack) >= DEEPEST:
            raise BadRequestError(
                f"YAML nested more than {DEEPEST} deep at line {event.start_mark.line + 1}; "
                "it is not read; leave it out with a line in .dowseignore"
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
        # The alias stands on its own line; what it means stands elsewhere.
        node = Node(target.kind, line, line, target.size, target.text, target.pairs, target.items)
        self._add(node, None)

    def _add(self, node: Node, anchor: str | None) -> None:
        if node.size > MOST_NODES:
            raise BadRequestError(
                f"the aliases of this YAML file multiply to more than {MOST_NODES:,} values at line {node.first + 1}; "
                "it is not read; leave it out with a line in .dowseignore"
            )
        if anchor:
            self._anchors[anchor] = node
        if self._stack:
            self._stack[-1].children.append(node)
        else:
            self._root = node
