"""The [profiles.NAME] tables of a settings file go in, profiles come out, or an error that names table and key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from math import isfinite
from typing import Any, get_args

from dowse.errors import BadRequestError
from dowse.query.plan.profiles import LINKS, PLACES, PROFILES, Merge, Profile, named
from dowse.query.stages.freshness_and_boost import BoostRule
from dowse.query.stages.graph import GraphOptions
from dowse.types import LEGS, CorpusType, Fusion, ParentMode, QueryType

BASE = "base"  # the profile that a table starts from; default, or the one of the same name
Read = Callable[[object], Any]


def with_own(tables: Mapping[str, Mapping[str, Any]]) -> tuple[Profile, ...]:
    """The built-in profiles and the user's. A table with a built-in's name changes that one."""
    profiles = list(PROFILES)
    for name, table in tables.items():
        made = _profile(name, table, tuple(profiles))
        profiles = [each for each in profiles if each.name != name] + [made]
    return tuple(profiles)


def _profile(name: str, table: Mapping[str, Any], known: tuple[Profile, ...]) -> Profile:
    there = {profile.name for profile in known}
    base = named(str(table.get(BASE, name if name in there else "default")), known)
    changes: dict[str, Any] = {}
    for key, value in table.items():
        if key == BASE:
            continue
        if key not in READS:
            from difflib import get_close_matches

            close = get_close_matches(key, READS, n=1)
            advice = f"did you mean {close[0]!r}?" if close else f"choose from {', '.join(sorted(READS))}"
            raise BadRequestError(f"[profiles.{name}]: unknown key {key!r}; {advice}")
        try:
            changes[key] = READS[key](value)
        except ValueError as err:
            raise BadRequestError(f"[profiles.{name}]: {key} is {value!r}; {err}") from err
    return replace(base, name=name, **changes)


def _whole(least: int) -> Read:
    def read(value: object) -> int:
        if type(value) is not int or value < least:
            raise ValueError(f"give a whole number of at least {least}")
        return value

    return read


def _number(low: float, high: float = float("inf")) -> Read:
    def read(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            span = f"of at least {low:g}" if high == float("inf") else f"between {low:g} and {high:g}"
            raise ValueError(f"give a number {span}")
        return float(value)

    return read


def _switch(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("write true or false")
    return value


def _one_of(choices: Sequence[str]) -> Read:
    def read(value: object) -> str:
        if value not in choices:
            raise ValueError(f"choose from {', '.join(choices)}")
        return str(value)

    return read


def _some_of(choices: Sequence[str]) -> Read:
    def read(value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or any(each not in choices for each in value) or len(set(value)) < len(value):
            raise ValueError(f"write a list of some of {', '.join(choices)}, each once")
        return tuple(value)

    return read


def _weights(value: object) -> tuple[tuple[str, float], ...]:
    """A table by leg: every leg has one, and not all are 0."""
    if not isinstance(value, dict) or set(value) != set(LEGS):
        raise ValueError(f"give a weight to each of {', '.join(LEGS)}")
    weights = {leg: _number(0)(weight) for leg, weight in value.items()}
    if not any(weights.values()) or not all(isfinite(weight) for weight in weights.values()):
        raise ValueError("give at least one leg a weight above 0, none of them infinite")
    return tuple(weights.items())


def _scale(value: object) -> tuple[float, float]:
    if not isinstance(value, list) or len(value) != 2 or not value[0] < value[1]:
        raise ValueError("give a lower and a higher end, as in [0, 10]")
    return float(value[0]), float(value[1])


def _rules(value: object) -> tuple[BoostRule, ...]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ValueError("write [[profiles.NAME.boost_rules]] with words, corpus_types and factor")
    return tuple(_rule(each) for each in value)


def _rule(table: Mapping[str, Any]) -> BoostRule:
    if set(table) != {"words", "corpus_types", "factor"} or not isinstance(table["words"], list) or not table["words"]:
        raise ValueError("a rule has words, corpus_types and factor, and nothing else")
    words = tuple(" ".join(str(word).lower().split()) for word in table["words"])
    return BoostRule(words, _some_of([*CorpusType])(table["corpus_types"]), _number(0)(table["factor"]))


def _by_type(value: object) -> tuple[tuple[QueryType, float, int], ...]:
    if not isinstance(value, dict) or any(
        not isinstance(of, dict) or set(of) != {"alpha", "top_k"} for of in value.values()
    ):
        raise ValueError("write [profiles.NAME.by_type.factual] with alpha and top_k")
    return tuple(
        (QueryType(_one_of([*QueryType])(kind)), _number(0, 1)(of["alpha"]), _whole(1)(of["top_k"]))
        for kind, of in value.items()
    )


def _graph_options(value: object) -> GraphOptions:
    reads: Mapping[str, Read] = {
        "seeds": _whole(1), "hops": _whole(1), "graph_weight": _number(0, 1), "vector_weight": _number(0, 1),
        "min_weight": _number(0, 1), "bidirectional": _switch, "slots": _whole(0), "frontier": _whole(1),
        "by_cosine": _switch, "literal": _switch,
        "decay": lambda given: tuple(_number(0, 1)(each) for each in given),  # type: ignore[attr-defined]
        "relations": lambda given: tuple(map(str, given)),  # type: ignore[call-overload]
    }  # fmt: skip
    if not isinstance(value, dict) or any(key not in reads for key in value):
        raise ValueError(f"choose from {', '.join(sorted(each.name for each in fields(GraphOptions)))}")
    return GraphOptions(**{key: reads[key](given) for key, given in value.items()})


READS: Mapping[str, Read] = {
    **dict.fromkeys(("top_k", "depth", "window", "llm_window", "llm_characters", "missing_rank"), _whole(1)),
    "rank_constant": _whole(0),
    "k1": _number(0),
    "b": _number(0, 1),
    **dict.fromkeys(("alpha", "crowd", "pull", "rerank_weight", "freshness_weight"), _number(0, 1)),
    **dict.fromkeys(("min_score", "diversity"), _number(0, 1)),
    "min_similarity": _number(-1, 1),
    **dict.fromkeys(("exponent", "freshness_half_life_days", "rerank_timeout_s", "boost_cap"), _number(1e-9)),
    **dict.fromkeys(
        (
            "expand", "classify_by_llm", "steer", "freshness_boost_only", "boost", "mmr", "exact", "metadata",
            "graph", "expand_graph",
        ),
        _switch,
    ),
    "fusion": _one_of(get_args(Fusion)),
    "merge": _one_of(get_args(Merge)),
    "parents": _one_of(get_args(ParentMode)),
    "legs": _some_of(LEGS),
    "rerank": _some_of(LINKS),
    "order": _some_of(PLACES),
    "weights": _weights,
    "llm_scale": _scale,
    "boost_rules": _rules,
    "by_type": _by_type,
    "graph_options": _graph_options,
}  # fmt: skip
