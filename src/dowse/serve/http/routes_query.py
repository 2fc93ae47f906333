"""Query routes: search, stream and explain, with the query in a body or in a URL."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from dowse.errors import BadRequestError
from dowse.serve.http.context import RequestContext
from dowse.serve.http.openapi import EVENTS, Schema, event_schema, request_parameters, request_schema
from dowse.serve.http.operations import Operation, Operations
from dowse.serve.wire import result as wire
from dowse.serve.wire.request import ParsedRequest, parse_json, parse_url

_TARGET: Schema = {"type": "string", "description": "Chunk id, source/path or source/path:line."}
_TARGET_PARAMETER: Schema = {"name": "target", "in": "query", "required": True, "schema": _TARGET}
_EVENTS = event_schema("first", "order", "done")


def query_operations(context: RequestContext) -> list[Operation]:
    api, backend, config = Operations(context, "query"), context.backend, context.backend.engine.config
    in_url, in_body = request_parameters(), request_schema()
    target_too = {"properties": in_body["properties"] | {"target": _TARGET}, "required": ["text", "target"]}

    async def found(request: Request, parsed: ParsedRequest) -> Response:
        return await context.answer(
            request, lambda: backend.query(parsed.request, cursor=parsed.cursor, facets=parsed.facets)
        )

    async def explained(request: Request, parsed: ParsedRequest, target: Any) -> Response:
        _check_unpaged(parsed)
        if not isinstance(target, str) or not target:
            raise BadRequestError("missing field 'target': a chunk id, source/path or source/path:line")
        return await context.answer(request, lambda: backend.explain(parsed.request, target))

    @api.add("/v1/query", "QueryResult", method="POST", body=in_body)
    async def query(request: Request) -> Response:
        """Run a query. Returns the object that `dowse search --json` prints."""
        parsed, _ = parse_json(await context.body(request), config)
        return await found(request, parsed)

    @api.add("/v1/search", "QueryResult", parameters=in_url)
    async def search(request: Request) -> Response:
        """Run a query given in the URL: `q`, and any field of a request except `where`."""
        parsed, _ = parse_url(request.query_params.multi_items(), config)
        return await found(request, parsed)

    @api.add("/v1/query/stream", _EVENTS, media_type=EVENTS, parameters=in_url)
    async def stream(request: Request) -> Response:
        """Stream the result as events `first`, `order` and `done`, each with stage and result. Stops the query when the
        client disconnects.
        """
        parsed, _ = parse_url(request.query_params.multi_items(), config)
        _check_unpaged(parsed)
        return await context.stream(
            request, lambda: ((each["event"], wire.encode(each)) for each in backend.stream(parsed.request))
        )

    @api.add("/v1/explain", {"type": "object"}, parameters=(*in_url, _TARGET_PARAMETER))
    async def explain(request: Request) -> Response:
        """Explain why a chunk, line or document ranks where it does, or why it is missing and which change includes
        it.
        """
        parsed, others = parse_url(request.query_params.multi_items(), config, also=["target"])
        return await explained(request, parsed, others.get("target"))

    @api.add("/v1/explain", {"type": "object"}, method="POST", body=in_body | target_too)
    async def explain_body(request: Request) -> Response:
        """Explain, with the query and its `target` in a body."""
        parsed, others = parse_json(await context.body(request), config, also=["target"])
        return await explained(request, parsed, others.get("target"))

    return api.found


def _check_unpaged(parsed: ParsedRequest) -> None:
    if parsed.cursor is not None or parsed.facets:
        raise BadRequestError("only /v1/search and /v1/query support cursor and facets; remove both fields")
