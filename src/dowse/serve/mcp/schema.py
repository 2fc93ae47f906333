"""JSON schemas of the MCP tools, parsing of arguments, and encoding of answers."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

import msgspec

from dowse.errors import BadRequestError
from dowse.serve.wire import result as wire

T = TypeVar("T", bound=msgspec.Struct)

_ROOT = "#/$defs/"
_PREFIX = "Mcp"  # of class names; clients see names without it
_MISSING = "Object missing required field "


def input_schema(kind: type[msgspec.Struct]) -> wire.Object:
    """Describe the arguments of a tool. The schema is closed, so that a misspelt argument is an error."""
    return output_schema(kind) | {"additionalProperties": False}


def output_schema(kind: type[msgspec.Struct]) -> wire.Object:
    """Describe the answer of a tool. Answers leave out fields with their default value."""
    whole = msgspec.json.schema(kind)
    parts = whole.get("$defs", {})
    root = dict(parts.pop(whole["$ref"].removeprefix(_ROOT)))  # the protocol requires an object at the root
    if parts:
        root["$defs"] = {name.removeprefix(_PREFIX): part for name, part in parts.items()}
    schema: wire.Object = _reduced(root)
    return schema


def parse_arguments(tool: str, kind: type[T], given: Mapping[str, Any]) -> T:
    """Parse the arguments of a call; null means not given. BadRequestError names the argument to change."""
    known = kind.__struct_fields__
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise BadRequestError(f"{tool} has no argument {name!r}; {hint}arguments: {', '.join(known) or 'none'}")
    try:
        return msgspec.convert({name: value for name, value in given.items() if value is not None}, kind, strict=False)
    except msgspec.ValidationError as err:
        raise BadRequestError(f"{tool}: {_explained(str(err), output_schema(kind)['properties'])}") from err


def plain(answer: object) -> wire.Object:
    """Convert an answer to JSON types without default values, which would cost tokens."""
    row: wire.Object = msgspec.json.decode(wire.encode(msgspec.to_builtins(answer)))
    return row


def _reduced(value: Any) -> Any:
    """Drop titles, descriptions of classes, empty defaults and null from a schema to save tokens."""
    if isinstance(value, list):
        return [_reduced(each) for each in value]
    if not isinstance(value, dict):
        return value.replace(_ROOT + _PREFIX, _ROOT) if isinstance(value, str) else value
    kept = {key: _reduced(each) for key, each in value.items() if not _is_noise(key, each, value)}
    choices = [each for each in kept.get("anyOf", ()) if each != {"type": "null"}]
    if len(choices) != 1:
        return kept
    del kept["anyOf"]
    return choices[0] | kept


def _is_noise(key: str, value: Any, around: Mapping[str, Any]) -> bool:
    return (
        (key == "title" and isinstance(value, str))
        or (key == "description" and "properties" in around)
        or (key == "default" and value in (None, "", (), [], False, 0))
        or (key == "required" and value == [])
    )


def _explained(problem: str, known: wire.Object) -> str:
    """Turn `Expected int <= 30 - at $.limit` into `limit: expected int <= 30`, with the description of the schema."""
    what, _, name = problem.replace("`", "").partition(" - at $.")
    missing = what.removeprefix(_MISSING)
    if missing != what:
        name, what = missing, "is missing"
    about = known.get(name, {})
    choices = about.get("enum")
    means = f"one of {', '.join(choices)}" if choices else about.get("description", "")
    return f"{name}: {what[0].lower()}{what[1:]}" + (f"; expected: {means}" if means else "")
