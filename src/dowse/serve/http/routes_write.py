"""Routes that change something, where the operator allows it: orders and judgments enter, jobs and receipts leave."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response

from dowse.errors import BadRequestError
from dowse.serve.http.context import EVENTS, JSON, Face, documented, events
from dowse.serve.http.openapi import Schema, event_schema, ref
from dowse.serve.jobs import OVER
from dowse.serve.wire import result as wire

POLL_S = 0.1  # how soon a change of a job is seen; chosen
ALIVE_S = 15.0  # a sign of life, so that a client who left is noticed; chosen


class IndexOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to bring up to date: sources or `source/path`s; none means all."""

    paths: tuple[str, ...] = ()
    embed: bool = True


class Opinion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How well a chunk answers a query, from 0 (wrong) to 3."""

    query: str
    target: str
    grade: float


def write_routes(face: Face) -> APIRouter:
    router = APIRouter(tags=["write"])
    backend = face.backend

    @router.post(
        "/v1/index", status_code=202, openapi_extra=documented("Job", status=202, requestBody=_body(IndexOrder))
    )
    async def index(request: Request) -> Response:
        """Bring sources up to date, as a job. Only with --allow-write."""
        order = _decoded(await face.body(request), IndexOrder)
        answer = await face.answer(request, lambda: backend.start_index(order.paths, embed=order.embed), 202)
        answer.headers["Location"] = f"/v1/jobs/{msgspec.json.decode(answer.body)['id']}"
        return answer

    @router.get("/v1/jobs", openapi_extra=documented(_jobs()))
    async def jobs(request: Request) -> Response:
        """Index jobs, newest first."""
        return await face.answer(request, backend.jobs)

    @router.get("/v1/jobs/{id}", openapi_extra=documented("Job"))
    async def job(request: Request, id: str) -> Response:
        """How a job stands."""
        return await face.answer(request, lambda: backend.job(id))

    @router.get("/v1/jobs/{id}/events", openapi_extra=documented(event_schema("job"), media_type=EVENTS))
    async def job_events(id: str) -> Response:
        """Every change of a job, as events `job`, until it is over."""
        backend.job(id)
        return events(_changes(face, id))

    @router.post("/v1/feedback", openapi_extra=documented({"type": "object"}, requestBody=_body(Opinion)))
    async def feedback(request: Request) -> Response:
        """Keep a judgment of a hit, for `dowse eval --judged` and `dowse tune`. Only with --allow-write."""
        said = _decoded(await face.body(request), Opinion)
        return await face.answer(request, lambda: backend.feedback(said.query, said.target, said.grade))

    return router


async def _changes(face: Face, job_id: str) -> AsyncIterator[tuple[str, bytes] | None]:
    """Looked for, not waited for: a thread for each who watches would be taken from those who ask."""
    seen, quiet_s = -1, 0.0
    while not face.stopping.asked():
        job = face.backend.job(job_id)
        if job["version"] != seen:
            seen, quiet_s = job["version"], 0.0
            yield "job", wire.encode(job)
        if job["state"] in OVER:
            return
        await asyncio.sleep(POLL_S)
        quiet_s += POLL_S
        if quiet_s >= ALIVE_S:
            quiet_s = 0.0
            yield None


def _decoded(data: bytes, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(data or b"{}", type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as err:
        raise BadRequestError(f"the body: {err}; GET /openapi.json says what it takes") from err


def _body(kind: type[Any]) -> Schema:
    (_,), named = msgspec.json.schema_components((kind,), ref_template="{name}")
    return {"required": True, "content": {JSON: {"schema": named[kind.__name__]}}}


def _jobs() -> Schema:
    return {"type": "object", "required": ["jobs"], "properties": {"jobs": {"type": "array", "items": ref("Job")}}}
