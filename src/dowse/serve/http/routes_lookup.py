"""Lookup routes: chunks, lines, symbols, relations, services and sources, by name or id."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from dowse.serve.http.context import RequestContext
from dowse.serve.http.openapi import Schema, list_of, object_of
from dowse.serve.http.operations import Operation, Operations
from dowse.serve.wire.result import Object

_OBJECT: Schema = {"type": "object"}
_FILE = object_of(
    source_uri={"type": "string"},
    start_line={"type": "integer"},
    end_line={"type": "integer"},
    total_lines={"type": "integer"},
    lines=list_of(object_of(number={"type": "integer"}, text={"type": "string"})),
)
_FILE["properties"]["stale"] = {"type": ["boolean", "null"]}
MOST_DEPTH = 20  # steps in the service graph; chosen: beyond, nearly all services are included

Line = Annotated[int, Meta(ge=1, le=10_000_000)]
Depth = Annotated[int, Meta(ge=1, le=MOST_DEPTH)]
Limit = Annotated[int, Meta(ge=1, le=1000)]
Name = Annotated[str, Meta(min_length=1)]
Target = Annotated[str, Meta(description="Chunk id, source/path, source/path:line or a symbol.")]
ChunkIdText = Annotated[str, Meta(description="Chunk id: 16 hexadecimal digits.")]


def lookup_operations(context: RequestContext) -> list[Operation]:
    api, backend = Operations(context, "lookup"), context.backend

    @api.get("/v1/chunks/{id}", "Chunk")
    def chunk(id: ChunkIdText) -> Object:
        """Read a chunk with its parents. `stale` is true when its file has changed since it was indexed."""
        return backend.chunk(id)

    @api.get("/v1/files/{path:path}", _FILE)
    def file(path: str, start: Line | None = None, end: Line | None = None) -> Object:
        """Read lines of a document from the index, not from disk; at most 2,000 lines."""
        return backend.file(path, start, end)

    @api.get("/v1/symbols", object_of(symbols=list_of(_OBJECT)))
    def symbols(name: Name, kind: str | None = None, limit: Limit = 20) -> Object:
        """Find the definitions of a name: exact matches first, then similar names."""
        return backend.symbols(name, kind, limit)

    @api.get("/v1/related/{id:path}", object_of(neighbours=list_of(_OBJECT)))
    def related(id: Target, relation: tuple[str, ...] = (), limit: Limit = 30) -> Object:
        """List callers, callees, docs and threads linked to a chunk, source/path:line or symbol."""
        return backend.related(id, relation, limit)

    @api.get("/v1/outline/{path:path}", object_of(documents=list_of(_OBJECT)))
    def outline(path: str, depth: Depth | None = None) -> Object:
        """List the sections, symbols and resources of a file or folder, with their lines."""
        return backend.outline(path, depth)

    @api.get("/v1/services", object_of(services=list_of("Service"), edges=list_of("ServiceEdge")))
    def services() -> Object:
        """List all services and the calls between them."""
        return backend.services()

    @api.get("/v1/services/{name}", _OBJECT)
    def service(name: str, depth: Depth = 1) -> Object:
        """Read one service: its neighbours, the services that depend on it, and those it depends on."""
        return backend.service(name, depth)

    @api.get("/v1/sources", object_of(sources=list_of("SourceStatus")))
    def sources() -> Object:
        """List the indexed sources with their numbers of changed and missing files."""
        return backend.sources()

    @api.get("/v1/status", "Status")
    def status() -> Object:
        """Read the state of the index: the object that `dowse status --json` prints, without absolute paths."""
        return backend.status()

    return api.found
