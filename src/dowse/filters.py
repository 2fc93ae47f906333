"""Filters: a tuple of clauses, all of which must hold. Data, never a string, so nothing a user types can be syntax.

`holds` is the one meaning of every clause; the reference store asks it of each chunk, the embedded store of each
distinct value of a field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from math import isnan, nan
from typing import TYPE_CHECKING

from dowse.errors import BadRequestError

if TYPE_CHECKING:
    from dowse.types import Chunk, QueryRequest

Value = str | float
"""What a field holds: text, or seconds since the epoch for `timestamp`."""

TEXT_FIELDS = (
    "document_id", "document_source", "corpus_type", "repo_name", "service_name", "language", "file_path",
    "section_type", "channel", "author", "symbol_kind", "symbol_name",
)  # fmt: skip
NUMBER_FIELDS = ("timestamp",)
META = "meta."  # "meta.team" is the user's own key "team"


@dataclass(frozen=True)
class Eq:
    field: str
    value: Value


@dataclass(frozen=True)
class Ne:
    """Holds for chunks without the field, too."""

    field: str
    value: Value


@dataclass(frozen=True)
class In:
    field: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Gt:
    """Strictly above. Numbers when both sides read as numbers, else text."""

    field: str
    value: Value


@dataclass(frozen=True)
class Lt:
    """Strictly below. Numbers when both sides read as numbers, else text."""

    field: str
    value: Value


@dataclass(frozen=True)
class Prefix:
    field: str
    value: str


@dataclass(frozen=True)
class Glob:
    """Any of the patterns matches: `*` within a folder, `**` across folders, `?`, `[abc]`, `{a,b}`.

    A pattern without a slash matches the last part of a path at any depth, as in .gitignore.
    """

    field: str
    patterns: tuple[str, ...]


Clause = Eq | Ne | In | Gt | Lt | Prefix | Glob
Filter = tuple[Clause, ...]
EVERYTHING: Filter = ()


# --- constructors -----------------------------------------------------------------------------------


def by_document(*ids: str) -> Clause:
    return In("document_id", ids)


def exclude_document(document_id: str) -> Clause:
    return Ne("document_id", document_id)


def by_source(*names: str) -> Clause:
    return In("document_source", names)


def by_repo(*names: str) -> Clause:
    return In("repo_name", names)


def by_service(*names: str) -> Clause:
    return In("service_name", names)


def by_language(*names: str) -> Clause:
    return In("language", tuple(name.lower() for name in names))


def by_path(*globs: str) -> Clause:
    return Glob("file_path", globs)


def by_section_type(*names: str) -> Clause:
    return In("section_type", names)


def by_channel(*names: str) -> Clause:
    return In("channel", tuple(name.removeprefix("#") for name in names))


def by_author(*names: str) -> Clause:
    return In("author", names)


def by_meta(key: str, value: str) -> Clause:
    return Eq(META + key, value)


def by_corpus(*names: str) -> Clause:
    """Full names (CODE_LOGIC) or families (CODE, DOC, CONVO)."""
    from dowse.types import CorpusType

    wanted: list[Value] = []
    for name in names:
        found = [kind.value for kind in CorpusType if name.upper() in (kind.value, kind.value.split("_")[0])]
        if not found:
            known = ", ".join(["CODE", "DOC", "CONVO", *(kind.value for kind in CorpusType)])
            raise BadRequestError(f"unknown corpus {name!r}; choose from {known}")
        wanted += found
    return In("corpus_type", tuple(dict.fromkeys(wanted)))


def created_after(moment: datetime) -> Clause:
    return Gt("timestamp", _seconds(moment))


def created_before(moment: datetime) -> Clause:
    return Lt("timestamp", _seconds(moment))


def from_request(request: QueryRequest) -> Filter:
    """All the filters of a request as one."""
    tuples: tuple[tuple[tuple[str, ...], Callable[..., Clause]], ...] = (
        (request.corpus_filter, by_corpus),
        (request.service_filter, by_service),
        (request.repo_filter, by_repo),
        (request.document_filter, by_document),
        (request.source_filter, by_source),
        (request.language_filter, by_language),
        (request.path_filter, by_path),
        (request.section_filter, by_section_type),
        (request.channel_filter, by_channel),
        (request.author_filter, by_author),
    )
    clauses = [build(*values) for values, build in tuples if values]
    clauses += [by_meta(key, value) for key, value in request.meta_filter]
    if request.created_after:
        clauses.append(created_after(request.created_after))
    if request.created_before:
        clauses.append(created_before(request.created_before))
    return check((*clauses, *request.where))


# --- meaning ----------------------------------------------------------------------------------------


def check(where: Iterable[Clause]) -> Filter:
    """The filter itself, or an error that names the field it cannot be asked of."""
    where = tuple(where)
    for clause in where:
        name = clause.field
        if name not in TEXT_FIELDS and name not in NUMBER_FIELDS and not (name.startswith(META) and name != META):
            known = ", ".join((*TEXT_FIELDS, *NUMBER_FIELDS, "meta.<key>"))
            raise BadRequestError(f"unknown filter field {name!r}; choose from {known}")
        if isinstance(clause, Glob):
            for pattern in clause.patterns:
                _glob(pattern)
        if name in NUMBER_FIELDS:
            _check_number(clause)
    return where


def _check_number(clause: Clause) -> None:
    if isinstance(clause, Prefix | Glob):
        raise BadRequestError(f"{clause.field} is a number: it has no prefix and no pattern; compare it instead")
    for value in clause.values if isinstance(clause, In) else (clause.value,):
        try:
            number = float(value)
        except ValueError:
            number = nan
        if isnan(number):
            raise BadRequestError(f"{clause.field} is in seconds since the epoch, not {value!r}")


def field_value(chunk: Chunk, name: str) -> Value | None:
    """What a chunk holds in a filterable field."""
    if name.startswith(META):
        return dict(chunk.meta).get(name[len(META) :])
    if name == "timestamp":
        return None if chunk.timestamp is None else _seconds(chunk.timestamp)
    value = getattr(chunk, name)
    return value if value is None else str(value)


def matches(chunk: Chunk, where: Filter) -> bool:
    return all(holds(clause, field_value(chunk, clause.field)) for clause in where)


def holds(clause: Clause, value: Value | None) -> bool:
    """Whether a clause holds for one value of its field. A missing value satisfies only Ne."""
    if value is None:
        return isinstance(clause, Ne)
    match clause:
        case Eq(_, wanted):
            return _same(value, wanted)
        case Ne(_, wanted):
            return not _same(value, wanted)
        case In(_, values):
            return any(_same(value, wanted) for wanted in values)
        case Gt(_, bound):
            return _order(value, bound) > 0
        case Lt(_, bound):
            return _order(value, bound) < 0
        case Prefix(_, start):
            return str(value).startswith(start)
        case Glob(_, patterns):
            return any(_glob(pattern).fullmatch(str(value)) is not None for pattern in patterns)


def _same(value: Value, wanted: Value) -> bool:
    if isinstance(value, str) and isinstance(wanted, str):
        return value == wanted
    return _order(value, wanted) == 0


def _order(left: Value, right: Value) -> int:
    """−1, 0 or 1. The word "nan" is a word: as a number it would equal everything."""
    try:
        a, b = float(left), float(right)
    except ValueError:
        a = b = nan
    if isnan(a) or isnan(b):
        return (str(left) > str(right)) - (str(left) < str(right))
    return (a > b) - (a < b)


def _seconds(moment: datetime) -> float:
    """Seconds since the epoch; a naive time counts as UTC."""
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


@lru_cache(maxsize=512)
def _glob(pattern: str) -> re.Pattern[str]:
    if not pattern:
        raise BadRequestError("an empty path pattern matches nothing; try '*.py' or 'docs/**'")
    body = _translate(pattern.removeprefix("./").removeprefix("/"))
    anchored = "/" in pattern.rstrip("/")
    tail = "(?:/.*)?" if pattern.endswith("/") else ""
    return re.compile(("" if anchored else "(?:.*/)?") + body.rstrip("/") + tail, re.DOTALL)


def _translate(glob: str) -> str:
    """A glob as a regular expression; whatever is not a wildcard stands for itself."""
    out: list[str] = []
    at = 0
    while at < len(glob):
        char = glob[at]
        at += 1
        if glob.startswith("**/", at - 1):
            out.append("(?:.*/)?")
            at += 2
        elif glob.startswith("**", at - 1):
            out.append(".*")
            at += 1
        elif char == "*":
            out.append("[^/]*")
        elif char == "?":
            out.append("[^/]")
        elif char == "[" and (end := glob.find("]", at + 1 + glob.startswith(("!", "^"), at))) > 0:
            out.append(_one_of(glob[at:end]))
            at = end + 1
        elif char == "{" and (end := glob.find("}", at)) > 0:
            out.append("(?:" + "|".join(_translate(part) for part in glob[at:end].split(",")) + ")")
            at = end + 1
        else:
            out.append(re.escape(char))
    return "".join(out)


def _one_of(inside: str) -> str:
    """What stands between brackets: characters and ranges, all but those after ! or ^; never a slash."""
    negated = inside[0] in "!^"
    inside = inside[negated:]
    kinds, at = "", 0
    while at < len(inside):
        first = last = inside[at]
        if inside[at + 1 : at + 2] == "-" and at + 2 < len(inside):
            last = inside[at + 2]
            at += 2
        at += 1
        if first <= last:  # a range that runs backwards holds nothing
            kinds += f"{re.escape(first)}-{re.escape(last)}"
    if not kinds:
        return "[^/]" if negated else "(?!)"
    return f"(?!/)[{'^' if negated else ''}{kinds}]"
