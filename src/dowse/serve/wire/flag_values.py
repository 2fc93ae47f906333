"""Texts typed as flags enter; moments, pairs, weights and legs leave, or an error that shows how to write one.

Each public function with `ctx` and `param` is a callback of a click option.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dowse.types import Leg, QueryType

_AGO = re.compile(r"(\d+)\s*(h|d|w|mo|y)")
_HOURS = (("h", 1), ("d", 24), ("w", 7 * 24), ("mo", 30 * 24), ("y", 365 * 24))
_ONE_TICK = timedelta(microseconds=1)


def since(_ctx: click.Context, _param: click.Parameter, text: str | None) -> datetime | None:
    return None if text is None else parse_moment(text, datetime.now(UTC), end=False)


def until(_ctx: click.Context, _param: click.Parameter, text: str | None) -> datetime | None:
    return None if text is None else parse_moment(text, datetime.now(UTC), end=True)


def parse_moment(text: str, now: datetime, *, end: bool) -> datetime:
    """A bound that, as filters do, excludes the moment itself; a day or moment that is typed counts wholly.

    So a start is the last moment before it, and an `end` the first one after it. Without a zone it is UTC.
    """
    try:
        ago = _AGO.fullmatch(text.strip())
        if ago:
            return now - timedelta(hours=int(ago[1]) * dict(_HOURS)[ago[2]])
        moment = datetime.fromisoformat(text.strip())
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        whole_day = end and "T" not in text and ":" not in text
        return moment + (timedelta(days=1) if whole_day else _ONE_TICK) if end else moment - _ONE_TICK
    except (ValueError, OverflowError) as err:
        raise click.BadParameter(f"{text!r} is no time; write 90d, 12h, 2w, 6mo, 1y or 2026-01-31") from err


def pairs(_ctx: click.Context, _param: click.Parameter, texts: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """`key=value`; the value may be empty and may hold further equals signs."""
    split = [text.partition("=") for text in texts]
    for key, equals, value in split:
        if not key or not equals:
            raise click.BadParameter(f"{key + equals + value!r} is no pair; write it as team=payments")
    return tuple((key, value) for key, _, value in split)


def weights(
    _ctx: click.Context, _param: click.Parameter, texts: tuple[str, ...]
) -> tuple[tuple[Leg, float], ...] | None:
    """`dense=0.7`."""
    return tuple(_weight(text) for text in texts) or None


def legs(_ctx: click.Context, _param: click.Parameter, text: str | None) -> tuple[Leg, ...]:
    """`dense,bm25_nlp`; all of them when nothing is typed."""
    from dowse.types import LEGS

    return LEGS if text is None else tuple(_leg(name.strip()) for name in text.split(","))


def query_type(_ctx: click.Context, _param: click.Parameter, text: str | None) -> QueryType | None:
    from dowse.types import QueryType

    if text is None:
        return None
    for kind in QueryType:
        if kind == text:
            return kind
    raise click.BadParameter(f"unknown type of question {text!r}; choose from {', '.join(QueryType)}")


def _weight(text: str) -> tuple[Leg, float]:
    name, _, number = text.partition("=")
    try:
        return _leg(name), float(number)
    except ValueError as err:
        raise click.BadParameter(f"{text!r} is no weight; write it as dense=0.7") from err


def _leg(name: str) -> Leg:
    from dowse.types import LEGS

    for leg in LEGS:
        if leg == name:
            return leg
    raise click.BadParameter(f"unknown leg {name!r}; choose from {', '.join(LEGS)}")
