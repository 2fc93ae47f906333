"""Query requests from JSON bodies and URLs, with errors that name the field."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from difflib import get_close_matches
from functools import cache
from typing import Any, Literal, get_args, get_type_hints

import msgspec

from dowse import filters
from dowse.config import Config
from dowse.errors import BadRequestError
from dowse.types import QueryRequest

ALIASES: Mapping[str, str] = {"q": "text", "query": "text", "limit": "top_k"}
PAIRS = ("meta_filter", "weights")  # JSON objects; in a URL key=value, several times
MOMENTS = ("created_after", "created_before")
CONTROLS = ("cursor", "facets")  # of the shape of the answer, not of the query
CLAUSES: Mapping[str, type[filters.Comparison]] = {each.__name__.lower(): each for each in get_args(filters.Comparison)}
NESTED: Mapping[str, str] = {"or": "filters", "not": "where"}  # and the field that holds other clauses
_NUMBER = re.compile(r"-?\d{9,}(\.\d+)?")  # seconds since the epoch in a URL; a date without dashes has 8 digits
_BARE_FRACTION = re.compile(r"^\.(?=\d+$)")  # .3 for 0.3, which JSON does not allow
ServedLeg = Literal["dense", "bm25_code", "bm25_nlp"]
_TRUTH: Mapping[str, bool] = {"true": True, "1": True, "false": False, "0": False}


class ParsedRequest(msgspec.Struct, frozen=True):
    """Query request and the shape of its answer."""

    request: QueryRequest
    cursor: str | None = None  # None: no pages; "" for the first page
    facets: bool = False


@cache
def field_types() -> Mapping[str, Any]:
    """List the fields of a request and their types, except `where`, which has a form of its own."""
    kinds = {name: kind for name, kind in get_type_hints(QueryRequest).items() if name != "where"}
    # An index that is served has no legs of the user.
    return kinds | {"legs": tuple[ServedLeg, ...], "weights": tuple[tuple[ServedLeg, float], ...] | None}


def parse_json(data: bytes, config: Config, also: Iterable[str] = ()) -> tuple[ParsedRequest, dict[str, Any]]:
    """Parse the body of a POST. `also` names keys of the route, which are returned unchanged."""
    try:
        row = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as err:
        raise BadRequestError(f'invalid JSON in the body: {err}; send an object such as {{"text": "retry"}}') from err
    if not isinstance(row, dict):
        raise BadRequestError('the body is not a JSON object; send one such as {"text": "retry payments"}')
    others = {name: row.pop(name) for name in also if name in row}
    return _parsed(row, config, _from_json), others


def parse_url(
    pairs: Iterable[tuple[str, str]], config: Config, also: Iterable[str] = ()
) -> tuple[ParsedRequest, dict[str, str]]:
    """Parse the parameters of a GET, whose text people type. A field with several values may occur several times."""
    values: dict[str, list[str]] = {}
    for name, text in pairs:
        values.setdefault(name, []).append(text)
    others = {name: values.pop(name)[-1] for name in also if name in values}
    return _parsed({"syntax": ["operators"]} | values, config, from_texts), others


def _parsed(row: dict[str, Any], config: Config, convert: Callable[[str, Any], Any]) -> ParsedRequest:
    given: dict[str, Any] = {"top_k": config.top_k, "profile": config.profile}
    controls: dict[str, Any] = {}
    for key, value in row.items():
        name = ALIASES.get(key, key)
        if name in CONTROLS:
            controls[name] = convert(name, value)
        else:
            given[name] = convert(_known(name), value)
    if "text" not in given:
        raise BadRequestError("missing query; send it as `text` in a body or as `q` in a URL")
    return ParsedRequest(QueryRequest(**given), controls.get("cursor"), bool(controls.get("facets")))


def _known(name: str) -> str:
    names = (*field_types(), "where")
    if name not in names:
        close = get_close_matches(name, (*names, *ALIASES, *CONTROLS), n=1)
        advice = f"did you mean {close[0]!r}?" if close else "GET /openapi.json lists the fields"
        raise BadRequestError(f"unknown field {name!r}; {advice}")
    return name


def _kind(name: str) -> Any:
    if name in MOMENTS:
        return float | None  # texts are parsed apart: msgspec allows one type of text in a union
    return {"cursor": str | None, "facets": bool}.get(name) or field_types()[name]


def _from_json(name: str, value: Any) -> Any:
    if name == "where":
        return _where(value)
    if name in PAIRS and isinstance(value, dict):
        value = list(value.items())
    if isinstance(value, str) and _takes_several(name):
        value = [value]
    return _converted(name, value, strict=True)


def from_texts(name: str, texts: list[str]) -> Any:
    """Convert the texts that a URL or a command line gives for one field."""
    if name == "where":
        raise BadRequestError("`where` is not supported in a URL; send the query with POST /v1/query")
    if name == "legs":
        texts = [leg.strip() for text in texts for leg in text.split(",")]
    if name in PAIRS:
        split = [text.partition("=") for text in texts]
        if not all(key and equals for key, equals, _ in split):
            raise BadRequestError(f"invalid {name} {texts[0]!r}; write it as {name}=key=value")
        return _converted(name, [(key, value) for key, _, value in split], strict=False)
    if _takes_several(name):
        return _converted(name, texts, strict=False)
    value: Any = _BARE_FRACTION.sub("0.", texts[-1])
    if bool in getattr(_kind(name), "__args__", (_kind(name),)):
        value = _TRUTH.get(texts[-1].lower(), value)
    return _converted(name, value, strict=False)


def _takes_several(name: str) -> bool:
    return name.endswith("_filter") or name in ("legs", "graph_relations")


def _converted(name: str, value: Any, *, strict: bool) -> Any:
    try:
        if name in MOMENTS and isinstance(value, str) and (strict or not _NUMBER.fullmatch(value)):
            return datetime.fromisoformat(value)  # a date alone is valid, too; msgspec requires all of RFC 3339
        return msgspec.convert(value, _kind(name), strict=strict)
    except ValueError as err:
        raise BadRequestError(f"{name}: {err}; GET /openapi.json lists the fields") from err


def _where(value: Any, depth: int = 0) -> filters.Filter:
    """Parse a list of clauses such as {"op": "gt", "field": "meta.stars", "value": 3}."""
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise BadRequestError('where: send a list of clauses such as {"op": "eq", "field": "language", "value": "go"}')
    if depth > filters.DEEPEST:
        raise BadRequestError(f"where: more than {filters.DEEPEST} levels of or and not; use fewer")
    return tuple(_clause(dict(each), depth) for each in value)


def _clause(row: dict[str, Any], depth: int) -> filters.Clause:
    op = row.pop("op", None)
    if op == "or" and list(row) == ["filters"] and isinstance(row["filters"], list):
        return filters.Or(tuple(_where(each, depth + 1) for each in row["filters"]))
    if op == "not" and list(row) == ["where"]:
        return filters.Not(_where(row["where"], depth + 1))
    if op in NESTED:
        raise BadRequestError(f"where: {op} needs {NESTED[op]!r} and no other field")
    kind = CLAUSES.get(op) if isinstance(op, str) else None
    if kind is None:
        raise BadRequestError(f"where: unknown op {op!r}; choose from {', '.join((*CLAUSES, *NESTED))}")
    try:
        if unknown := set(row) - set(kind.__dataclass_fields__):
            raise BadRequestError(f"where: {op} has no {sorted(unknown)[0]!r}")
        return msgspec.convert(row, kind)
    except msgspec.ValidationError as err:
        raise BadRequestError(f"where: {op}: {err}") from err
