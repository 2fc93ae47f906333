"""What a language model wrote goes in, the JSON value it was asked for comes out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

# Reasoning models think aloud first, and what they think may hold drafts of the answer.
_THOUGHT = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_OPENING = re.compile(r"[{\[]")
_TYPES: Mapping[str, type] = {"object": dict, "array": list}
LONGEST_CHARACTERS = 200_000  # chosen: a hundred times what any stage asks for
MOST_STARTS = 1_000  # chosen; every "[" that begins nothing costs a try


def json_value(text: str, schema: Mapping[str, Any]) -> Any:
    """The first value of the schema's type that has its required keys, else of its type, else the first at all.

    Fences and prose around it do not matter (B-56). ValueError when there is no object or array.
    """
    found = list(json_values(_THOUGHT.sub("", text[:LONGEST_CHARACTERS])))
    if not found:
        raise ValueError("no JSON object or array in it")
    kind = _TYPES.get(schema.get("type", ""), object)
    of_kind = [value for value in found if isinstance(value, kind)]
    required = set(schema.get("required", ()))
    complete = [value for value in of_kind if not isinstance(value, dict) or required <= value.keys()]
    return (complete or of_kind or found)[0]


def json_values(text: str) -> Iterator[Any]:
    """Objects and arrays in order, none of them inside another; NaN and infinity become null (B-55)."""
    decoder = json.JSONDecoder(parse_constant=lambda _: None, strict=False)  # not strict: raw line breaks in strings
    at = 0
    for _ in range(MOST_STARTS):
        opening = _OPENING.search(text, at)
        if opening is None:
            return
        try:
            value, at = decoder.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            at = opening.end()
        else:
            yield value
