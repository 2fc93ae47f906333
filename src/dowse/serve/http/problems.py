"""Whatever went wrong enters; an answer of `application/problem+json` (RFC 9457) leaves.

Errors of the house have their status from the one table in wire.py; what only HTTP knows (too large, too many, not you)
is a RefusedError.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from dowse.errors import DowseError, UnavailableError
from dowse.serve.wire import result as wire

if TYPE_CHECKING:
    from dowse.serve.backend import Backend

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 1  # chosen: a query takes milliseconds, so a full house is soon less full


class RefusedError(Exception):
    """The server does not answer this request, whatever the index holds."""

    def __init__(self, status: HTTPStatus, detail: str, *, retry_after_s: int | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.retry_after_s = retry_after_s


def problem(row: wire.Object, *, retry_after_s: int | None = None, headers: dict[str, str] | None = None) -> Response:
    headers = dict(headers or {})
    if retry_after_s is not None:
        headers["Retry-After"] = str(retry_after_s)
    return Response(wire.encode(row), status_code=row["status"], media_type=MEDIA_TYPE, headers=headers)


def refusal(error: RefusedError) -> Response:
    row = _plain(error.status, error.detail)
    found = problem(row, retry_after_s=error.retry_after_s)
    if error.status == HTTPStatus.UNAUTHORIZED:
        # Both, since a program sends a bearer token and a browser can ask a person for a password; each in a header of
        # its own, since Chromium reads only the first scheme of one.
        for scheme in ("Basic", "Bearer"):
            found.headers.append("WWW-Authenticate", f'{scheme} realm="dowse"')
    return found


def answer_to(error: DowseError, backend: Backend) -> Response:
    again = isinstance(error, UnavailableError) and wire.outcome(error).http_status == HTTPStatus.SERVICE_UNAVAILABLE
    return problem(backend.error(error), retry_after_s=RETRY_AFTER_S if again else None)


def answer_to_bug() -> Response:
    """Whoever sends it raises the error again, so that the server's log has all of it and the client nothing."""
    detail = "this is a bug in Dowse; the server's log says more"
    return problem(_plain(HTTPStatus.INTERNAL_SERVER_ERROR, detail))


def add_handlers(app: FastAPI, backend: Backend) -> None:
    """The outermost handlers of this face: every way a request can fail becomes a problem."""

    @app.exception_handler(DowseError)
    async def _ours(_request: Request, error: DowseError) -> Response:
        return answer_to(error, backend)

    @app.exception_handler(RefusedError)
    async def _refused(_request: Request, error: RefusedError) -> Response:
        return refusal(error)

    @app.exception_handler(RequestValidationError)
    async def _invalid(_request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"][1:]) or "the request"
        return problem(_plain(HTTPStatus.BAD_REQUEST, f"{name}: {first['msg']}; GET /openapi.json says what it takes"))

    @app.exception_handler(HTTPException)
    async def _routing(request: Request, error: HTTPException) -> Response:
        detail = {
            404: f"there is nothing at {request.url.path}; GET /openapi.json lists what there is",
            405: f"{request.url.path} does not take {request.method}",
        }
        row = _plain(HTTPStatus(error.status_code), detail.get(error.status_code, str(error.detail)))
        return problem(row, headers=dict(error.headers or {}))

    @app.exception_handler(Exception)
    async def _bug(_request: Request, _error: Exception) -> Response:
        return answer_to_bug()


def _plain(status: HTTPStatus, detail: str) -> wire.Object:
    return {"type": "about:blank", "title": status.phrase, "status": int(status), "detail": detail}
