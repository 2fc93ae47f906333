"""Request context of the HTTP routes: backend, admission control, options, and helpers for bodies and answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from http import HTTPStatus
from typing import TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from dowse.serve.backend import Backend
from dowse.serve.http.admission import AdmissionControl
from dowse.serve.http.openapi import EVENTS, JSON
from dowse.serve.http.options import ServerOptions
from dowse.serve.http.problems import RefusedError
from dowse.serve.wire import result as wire
from dowse.serve.wire.result import Object

T = TypeVar("T")


class RequestContext(msgspec.Struct, frozen=True):
    """Components of the server that the routes use."""

    backend: Backend
    admission: AdmissionControl
    options: ServerOptions
    stopping: Callable[[], bool] = lambda: False  # whether the server stops, so that endless answers end

    async def run(self, request: Request, work: Callable[[], T]) -> T:
        """Run work in a thread, within the limits of the request's client."""
        return await self.admission.run(client_of(request), work)

    async def answer(self, request: Request, work: Callable[[], Object], status: int = 200) -> Response:
        """Compute and encode a JSON answer in a thread."""
        data = await self.run(request, lambda: wire.encode(work()))
        return Response(data, status_code=status, media_type=JSON)

    async def body(self, request: Request, media_type: str = JSON, most: int | None = None) -> bytes:
        """Read a body of the given type within the limits of size and time."""
        limits = self.options.limits
        most = most or limits.body_bytes
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != media_type:
            raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send the body with `Content-Type: {media_type}`")
        length = request.headers.get("content-length", "0")
        if not length.isdigit() or int(length) > most:
            raise _too_large(most)
        try:
            async with asyncio.timeout(limits.body_s):
                return await _read(request, most)
        except TimeoutError as err:
            raise RefusedError(
                HTTPStatus.REQUEST_TIMEOUT, f"the body did not arrive within {limits.body_s:g} s; send it again"
            ) from err

    async def stream(self, request: Request, work: Callable[[], Iterator[tuple[str, bytes]]]) -> Response:
        """Stream events. The first is awaited here, so that a bad query gets an error status and not a stream."""
        rows = self.admission.iterate(client_of(request), work)
        first = await anext(rows)

        async def all_rows() -> AsyncIterator[tuple[str, bytes] | None]:
            yield first
            async for row in rows:
                yield row

        return event_stream(all_rows())


def client_of(request: Request) -> str:
    return request.client.host if request.client else "?"


def event_stream(rows: AsyncIterator[tuple[str, bytes] | None]) -> Response:
    """Make server-sent events of names and lines of JSON; None is a keep-alive comment."""

    async def lines() -> AsyncIterator[bytes]:
        number = 0
        async for row in rows:
            if row is None:
                yield b": keep-alive\n\n"
                continue
            number += 1
            yield b"id: %d\nevent: %s\ndata: %s\n\n" % (number, row[0].encode(), row[1])

    # A proxy that buffers the answer would deliver the first event as late as the last.
    return StreamingResponse(lines(), media_type=EVENTS, headers={"X-Accel-Buffering": "no"})


async def _read(request: Request, most: int) -> bytes:
    parts, size = [], 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise _too_large(most)
            parts.append(part)
    except ClientDisconnect as err:  # nobody reads this; it keeps a traceback out of the log
        raise RefusedError(HTTPStatus.BAD_REQUEST, "the client left before the end of its body") from err
    return b"".join(parts)


def _too_large(most: int) -> RefusedError:
    return RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body exceeds {most:,} bytes; send a smaller one")
