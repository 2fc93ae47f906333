"""Dataclasses become JSON schemas, a call's arguments become a dataclass, and answers become plain JSON objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from difflib import get_close_matches
from typing import Any, TypeVar

import msgspec

from dowse.errors import BadRequestError
from dowse.serve.wire import result as wire

T = TypeVar("T")

_ROOT = "#/$defs/"
_MISSING = "Object missing required field "


def input_schema(kind: type[Any]) -> wire.Object:
    """What a tool takes. Closed, so that a misspelt argument is told and not ignored."""
    return _schema(kind) | {"additionalProperties": False}


def output_schema(kind: type[Any]) -> wire.Object:
    """What a tool answers. Fields with a default are left out of answers where they hold it."""
    return _schema(kind)


def arguments(tool: str, kind: type[T], given: Mapping[str, Any]) -> T:
    """The call as a value, or an error that says which argument to change and how. Null counts as not given."""
    known = [each.name for each in ordered(kind)]
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}? " if near else ""
            raise BadRequestError(f"{tool} has no argument {name!r}; {hint}it takes {', '.join(known) or 'none'}")
    try:
        return msgspec.convert({name: value for name, value in given.items() if value is not None}, kind, strict=False)
    except msgspec.ValidationError as err:
        raise BadRequestError(f"{tool}: {_in_words(str(err), _schema(kind)['properties'])}") from err


def plain(answer: object) -> wire.Object:
    """An answer as JSON knows it, without what is as it is by default: an agent reads every token."""
    row: wire.Object = msgspec.json.decode(wire.encode(_without_defaults(answer)))
    return row


def ordered(kind: Any) -> list[Field[Any]]:
    """The fields of a dataclass as a reader wants them: its own, then those that all of its kind have."""
    return sorted(fields(kind), key=lambda each: each.kw_only is True)


def _schema(kind: type[Any]) -> wire.Object:
    whole = msgspec.json.schema(kind)
    parts = whole.get("$defs", {})
    root = dict(parts.pop(whole["$ref"].removeprefix(_ROOT)))  # the protocol wants an object at the root
    root["properties"] = {each.name: root["properties"][each.name] for each in ordered(kind)}
    if parts:
        root["$defs"] = parts
    schema: wire.Object = _untitled(root)
    return schema


def _untitled(value: Any) -> Any:
    """Without what repeats or says nothing, for it costs tokens in every session: titles, empty defaults, and null,
    which is neither needed in a call nor found in an answer.
    """
    if isinstance(value, list):
        return [_untitled(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {key: _untitled(each) for key, each in value.items() if not _says_nothing(key, each)}
    choices = [each for each in kept.get("anyOf", ()) if each != {"type": "null"}]
    if len(choices) != 1:
        return kept
    del kept["anyOf"]
    return choices[0] | kept


def _says_nothing(key: str, value: Any) -> bool:
    return (
        (key == "title" and isinstance(value, str))
        or (key == "default" and value in (None, "", (), [], False, 0))
        or (key == "required" and value == [])
    )


def _without_defaults(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_without_defaults(each) for each in value]
    if not hasattr(value, "__dataclass_fields__"):
        return value
    pairs = [(each, getattr(value, each.name)) for each in ordered(value)]
    return {
        each.name: _without_defaults(found) for each, found in pairs if each.default is MISSING or found != each.default
    }


def _in_words(problem: str, known: wire.Object) -> str:
    """`Expected int <= 30 - at $.limit` becomes `limit: expected int <= 30; it is …`, with what the schema says."""
    what, _, name = problem.replace("`", "").partition(" - at $.")
    missing = what.removeprefix(_MISSING)
    if missing != what:
        name, what = missing, "is missing"
    about = known.get(name, {})
    choices = about.get("enum")
    means = f"one of {', '.join(choices)}" if choices else about.get("description", "")
    return f"{name}: {what[0].lower()}{what[1:]}" + (f"; it is: {means}" if means else "")
