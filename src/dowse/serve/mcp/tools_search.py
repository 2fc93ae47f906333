"""MCP tools `search` and `read`, and helpers of all tools."""

from __future__ import annotations

import os
import re
from typing import Any

from msgspec import Struct

from dowse.errors import BadRequestError, NotFoundError
from dowse.serve.backend import Backend
from dowse.serve.best_line import Marker
from dowse.serve.mcp import answers
from dowse.serve.mcp import arguments as takes
from dowse.serve.mcp.schema import plain
from dowse.serve.mcp.text import safe_line, safe_path, safe_text, shortened
from dowse.serve.mcp.token_paging import TokenPaging
from dowse.serve.wire.result import Object, encode
from dowse.tokenizer import Tokenizer
from dowse.types import QueryRequest

SNIPPET_LINES = 2  # on each side of the best line of a chunk; chosen: 5 lines identify a result
WEAK = "no result is a confident match"
MOVED = "the index has changed since the previous page: results may repeat or be missing"
_ID = re.compile(r"[0-9a-f]{16}")
_LINES = re.compile(r"(?P<path>.+?):(?P<first>\d+)(?:-(?P<last>\d+))?")
_HEADING = re.compile(r"(?:(?<=^)|(?<=> ))#+ ")
_CONFIDENCE_DIGITS = 2


def search(backend: Backend, arguments: takes.SearchArguments) -> answers.SearchAnswer:
    """Run a query. All pages share one ranking, so no result repeats."""
    paging = paging_of("search", arguments, limit=arguments.limit)
    named = ("corpus", "path", "repo", "language", "service", "source")
    filters: dict[str, Any] = {f"{name}_filter": (value,) for name in named if (value := getattr(arguments, name))}
    profile = backend.engine.config.profile
    request = QueryRequest(
        arguments.query, syntax="operators", group="document", top_k=takes.MOST_HITS, profile=profile, **filters
    )
    result = backend.query(request)
    marker, naming = Marker(arguments.query, Tokenizer()), SourceNaming.of(backend)

    def hit(row: Object) -> answers.SearchHit:
        return _hit(row, naming, marker, paging.item_tokens, whole=arguments.detail == "full")

    page = paging.page(result["chunks"], lambda row: str(row["id"]), hit, encodings)
    notes = [f"{each['stage']}: {safe_line(each['reason'])}" for each in result["degraded"]]
    notes += [WEAK] if result["nothing_found"] and page.items else []
    notes += [MOVED] if page.moved else []
    return answers.SearchAnswer(
        hits=page.items,
        nothing_found=result["nothing_found"],
        answer=safe_line(result["metadata_answer"]),
        notes=tuple(notes),
        **page.end,
    )


def read(backend: Backend, arguments: takes.ReadArguments) -> answers.ReadAnswer:
    """Read lines from the index, never from disk, so that masked secrets stay masked."""
    if _ID.fullmatch(arguments.target):
        return _read_chunk(backend, arguments)
    path, first, last = _range(backend, arguments)
    paging = paging_of("read", arguments)
    at = paging.start[0]
    found = backend.file(path, first + at, last or None)
    texts = {row["number"]: row["text"] for row in found["lines"]}
    stop = min(last or found["total_lines"], found["total_lines"])

    def line(number: int) -> answers.ReadLine:
        return answers.ReadLine(shortened(safe_text(texts[number]).replace("\n", " "), paging.item_tokens), number)

    page = paging.page(range(first, stop + 1), str, line, _line_encodings)
    return answers.ReadAnswer(
        path=safe_path(found["path"]),
        text="\n".join(each.text for each in page.items),
        start_line=first + at,
        end_line=first + at + len(page.items) - 1,
        source=SourceNaming.of(backend).source(found["source"]),
        stale=bool(found["stale"]),
        notes=(f"the file has {found['total_lines']:,} lines",) if page.cursor else (),
        **page.end,
    )


def paging_of(tool: str, arguments: Any, limit: int | None = None) -> TokenPaging:
    """Identify a call by its arguments, except those for the size of the answer."""
    shown = ("cursor", "budget_tokens", "limit")
    call = repr([tool, *(getattr(arguments, name) for name in arguments.__struct_fields__ if name not in shown)])
    return TokenPaging(call, arguments.cursor, limit, arguments.budget_tokens)


def encodings(item: answers.McpItem) -> tuple[str, str]:
    """Encode an item as structured content and as text."""
    return encode(plain(item)).decode(), item.as_text()


def inside(backend: Backend, path: str) -> str:
    """Return a path of the index; absolute paths are accepted if the operator allows them."""
    path = path.strip()
    if backend.access.absolute_paths and os.path.isabs(path):
        for source in backend.engine.sources():
            if path == source.root or path.startswith(source.root.rstrip("/") + "/"):
                return f"{source.name}/{os.path.relpath(path, source.root)}".removesuffix("/.")
    if path.startswith(("/", "~")) or "\0" in path or ".." in path.split("/"):
        raise BadRequestError("invalid path; use a path from an answer, without leading / or ~ and without ..")
    return path.removeprefix("./")


class SourceNaming(Struct, frozen=True):
    """Naming of sources: answers name the source only if the index has several."""

    several: bool

    @classmethod
    def of(cls, backend: Backend) -> SourceNaming:
        return cls(len(backend.engine.sources()) > 1)

    def source(self, name: str) -> str:
        return safe_path(name) if self.several else ""

    def lines(self, chunk: Object) -> Object:
        """Return the fields of IndexedLines for a chunk in the wire format."""
        path = safe_path(chunk["file_path"] or chunk["source_uri"])
        source = self.source(chunk["document_source"])
        return {"path": path, "source": source} | {name: chunk[name] for name in ("id", "start_line", "end_line")}


def title(chunk: Object) -> str:
    """Return the symbol, headings or document title of a chunk."""
    headings = _HEADING.sub("", chunk["section_path"] or "")
    return safe_line(chunk["qualified_name"] or chunk["symbol_name"] or headings or chunk["document_title"])


def _hit(row: Object, naming: SourceNaming, marker: Marker, item_tokens: int, *, whole: bool) -> answers.SearchHit:
    text, first = row["text"], row["start_line"]
    if not whole:
        lines = marker.snippet(safe_text(text), first, row["symbol_name"], SNIPPET_LINES)
        filled = [at for at, line in enumerate(lines) if line.text.strip()] or [0]
        lines = lines[filled[0] : filled[-1] + 1]
        text, first = "\n".join(line.text for line in lines), lines[0].number
    return answers.SearchHit(
        **naming.lines(row),
        text=shortened(safe_text(text), item_tokens),
        text_line=first,
        title=title(row),
        corpus=row["corpus_type"],
        confidence=round(row["confidence"] or 0.0, _CONFIDENCE_DIGITS),
        stale=bool(row["stale"]),
    )


def _read_chunk(backend: Backend, arguments: takes.ReadArguments) -> answers.ReadAnswer:
    row = backend.chunk(arguments.target)
    paging = paging_of("read", arguments)
    first = row["start_line"]
    texts = safe_text(row["text"]).split("\n")

    def line(offset: int) -> answers.ReadLine:
        number = None if first is None else first + offset
        return answers.ReadLine(shortened(texts[offset], paging.item_tokens), number)

    page = paging.page(range(len(texts)), str, line, _line_encodings)
    place = SourceNaming.of(backend).lines(row)
    numbers = [each.line for each in page.items if each.line is not None]
    return answers.ReadAnswer(
        path=place["path"],
        text="\n".join(each.text for each in page.items),
        start_line=min(numbers, default=None),
        end_line=max(numbers, default=None),
        source=place["source"],
        stale=bool(row["stale"]),
        **page.end,
    )


def _range(backend: Backend, arguments: takes.ReadArguments) -> tuple[str, int, int]:
    """Return path, first and last line; 0 means the end. A file whose name ends like a range takes precedence."""
    path = inside(backend, arguments.target)
    first, last = arguments.start_line or 1, arguments.end_line
    found = _LINES.fullmatch(path)
    if found and not _exists(backend, path):
        path, first, last = found["path"], int(found["first"]), int(found["last"] or 0)
    if last and last < first:
        raise BadRequestError(f"invalid range {first}-{last}; start_line must not exceed end_line")
    return path, max(first, 1), last


def _exists(backend: Backend, path: str) -> bool:
    try:
        return bool(backend.document(path))
    except NotFoundError:
        return False


def _line_encodings(line: answers.ReadLine) -> tuple[str, str]:
    return encode(line.text).decode().strip('"'), line.as_text() + "\n"
