"""Profiles from the [profiles.NAME] tables of a settings file; an error names the table and the key."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, get_args, get_type_hints

import msgspec
from msgspec.structs import replace

from dowse.config import RENAMED_KEYS, suggestion
from dowse.errors import BadRequestError
from dowse.query.plan.profiles import LINKS, PROFILES, SLOTS, Merge, Profile, named
from dowse.query.stages.graph import GraphOptions
from dowse.types import LEGS, CorpusType, Fusion, ParentMode, QueryType

BASE = "base"  # key for the profile that a table starts from; else `default`, or the one of the same name
CHOICES: Mapping[str, tuple[str, ...]] = {
    "fusion": get_args(Fusion),
    "merge": get_args(Merge),
    "parents": get_args(ParentMode),
    "legs": LEGS,
    "rerank": LINKS,
    "order": SLOTS,
    "boost_rules": tuple(CorpusType),
    "graph_options": GraphOptions.__struct_fields__,
}
KEYS = tuple(name for name in Profile.__struct_fields__ if name != "name")

_TYPES = get_type_hints(Profile, include_extras=True)


def with_own(tables: Mapping[str, Mapping[str, Any]]) -> tuple[Profile, ...]:
    """Return the built-in profiles and the user's. A table with the name of a built-in changes that one."""
    profiles = list(PROFILES)
    for name, table in tables.items():
        made = _profile(name, table, tuple(profiles))
        profiles = [each for each in profiles if each.name != name] + [made]
    return tuple(profiles)


def _profile(name: str, table: Mapping[str, Any], known: tuple[Profile, ...]) -> Profile:
    base = named(str(table.get(BASE, name if any(each.name == name for each in known) else "default")), known)
    changes: dict[str, Any] = {}
    for key, value in _renamed(table).items():
        if key not in KEYS:
            raise BadRequestError(f"[profiles.{name}]: unknown key {key!r}; {suggestion(key, sorted(KEYS))}")
        try:
            changes[key] = _value(key, value)
        except ValueError as err:  # also msgspec.ValidationError
            raise BadRequestError(f"[profiles.{name}]: {key} is {value!r}; {_advice(key, err)}") from err
    return replace(base, name=name, **changes)


def _advice(key: str, err: ValueError) -> str:
    reason = str(err).replace("`", "")
    reason = reason[0].lower() + reason[1:]
    if key not in CHOICES:
        return reason
    choices = f"choose from {', '.join(CHOICES[key])}"
    return choices if reason.startswith("invalid enum value") else f"{reason}; {choices}"


def _renamed(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table without its base, with former keys under their names of today; a key of today wins."""
    old = {new: table[key] for key, new in RENAMED_KEYS.items() if key in table and new}
    return old | {key: value for key, value in table.items() if key not in (*RENAMED_KEYS, BASE)}


def _value(key: str, given: object) -> Any:
    """Return the value of a key, checked by the type of its field and by rules that a type cannot express."""
    if key == "weights":
        given = _weights(given)
    if key == "by_type":
        given = _by_type(given)
    if key == "boost_rules":
        given = _rules(given)
    value = msgspec.convert(given, _TYPES[key])
    if key in ("legs", "rerank", "order") and len(set(value)) < len(value):
        raise ValueError("name each once")
    if key == "legs" and not set(value) <= set(LEGS):
        raise ValueError("invalid enum value")
    if key == "llm_scale" and not value[0] < value[1]:
        raise ValueError("give a lower and a higher end, as in [0, 10]")
    return value


def _weights(given: object) -> list[tuple[str, object]]:
    """Read a table by leg: every leg has a weight, and not all are 0."""
    if not isinstance(given, dict) or set(given) != set(LEGS):
        raise ValueError(f"give a weight to each of {', '.join(LEGS)}")
    numbers = [each for each in given.values() if isinstance(each, int | float)]
    if not any(numbers) or not all(map(isfinite, numbers)):
        raise ValueError("give at least one leg a weight above 0, none of them infinite")
    return list(given.items())


def _by_type(given: object) -> list[tuple[object, ...]]:
    if not isinstance(given, dict) or any(
        not isinstance(of, dict) or set(of) != {"alpha", "top_k"} for of in given.values()
    ):
        raise ValueError("write [profiles.NAME.by_type.factual] with alpha and top_k")
    return [(QueryType(kind), of["alpha"], of["top_k"]) for kind, of in given.items()]


def _rules(given: object) -> list[dict[str, Any]]:
    if not isinstance(given, list) or not all(isinstance(each, dict) and each.get("words") for each in given):
        raise ValueError("write [[profiles.NAME.boost_rules]] with words, corpus_types and factor")
    return [each | {"words": [" ".join(str(word).lower().split()) for word in each["words"]]} for each in given]
