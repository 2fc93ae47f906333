"""Addresses of the page: the parameters of a URL enter; what they ask for, and the addresses beside it, leave.

The whole state of a page is in its address: the fields of a request under the names that `/v1/search` has for them, a
span of time as `dowse search` has it, and what is looked at (`why`, `target`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

import click

from dowse.config import Config
from dowse.errors import BadRequestError
from dowse.serve.wire.flag_values import parse_moment
from dowse.serve.wire.request import Asked, asked_in_url
from dowse.types import QueryRequest

Pairs = tuple[tuple[str, str], ...]

SPAN = ("since", "until")  # days, or 90d: as `dowse search --since` takes them
LOOKED_AT = ("why", "target")  # a hit whose way is shown, a place that is asked about
CHOSEN_ANEW = ("cursor", "facets", *LOOKED_AT)  # belong to one answer: another question begins without them


@dataclass(frozen=True)
class Wanted:
    """What an address asks for."""

    pairs: Pairs  # without those that are blank, as a form sends them
    text: str = ""
    asked: Asked | None = None  # None while there is no question
    why: str = ""  # a chunk's id
    target: str = ""

    @property
    def request(self) -> QueryRequest:
        if self.asked is None:
            raise BadRequestError("there is no question; type one, or give it as `q`")
        return replace(self.asked.request, explain=True)


def wanted_in_url(pairs: Iterable[tuple[str, str]], config: Config) -> Wanted:
    """A field that does not exist is an error here, too."""
    kept = tuple((name, text.strip()) for name, text in pairs if text.strip() and name != "facets")
    own = dict(kept)
    asked = None
    if "q" in own:
        fields = [(name, text) for name, text in kept if name not in (*SPAN, *LOOKED_AT)]
        asked, _ = asked_in_url(fields, config)
        asked = replace(asked, request=replace(asked.request, **_span(own, datetime.now(UTC))))
    return Wanted(kept, own.get("q", ""), asked, own.get("why", ""), own.get("target", ""))


def _span(own: Mapping[str, str], now: datetime) -> dict[str, Any]:
    fields = {"since": ("created_after", False), "until": ("created_before", True)}
    try:
        return {name: parse_moment(own[word], now, end=end) for word, (name, end) in fields.items() if own.get(word)}
    except click.BadParameter as err:
        raise BadRequestError(err.message) from err


# --- addresses beside it ----------------------------------------------------------------------------


def address(pairs: Iterable[tuple[str, str]], path: str = "/") -> str:
    query = urlencode(list(pairs), errors="replace")
    return f"{path}?{query}" if query else path


def document_address(uri: str, query: str = "", lines: tuple[int, int] | None = None) -> str:
    """The page of a document, at some lines of it if given, with the question's words marked."""
    pairs = [("q", query)] if query else []
    if lines is None:
        return address(pairs, f"/documents/{path_part(uri)}")
    pairs += [("first", str(lines[0])), ("last", str(lines[1]))]
    return address(pairs, f"/documents/{path_part(uri)}") + f"#L{lines[0]}"


def path_part(path: str) -> str:
    """A path inside an address. File names need not be text; what cannot be said in UTF-8 is sent byte by byte."""
    return quote(path, safe="/", errors="surrogateescape")


def fresh(pairs: Pairs) -> Pairs:
    """The same question, begun anew."""
    return tuple(pair for pair in pairs if pair[0] not in CHOSEN_ANEW)


def without(pairs: Pairs, *names: str, value: str | None = None) -> Pairs:
    return tuple(pair for pair in pairs if not (pair[0] in names and value in (None, pair[1])))


def changed(pairs: Pairs, fields: Mapping[str, Any]) -> Pairs:
    """With these fields of a request instead of their own; None and an empty list take them away."""
    rest = without(fresh(pairs), *fields, *(SPAN if {"created_after", "created_before"} & set(fields) else ()))
    return (*rest, *((name, text) for name, value in fields.items() for text in texts_of(name, value)))


def texts_of(name: str, value: Any) -> Sequence[str]:
    """A field's value as parameters of a URL."""
    if value is None:
        return ()
    if isinstance(value, bool):
        return ("true" if value else "false",)
    if isinstance(value, Mapping):
        return tuple(f"{key}={each}" for key, each in value.items())
    if isinstance(value, list | tuple):
        pair = name in ("meta_filter", "weights")
        return tuple("=".join(map(str, each)) if pair else str(each) for each in value)
    return (value.isoformat() if isinstance(value, datetime) else str(value),)
