"""A document's path enters; its lines, outline and neighbours leave, ready to be shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dowse.errors import NotFoundError
from dowse.lookup.lines import MOST_LINES
from dowse.serve.page.address import address, document_address, path_part
from dowse.serve.page.hits import KINDS, Editor
from dowse.serve.page.lines import Reader, ShownLine
from dowse.serve.plain_text import clean_line, clean_path

if TYPE_CHECKING:
    from dowse.serve.backend import Backend

Row = Mapping[str, Any]
BEFORE_LINES = 100  # shown above the lines that were asked for, when a document does not fit whole; chosen
NEIGHBOURS = 40


@dataclass(frozen=True)
class Look:
    """Which part of a document, and with which words marked."""

    query: str = ""
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True)
class Entry:
    name: str
    kind: str
    depth: int
    href: str
    line: int | None
    signature: str


@dataclass(frozen=True)
class Neighbour:
    sentence: str
    place: str
    href: str
    is_into: bool


@dataclass(frozen=True)
class DocumentView:
    title: str
    uri: str
    kind: str
    is_code: bool
    facts: tuple[str, ...]
    summary: str
    stale: bool
    editor: str
    lines: tuple[ShownLine, ...]
    here: tuple[int, int] | None
    total_lines: int
    earlier: str
    later: str
    outline: tuple[Entry, ...]
    neighbours: tuple[tuple[str, tuple[Neighbour, ...]], ...]  # by relation
    neighbour_count: int


def document_rows(backend: Backend, path: str, look: Look) -> dict[str, Any]:
    """All that the page shows, in the wire format: the document itself, what stands in it, what it is tied to."""
    start = _start(look)
    file = backend.file(path, start, None if start is None else start + MOST_LINES - 1)
    own = file[
        "document_id"
    ]  # a path would be looked for among all documents, and read as a pattern if it has brackets
    (outline,) = backend.outline(own)["documents"]
    return {"file": file, "outline": outline, "related": _related(backend, own)}


def _related(backend: Backend, document_id: str) -> Row:
    try:
        return backend.related(document_id, limit=NEIGHBOURS)
    except NotFoundError:  # a document that holds no chunk has no neighbours either
        return {"neighbours": [], "total": 0}


def _start(look: Look) -> int | None:
    return None if look.first is None or look.first < MOST_LINES else max(look.first - BEFORE_LINES, 1)


def document_view(rows: Row, look: Look, editor: Editor) -> DocumentView:
    file, outline = rows["file"], rows["outline"]
    uri, reader = file["source_uri"], Reader.of(look.query)
    first, last, total = file["start_line"], file["end_line"], file["total_lines"]
    kind = file["corpus_type"] or ""
    return DocumentView(
        title=clean_line(file["title"]) or clean_path(file["path"]),
        uri=clean_path(uri),
        kind=KINDS.get(kind, kind),
        is_code=kind.startswith("CODE"),
        facts=tuple(fact for fact in (file["language"], f"{total:,} lines") if fact),
        summary=clean_line(outline["summary"] or ""),
        stale=bool(file["stale"]),
        editor=editor.link(file["source"], file["path"], look.first),
        lines=tuple(reader.line(each["text"], each["number"]) for each in _without_blank_ends(file["lines"])),
        here=None if look.first is None else (look.first, look.last or look.first),
        total_lines=total,
        earlier=_part(uri, look, max(first - MOST_LINES, 1)) if first > 1 else "",
        later=_part(uri, look, last + 1) if last < total else "",
        outline=tuple(_entry(each, uri, look.query) for each in outline["entries"]),
        neighbours=_by_relation(rows["related"]["neighbours"]),
        neighbour_count=rows["related"]["total"],
    )


def _without_blank_ends(rows: Sequence[Row]) -> Sequence[Row]:
    """Front matter is metadata and no text: its lines are blank."""
    filled = [at for at, row in enumerate(rows) if row["text"].strip()]
    return rows[filled[0] : filled[-1] + 1] if filled else rows


def _part(uri: str, look: Look, first: int) -> str:
    pairs = [("q", look.query)] if look.query else []
    return address([*pairs, ("first", str(first + BEFORE_LINES))], f"/documents/{path_part(uri)}") + f"#L{first}"


def _entry(row: Row, uri: str, query: str) -> Entry:
    first, last = row["start_line"], row["end_line"]
    lines = (first, last or first) if first else None
    return Entry(
        name=clean_line(row["name"].lstrip("# ")),
        kind=row["kind"],
        depth=min(row["depth"], 4),
        href=document_address(uri, query, lines),
        line=first,
        signature=clean_line(row["signature"] or ""),
    )


def _by_relation(rows: Sequence[Row]) -> tuple[tuple[str, tuple[Neighbour, ...]], ...]:
    found: dict[str, list[Neighbour]] = {}
    for row in rows:
        chunk = row["chunk"]
        first = chunk["start_line"]
        lines = (first, chunk["end_line"] or first) if first else None
        found.setdefault(row["relation"].replace("_", " "), []).append(
            Neighbour(
                sentence=clean_line(row["sentence"]),
                place=clean_path(chunk["source_uri"]) + (f":{first}" if first else ""),
                href=document_address(chunk["source_uri"], "", lines),
                is_into=row["direction"] == "in",
            )
        )
    return tuple((relation, tuple(each)) for relation, each in found.items())
