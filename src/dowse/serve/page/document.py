"""Document page: lines, outline and neighbours of one document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from dowse.errors import NotFoundError
from dowse.lookup.lines import MOST_LINES
from dowse.serve.backend import Backend
from dowse.serve.page.address import address, chunk_address, path_part
from dowse.serve.page.hits import KINDS, EditorLinks, Highlighter, place_of
from dowse.serve.page.why import Row, Values
from dowse.serve.plain_text import clean_line, clean_path

BEFORE_LINES = 100  # shown above the requested lines of a long document; chosen
NEIGHBOURS = 40


class DocumentQuery(Struct, frozen=True):
    """Parameters of a document page: requested lines, and the query to highlight."""

    path: str
    q: str = ""
    first: Annotated[int, Meta(ge=1, le=10_000_000)] | None = None
    last: Annotated[int, Meta(ge=1, le=10_000_000)] | None = None


def document_rows(backend: Backend, wanted: DocumentQuery) -> Values:
    """Read the lines, outline and neighbours of a document in the wire format."""
    short = wanted.first is None or wanted.first < MOST_LINES
    start = None if short else max((wanted.first or 1) - BEFORE_LINES, 1)
    file = backend.file(wanted.path, start, None if start is None else start + MOST_LINES - 1)
    own = file["document_id"]  # a path could match several documents, and with brackets it is a pattern
    (outline,) = backend.outline(own)["documents"]
    try:
        related = backend.related(own, limit=NEIGHBOURS)
    except NotFoundError:  # a document without chunks has no neighbours
        related = {"neighbours": [], "total": 0}
    return {"file": file, "outline": outline, "related": related}


def document_view(rows: Row, wanted: DocumentQuery, editor: EditorLinks) -> Values:
    file, outline = rows["file"], rows["outline"]
    uri, highlighter = file["source_uri"], Highlighter.of(wanted.q)
    first, last, total = file["start_line"], file["end_line"], file["total_lines"]
    kind = file["corpus_type"] or ""
    return dict(
        title=clean_line(file["title"]) or clean_path(file["path"]),
        uri=clean_path(uri),
        kind=KINDS.get(kind, kind),
        is_code=kind.startswith("CODE"),
        facts=tuple(fact for fact in (file["language"], f"{total:,} lines") if fact),
        summary=clean_line(outline["summary"] or ""),
        stale=bool(file["stale"]),
        editor=editor.link(file["source"], file["path"], wanted.first),
        lines=tuple(highlighter.line(each["text"], each["number"]) for each in _without_blank_ends(file["lines"])),
        here=None if wanted.first is None else (wanted.first, wanted.last or wanted.first),
        total_lines=total,
        earlier=_part(uri, wanted, max(first - MOST_LINES, 1)) if first > 1 else "",
        later=_part(uri, wanted, last + 1) if last < total else "",
        outline=tuple(_entry(each, uri, wanted.q) for each in outline["entries"]),
        neighbours=_by_relation(rows["related"]["neighbours"]),
        neighbour_count=rows["related"]["total"],
    )


def _without_blank_ends(rows: Sequence[Row]) -> Sequence[Row]:
    """Drop blank lines at the ends: front matter is metadata, and its lines are blank."""
    filled = [at for at, row in enumerate(rows) if row["text"].strip()]
    return rows[filled[0] : filled[-1] + 1] if filled else rows


def _part(uri: str, wanted: DocumentQuery, first: int) -> str:
    pairs = [("q", wanted.q)] if wanted.q else []
    return address([*pairs, ("first", str(first + BEFORE_LINES))], f"/documents/{path_part(uri)}") + f"#L{first}"


def _entry(row: Row, uri: str, query: str) -> Values:
    return dict(
        name=clean_line(row["name"].lstrip("# ")),
        kind=row["kind"],
        depth=min(row["depth"], 4),
        href=chunk_address({**row, "source_uri": uri}, query),
        signature=clean_line(row["signature"] or ""),
    )


def _by_relation(rows: Sequence[Row]) -> list[tuple[str, list[Values]]]:
    found: dict[str, list[Values]] = {}
    for row in rows:
        link = {
            "sentence": clean_line(row["sentence"]),
            "place": place_of(row["chunk"]),
            "href": chunk_address(row["chunk"]),
        }
        found.setdefault(row["relation"].replace("_", " "), []).append(link)
    return list(found.items())
