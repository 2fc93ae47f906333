"""Errors as `application/problem+json` answers (RFC 9457).

Dowse errors have their status in one table (serve/wire/result.py). Conditions that only HTTP has (too large, too many,
no token) are a RefusedError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from dowse.errors import DowseError
from dowse.serve.backend import Backend
from dowse.serve.wire import result as wire

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 1  # chosen: a query takes milliseconds, so a full queue empties soon


class RefusedError(Exception):
    """Request that the server does not process, whatever the index holds."""

    def __init__(self, status: HTTPStatus, detail: str, *, retry_after_s: int | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.retry_after_s = retry_after_s

    @property
    def problem(self) -> wire.Object:
        head = {"type": "about:blank", "title": self.status.phrase}
        return {**head, "status": int(self.status), "detail": self.detail}


def problem_response(
    row: wire.Object, *, retry_after_s: int | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    retry = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
    return Response(wire.encode(row), row["status"], {**(headers or {}), **retry}, MEDIA_TYPE)


def refusal(error: RefusedError) -> Response:
    response = problem_response(error.problem, retry_after_s=error.retry_after_s)
    if error.status == HTTPStatus.UNAUTHORIZED:
        # Bearer for programs, Basic so that browsers prompt for a password. Two headers, because Chromium reads only
        # the first scheme of one.
        for scheme in ("Basic", "Bearer"):
            response.headers.append("WWW-Authenticate", f'{scheme} realm="dowse"')
    return response


def exception_handlers(backend: Backend) -> dict[Any, Callable[[Request, Any], Any]]:
    """Map every kind of failure to a problem document."""

    async def on_error(_request: Request, error: DowseError) -> Response:
        retry = wire.outcome(error).http_status == HTTPStatus.SERVICE_UNAVAILABLE
        return problem_response(backend.error(error), retry_after_s=RETRY_AFTER_S if retry else None)

    async def on_refusal(_request: Request, error: RefusedError) -> Response:
        return refusal(error)

    async def on_routing(request: Request, error: HTTPException) -> Response:
        details = {
            404: f"no route {request.url.path}; GET /openapi.json lists the routes",
            405: f"{request.url.path} does not support {request.method}",
        }
        found = RefusedError(HTTPStatus(error.status_code), details.get(error.status_code, str(error.detail)))
        return problem_response(found.problem, headers=error.headers)

    async def on_bug(_request: Request, _error: Exception) -> Response:
        # Starlette raises the error again after this answer, so the server's log has the traceback.
        detail = "this is a bug in Dowse; see the log of the server for the traceback"
        return problem_response(RefusedError(HTTPStatus.INTERNAL_SERVER_ERROR, detail).problem)

    return {DowseError: on_error, RefusedError: on_refusal, HTTPException: on_routing, Exception: on_bug}
