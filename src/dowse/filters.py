"""Filters: a tuple of clauses, all of which must hold. Data, never a string, so nothing a user types can be syntax.

`holds` is the one meaning of every clause; the reference store asks it of each chunk, the embedded store of each
distinct value of a field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
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
LONGEST_GLOB_CHARS = 1_000  # chosen: four times the longest path that people write
MOST_ALTERNATIVES = 64  # chosen; of all braces of a glob together
_WILDCARDS = ("**/", "**", "*")
_GAPS = {"": "", "**": ".*?", "**/": "(?:.*?/)??"}


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


Moment = datetime | float | str
"""Time as users write it: a datetime, seconds since the epoch, or ISO 8601 text."""


def created_after(moment: Moment) -> Clause:
    return Gt("timestamp", _moment_seconds(moment))


def created_before(moment: Moment) -> Clause:
    return Lt("timestamp", _moment_seconds(moment))


def _moment_seconds(moment: Moment) -> float:
    try:
        if isinstance(moment, str):
            return _seconds(datetime.fromisoformat(moment))
        return _seconds(moment) if isinstance(moment, datetime) else float(moment)
    except (TypeError, ValueError) as err:
        raise BadRequestError(f"{moment!r} is no time; give ISO 8601, a datetime or seconds since the epoch") from err


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
    if request.created_after is not None:
        clauses.append(created_after(request.created_after))
    if request.created_before is not None:
        clauses.append(created_before(request.created_before))
    return check((*clauses, *request.where))


# --- meaning ----------------------------------------------------------------------------------------


def check(where: Clause | Iterable[Clause]) -> Filter:
    """The filter itself, or an error that names the field it cannot be asked of."""
    where = (where,) if isinstance(where, Clause) else tuple(where)
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
    if len(pattern) > LONGEST_GLOB_CHARS:
        raise BadRequestError(f"the path pattern has {len(pattern):,} characters; at most {LONGEST_GLOB_CHARS:,} work")
    start = [] if "/" in pattern.rstrip("/") else ["**/"]
    tail = "(?:/.*)?" if pattern.endswith("/") else ""
    glob = pattern.removeprefix("./").removeprefix("/")
    slashes = len(glob) - len(glob.rstrip("/"))
    found = _alternatives(glob)
    bodies = [linear_expression(each, tail) for tokens in found for each in _at_slashes(start, tokens, slashes)]
    return re.compile("|".join(f"(?:{body})" for body in bodies), re.DOTALL)


def _alternatives(glob: str) -> list[list[str]]:
    """Split a glob into tokens, once for each choice of alternatives in braces: wildcards, or expressions."""
    found: list[list[str]] = [[]]
    at = 0
    while at < len(glob):
        char = glob[at]
        ends = [[re.escape(char)]]
        if wildcard := next((each for each in _WILDCARDS if glob.startswith(each, at)), ""):
            ends = [[wildcard]]
            at += len(wildcard)
        elif char == "?":
            ends = [["[^/]"]]
            at += 1
        elif char == "[" and (end := glob.find("]", at + 2 + glob.startswith(("!", "^"), at + 1))) > 0:
            ends = [[_one_of(glob[at + 1 : end])]]
            at = end + 1
        elif char == "{" and (end := glob.find("}", at)) > 0:
            ends = [tokens for part in glob[at + 1 : end].split(",") for tokens in _alternatives(part)]
            at = end + 1
        else:
            at += 1
        found = [start + end for start in found for end in ends]
        if len(found) > MOST_ALTERNATIVES:
            raise BadRequestError(f"the braces of a path pattern give more than {MOST_ALTERNATIVES} alternatives")
    return found


def _at_slashes(start: list[str], tokens: list[str], slashes: int) -> list[list[str]]:
    """Write `**/` inside a name, as in `a**/b`, as two alternatives: nothing, or `**` and a slash."""
    while slashes and tokens and tokens[-1] == "/":  # at the end of the pattern
        tokens, slashes = tokens[:-1], slashes - 1
    found = [start]
    for token in tokens:
        inside = [each for each in found if token == "**/" and each and each[-1] not in ("/", *_WILDCARDS[:2])]
        found = inside + [each + (["**", "/"] if each in inside else [token]) for each in found]
        if len(found) > MOST_ALTERNATIVES:
            raise BadRequestError("the path pattern has too many '**/' inside names; write '/**/' instead")
    return found


def linear_expression(tokens: list[str], tail: str) -> str:
    """Return the expression of a glob that needs linear time.

    Between two wildcards, the first place where the tokens match is as good as any later one, because the wildcard
    behind them can cover the difference. So only what follows the last wildcard is tried at more than one place.
    """
    parts: list[tuple[str, list[str]]] = [("", [""])]  # by `**`; each in pieces by `*`
    for token in tokens:
        before, pieces = parts[-1]
        if token not in _WILDCARDS:
            pieces[-1] += token
        elif before and pieces == [""] and (token == before or before == "**"):
            continue  # `**` right before covers it
        elif before and pieces == [""] and token == "**":
            parts[-1] = (token, pieces)
        elif token == "*":
            pieces.append("")
        else:
            parts.append((token, [""]))
    *firsts, (before, pieces) = [(_GAPS[before], pieces) for before, pieces in parts]
    head = "".join(f"(?>{gap}{_joined(pieces)})" for gap, pieces in firsts)
    last = _joined(pieces[:-1]) + "[^/]*" + pieces[-1] if len(pieces) > 1 else pieces[-1]
    return head + before + last + tail


def _joined(pieces: Sequence[str]) -> str:
    return pieces[0] + "".join(f"(?>[^/]*?{piece})" for piece in pieces[1:])


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
