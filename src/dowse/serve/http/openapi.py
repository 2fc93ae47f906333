"""JSON schemas of the wire format, for the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from dowse.reports import IndexReport, Status
from dowse.serve.wire.request import CLAUSES, MOMENTS, NESTED, PAIRS, field_types
from dowse.types import Chunk, QueryResult, Service, ServiceContext, ServiceEdge

Schema = dict[str, Any]

JSON = "application/json"
EVENTS = "text/event-stream"
REF = "#/components/schemas/{name}"
_WHERE: Schema = {"type": "array", "items": {"$ref": REF.format(name="Clause")}}
_TEXTS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
_NUMBERS: Schema = {"type": "object", "additionalProperties": {"type": "number"}}
PROBLEM: Schema = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "Cause of the problem, and the change that fixes it."},
    },
}
JOB: Schema = {
    "type": "object",
    "required": ["id", "state", "version", "paths", "created_at"],
    "properties": {
        "id": {"type": "string"},
        "kind": {"enum": ["index", "embed"]},
        "state": {"enum": ["waiting", "running", "done", "failed", "stopped"]},
        "version": {"type": "integer", "description": "Increases with every change of the job."},
        "paths": {"type": "array", "items": {"type": "string"}},
        "created_at": {"type": "string", "format": "date-time"},
        "started_at": {"type": ["string", "null"], "format": "date-time"},
        "finished_at": {"type": ["string", "null"], "format": "date-time"},
        "progress": {"type": ["object", "null"]},
        "report": {"type": ["object", "null"]},
        "error": {"type": ["string", "null"]},
    },
}


def struct_schema(kind: type[Any]) -> Schema:
    (_,), named = msgspec.json.schema_components((kind,), ref_template="{name}")
    found: Schema = named[kind.__name__]
    return found


def object_of(**properties: Schema) -> Schema:
    return {"type": "object", "required": list(properties), "properties": properties}


def list_of(item: str | Schema) -> Schema:
    return {"type": "array", "items": ref(item) if isinstance(item, str) else item}


def event_schema(*names: str) -> Schema:
    """Describe a server-sent event; its data is one line of JSON."""
    data = {"type": "string", "contentMediaType": "application/json"}
    return {
        "type": "object",
        "required": ["event", "data"],
        "properties": {"id": {"type": "string"}, "event": {"enum": list(names)}, "data": data},
    }


def ref(name: str) -> Schema:
    return {"$ref": REF.format(name=name)}


def components() -> dict[str, Schema]:
    """List all named schemas. Pairs in our tuples are JSON objects."""
    kinds = (QueryResult, Chunk, Status, IndexReport, Service, ServiceEdge, ServiceContext)
    _, found = msgspec.json.schema_components(kinds, ref_template=REF)
    schemas: dict[str, Schema] = {name: dict(schema) for name, schema in found.items()}
    schemas["ScoredChunk"]["required"] = schemas["Chunk"]["required"]
    schemas["ScoredChunk"]["properties"] = schemas["ScoredChunk"]["properties"] | schemas["Chunk"]["properties"]
    _set(schemas, "Chunk", meta=_TEXTS)
    # `scores` has a factory, which msgspec does not show as a default.
    _set(schemas, "ScoredChunk", meta=_TEXTS, scores={"type": "array", "items": ref("Score"), "default": []})
    _set(schemas, "QueryMetadata", stages=_NUMBERS, counts=_NUMBERS)
    _set(schemas, "IndexReport", skipped=_NUMBERS, scrubbed=_NUMBERS)
    _set(schemas, "ServiceContext", edges={"type": "array", "items": _TEXTS})
    contexts = {"type": "object", "additionalProperties": ref("ServiceContext")}
    counts = {"type": "object", "additionalProperties": _NUMBERS}
    _set(
        schemas,
        "QueryResult",
        service_context={"anyOf": [contexts, {"type": "null"}]},
        facets=counts | {"description": "With `facets`: the number of candidates by field and value."},
        next_cursor={
            "type": ["string", "null"],
            "description": "With `cursor`: the cursor of the next page; null on the last page.",
        },
    )
    # A server hides the paths of its machine unless the operator allows them.
    _set(schemas, "Status", path={"type": ["string", "null"]})
    _set(schemas, "SourceStatus", root={"type": ["string", "null"]})
    return schemas | {
        "QueryRequest": request_schema(),
        "Clause": {"anyOf": [*map(_clause, CLAUSES), _nested("or", list_of(_WHERE)), _nested("not", _WHERE)]},
        "ProblemDetails": PROBLEM,
        "Job": JOB,
    }


def request_schema() -> Schema:
    """Describe the body of a query."""
    properties = {name: _field(name) for name in field_types()} | {
        "where": _WHERE,
        "facets": {"type": "boolean", "default": False, "description": "Count the candidates by field and value."},
        "cursor": {
            "type": ["string", "null"],
            "description": "Empty for the first page, then the `next_cursor` of the last one.",
        },
    }
    return {"type": "object", "required": ["text"], "properties": properties, "additionalProperties": False}


def request_parameters() -> tuple[Schema, ...]:
    """Describe the parameters of a query in a URL. `where` needs a body."""
    rows = [{"name": "q", "in": "query", "required": True, "schema": {"type": "string"}}]
    for name in field_types():
        if name != "text":
            several = _field(name).get("type") == "array" or name in PAIRS
            schema = {"type": "array", "items": {"type": "string"}} if several else _one(_field(name))
            rows.append({"name": name, "in": "query", "required": False, "schema": schema})
    rows.append({"name": "facets", "in": "query", "required": False, "schema": {"type": "boolean"}})
    rows.append({"name": "cursor", "in": "query", "required": False, "schema": {"type": "string"}})
    return tuple(rows)


def _field(name: str) -> Schema:
    if name == "meta_filter":
        return _TEXTS
    if name == "weights":
        return {"anyOf": [_NUMBERS, {"type": "null"}]}
    if name in MOMENTS:
        return {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "number"}, {"type": "null"}]}
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
    """Drop null, which a URL cannot express."""
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


def _nested(op: str, schema: Schema) -> Schema:
    """Describe a clause that holds other clauses."""
    properties = {"op": {"const": op}, NESTED[op]: schema}
    return {"type": "object", "required": list(properties), "properties": properties, "additionalProperties": False}


def _set(schemas: dict[str, Schema], name: str, **properties: Schema) -> None:
    schemas[name] = schemas[name] | {"properties": schemas[name]["properties"] | properties}
