"""What every route needs: requests enter with their limits checked, answers leave in the wire format."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from dowse.serve.backend import Backend
from dowse.serve.http.admission import Room
from dowse.serve.http.openapi import ref
from dowse.serve.http.options import ServerOptions
from dowse.serve.http.problems import MEDIA_TYPE, RefusedError
from dowse.serve.wire import result as wire
from dowse.serve.wire.result import Object

JSON = "application/json"
EVENTS = "text/event-stream"


class Stopping:
    """Whether the server is about to stop, so that answers without an end come to one."""

    def __init__(self) -> None:
        self.asked: Callable[[], bool] = lambda: False


@dataclass(frozen=True)
class Face:
    """The server's parts, as routes use them."""

    backend: Backend
    room: Room
    options: ServerOptions
    stopping: Stopping = field(default_factory=Stopping)

    async def answer(self, request: Request, work: Callable[[], Object], status: int = 200) -> Response:
        """JSON, found and written in a thread of the room."""
        data = await self.room.run(client_of(request), lambda: wire.encode(work()))
        return Response(data, status_code=status, media_type=JSON)

    async def body(self, request: Request, media_type: str = JSON) -> bytes:
        """All of a body, if it is of that type, small enough and comes soon enough."""
        limits = self.options.limits
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != media_type:
            raise RefusedError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send it with `Content-Type: {media_type}`")
        length = request.headers.get("content-length", "0")
        if not length.isdigit() or int(length) > limits.body_bytes:
            raise _too_large(limits.body_bytes)
        try:
            async with asyncio.timeout(limits.body_s):
                return await _read(request, limits.body_bytes)
        except TimeoutError as err:
            raise RefusedError(
                HTTPStatus.REQUEST_TIMEOUT, f"the body did not arrive within {limits.body_s:g} s; send it again"
            ) from err


def client_of(request: Request) -> str:
    return request.client.host if request.client else "?"


def events(rows: AsyncIterator[tuple[str, bytes] | None]) -> Response:
    """Server-sent events of a name and one line of JSON; None is a sign of life."""

    async def lines() -> AsyncIterator[bytes]:
        number = 0
        async for row in rows:
            if row is None:
                yield b": still there\n\n"
                continue
            number += 1
            yield b"id: %d\nevent: %s\ndata: %s\n\n" % (number, row[0].encode(), row[1])

    # A proxy that collects an answer before it passes it on would make the first event as late as the last.
    return StreamingResponse(lines(), media_type=EVENTS, headers={"X-Accel-Buffering": "no"})


async def streamed(face: Face, request: Request, work: Callable[[], Iterator[tuple[str, bytes]]]) -> Response:
    """The first event is waited for here, so that a bad question is answered with its status and not with a stream."""
    rows = face.room.each(client_of(request), work)
    first = await anext(rows)

    async def all_rows() -> AsyncIterator[tuple[str, bytes] | None]:
        yield first
        async for row in rows:
            yield row

    return events(all_rows())


def documented(schema: str | Object, *, status: int = 200, media_type: str = JSON, **extra: Any) -> dict[str, Any]:
    """A route's part of the OpenAPI document: what it answers, and that it may answer with a problem."""
    found = ref(schema) if isinstance(schema, str) else schema
    trouble = {"description": "A problem (RFC 9457).", "content": {MEDIA_TYPE: {"schema": ref("ProblemDetails")}}}
    responses = {
        str(status): {"description": "The answer.", "content": {media_type: {"schema": found}}},
        "4XX": trouble,
        "5XX": trouble,
    }
    return {"responses": responses, **extra}


async def _read(request: Request, most: int) -> bytes:
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > most:
            raise _too_large(most)
        parts.append(part)
    return b"".join(parts)


def _too_large(most: int) -> RefusedError:
    return RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body may have {most:,} bytes; send less")
