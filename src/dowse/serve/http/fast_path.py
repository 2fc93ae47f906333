"""A request enters; one for a path that is asked all the time goes straight to its endpoint, others to the application.

FastAPI finds a route, opens three stacks and solves dependencies that none of ours has. With the parser in C and
uvloop, going past it takes the server's own CPU a request from 1.9 to 0.6 ms (the query stubbed out), where
a query takes a few (`python -m bench.serve`). Its document and its other routes stay as they are, and so does every
answer: tests ask both ways.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from dowse.errors import DowseError
from dowse.serve.http.problems import RefusedError, answer_to, answer_to_bug, refusal

if TYPE_CHECKING:
    from dowse.serve.backend import Backend

PATHS = ("/v1/query", "/v1/search")


@dataclass(frozen=True)
class Direct:
    """A layer before the application."""

    app: ASGIApp
    routes: Mapping[tuple[str, str], APIRoute]
    backend: Backend

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self.routes.get((scope["method"], scope["path"])) if scope["type"] == "http" else None
        if route is None:
            await self.app(scope, receive, send)
            return
        scope["route"] = route
        endpoint: Callable[..., Awaitable[Response]] = route.endpoint
        try:
            response = await endpoint(Request(scope, receive))
        except RefusedError as error:
            response = refusal(error)
        except DowseError as error:
            response = answer_to(error, self.backend)
        except Exception:  # a bug must be told as one, and is raised again
            await answer_to_bug()(scope, receive, send)
            raise
        await response(scope, receive, send)


def straight(router: APIRouter) -> dict[tuple[str, str], APIRoute]:
    """The routes of the paths above by method and path; each takes nothing but the request."""
    found = [route for route in router.routes if isinstance(route, APIRoute) and route.path in PATHS]
    return {(method, route.path): route for route in found for method in route.methods or ()}
