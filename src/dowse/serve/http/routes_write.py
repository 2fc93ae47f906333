"""Write routes: documents, index jobs and judgments. They answer 403 unless the server runs with --allow-write."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from dowse.errors import BadRequestError
from dowse.ingest.documents import SOURCE, NewDocument, new_document
from dowse.serve.http.context import RequestContext, event_stream
from dowse.serve.http.openapi import EVENTS, Schema, event_schema, list_of, object_of, struct_schema
from dowse.serve.http.operations import Operation, Operations
from dowse.serve.jobs import OVER
from dowse.serve.wire import result as wire
from dowse.serve.wire.result import Object
from dowse.types import CorpusType

POLL_S = 0.1  # delay until a change of a job is noticed; chosen
ALIVE_S = 15.0  # between keep-alive comments, so that a closed connection is noticed; chosen
NDJSON = "application/x-ndjson"
_MOMENT: Schema = {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "null"}], "default": None}
_DOCUMENT: tuple[Schema, ...] = (
    {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}},
    {"name": "source", "in": "query", "required": False, "schema": {"type": "string", "default": SOURCE}},
)
_JOB_ID: Schema = {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "title": "Id"}}


class IndexOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Sources or `source/path`s to update; none means all."""

    paths: tuple[str, ...] = ()
    embed: bool = True


class Opinion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Grade of a chunk for a query, from 0 (wrong) to 3 (exactly right)."""

    query: str
    target: str
    grade: float


def write_operations(context: RequestContext) -> list[Operation]:
    api, backend = Operations(context, "write"), context.backend

    @api.add("/v1/index", "Job", method="POST", status=202, body=struct_schema(IndexOrder))
    async def index(request: Request) -> Response:
        """Start a job that updates sources. Requires --allow-write."""
        order = _decoded(await context.body(request), IndexOrder)
        answer = await context.answer(request, lambda: backend.start_index(order.paths, embed=order.embed), 202)
        answer.headers["Location"] = f"/v1/jobs/{msgspec.json.decode(answer.body)['id']}"
        return answer

    @api.get("/v1/jobs", object_of(jobs=list_of("Job")))
    def jobs() -> Object:
        """List index jobs, newest first."""
        return backend.jobs()

    @api.get("/v1/jobs/{id}", "Job")
    def job(id: str) -> Object:
        """Read the state of a job."""
        return backend.job(id)

    @api.add("/v1/jobs/{id}/events", event_schema("job"), media_type=EVENTS, parameters=(_JOB_ID,))
    async def job_events(request: Request) -> Response:
        """Stream every change of a job as events `job` until it ends."""
        job_id = request.path_params["id"]
        backend.job(job_id)
        return event_stream(_changes(context, job_id))

    @api.add("/v1/feedback", {"type": "object"}, method="POST", body=struct_schema(Opinion))
    async def feedback(request: Request) -> Response:
        """Store a judgment of a result for `dowse eval --judged` and `dowse tune`. Requires --allow-write."""
        given = _decoded(await context.body(request), Opinion)
        return await context.answer(request, lambda: backend.feedback(given.query, given.target, given.grade))

    @api.add("/v1/documents/{id:path}", "IndexReport", method="PUT", body=document_body(), parameters=_DOCUMENT)
    async def put_document(request: Request) -> Response:
        """Add or replace a document without a file. Requires --allow-write."""
        data = await context.body(request, most=context.options.limits.documents_bytes)
        fields, row = _address(request), _decoded(data, dict[str, Any])
        if any(row.get(name, value) != value for name, value in fields.items()):
            raise BadRequestError("the id and source of the body differ from those of the URL; leave them out")
        given = new_document(row | fields)

        def work() -> Object:
            report = backend.put_documents([given])
            if report["problems"]:
                raise BadRequestError(report["problems"][0]["reason"])
            return report

        return await context.answer(request, work)

    @api.add("/v1/documents/{id:path}", object_of(removed={"type": "integer"}), method="DELETE", parameters=_DOCUMENT)
    async def delete_document(request: Request) -> Response:
        """Remove a document that was added by id. Requires --allow-write."""
        fields = _address(request)
        return await context.answer(request, lambda: backend.remove_document(fields["id"], fields["source"]))

    @api.add("/v1/documents", "IndexReport", method="POST", body={"type": "string"}, body_type=NDJSON)
    async def add_documents(request: Request) -> Response:
        """Add or replace documents, one JSON object a line. A bad line is in `problems`. Requires --allow-write."""
        data = await context.body(request, NDJSON, context.options.limits.documents_bytes)
        rows = [line for line in data.split(b"\n") if line.strip()]
        return await context.answer(request, lambda: backend.put_documents(rows))

    return api.found


def document_body() -> Schema:
    """Describe a document without its id, which is in the URL."""
    schema = struct_schema(NewDocument)
    schema["properties"] |= {"created_at": _MOMENT, "corpus_type": {"enum": [None, *CorpusType]}}
    return schema | {"required": [], "properties": {k: v for k, v in schema["properties"].items() if k != "id"}}


def _address(request: Request) -> dict[str, str]:
    return {"id": request.path_params["id"], "source": request.query_params.get("source", SOURCE)}


async def _changes(context: RequestContext, job_id: str) -> AsyncIterator[tuple[str, bytes] | None]:
    """Poll: a blocked thread for each watcher would leave fewer threads for queries."""
    seen, quiet_s = -1, 0.0
    while not context.stopping():
        job = context.backend.job(job_id)
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
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as err:
        raise BadRequestError(f"invalid body: {err}; GET /openapi.json lists its fields") from err
