"""URLs of the web page: parsing of their parameters, and links to other pages.

The URL holds the whole state of a page: the fields of a request under their names of `/v1/search`, a time range as in
`dowse search`, and the open explanations (`why`, `target`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

from msgspec import Struct, structs

from dowse.config import Config
from dowse.errors import BadRequestError
from dowse.query.plan.operators import parse_moment
from dowse.serve.wire.request import ParsedRequest, parse_url
from dowse.types import QueryRequest

Pairs = tuple[tuple[str, str], ...]

TIME_RANGE = {"since": "created_after", "until": "created_before"}  # values as in `dowse search --since`
EXPLAINED = ("why", "target")  # chunk id of the open score trace; place to explain
ONE_RESULT = ("cursor", "facets", *EXPLAINED)  # parameters of one result: a new query starts without them


class PageQuery(Struct, frozen=True):
    """Parsed URL of the search page."""

    pairs: Pairs  # without the blank ones that a form sends
    text: str = ""
    parsed: ParsedRequest | None = None  # None without a query
    why: str = ""  # chunk id
    target: str = ""

    @property
    def request(self) -> QueryRequest:
        if self.parsed is None:
            raise BadRequestError("missing query; type one, or send it as `q`")
        return replace(self.parsed.request, explain=True, group=self.parsed.request.group or "document")


def parse_page_url(pairs: Iterable[tuple[str, str]], config: Config) -> PageQuery:
    """Parse the parameters of the search page; an unknown field is an error."""
    kept = tuple((name, text.strip()) for name, text in pairs if text.strip() and name != "facets")
    own = dict(kept)
    parsed = None
    if "q" in own:
        fields = [(name, text) for name, text in kept if name not in (*TIME_RANGE, *EXPLAINED)]
        parsed, _ = parse_url(fields, config)
        times: dict[str, Any] = {
            field: parse_moment(own[word], datetime.now(UTC), end=field == "created_before")
            for word, field in TIME_RANGE.items()
            if word in own
        }
        parsed = structs.replace(parsed, request=replace(parsed.request, **times))
    return PageQuery(kept, own.get("q", ""), parsed, own.get("why", ""), own.get("target", ""))


def address(pairs: Iterable[tuple[str, str]], path: str = "/") -> str:
    query = urlencode(list(pairs), errors="replace")
    return f"{path}?{query}" if query else path


def document_address(uri: str, query: str = "", lines: tuple[int, int] | None = None) -> str:
    """Link to the page of a document, at given lines, with the words of the query highlighted."""
    pairs = [("q", query)] if query else []
    if lines is None:
        return address(pairs, f"/documents/{path_part(uri)}")
    pairs += [("first", str(lines[0])), ("last", str(lines[1]))]
    return address(pairs, f"/documents/{path_part(uri)}") + f"#L{lines[0]}"


def chunk_address(row: Mapping[str, Any], query: str = "") -> str:
    """Link to the lines of a chunk, or of an entry with `source_uri`, in its document."""
    first = row["start_line"]
    return document_address(row["source_uri"], query, (first, row["end_line"] or first) if first else None)


def path_part(path: str) -> str:
    """Quote a path; bytes of a file name that are not UTF-8 stay as they are."""
    return quote(path, safe="/", errors="surrogateescape")


def fresh(pairs: Pairs) -> Pairs:
    """Drop the parameters that belong to one result."""
    return tuple(pair for pair in pairs if pair[0] not in ONE_RESULT)


def without(pairs: Pairs, *names: str, value: str | None = None) -> Pairs:
    return tuple(pair for pair in pairs if not (pair[0] in names and value in (None, pair[1])))


def changed(pairs: Pairs, fields: Mapping[str, Any]) -> Pairs:
    """Replace fields of a request; None and an empty list remove them."""
    fields = {"q" if name == "text" else name: value for name, value in fields.items()}
    rest = without(fresh(pairs), *fields, *(TIME_RANGE if set(TIME_RANGE.values()) & set(fields) else ()))
    return (*rest, *((name, text) for name, value in fields.items() for text in texts_of(name, value)))


def texts_of(name: str, value: Any) -> Sequence[str]:
    """Convert the value of a field to URL parameters."""
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
