"""ASGI application of the HTTP server: API, web page, metrics and MCP behind one guard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from functools import cache
from http import HTTPStatus
from importlib.util import find_spec

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from dowse.serve.backend import Backend
from dowse.serve.http.admission import AdmissionControl
from dowse.serve.http.context import RequestContext
from dowse.serve.http.guard import Guard
from dowse.serve.http.metrics import Metrics, MetricsMiddleware
from dowse.serve.http.openapi import JSON, object_of
from dowse.serve.http.operations import Operation, Operations, document, plain_route
from dowse.serve.http.options import ServerOptions
from dowse.serve.http.problems import RefusedError, exception_handlers
from dowse.serve.http.routes_lookup import lookup_operations
from dowse.serve.http.routes_query import query_operations
from dowse.serve.http.routes_write import write_operations
from dowse.serve.page.routes import page_routes
from dowse.serve.wire import result as wire

_OK = b'{"ok":true}'


def create_app(backend: Backend, options: ServerOptions, stopping: Callable[[], bool] = lambda: False) -> ASGIApp:
    """Assemble the application. It closes the backend when it ends."""
    context = RequestContext(backend, AdmissionControl(options.limits), options, stopping)
    metrics = Metrics(backend, context.admission)
    operations = api_operations(context, metrics)
    mcp = _mcp_app(context)
    routes = [each.route for each in operations]  # the query routes first: Starlette tries routes in order
    routes += [_document_route(operations), *page_routes(context)]
    routes += [Route("/mcp", mcp)] if mcp else []

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        async with mcp.router.lifespan_context(mcp) if mcp else nullcontext():
            yield
        await asyncio.to_thread(context.admission.close)
        await asyncio.to_thread(backend.close)

    app = Starlette(routes=routes, exception_handlers=exception_handlers(backend), lifespan=lifespan)
    return Guard(MetricsMiddleware(app, metrics), options)


def api_operations(context: RequestContext, metrics: Metrics) -> list[Operation]:
    """List the operations that the OpenAPI document describes."""
    return [
        *query_operations(context),
        *lookup_operations(context),
        *write_operations(context),
        *_health_operations(context, metrics),
    ]


def _mcp_app(context: RequestContext) -> Starlette | None:
    """Make the MCP application; None when it is switched off or its SDK is not installed."""
    if not context.options.mcp or find_spec("mcp") is None:
        return None
    from dowse.serve.mcp.server import http_app

    return http_app(context.backend, allow_write=context.options.access.write)


def _document_route(operations: list[Operation]) -> Route:
    @cache
    def encoded() -> bytes:
        return wire.encode(document(operations))

    async def openapi(_request: Request) -> Response:
        return Response(encoded(), media_type=JSON)

    return plain_route("/openapi.json", openapi)


def _health_operations(context: RequestContext, metrics: Metrics) -> list[Operation]:
    api = Operations(context, "health")
    flag = object_of(ok={"type": "boolean"})

    @api.add("/healthz", flag)
    async def healthz(_request: Request) -> Response:
        """Check that the process runs. Needs no token."""
        return Response(_OK, media_type=JSON)

    @api.add("/readyz", flag)
    async def readyz(_request: Request) -> Response:
        """Check that the index is readable and the server is not shutting down. Needs no token."""
        if context.stopping():
            raise RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, "the server is shutting down")
        await asyncio.to_thread(context.backend.snapshot_id)
        return Response(_OK, media_type=JSON)

    @api.add("/metrics", {"type": "string"}, media_type="text/plain")
    async def scrape(_request: Request) -> Response:
        """Export counters and latencies for Prometheus."""
        return Response(await asyncio.to_thread(metrics.text), media_type=CONTENT_TYPE_LATEST)

    return api.found
