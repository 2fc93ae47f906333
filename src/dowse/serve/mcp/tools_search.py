"""The MCP tools for finding and reading: a backend and arguments enter, an answer that fits its budget leaves."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from dowse.errors import BadRequestError, NotFoundError
from dowse.serve.backend import Backend
from dowse.serve.mcp import answers
from dowse.serve.mcp import arguments as takes
from dowse.serve.mcp.schema import plain
from dowse.serve.mcp.text import item_text, shortened, told, told_line, told_path
from dowse.serve.mcp.token_paging import Paging
from dowse.serve.plain_text import Line, Marker
from dowse.serve.wire.result import Object, encode
from dowse.tokenizer import Tokenizer
from dowse.types import Chunk, QueryRequest

SNIPPET_LINES = 2  # on each side of a chunk's best line; lab/ecosystem.md section 3 wants at most 6 in all
WEAK = "the best hits are weak; they may not answer the question"
MOVED = "the index changed since the page before: hits may repeat or be missing"
_ID = re.compile(r"[0-9a-f]{16}")
_LINES = re.compile(r"(?P<path>.+?):(?P<first>\d+)(?:-(?P<last>\d+))?")
_HEADING = re.compile(r"(?:(?<=^)|(?<=> ))#+ ")
_SCORE_DIGITS = 3


def search(backend: Backend, asked: takes.Search) -> answers.SearchAnswer:
    """Every page is cut from one and the same ranking, so no hit comes twice."""
    paging = paging_of("search", asked, limit=asked.limit)
    result = backend.query(_request(backend, asked))
    marker, naming = Marker(asked.query, Tokenizer()), Naming.of(backend)

    def hit(row: Object) -> answers.SearchHit:
        found = _hit(row, marker, paging.room_tokens, whole=asked.detail == "full")
        path, source = naming.place(row)
        return replace(found, path=path, source=source)

    page = paging.page(result["chunks"], lambda row: str(row["id"]), hit, faces)
    notes = [f"{each['stage']}: {told_line(each['reason'])}" for each in result["degraded"]]
    notes += [WEAK] if result["nothing_found"] and page.items else []
    notes += [MOVED] if page.moved else []
    return answers.SearchAnswer(
        hits=page.items,
        nothing_found=result["nothing_found"],
        answer=told_line(result["metadata_answer"]),
        notes=tuple(notes),
        truncated=page.truncated,
        cursor=page.cursor,
    )


def read(backend: Backend, asked: takes.Read) -> answers.ReadAnswer:
    """Lines as they were indexed: never from the disk, so what was masked stays masked."""
    if _ID.fullmatch(asked.target):
        return _read_chunk(backend, asked)
    path, first, last = _range(backend, asked)
    paging = paging_of("read", asked)
    at = paging.start[0]
    found = backend.file(path, first + at, last or None)
    texts = {row["number"]: row["text"] for row in found["lines"]}
    stop = min(last or found["total_lines"], found["total_lines"])

    def line(number: int) -> answers.Line:
        return answers.Line(shortened(told(texts[number]).replace("\n", " "), paging.room_tokens), number)

    page = paging.page(range(first, stop + 1), str, line, _line_faces)
    return answers.ReadAnswer(
        path=told_path(found["path"]),
        text="\n".join(each.text for each in page.items),
        start_line=first + at,
        end_line=first + at + len(page.items) - 1,
        source=Naming.of(backend).source(found["source"]),
        stale=bool(found["stale"]),
        notes=(f"the file has {found['total_lines']:,} lines",) if page.truncated else (),
        truncated=page.truncated,
        cursor=page.cursor,
    )


# --- shared by all tools ----------------------------------------------------------------------------


def paging_of(tool: str, asked: Any, limit: int | None = None) -> Paging:
    """The call is all that was asked, but for what only says how much of the answer to show."""
    shown = ("cursor", "budget_tokens", "limit")
    call = repr([tool, *(getattr(asked, each.name) for each in fields(asked) if each.name not in shown)])
    return Paging(call, asked.cursor, limit, asked.budget_tokens)


def faces(item: object) -> tuple[str, str]:
    """An item as structured content and as text."""
    return encode(plain(item)).decode(), item_text(item)


def inside(backend: Backend, path: str) -> str:
    """A path as the index names it. Where places of this machine may be told, they may be asked for, too."""
    path = path.strip()
    if backend.access.absolute_paths and os.path.isabs(path):
        for source in backend.engine.sources():
            if path == source.root or path.startswith(source.root.rstrip("/") + "/"):
                return f"{source.name}/{os.path.relpath(path, source.root)}".removesuffix("/.")
    if path.startswith(("/", "~")) or "\0" in path or ".." in path.split("/"):
        raise BadRequestError("a path is given as answers have it, inside a source; no / or ~ before it, no .. in it")
    return path.removeprefix("./")


@dataclass(frozen=True)
class Naming:
    """How places are named: the source is said only where there are several, and a path alone would not tell."""

    several: bool

    @classmethod
    def of(cls, backend: Backend) -> Naming:
        return cls(len(backend.engine.sources()) > 1)

    def source(self, name: str) -> str:
        return told_path(name) if self.several else ""

    def place(self, row: Object) -> tuple[str, str]:
        """Path and source of a chunk."""
        return told_path(row["file_path"] or row["source_uri"]), self.source(row["document_source"])


def title(name: str | None, section_path: str | None, document_title: str) -> str:
    """What a chunk is called: its symbol, its headings without their marks, or its document."""
    return told_line(name or _HEADING.sub("", section_path or "") or document_title)


# --- inside -----------------------------------------------------------------------------------------


def _request(backend: Backend, asked: takes.Search) -> QueryRequest:
    named = ("corpus", "path", "repo", "language", "service", "source")
    filters: dict[str, Any] = {f"{name}_filter": (value,) for name in named if (value := getattr(asked, name))}
    return QueryRequest(asked.query, top_k=takes.MOST_HITS, profile=backend.engine.config.profile, **filters)


def _hit(row: Object, marker: Marker, room_tokens: int, *, whole: bool) -> answers.SearchHit:
    text, first = row["text"], row["start_line"]
    if not whole:
        chunk = Chunk("", "", told(text), row["corpus_type"], row["source_uri"], start_line=first)
        lines = _trimmed(marker.snippet(chunk, SNIPPET_LINES))
        text, first = "\n".join(line.text for line in lines), lines[0].number
    return answers.SearchHit(
        path="",
        id=row["id"],
        text=shortened(told(text), room_tokens),
        start_line=row["start_line"],
        end_line=row["end_line"],
        text_line=first,
        title=title(row["qualified_name"] or row["symbol_name"], row["section_path"], row["document_title"]),
        corpus=row["corpus_type"],
        score=round(row["final_score"], _SCORE_DIGITS),
        stale=bool(row["stale"]),
    )


def _trimmed(lines: Sequence[Line]) -> Sequence[Line]:
    """Without blank lines at the ends."""
    filled = [at for at, line in enumerate(lines) if line.text.strip()] or [0]
    return lines[filled[0] : filled[-1] + 1]


def _read_chunk(backend: Backend, asked: takes.Read) -> answers.ReadAnswer:
    row = backend.chunk(asked.target)
    paging = paging_of("read", asked)
    first = row["start_line"]
    texts = told(row["text"]).split("\n")

    def line(offset: int) -> answers.Line:
        number = None if first is None else first + offset
        return answers.Line(shortened(texts[offset], paging.room_tokens), number)

    page = paging.page(range(len(texts)), str, line, _line_faces)
    path, source = Naming.of(backend).place(row)
    numbers = [each.line for each in page.items if each.line is not None]
    return answers.ReadAnswer(
        path=path,
        text="\n".join(each.text for each in page.items),
        start_line=min(numbers, default=None),
        end_line=max(numbers, default=None),
        source=source,
        stale=bool(row["stale"]),
        truncated=page.truncated,
        cursor=page.cursor,
    )


def _range(backend: Backend, asked: takes.Read) -> tuple[str, int, int]:
    """Path, first and last line; 0 for the end of the file. A file whose name ends like a range is that file."""
    path = inside(backend, asked.target)
    first, last = asked.start_line or 1, asked.end_line
    found = _LINES.fullmatch(path)
    if found and not _exists(backend, path):
        path, first, last = found["path"], int(found["first"]), int(found["last"] or 0)
    if last and last < first:
        raise BadRequestError(f"lines {first} to {last} are no range; give start_line ≤ end_line")
    return path, max(first, 1), last


def _exists(backend: Backend, path: str) -> bool:
    try:
        return bool(backend.document(path))
    except NotFoundError:
        return False


def _line_faces(line: answers.Line) -> tuple[str, str]:
    return encode(line.text).decode().strip('"'), item_text(line) + "\n"
