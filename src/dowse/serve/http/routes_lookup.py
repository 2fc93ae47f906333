"""Routes that look things up: names and ids enter; chunks, lines, services and sources leave."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from dowse.serve.http.context import Face, documented
from dowse.serve.http.openapi import Schema, ref

_OBJECT: Schema = {"type": "object"}
_FILE: Schema = {
    "type": "object",
    "required": ["source_uri", "start_line", "end_line", "total_lines", "lines"],
    "properties": {
        "source_uri": {"type": "string"},
        "start_line": {"type": "integer"},
        "end_line": {"type": "integer"},
        "total_lines": {"type": "integer"},
        "lines": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["number", "text"],
                "properties": {"number": {"type": "integer"}, "text": {"type": "string"}},
            },
        },
        "stale": {"type": ["boolean", "null"]},
    },
}
MOST_DEPTH = 20  # steps in the service graph; chosen: beyond, everything is near everything

Line = Annotated[int | None, Query(ge=1, le=10_000_000)]
Depth = Annotated[int, Query(ge=1, le=MOST_DEPTH)]
OutlineDepth = Annotated[int | None, Query(ge=1, le=MOST_DEPTH)]
Limit = Annotated[int, Query(ge=1, le=1000)]
Name = Annotated[str, Query(min_length=1)]
Relations = Annotated[tuple[str, ...], Query()]
Target = Annotated[str, Path(description="A chunk's id, source/path, source/path:line or a symbol.")]
ChunkIdPath = Annotated[str, Path(description="16 hexadecimal digits, as answers have them.")]


def lookup_routes(face: Face) -> APIRouter:
    router = APIRouter(tags=["lookup"])
    backend = face.backend

    @router.get("/v1/chunks/{id}", openapi_extra=documented("Chunk"))
    async def chunk(request: Request, id: ChunkIdPath) -> Response:
        """A chunk with what it stands in, and whether its file has changed since."""
        return await face.answer(request, lambda: backend.chunk(id))

    @router.get("/v1/files/{path:path}", openapi_extra=documented(_FILE))
    async def file(request: Request, path: str, start: Line = None, end: Line = None) -> Response:
        """Lines of an indexed document, as they were indexed; no file is opened. At most 2,000 at once."""
        return await face.answer(request, lambda: backend.file(path, start, end))

    @router.get("/v1/symbols", openapi_extra=documented(_of({"symbols": {"type": "array", "items": _OBJECT}})))
    async def symbols(request: Request, name: Name, kind: str | None = None, limit: Limit = 20) -> Response:
        """Where a name is defined: exact matches first, then those that come near."""
        return await face.answer(request, lambda: backend.symbols(name, kind, limit))

    @router.get(
        "/v1/related/{id:path}", openapi_extra=documented(_of({"neighbours": {"type": "array", "items": _OBJECT}}))
    )
    async def related(request: Request, id: Target, relation: Relations = (), limit: Limit = 30) -> Response:
        """What edges tie a chunk, source/path:line or symbol to, in words."""
        return await face.answer(request, lambda: backend.related(id, relation, limit))

    @router.get(
        "/v1/outline/{path:path}", openapi_extra=documented(_of({"documents": {"type": "array", "items": _OBJECT}}))
    )
    async def outline(request: Request, path: str, depth: OutlineDepth = None) -> Response:
        """What stands in a file or folder: sections, symbols, resources, with their lines."""
        return await face.answer(request, lambda: backend.outline(path, depth))

    @router.get("/v1/services", openapi_extra=documented(_graph()))
    async def services(request: Request) -> Response:
        """All services, and who calls whom."""
        return await face.answer(request, backend.services)

    @router.get("/v1/services/{name}", openapi_extra=documented(_OBJECT))
    async def service(request: Request, name: str, depth: Depth = 1) -> Response:
        """A service: its neighbours, what breaks when it does, and what it needs."""
        return await face.answer(request, lambda: backend.service(name, depth))

    @router.get("/v1/sources", openapi_extra=documented(_sources()))
    async def sources(request: Request) -> Response:
        """What was indexed, and how it stands against its files."""
        return await face.answer(request, backend.sources)

    @router.get("/v1/status", openapi_extra=documented("Status"))
    async def status(request: Request) -> Response:
        """What the index holds: the object that `dowse status --json` prints, without places of this machine."""
        return await face.answer(request, backend.status)

    return router


def _graph() -> Schema:
    lists = {"services": ref("Service"), "edges": ref("ServiceEdge")}
    return _of({name: {"type": "array", "items": item} for name, item in lists.items()})


def _sources() -> Schema:
    return _of({"sources": {"type": "array", "items": ref("SourceStatus")}})


def _of(properties: dict[str, Schema]) -> Schema:
    return {"type": "object", "required": list(properties), "properties": properties}
