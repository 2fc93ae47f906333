"""Filters: a tuple of clauses, all of which must hold. Data, never a string, so nothing a user types can be syntax.

`holds` is the one meaning of every clause; the reference store asks it of each chunk, the embedded store of each
distinct value of a field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from math import isnan, nan
from typing import TYPE_CHECKING

from dowse.errors import BadRequestError
from dowse.globs import glob_expression

if TYPE_CHECKING:
    from dowse.types import Chunk, QueryRequest

Value = str | float
"""What a field holds: text, or seconds since the epoch for `timestamp`."""

TEXT_FIELDS = (
    "document_id", "document_source", "corpus_type", "repo_name", "service_name", "language", "file_path",
    "section_type", "channel", "author", "symbol_kind", "symbol_name",
)  # fmt: skip
NUMBER_FIELDS = ("timestamp",)
WHOLE_TEXT = "text"  # of Contains alone: path, headings and text of a chunk
META = "meta."  # "meta.team" is the user's own key "team"


@dataclass(frozen=True)
class _OneValue:
    field: str
    value: Value


class Eq(_OneValue):
    pass


class Ne(_OneValue):
    """Holds for chunks without the field, too."""


class Gt(_OneValue):
    """Strictly above. Numbers when both sides read as numbers, else text."""


class Lt(_OneValue):
    """Strictly below. Numbers when both sides read as numbers, else text."""


@dataclass(frozen=True)
class In:
    field: str
    values: tuple[Value, ...]


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


@dataclass(frozen=True)
class Contains:
    """The text, heading or path has this phrase: whole words, in any case, with any white space between them."""

    field: str  # "text"
    value: str


Comparison = Eq | Ne | In | Gt | Lt | Prefix | Glob | Contains


@dataclass(frozen=True)
class Or:
    """Any of the filters holds. Each is one clause, or several that must hold together."""

    filters: tuple[Filter, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "filters", tuple(map(as_filter, self.filters)))


@dataclass(frozen=True)
class Not:
    """The filter does not hold, as a whole. Holds for chunks without its fields, too."""

    where: Filter

    def __post_init__(self) -> None:
        object.__setattr__(self, "where", as_filter(self.where))


Clause = Comparison | Or | Not
Filter = tuple[Clause, ...]
DEEPEST = 16  # Or and Not inside each other; chosen


def as_filter(where: Clause | Iterable[Clause]) -> Filter:
    return (where,) if isinstance(where, Clause) else tuple(where)


def by_document(*ids: str) -> Comparison:
    return In("document_id", ids)


def exclude_document(document_id: str) -> Comparison:
    return Ne("document_id", document_id)


def any_of(*filters: Clause | Iterable[Clause]) -> Clause:
    return Or(tuple(map(as_filter, filters)))


def exclude(where: Clause | Iterable[Clause]) -> Clause:
    return Not(as_filter(where))


def by_source(*names: str) -> Clause:
    """Name of a source; path of a document, with or without its source; or URL of a document."""
    places = tuple(name for name in names if "/" in name)
    if not places:
        return In("document_source", names)
    split = (place.partition("/")[::2] for place in places)
    paths = ((Eq("document_source", source), Eq("file_path", path)) for source, path in split)
    return any_of(In("document_source", names), In("file_path", places), In("meta.url", places), *paths)


def by_repo(*names: str) -> Comparison:
    return In("repo_name", names)


def by_service(*names: str) -> Comparison:
    return In("service_name", names)


def by_language(*names: str) -> Comparison:
    return In("language", tuple(name.lower() for name in names))


def by_path(*globs: str) -> Comparison:
    return Glob("file_path", globs)


def by_section_type(*names: str) -> Comparison:
    return In("section_type", names)


def by_channel(*names: str) -> Comparison:
    return In("channel", tuple(name.removeprefix("#") for name in names))


def by_author(*names: str) -> Comparison:
    return In("author", names)


def by_meta(key: str, value: str) -> Comparison:
    return Eq(META + key, value)


def by_corpus(*names: str) -> Comparison:
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


Moment = datetime | float | str
"""Time as users write it: a datetime, seconds since the epoch, or ISO 8601 text."""


def created_after(moment: Moment) -> Comparison:
    return Gt("timestamp", moment_seconds(moment))


def created_before(moment: Moment) -> Comparison:
    return Lt("timestamp", moment_seconds(moment))


def moment_seconds(moment: Moment) -> float:
    try:
        if isinstance(moment, str):
            return _seconds(datetime.fromisoformat(moment))
        return _seconds(moment) if isinstance(moment, datetime) else float(moment)
    except (TypeError, ValueError) as err:
        raise BadRequestError(f"{moment!r} is not a time; use ISO 8601, a datetime or seconds since the epoch") from err


FILTER_BUILDERS: dict[str, Callable[..., Clause]] = {
    "corpus_filter": by_corpus, "service_filter": by_service, "repo_filter": by_repo, "document_filter": by_document,
    "source_filter": by_source, "language_filter": by_language, "path_filter": by_path,
    "section_filter": by_section_type, "channel_filter": by_channel, "author_filter": by_author,
}  # fmt: skip


def from_request(request: QueryRequest) -> Filter:
    """All the filters of a request as one."""
    clauses: list[Clause] = [
        build(*values) for name, build in FILTER_BUILDERS.items() if (values := getattr(request, name))
    ]
    clauses += [by_meta(key, value) for key, value in request.meta_filter]
    if request.created_after is not None:
        clauses.append(created_after(request.created_after))
    if request.created_before is not None:
        clauses.append(created_before(request.created_before))
    return check((*clauses, *request.where))


def check(where: Clause | Iterable[Clause]) -> Filter:
    """The filter itself, or an error that names the field it cannot be asked of."""
    where = as_filter(where)
    for clause in comparisons(where):
        name = clause.field
        if isinstance(clause, Contains) or name == WHOLE_TEXT:
            if not (isinstance(clause, Contains) and name == WHOLE_TEXT and clause.value.strip()):
                raise BadRequestError(f"contains and the field 'text' go together, with a phrase; not {clause}")
            continue
        if name not in TEXT_FIELDS and name not in NUMBER_FIELDS and not (name.startswith(META) and name != META):
            known = ", ".join((*TEXT_FIELDS, *NUMBER_FIELDS, "meta.<key>"))
            raise BadRequestError(f"unknown filter field {name!r}; choose from {known}")
        if isinstance(clause, Glob):
            for pattern in clause.patterns:
                glob_expression(pattern)
        if name in NUMBER_FIELDS:
            _check_number(clause)
    return where


def comparisons(where: Filter, depth: int = 0) -> Iterator[Comparison]:
    """All comparisons of a filter, those inside Or and Not too."""
    if depth > DEEPEST:
        raise BadRequestError(f"the filter has more than {DEEPEST} levels of Or and Not; use fewer")
    for clause in where:
        if not isinstance(clause, Clause):
            raise BadRequestError(f"{clause!r} is not a filter clause; make one with by_source, by_path, any_of …")
        if isinstance(clause, Or):
            for each in clause.filters:
                yield from comparisons(each, depth + 1)
        elif isinstance(clause, Not):
            yield from comparisons(clause.where, depth + 1)
        else:
            yield clause


def _check_number(clause: Comparison) -> None:
    if isinstance(clause, Prefix | Glob):
        raise BadRequestError(f"{clause.field} is a number; use eq, ne, in, gt or lt instead of a pattern")
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
    if name == WHOLE_TEXT:
        return "\n".join(filter(None, (chunk.context_prefix, chunk.file_path, chunk.text)))  # as word legs search it
    if name == "timestamp":
        return None if chunk.timestamp is None else _seconds(chunk.timestamp)
    value = getattr(chunk, name)
    return value if value is None else str(value)


def matches(chunk: Chunk, where: Filter) -> bool:
    return fulfils(partial(field_value, chunk), where)


def fulfils(value_of: Callable[[str], Value | None], where: Filter) -> bool:
    """Whether something with these values by field passes a filter."""
    return all(_fulfils(value_of, clause) for clause in where)


def _fulfils(value_of: Callable[[str], Value | None], clause: Clause) -> bool:
    if isinstance(clause, Or):
        return any(fulfils(value_of, each) for each in clause.filters)
    if isinstance(clause, Not):
        return not fulfils(value_of, clause.where)
    return holds(clause, value_of(clause.field))


def holds(clause: Comparison, value: Value | None) -> bool:
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
        case Contains(_, phrase):
            return phrase_expression(phrase).search(str(value)) is not None
        case Glob(_, patterns):
            return any(glob_expression(pattern).fullmatch(str(value)) is not None for pattern in patterns)


@lru_cache(maxsize=512)
def phrase_expression(phrase: str) -> re.Pattern[str]:
    """Return the expression that finds a phrase as whole words, in any case, over any white space."""
    words = phrase.split()
    body = r"\s+".join(map(re.escape, words))
    start = r"(?<!\w)" if re.match(r"\w", words[0]) else ""
    end = r"(?!\w)" if re.search(r"\w$", words[-1]) else ""
    return re.compile(start + body + end, re.IGNORECASE)


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
