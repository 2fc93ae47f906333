"""Query language: phrases, excluded words and filters leave the text of a query and become clauses.

"exact phrase"  -word  -"phrase"  repo: lang: path: service: source: kind: author: since: until:

An operator stands at the start of a word and has no blank after its colon; `-lang:go` excludes. Everything else stays
as it is: `--flag`, `-1`, `kind: Deployment`, other names before a colon, and text over several lines or too long to be
typed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches

from dowse.errors import BadRequestError
from dowse.filters import (
    Clause,
    Contains,
    Filter,
    Glob,
    In,
    by_author,
    by_corpus,
    by_language,
    by_repo,
    by_service,
    by_source,
    created_after,
    created_before,
    exclude,
    from_request,
)
from dowse.types import CorpusType, QueryRequest

LONGEST_TYPED = 400  # characters; chosen: more is pasted
_AGO = re.compile(r"(\d+)\s*(h|d|w|mo|y)")
_HOURS = {"h": 1, "d": 24, "w": 7 * 24, "mo": 30 * 24, "y": 365 * 24}
_ONE_TICK = timedelta(microseconds=1)
_FIELDS = "repo|lang|language|path|service|source|kind|author|since|until"
_OPERATOR = re.compile(
    rf"""(?<!\S)(?P<minus>-?)(?:(?P<field>{_FIELDS}):(?:"(?P<quoted>[^"\n]+)"|(?P<value>[^\s"]+))"""
    r"""|"(?P<phrase>[^"\n]*\w[^"\n]*)"|(?P<word>(?<=-)[^\W\d][\w.-]+))(?!\S)"""
)
_DETACHED = re.compile(rf"(?<!\S)(?P<field>{_FIELDS}): +(?P<value>[\w./-]+)")
_KINDS = {kind.value.partition("_")[2].lower(): kind.value for kind in CorpusType} | {
    "code": "CODE",
    "doc": "DOC",
    "docs": "DOC",
    "chat": "CONVO_SLACK",
    "convo": "CONVO",
}
_BUILDERS: dict[str, Callable[[str], Clause]] = {
    "repo": by_repo, "lang": by_language, "language": by_language, "service": by_service, "source": by_source,
    "author": by_author,
}  # fmt: skip
# Fields whose values are few and known, with the word for one value.
_NAMED = {
    "language": "language",
    "repo_name": "repository",
    "service_name": "service",
    "document_source": "source",
    "author": "author",
    "symbol_kind": "kind",
    "channel": "channel",
}
_NEAR = 3  # similar values that a note names; chosen


def read_operators(request: QueryRequest) -> tuple[QueryRequest, tuple[str, ...]]:
    """Return a plain request with the clauses of its operators, and notes about those that were not meant as such."""
    if request.syntax != "operators":
        return request, ()
    text = request.text
    request = replace(request, syntax="plain")
    if not _is_typed(text):
        return request, ()
    clauses = [exclude(_clause(each)) if each["minus"] else _clause(each) for each in _OPERATOR.finditer(text)]
    notes = tuple(
        f"{each[0]!r} is searched as words; to filter, write {each['field']}:{each['value']} without a blank"
        for each in _DETACHED.finditer(text)
    )
    words = words_of(text)
    if clauses and not words:
        if all(found["word"] for found in _OPERATOR.finditer(text)):
            return request, ("a query of excluded words alone finds nothing, so they are searched as words",)
        raise BadRequestError(f"{text.strip()!r} has filters and no words; add some, as in `lang:go retry`")
    return (replace(request, text=words, where=(*request.where, *clauses)) if clauses else request), notes


def words_of(text: str) -> str:
    """Return the words of a typed query without its operators; phrases stay, without their quotes."""
    if not _is_typed(text):
        return text
    kept = _OPERATOR.sub(lambda found: found["phrase"] if found["phrase"] and not found["minus"] else "", text)
    return " ".join(kept.split()) if kept != text else text


def without_operators(text: str, clauses: Collection[Clause]) -> str:
    """Return a typed query without the operators of these clauses."""
    if not _is_typed(text):
        return text

    def kept(found: re.Match[str]) -> str:
        clause = _clause(found)
        if (exclude(clause) if found["minus"] else clause) not in clauses:
            return found[0]
        return found["phrase"] if found["phrase"] and not found["minus"] else ""

    return " ".join(_OPERATOR.sub(kept, text).split())


def _is_typed(text: str) -> bool:
    return "\n" not in text.strip() and len(text) <= LONGEST_TYPED


def filter_of(request: QueryRequest) -> Filter:
    """Return all filters of a request, those in its text too."""
    return from_request(read_operators(request)[0])


def _clause(found: re.Match[str]) -> Clause:
    phrase = found["phrase"] or found["word"]
    if phrase:
        return Contains("text", phrase)
    value = found["quoted"] or found["value"]
    if build := _BUILDERS.get(found["field"]):
        return build(value)
    match found["field"]:
        case "since":
            return created_after(parse_moment(value, datetime.now(UTC), end=False))
        case "until":
            return created_before(parse_moment(value, datetime.now(UTC), end=True))
        case "kind":
            known = _KINDS.get(value.lower(), value.upper())
            is_corpus = known in ("CODE", "DOC", "CONVO", *CorpusType)
            return by_corpus(known) if is_corpus else In("symbol_kind", (value,))
        case _:  # a glob as it is; a part of a path matches anywhere
            is_glob = set(value) & set("*?[{") or value.endswith("/")
            return Glob("file_path", (value,) if is_glob else (f"**/*{value}*", f"**/*{value}*/**"))


def unknown_values(where: Filter, values_of: Callable[[str], Sequence[str]]) -> Iterator[str]:
    """Yield a note for each value in a filter that no chunk has, with similar ones."""
    for clause in where:
        if not isinstance(clause, In) or clause.field not in _NAMED:
            continue
        known = values_of(clause.field)
        for value in clause.values:
            if str(value) in known:
                continue
            folded = {each.lower(): each for each in known}
            close = get_close_matches(str(value).lower(), folded, n=_NEAR, cutoff=0.6)
            close += [each for each in folded if str(value).lower() in each and each not in close][: _NEAR - len(close)]
            near = " or ".join(repr(folded[each]) for each in close)
            advice = f"did you mean {near}?" if near else f"known: {', '.join(sorted(known)[:10]) or 'none'}"
            yield f"no {_NAMED[clause.field]} {str(value)!r} in the index; {advice}"


def parse_moment(text: str, now: datetime, *, end: bool) -> datetime:
    """Parse a day, a moment or an age into a bound that, as in filters, excludes the moment itself.

    So a start is the last moment before the typed one, and an `end` the first one after it. A day counts as a whole.
    Without a zone it is UTC.
    """
    try:
        ago = _AGO.fullmatch(text.strip())
        if ago:
            return now - timedelta(hours=int(ago[1]) * _HOURS[ago[2]])
        moment = datetime.fromisoformat(text.strip())
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        whole_day = end and "T" not in text and ":" not in text
        return moment + (timedelta(days=1) if whole_day else _ONE_TICK) if end else moment - _ONE_TICK
    except (ValueError, OverflowError) as err:
        raise BadRequestError(f"{text!r} is not a date; write 90d, 12h, 2w, 6mo, 1y or 2026-01-31") from err
