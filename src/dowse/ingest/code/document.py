"""A parsed file and its stretches go in; a Document comes out: outline, classes, chunks, and calls between them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dowse.identity import bytes_hash, chunk_id, text_hash
from dowse.ingest.chunking.document import Heading, shared_by_chunks, trimmed, with_fields
from dowse.ingest.chunking.pack import Budget
from dowse.ingest.code.calls import call_edges
from dowse.ingest.code.chunk_by_symbol import TOP, Stretch
from dowse.ingest.code.names import clipped
from dowse.ingest.code.parse import Definition, Syntax
from dowse.ingest.sources.kinds import Kind
from dowse.ports import SourceFile
from dowse.types import Chunk, ChunkId, Defined, Document, Level

PARENT_TARGETS = 4  # a parent is up to 1,024 tokens, a chunk aims at 256: design section 3
DEEPEST_SECTION = 6  # levels of opened definitions that become sections; chosen: queries follow eight parents
MOST_CALLS = 64  # of one chunk; chosen: what calls more is a table
MOST_DEFINED = 200  # by one chunk; chosen, likewise
LONGEST_AROUND_CHARS = 120  # of each signature in the prefix; chosen: name and first parameters
MOST_AROUND = 3  # signatures in the prefix, the innermost; chosen: the embedder reads 256 tokens in all
SEPARATOR = " > "
INDENT = "  "


@dataclass(frozen=True)
class CodeFile:
    """A file on its way to a Document."""

    file: SourceFile
    kind: Kind
    heading: Heading
    text: str
    offsets: list[int]  # of the rows, in characters, and of the end
    syntax: Syntax
    budget: Budget


class _Part(NamedTuple):
    """A stretch with what is known of it."""

    body: str
    first: int  # row
    last: int  # row
    holder: int
    main: int  # the definition that names it; TOP
    defines: tuple[int, ...]


def document_of(code: CodeFile, stretches: Iterable[Stretch]) -> Document:
    """Parents come first, then the chunks in the order of their lines."""
    parts = list(_parts(code, stretches))
    shared = shared_by_chunks(code.file, code.kind, code.heading)
    maker = _Maker(code, shared)
    sections = _sections(code.syntax.definitions, parts)
    parents = maker.parents(sections, parts)
    above = _above(code.syntax.definitions, {at: parent.id for at, parent in parents.items()})
    chunks = [maker.of_part(part, above[part.holder]) for part in parts]
    return Document(
        id=shared.document_id,
        source=code.file.source,
        path=code.file.path,
        title=code.heading.title,
        content_hash=bytes_hash(code.file.data),
        chunks=(*parents.values(), *chunks),
        edges=call_edges(chunks),
        size_bytes=len(code.file.data),
        modified_ns=code.file.modified_ns,
        meta=code.heading.meta,
    )


def _parts(code: CodeFile, stretches: Iterable[Stretch]) -> Iterator[_Part]:
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
        if main == TOP and defines and not _imports_between(code.syntax, first, last):
            main = defines[0]
        yield _Part(text[start:stop], first, last, holder, main, defines)


def _main(definitions: Sequence[Definition], defines: Iterable[int], rows: tuple[int, int], owner: int) -> int:
    """The definition that gives a part its name: one that fills most of it, else the first, else its owner."""
    major = [at for at in defines if not definitions[at].minor]
    if not major:
        return owner
    half = (rows[1] - rows[0] + 1) / 2
    filling = (at for at in major if definitions[at].stop_row - definitions[at].first_row > half)
    return next(filling, major[0])


def _imports_between(syntax: Syntax, first: int, last: int) -> bool:
    """The head of a file is not named after the first constant below its imports."""
    at = bisect_left(syntax.imports, (first,))
    return at < len(syntax.imports) and syntax.imports[at][0] <= last


def _sections(definitions: Sequence[Definition], parts: Sequence[_Part]) -> list[int]:
    """Opened definitions that several parts lie in, in order; parts that lie too deep count for what is above."""
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
    """The definition and those around it, innermost first; no further than `most`, which bounds what depth costs."""
    chain: list[int] = []
    while at != TOP and len(chain) < most:
        chain.append(at)
        at = definitions[at].parent
    return chain


def _above(definitions: Sequence[Definition], ids: dict[int, ChunkId]) -> dict[int, ChunkId | None]:
    """By definition, the id of the nearest parent: its own section, one around it, or the file's outline."""
    above = {TOP: ids.get(TOP)}
    for at, each in enumerate(definitions):
        above[at] = ids.get(at, above[each.parent])
    return above


class _Lines:
    """Names by row, sorted: what is called or imported where."""

    def __init__(self, named: Sequence[tuple[int, str]]) -> None:
        self._rows = [row for row, _ in named]
        self._names = [name for _, name in named]

    def between(self, first: int, last: int) -> tuple[str, ...]:
        """Each name once; bounded."""
        start = bisect_left(self._rows, first)
        stop = bisect_right(self._rows, last, start)
        return tuple(dict.fromkeys(self._names[start:stop]))[:MOST_CALLS] if start < stop else ()


class _Maker:
    """Makes the chunks of one file."""

    def __init__(self, code: CodeFile, shared: Chunk) -> None:
        self.code = code
        self.shared = shared
        self.definitions = code.syntax.definitions
        self.occurrences: dict[tuple[Level, str], int] = {}
        self.prefixes: dict[int, str] = {}  # by the innermost definition around
        self.calls = _Lines(code.syntax.calls)
        self.imports = _Lines(code.syntax.imports)

    def chunk(self, level: Level, text: str, fields: dict[str, Any]) -> Chunk:
        """`fields` are the chunk's from here on."""
        key = (level, text)
        occurrence = self.occurrences.get(key, 0)
        self.occurrences[key] = occurrence + 1
        prefix = fields.get("context_prefix", "")
        fields["id"] = chunk_id(self.shared.source_uri, level, text, occurrence)
        fields["level"] = level
        fields["text"] = text
        fields["content_hash"] = text_hash(f"{prefix}\n{text}" if prefix else text)
        return with_fields(self.shared, fields)

    def of_part(self, part: _Part, parent_id: ChunkId | None) -> Chunk:
        body, first, last, _, at, defines = part
        main = self.definitions[at] if at != TOP else None
        fields = _symbol(main)
        fields["parent_id"] = parent_id
        fields["start_line"] = first + 1
        fields["end_line"] = last + 1
        fields["context_prefix"] = self._prefix(at, inside=main is None or not first <= main.row <= last)
        fields["calls_out"] = self.calls.between(first, last)
        fields["imports"] = self.imports.between(first, last)
        fields["defines"] = tuple([self._defined(each) for each in defines[:MOST_DEFINED]])
        return self.chunk("chunk", body, fields)

    def _prefix(self, main: int, *, inside: bool) -> str:
        """The signatures around a definition; its own, too, above a later part of it."""
        innermost = main if inside or main == TOP else self.definitions[main].parent
        known = self.prefixes.get(innermost)
        if known is None:
            chain = _chain(innermost, self.definitions, MOST_AROUND)
            around = (clipped(self.definitions[at].signature, LONGEST_AROUND_CHARS) for at in reversed(chain))
            known = self.prefixes[innermost] = SEPARATOR.join(around)
        return known

    def _defined(self, at: int) -> Defined:
        each = self.definitions[at]
        defined = object.__new__(Defined)
        fields = {
            "name": each.name,
            "kind": each.kind,
            "qualified_name": each.qualified_name,
            "start_line": each.row + 1,
            "end_line": each.stop_row,
        }
        object.__setattr__(defined, "__dict__", fields)  # half the time of what a frozen class does
        return defined

    # --- parents ---------------------------------------------------------------------------------------

    def parents(self, sections: Sequence[int], parts: Sequence[_Part]) -> dict[int, Chunk]:
        """The file's outline by TOP, and each section by its definition; none for a file that defines nothing."""
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
            "imports": self.imports.between(0, len(self.code.offsets)),
        }
        return self.chunk("document", self._fitted([*head, *self._lines(range(len(self.definitions)), TOP)]), fields)

    def _section(self, at: int, above: ChunkId | None) -> Chunk:
        """All of a definition where a parent may be that long, else what it declares."""
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
        return self.chunk("section", text, fields)

    def _lines(self, places: range, top: int) -> Iterator[str]:
        """A line for each definition that is not minor, indented by how deep it stands below `top`."""
        depths = {top: 0 if top == TOP else 1}
        for at in places:
            each = self.definitions[at]
            if each.parent not in depths:
                return
            if not each.minor:
                depths[at] = depths[each.parent] + 1
                yield INDENT * min(depths[each.parent], DEEPEST_SECTION) + each.signature

    def _fitted(self, lines: Iterable[str]) -> str:
        """As many lines as a parent may have."""
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
    """The fields that tell of it, in a dict of their own."""
    if main is None:
        return {}
    return {
        "symbol_name": main.name,
        "symbol_kind": main.kind,
        "qualified_name": main.qualified_name,
        "signature": None if main.minor else main.signature,
        "summary": main.summary,
    }
