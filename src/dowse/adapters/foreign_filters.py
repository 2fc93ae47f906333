"""Filters of LangChain and Haystack, translated to those of Dowse."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from dowse.errors import BadRequestError
from dowse.filters import META, Clause, Eq, Filter, Gt, In, Lt, Not, Or, Prefix, Value, as_filter

_OPERATORS = {"$eq": "==", "$ne": "!=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<=", "$in": "in",
              "$nin": "not in"}  # fmt: skip
_NOTHING = Or(())


def langchain_filter(given: Mapping[str, Any] | Clause | Filter | None) -> Filter:
    """Translate `{"year": {"$gte": 2020}, "$or": [...]}`; filters of Dowse pass as they are."""
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        return as_filter(given)
    return tuple(clause for key, value in given.items() for clause in _of_key(key, value))


def _of_key(key: str, value: Any) -> Filter:
    if key in ("$and", "$or"):
        if not isinstance(value, list):
            raise BadRequestError(f"{key} needs a list of filters")
        filters = tuple(map(langchain_filter, value))
        return (Or(filters),) if key == "$or" else tuple(clause for each in filters for clause in each)
    if key == "$not":
        return (Not(langchain_filter(value)),)
    if key.startswith("$"):
        raise BadRequestError(f"unknown operator {key!r}; choose from $and, $or, $not")
    if not isinstance(value, Mapping):
        return (compared(META + key, "==", value),)
    for name in value:
        if name not in _OPERATORS:
            raise BadRequestError(f"unknown operator {name!r} of {key!r}; choose from {', '.join(_OPERATORS)}")
    return tuple(compared(META + key, _OPERATORS[name], each) for name, each in value.items())


def haystack_filter(given: Mapping[str, Any] | None) -> Filter:
    """Translate `{"operator": "AND", "conditions": [...]}` and `{"field": ..., "operator": ..., "value": ...}`."""
    if not given:
        return ()
    wanted = ("field", "operator", "value") if "field" in given else ("operator", "conditions")
    for key in wanted:
        if key not in given:
            raise BadRequestError(f"the filter {dict(given)} has no {key!r}")
    operator = given["operator"]
    if "field" in given:
        field = "file_path" if given["field"] == "id" else META + given["field"].removeprefix(META)
        return (compared(field, operator, given["value"]),)
    filters = tuple(map(haystack_filter, given["conditions"]))
    both = tuple(clause for each in filters for clause in each)
    if operator not in ("AND", "OR", "NOT"):
        raise BadRequestError(f"unknown operator {operator!r}; choose from AND, OR, NOT")
    return both if operator == "AND" else (Or(filters),) if operator == "OR" else (Not(both),)


def compared(field: str, operator: str, value: Any) -> Clause:
    """Return the comparison of a field. A missing field is None, which is equal to None only."""
    if operator in ("!=", "not in"):
        return Not((compared(field, "==" if operator == "!=" else "in", value),))
    if operator == "in":
        if not isinstance(value, list):
            raise BadRequestError(f"the operator 'in' needs a list, not {value!r}")
        return In(field, tuple(map(_plain, value)))
    if operator == "==":
        return Not((Prefix(field, ""),)) if value is None else Eq(field, _plain(value))
    if operator not in (">", ">=", "<", "<="):
        raise BadRequestError(f"unknown operator {operator!r}; choose from ==, !=, >, >=, <, <=, in, not in")
    if value is None:
        return _NOTHING
    bound = _ordered(value)
    strict = Gt(field, bound) if operator[0] == ">" else Lt(field, bound)
    return Or(((strict,), (Eq(field, bound),))) if operator.endswith("=") else strict


def _plain(value: Any) -> Value:
    """Return a value as the index stores it: numbers and text as they are, all else as JSON."""
    return value if isinstance(value, str | int | float) and not isinstance(value, bool) else json.dumps(value)


def _ordered(value: Any) -> Value:
    if isinstance(value, datetime):
        return value.isoformat()
    try:
        if isinstance(value, str):
            datetime.fromisoformat(value)
    except ValueError as err:
        raise BadRequestError(f"cannot compare {value!r}; use a number or an ISO 8601 date") from err
    if not isinstance(value, str | int | float):
        raise BadRequestError(f"cannot compare {value!r}; use a number or an ISO 8601 date")
    return value
