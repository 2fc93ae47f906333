"""The HTTP face: a backend and an operator's decisions enter, an ASGI application leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from http import HTTPStatus
from importlib.util import find_spec
from typing import Any

from fastapi import APIRouter, FastAPI, Response
from fastapi.openapi.utils import get_openapi
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

import dowse
from dowse.serve.backend import Backend
from dowse.serve.http.admission import Room
from dowse.serve.http.context import JSON, Face, Stopping, documented
from dowse.serve.http.fast_path import Direct, straight
from dowse.serve.http.guard import Guard
from dowse.serve.http.metrics import Measured, Metrics
from dowse.serve.http.openapi import components
from dowse.serve.http.options import ServerOptions
from dowse.serve.http.problems import MEDIA_TYPE, add_handlers
from dowse.serve.http.routes_lookup import lookup_routes
from dowse.serve.http.routes_query import query_routes
from dowse.serve.http.routes_write import write_routes
from dowse.serve.page.routes import page_routes
from dowse.serve.wire import result as wire

_FLAG = {"type": "object", "required": ["ok"], "properties": {"ok": {"type": "boolean"}}}


def create_app(backend: Backend, options: ServerOptions, stopping: Stopping | None = None) -> ASGIApp:
    """The whole face. It closes the backend when it ends."""
    face = Face(backend, Room(options.limits), options, stopping or Stopping())
    metrics = Metrics(backend, face.room)
    agents = _mcp(face)
    app = api(face, metrics, agents)
    direct = Direct(_Agents(app, agents), straight(query_routes(face)), backend)
    return Guard(Measured(direct, metrics), options)


def api(face: Face, metrics: Metrics, agents: Starlette | None = None) -> FastAPI:
    """All routes, and the document that describes them."""
    app = _application(face, agents)
    own = (query_routes(face), lookup_routes(face), write_routes(face), _health_routes(face, metrics))
    for router in (*own, page_routes(face)):
        app.include_router(router)
    add_handlers(app, face.backend)
    _document(app)
    return app


def _mcp(face: Face) -> Starlette | None:
    """What answers agents; None where it is not wanted or its SDK is not installed."""
    if not face.options.mcp or find_spec("mcp") is None:
        return None
    from dowse.serve.mcp.server import mounted

    return mounted(face.backend, allow_write=face.options.access.write)


@dataclass(frozen=True)
class _Agents:
    """Requests for /mcp go to the agents' part, others to ours: mounted at the root, it would take our 404s, too."""

    app: ASGIApp
    agents: ASGIApp | None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wanted = scope["type"] == "http" and scope["path"] == "/mcp"
        await (self.agents if wanted and self.agents is not None else self.app)(scope, receive, send)


def _application(face: Face, agents: Starlette | None) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with agents.router.lifespan_context(agents) if agents else nullcontext():
            yield
        await asyncio.to_thread(face.room.close)
        await asyncio.to_thread(face.backend.close)

    # The pages that FastAPI offers at /docs load scripts from elsewhere, which our policy forbids.
    return FastAPI(title="Dowse", version=dowse.__version__, docs_url=None, redoc_url=None, lifespan=lifespan)


def _health_routes(face: Face, metrics: Metrics) -> APIRouter:
    router = APIRouter(tags=["health"])

    @router.get("/healthz", openapi_extra=documented(_FLAG))
    async def healthz() -> Response:
        """Whether the process is there. Needs no token."""
        return Response(b'{"ok":true}', media_type=JSON)

    @router.get("/readyz", openapi_extra=documented(_FLAG))
    async def readyz() -> Response:
        """Whether questions can be answered: the index can be read, and the server is not about to stop. No token."""
        if face.stopping.asked():
            detail = "the server is about to stop"
            row = {"type": "about:blank", "title": "Service Unavailable", "status": 503, "detail": detail}
            return Response(wire.encode(row), HTTPStatus.SERVICE_UNAVAILABLE, media_type=MEDIA_TYPE)
        await asyncio.to_thread(face.backend.moment)
        return Response(b'{"ok":true}', media_type=JSON)

    @router.get("/metrics", openapi_extra=documented({"type": "string"}, media_type="text/plain"))
    async def scrape() -> Response:
        """Counts and times for Prometheus."""
        return Response(await asyncio.to_thread(metrics.text), media_type=CONTENT_TYPE_LATEST)

    return router


def _document(app: FastAPI) -> None:
    """The OpenAPI document, made once: FastAPI's routes and the schemas of our own types."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            found = get_openapi(
                title=app.title,
                version=app.version,
                routes=app.routes,
                description="One search over everything an engineering team has written.",
            )
            found["components"] = {
                "schemas": components(),
                "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            }
            found["security"] = [{}, {"token": []}]
            for operations in found["paths"].values():
                for operation in operations.values():
                    operation["responses"].pop("422", None)  # a field that does not fit is a 400 here
            app.openapi_schema = found
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # the way that FastAPI documents
