"""The types of the house enter; their JSON schemas leave, as the wire format writes them, for the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dowse.reports import IndexReport, Status
from dowse.serve.wire.request import ALIASES, CLAUSES, MOMENTS, PAIRS, field_types
from dowse.types import Chunk, QueryResult, Service, ServiceContext, ServiceEdge

Schema = dict[str, Any]
REF = "#/components/schemas/{name}"
_TEXTS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
_NUMBERS: Schema = {"type": "object", "additionalProperties": {"type": "number"}}
PROBLEM: Schema = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What was wrong and what to do about it."},
    },
}
JOB: Schema = {
    "type": "object",
    "required": ["id", "state", "version", "paths", "created_at"],
    "properties": {
        "id": {"type": "string"},
        "state": {"enum": ["waiting", "running", "done", "failed", "stopped"]},
        "version": {"type": "integer", "description": "Grows with every change."},
        "paths": {"type": "array", "items": {"type": "string"}},
        "created_at": {"type": "string", "format": "date-time"},
        "started_at": {"type": ["string", "null"], "format": "date-time"},
        "finished_at": {"type": ["string", "null"], "format": "date-time"},
        "progress": {"type": ["object", "null"]},
        "report": {"type": ["object", "null"]},
        "error": {"type": ["string", "null"]},
    },
}


def event_schema(*names: str) -> Schema:
    """One server-sent event; its data is one line of JSON."""
    data = {"type": "string", "contentMediaType": "application/json"}
    return {
        "type": "object",
        "required": ["event", "data"],
        "properties": {"id": {"type": "string"}, "event": {"enum": list(names)}, "data": data},
    }


def ref(name: str) -> Schema:
    return {"$ref": REF.format(name=name)}


def components() -> dict[str, Schema]:
    """All named schemas. Pairs of ours are objects on the wire."""
    kinds = (QueryResult, Chunk, Status, IndexReport, Service, ServiceEdge, ServiceContext)
    _, found = msgspec.json.schema_components(kinds, ref_template=REF)
    schemas: dict[str, Schema] = {name: dict(schema) for name, schema in found.items()}
    _set(schemas, "Chunk", meta=_TEXTS)
    _set(schemas, "ScoredChunk", meta=_TEXTS)
    _set(schemas, "QueryMetadata", stages=_NUMBERS, counts=_NUMBERS)
    _set(schemas, "IndexReport", skipped=_NUMBERS)
    _set(schemas, "ServiceContext", edges={"type": "array", "items": _TEXTS})
    contexts = {"type": "object", "additionalProperties": ref("ServiceContext")}
    counts = {"type": "object", "additionalProperties": _NUMBERS}
    _set(
        schemas,
        "QueryResult",
        service_context={"anyOf": [contexts, {"type": "null"}]},
        facets=counts | {"description": "When asked for: by field and value, how many candidates have it."},
        next_cursor={"type": ["string", "null"], "description": "When a cursor was given; null at the end."},
    )
    # A server does not tell where it keeps things.
    _set(schemas, "Status", path={"type": ["string", "null"]})
    _set(schemas, "SourceStatus", root={"type": ["string", "null"]})
    return schemas | {"QueryRequest": request_schema(), "ProblemDetails": PROBLEM, "Job": JOB}


def request_schema() -> Schema:
    """The body of a question."""
    properties = {name: _field(name) for name in field_types()} | {
        "where": {"type": "array", "items": {"anyOf": [_clause(op) for op in CLAUSES]}},
        "facets": {"type": "boolean", "default": False, "description": "Count the candidates by field."},
        "cursor": {"type": ["string", "null"], "description": "Empty for the first page, then what the last one gave."},
    }
    return {"type": "object", "required": ["text"], "properties": properties, "additionalProperties": False}


def request_parameters() -> list[Schema]:
    """The same for a URL. `where` does not fit into one."""
    rows = [{"name": "q", "in": "query", "required": True, "schema": {"type": "string"}}]
    for name in field_types():
        if name != "text":
            several = _field(name).get("type") == "array" or name in PAIRS
            schema = {"type": "array", "items": {"type": "string"}} if several else _one(_field(name))
            rows.append({"name": name, "in": "query", "required": False, "schema": schema})
    rows.append({"name": "facets", "in": "query", "required": False, "schema": {"type": "boolean"}})
    rows.append({"name": "cursor", "in": "query", "required": False, "schema": {"type": "string"}})
    return rows


def _field(name: str) -> Schema:
    if name == "meta_filter":
        return _TEXTS
    if name == "weights":
        return {"anyOf": [_NUMBERS, {"type": "null"}]}
    if name in MOMENTS:
        return {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]}
    (schema,), named = msgspec.json.schema_components((field_types()[name],), ref_template=REF)
    found: Schema = _inlined(schema, named)
    return found


def _inlined(schema: Any, named: Mapping[str, Any]) -> Any:
    if isinstance(schema, dict):
        if "$ref" in schema:
            return _inlined(named[schema["$ref"].rsplit("/", 1)[1]], named)
        return {key: _inlined(value, named) for key, value in schema.items() if key != "title"}
    return [_inlined(each, named) for each in schema] if isinstance(schema, list) else schema


def _one(schema: Schema) -> Schema:
    """Without null, which a URL cannot say."""
    choices = [each for each in schema.get("anyOf", [schema]) if each.get("type") != "null"]
    return choices[0] if len(choices) == 1 else {"anyOf": choices}


def _clause(op: str) -> Schema:
    (schema,), named = msgspec.json.schema_components((CLAUSES[op],), ref_template=REF)
    found: Schema = _inlined(schema, named)
    return found | {
        "properties": {"op": {"const": op}} | found["properties"],
        "required": ["op", *found["required"]],
        "additionalProperties": False,
    }


def _set(schemas: dict[str, Schema], name: str, **properties: Schema) -> None:
    schemas[name] = schemas[name] | {"properties": schemas[name]["properties"] | properties}


def aliases() -> str:
    return ", ".join(f"`{short}` for `{name}`" for short, name in ALIASES.items())
