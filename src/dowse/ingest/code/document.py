"""Documents of code: a parsed file and its spans enter; outline, classes, chunks and calls leave."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from dowse.ingest.chunking.document import SEPARATOR, DocumentBuilder, Heading, trimmed
from dowse.ingest.chunking.pack import Budget
from dowse.ingest.code.chunk_by_symbol import TOP, CodeSpan
from dowse.ingest.code.names import clipped
from dowse.ingest.code.parse import Definition, Syntax
from dowse.ingest.sources.kinds import Kind
from dowse.ports import SourceFile
from dowse.types import Chunk, ChunkId, Defined, Document, Edge

OWN_WEIGHT = 0.9  # a bare name, or one of self; chosen
OTHER_WEIGHT = 0.6  # a name of some object, which only happens to be unique in the file; chosen
SHORTEST_OTHER = 5  # characters; chosen: x.get() and x.run() may be anybody's
CALLABLE = frozenset(("function", "method", "constructor", "macro", "class", "struct", "record", "object"))


def call_edges(chunks: Sequence[Chunk]) -> tuple[Edge, ...]:
    """Return calls by name, where one definition in the file matches; the caller's own class counts first."""
    by_name: dict[str, list[tuple[Defined, ChunkId]]] = {}
    for chunk in chunks:
        for each in chunk.defines:
            if each.kind in CALLABLE:
                by_name.setdefault(each.name, []).append((each, chunk.id))
    if not by_name:
        return ()
    edges: dict[tuple[ChunkId, ChunkId], Edge] = {}
    for chunk in chunks:
        for spelled in chunk.calls_out:
            receiver, _, name = spelled.rpartition(".")
            target = _meant(by_name.get(name, ()), receiver, chunk)
            if target is None or target == chunk.id:
                continue
            weight = OTHER_WEIGHT if receiver else OWN_WEIGHT
            known = edges.get((chunk.id, target))
            if known is None or known.weight < weight:
                edges[chunk.id, target] = Edge(chunk.id, target, "calls", weight, f"as {spelled}")
    return tuple(edges.values())


def _meant(named: Sequence[tuple[Defined, ChunkId]], receiver: str, caller: Chunk) -> ChunkId | None:
    if not named:
        return None
    if receiver:
        exact = {target for each, target in named if f".{each.qualified_name}".endswith(f".{receiver}.{each.name}")}
        if len(exact) == 1:
            return exact.pop()
        if len(named[0][0].name) < SHORTEST_OTHER:
            return None
    else:
        own = caller.qualified_name or ""
        around = {each for each in (own, own.rpartition(".")[0]) if each}  # the head of a class is named after it
        siblings = {target for each, target in named if each.qualified_name.rpartition(".")[0] in around}
        if len(siblings) == 1:
            return siblings.pop()
    targets = {target for _, target in named}
    return targets.pop() if len(targets) == 1 else None


PARENT_TARGETS = 4  # a parent has up to 1,024 tokens, a chunk aims at 256
DEEPEST_SECTION = 6  # levels of opened definitions that become sections; chosen: queries follow eight parents
MOST_CALLS = 64  # of one chunk; chosen: what calls more is a table
MOST_DEFINED = 200  # by one chunk; chosen, likewise
LONGEST_AROUND_CHARS = 120  # of each signature in the prefix; chosen: name and first parameters
MOST_AROUND = 3  # signatures in the prefix, the innermost; chosen: the embedder reads 256 tokens in all
INDENT = "  "


class CodeFile(msgspec.Struct, frozen=True):
    """Source file with its syntax."""

    file: SourceFile
    kind: Kind
    heading: Heading
    text: str
    offsets: list[int]  # of the rows, in characters, and of the end
    syntax: Syntax
    budget: Budget


class _Part(NamedTuple):
    """Span of code with its rows and definitions."""

    body: str
    first: int  # row
    last: int  # row
    holder: int
    main: int  # the definition that names it; TOP
    defines: tuple[int, ...]


def document_of(code: CodeFile, stretches: Iterable[CodeSpan]) -> Document:
    """Return the document: parents first, then the chunks in the order of their lines."""
    parts = list(_parts(code, stretches))
    builder = DocumentBuilder(code.file, code.kind, code.heading)
    maker = _ChunkMaker(code, builder)
    sections = _sections(code.syntax.definitions, parts)
    parents = maker.parents(sections, parts)
    # By definition the id of its nearest parent: a section or the file's outline.
    above = {TOP: parents[TOP].id if parents else None}
    for at, each in enumerate(code.syntax.definitions):
        above[at] = parents[at].id if at in parents else above[each.parent]
    chunks = [maker.of_part(part, above[part.holder]) for part in parts]
    return builder.document((*parents.values(), *chunks), call_edges(chunks))


def _parts(code: CodeFile, stretches: Iterable[CodeSpan]) -> Iterator[_Part]:
    text, offsets, definitions = code.text, code.offsets, code.syntax.definitions
    by_row = sorted([(each.row, at) for at, each in enumerate(definitions) if each.symbol])
    rows, places = [row for row, _ in by_row], [at for _, at in by_row]
    seen = first = 0
    for span, owner, holder in stretches:
        start, stop = trimmed(text, span)
        if start == stop:
            continue
        # From the last one on: stretches come in order, and most are short.
        first = bisect_right(offsets, start, first) - 1
        last = bisect_right(offsets, stop - 1, first) - 1
        # Of two parts of one long line the first has its names.
        until = bisect_right(rows, last, seen)
        defines = tuple(places[seen:until])
        seen = until
        main = _main(definitions, defines, (first, last), owner) if defines else owner
        # A head with imports is not named after the first constant below them.
        if main == TOP and defines and not _between(code.syntax.imports, first, last):
            main = defines[0]
        yield _Part(text[start:stop], first, last, holder, main, defines)


def _main(definitions: Sequence[Definition], defines: Iterable[int], rows: tuple[int, int], owner: int) -> int:
    """Return the definition that names a part: one that fills most of it, else the first, else its owner."""
    major = [at for at in defines if not definitions[at].minor]
    if not major:
        return owner
    half = (rows[1] - rows[0] + 1) / 2
    filling = (at for at in major if definitions[at].stop_row - definitions[at].first_row > half)
    return next(filling, major[0])


def _sections(definitions: Sequence[Definition], parts: Sequence[_Part]) -> list[int]:
    """Return opened definitions with several parts; parts that are too deep count for one above."""
    depths: list[int] = []
    shallow: list[int] = []  # itself, or the nearest around it that is not too deep
    for at, each in enumerate(definitions):
        depths.append(0 if each.parent == TOP else depths[each.parent] + 1)
        shallow.append(at if depths[at] < DEEPEST_SECTION else shallow[each.parent])
    inside: Counter[int] = Counter()
    for part in parts:
        if part.holder != TOP:
            inside.update(_chain(shallow[part.holder], definitions, DEEPEST_SECTION))
    return sorted(at for at, count in inside.items() if count > 1)


def _chain(at: int, definitions: Sequence[Definition], most: int) -> list[int]:
    """Return the definition and those around it, innermost first; `most` bounds the cost of deep nesting."""
    chain: list[int] = []
    while at != TOP and len(chain) < most:
        chain.append(at)
        at = definitions[at].parent
    return chain


def _between(named: Sequence[tuple[int, str]], first: int, last: int) -> tuple[str, ...]:
    """Return calls or imports of these rows, each name once, at most `MOST_CALLS`."""
    found = named[bisect_left(named, (first, "")) : bisect_left(named, (last + 1, ""))]
    return tuple(dict.fromkeys(name for _, name in found))[:MOST_CALLS]


class _ChunkMaker:
    """Maker of the chunks of one file."""

    def __init__(self, code: CodeFile, builder: DocumentBuilder) -> None:
        self.code = code
        self.chunk = builder.chunk
        self.definitions = code.syntax.definitions
        self.prefixes: dict[int, str] = {}  # by the innermost definition around

    def of_part(self, part: _Part, parent_id: ChunkId | None) -> Chunk:
        body, first, last, _, at, defines = part
        main = self.definitions[at] if at != TOP else None
        fields = _symbol(main)
        fields["parent_id"] = parent_id
        fields["start_line"] = first + 1
        fields["end_line"] = last + 1
        fields["context_prefix"] = self._prefix(at, inside=main is None or not first <= main.row <= last)
        fields["calls_out"] = _between(self.code.syntax.calls, first, last)
        fields["imports"] = _between(self.code.syntax.imports, first, last)
        named = (self.definitions[each] for each in defines[:MOST_DEFINED])
        fields["defines"] = tuple(
            Defined(each.name, each.kind, each.qualified_name, each.row + 1, each.stop_row) for each in named
        )
        return self.chunk(body, fields)

    def _prefix(self, main: int, *, inside: bool) -> str:
        """Return the signatures around a definition, and its own above a later part of it."""
        innermost = main if inside or main == TOP else self.definitions[main].parent
        known = self.prefixes.get(innermost)
        if known is None:
            chain = _chain(innermost, self.definitions, MOST_AROUND)
            around = (clipped(self.definitions[at].signature, LONGEST_AROUND_CHARS) for at in reversed(chain))
            known = self.prefixes[innermost] = SEPARATOR.join(around)
        return known

    def parents(self, sections: Sequence[int], parts: Sequence[_Part]) -> dict[int, Chunk]:
        """Return the outline by TOP and each section by its definition; none for a file without symbols."""
        if not any(each.symbol for each in self.definitions) or not parts:
            return {}
        made = {TOP: self._outline(parts)}
        for at in sections:
            around = _chain(self.definitions[at].parent, self.definitions, DEEPEST_SECTION)
            above = next((each for each in around if each in made), TOP)
            made[at] = self._section(at, made[above].id)
        return made

    def _outline(self, parts: Sequence[_Part]) -> Chunk:
        title, summary = self.code.heading.title, self.code.syntax.summary
        head = [title, "", *([summary, ""] if summary else [])]
        fields = {
            "summary": summary,
            "start_line": 1,
            "end_line": parts[-1].last + 1,
            "imports": _between(self.code.syntax.imports, 0, len(self.code.offsets)),
        }
        lines = self._lines(range(len(self.definitions)), TOP)
        return self.chunk(self._fitted([*head, *lines]), fields, "document")

    def _section(self, at: int, above: ChunkId | None) -> Chunk:
        """Return a definition as a whole where it fits a parent, else the signatures in it."""
        each = self.definitions[at]
        start, stop = trimmed(self.code.text, (self.code.offsets[each.first_row], self.code.offsets[each.stop_row]))
        text = self.code.text[start:stop]
        if len(text) > self.code.budget.target_chars * PARENT_TARGETS:
            inside = range(at + 1, len(self.definitions))
            text = self._fitted([each.signature, *([each.summary] if each.summary else []), *self._lines(inside, at)])
        fields = _symbol(each)
        fields |= {
            "parent_id": above,
            "start_line": each.first_row + 1,
            "end_line": each.stop_row,
            "context_prefix": self._prefix(at, inside=False),
        }
        return self.chunk(text, fields, "section")

    def _lines(self, places: range, top: int) -> Iterator[str]:
        """Return a line for each definition that is not minor, indented by its depth below `top`."""
        depths = {top: 0 if top == TOP else 1}
        for at in places:
            each = self.definitions[at]
            if each.parent not in depths:
                return
            if not each.minor:
                depths[at] = depths[each.parent] + 1
                yield INDENT * min(depths[each.parent], DEEPEST_SECTION) + each.signature

    def _fitted(self, lines: Iterable[str]) -> str:
        """Return as many lines as fit a parent."""
        room = self.code.budget.target_chars * PARENT_TARGETS
        kept: list[str] = []
        for line in lines:
            room -= len(line) + 1
            if room < 0:
                kept.append("…")
                break
            kept.append(line)
        return "\n".join(kept).rstrip()


def _symbol(main: Definition | None) -> dict[str, Any]:
    """Return the chunk fields of a definition, in a new dict."""
    if main is None:
        return {}
    return {
        "symbol_name": main.name,
        "symbol_kind": main.kind,
        "qualified_name": main.qualified_name,
        "signature": None if main.minor else main.signature,
        "summary": main.summary,
    }
