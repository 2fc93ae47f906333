"""Schemas that clients rely on: those of HTTP and MCP equal the stored ones, descriptions aside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dowse
from dowse.serve.backend import Backend
from dowse.serve.http.admission import AdmissionControl
from dowse.serve.http.app import api_operations
from dowse.serve.http.context import RequestContext
from dowse.serve.http.metrics import Metrics
from dowse.serve.http.openapi import components, request_parameters
from dowse.serve.http.operations import document
from dowse.serve.http.options import ServerOptions
from dowse.serve.mcp.schema import input_schema, output_schema
from dowse.serve.mcp.server import TOOLS

STORED = Path(__file__).parent / "schemas.json"
REF = "#/$defs/"


def test_http_schemas_are_as_stored() -> None:
    assert _bare(components()) == _stored("components")
    assert _bare(request_parameters()) == _stored("parameters")


def test_operations_are_as_stored(tmp_path: Path) -> None:
    options = ServerOptions()
    with Backend(dowse.open(tmp_path / "index", embedder=None)) as backend:
        context = RequestContext(backend, AdmissionControl(options.limits), options)
        paths = document(api_operations(context, Metrics(backend, context.admission)))["paths"]
    found = {
        f"{method.upper()} {path}": _own(_bare(operation))
        for path, operations in paths.items()
        for method, operation in operations.items()
    }
    assert found == _stored("operations")


def test_mcp_schemas_are_as_stored() -> None:
    """A definition's name is ours to change: it is replaced by what it stands for."""
    found = {tool.name: [_inlined(input_schema(tool.takes)), _inlined(output_schema(tool.gives))] for tool in TOOLS}
    assert _bare(found) == _stored("tools")


def _stored(part: str) -> Any:
    return json.loads(STORED.read_text("utf-8"))[part]


def _own(operation: dict[str, Any]) -> dict[str, Any]:
    """Drop the fields of a query, which are stored once for all operations."""
    row, shared = dict(operation), _stored("parameters")
    parameters = row.get("parameters", [])
    if all(each in parameters for each in shared):
        row["parameters"] = [each for each in parameters if each not in shared]
    body = row.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    if "text" in body.get("properties", {}):
        del row["requestBody"]
    return row


def _bare(value: Any) -> Any:
    """Without descriptions, which change with the words and not with the format."""
    if isinstance(value, dict):
        kept = (key for key in value if key != "description" or not isinstance(value[key], str))
        return {key: _bare(value[key]) for key in kept}
    return [_bare(each) for each in value] if isinstance(value, list | tuple) else value


def _inlined(value: Any, parts: dict[str, Any] | None = None) -> Any:
    parts = value.get("$defs", {}) if parts is None else parts
    if isinstance(value, list):
        return [_inlined(each, parts) for each in value]
    if not isinstance(value, dict):
        return value
    if str(value.get("$ref", "")).startswith(REF):
        return _inlined(parts[value["$ref"].removeprefix(REF)], parts)
    return {key: _inlined(each, parts) for key, each in value.items() if key != "$defs"}
