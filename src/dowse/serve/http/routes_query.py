"""Routes that answer questions: a question enters in a body or a URL, a result leaves whole or as events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter, Request, Response

from dowse.errors import BadRequestError
from dowse.serve.http.context import EVENTS, JSON, Face, documented, streamed
from dowse.serve.http.openapi import Schema, event_schema, request_parameters, request_schema
from dowse.serve.wire import result as wire
from dowse.serve.wire.request import Asked, asked_in_json, asked_in_url

_TARGET: Schema = {"type": "string", "description": "A chunk's id, source/path or source/path:line."}


def query_routes(face: Face) -> APIRouter:
    router = APIRouter(tags=["query"])
    config, backend = face.backend.engine.config, face.backend

    def found(asked: Asked) -> wire.Object:
        return backend.query(asked.request, cursor=asked.cursor, facets=asked.facets)

    @router.post("/v1/query", openapi_extra=documented("QueryResult", requestBody=_body(request_schema())))
    async def query(request: Request) -> Response:
        """Answer a question: the object that `dowse search --json` prints."""
        asked, _ = asked_in_json(await face.body(request), config)
        return await face.answer(request, lambda: found(asked))

    @router.get("/v1/search", openapi_extra=documented("QueryResult", parameters=request_parameters()))
    async def search(request: Request) -> Response:
        """The same with the question in the URL: `q`, and any field of a request but `where`."""
        asked, _ = asked_in_url(request.query_params.multi_items(), config)
        return await face.answer(request, lambda: found(asked))

    @router.get(
        "/v1/query/stream",
        openapi_extra=documented(
            event_schema("first", "order", "done"), media_type=EVENTS, parameters=request_parameters()
        ),
    )
    async def stream(request: Request) -> Response:
        """The answer as it grows, as events `first`, `order` and `done`, each with stage and result. Work ends when the
        client leaves.
        """
        asked, _ = asked_in_url(request.query_params.multi_items(), config)
        _no_pages(asked)
        return await streamed(face, request, lambda: _encoded(face, asked))

    @router.get(
        "/v1/explain",
        openapi_extra=documented({"type": "object"}, parameters=[*request_parameters(), _parameter("target", _TARGET)]),
    )
    async def explain(request: Request) -> Response:
        """Where a chunk, line or document stands in the answer; why it does not come, and what would bring it in."""
        asked, others = asked_in_url(request.query_params.multi_items(), config, also=["target"])
        return await face.answer(request, lambda: _explained(face, asked, others.get("target")))

    @router.post("/v1/explain", openapi_extra=documented({"type": "object"}, requestBody=_body(_with_target())))
    async def explain_body(request: Request) -> Response:
        """The same with the question and its `target` in a body."""
        asked, others = asked_in_json(await face.body(request), config, also=["target"])
        return await face.answer(request, lambda: _explained(face, asked, others.get("target")))

    return router


def _explained(face: Face, asked: Asked, target: Any) -> wire.Object:
    _no_pages(asked)
    if not isinstance(target, str) or not target:
        raise BadRequestError("what shall be explained? give `target`: a chunk's id, source/path or source/path:line")
    return face.backend.explain(asked.request, target)


def _encoded(face: Face, asked: Asked) -> Iterator[tuple[str, bytes]]:
    for event in face.backend.stream(asked.request):
        yield event["event"], wire.encode(event)


def _no_pages(asked: Asked) -> None:
    if asked.cursor is not None or asked.facets:
        raise BadRequestError("pages and facets are given by /v1/search and /v1/query; leave out cursor and facets")


def _with_target() -> Schema:
    found = request_schema()
    return found | {"properties": found["properties"] | {"target": _TARGET}, "required": ["text", "target"]}


def _body(schema: Schema) -> Schema:
    return {"required": True, "content": {JSON: {"schema": schema}}}


def _parameter(name: str, schema: Schema) -> Schema:
    return {"name": name, "in": "query", "required": True, "schema": schema}
