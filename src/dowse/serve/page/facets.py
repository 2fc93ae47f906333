"""Counts by field enter; lists of values to choose from leave, each with the address that chooses it or lets it go."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dowse.serve.page.address import SPAN, Pairs, Wanted, address, fresh, without
from dowse.serve.page.hits import KINDS
from dowse.serve.plain_text import clean_line

if TYPE_CHECKING:
    from dowse.serve.backend import Backend

Counts = Mapping[str, Mapping[str, int]]

SHOWN_VALUES = 7  # of a field, before "more"; chosen
MONTH = "month"
FIELDS: Mapping[str, tuple[str, str]] = {  # a field of a chunk: its title, and the filter of a request
    "corpus_type": ("Kind", "corpus_filter"),
    "document_source": ("Source", "source_filter"),
    "repo_name": ("Repository", "repo_filter"),
    "service_name": ("Service", "service_filter"),
    "language": ("Language", "language_filter"),
    "section_type": ("Section", "section_filter"),
    "channel": ("Channel", "channel_filter"),
    "author": ("Author", "author_filter"),
}


@dataclass(frozen=True)
class Value:
    label: str
    count: int
    href: str
    chosen: bool
    bar: float = 0.0  # 0 to 100: of the largest count


@dataclass(frozen=True)
class Facet:
    title: str
    values: tuple[Value, ...]
    more: tuple[Value, ...] = ()


@dataclass(frozen=True)
class Chip:
    """A filter that holds."""

    label: str
    href: str  # without it


def facets(backend: Backend, wanted: Wanted, counts: Counts) -> tuple[Facet, ...]:
    """Fields with something to choose. Counts are those of the candidates that pass all other filters."""
    found = [_facet(field, _values(backend, wanted, field, counts), wanted.pairs) for field in FIELDS]
    found.append(_months(_others(backend, wanted, MONTH, counts), wanted.pairs))
    return tuple(each for each in found if each is not None)


def chips(pairs: Pairs) -> tuple[Chip, ...]:
    """One for each filter of the address, those that no facet offers, too."""
    titles = {name: title for title, name in FIELDS.values()} | {"since": "Since", "until": "Until"}
    found = []
    for name, text in pairs:
        if name.endswith("_filter") or name in SPAN or name.startswith("created_"):
            title = titles.get(name, name.removesuffix("_filter").replace("_", " ").capitalize())
            shown = KINDS.get(text, clean_line(text)) if name == "corpus_filter" else clean_line(text)
            found.append(Chip(f"{title}: {shown}", _let_go(pairs, name, text)))
    return tuple(found)


def _facet(field: str, counts: Mapping[str, int], pairs: Pairs) -> Facet | None:
    title, name = FIELDS[field]
    chosen = {text for key, text in pairs if key == name}
    if len(counts) < 2 and not chosen:
        return None  # a choice of one is none
    values = [
        Value(
            label=KINDS.get(text, clean_line(text)) if field == "corpus_type" else clean_line(text),
            count=count,
            href=_let_go(pairs, name, text) if text in chosen else address((*fresh(pairs), (name, text))),
            chosen=text in chosen,
        )
        for text, count in counts.items()
    ]
    values.sort(key=lambda value: not value.chosen)
    return Facet(title, tuple(values[:SHOWN_VALUES]), tuple(values[SHOWN_VALUES:]))


def _values(backend: Backend, wanted: Wanted, field: str, counts: Counts) -> Mapping[str, int]:
    """With the chosen ones, even those that no candidate has."""
    found = _others(backend, wanted, field, counts)
    chosen = [text for key, text in wanted.pairs if key == FIELDS[field][1]]
    return dict(found) | {text: _of_family(text, found) for text in chosen if text not in found}


def _of_family(text: str, counts: Mapping[str, int]) -> int:
    """CODE stands for CODE_LOGIC and its siblings; anything else that was not counted is not there."""
    return sum(count for name, count in counts.items() if name.startswith(f"{text.upper()}_"))


def _others(backend: Backend, wanted: Wanted, field: str, counts: Counts) -> Mapping[str, int]:
    """What could be chosen besides: a field's own filter does not count for its values, or there would be only one."""
    fields = SPAN if field == MONTH else (FIELDS[field][1],)
    if not any(name in fields for name, _ in wanted.pairs):
        return counts.get(field, {})
    freed = {"created_after": None, "created_before": None} if field == MONTH else {FIELDS[field][1]: ()}
    request = replace(wanted.request, rerank=False, mmr=False, top_k=1, explain=False, **freed)
    found: Counts = backend.query(request, facets=True)["facets"]
    return found.get(field, {})


def _months(counts: Mapping[str, int], pairs: Pairs) -> Facet | None:
    """Newest first."""
    own = dict(pairs)
    if len(counts) < 2 and not (own.get("since") or own.get("until")):
        return None
    most = max(counts.values(), default=1)
    values = []
    for month in sorted(counts, reverse=True):
        year, number = int(month[:4]), int(month[5:])
        since, until = f"{month}-01", f"{month}-{monthrange(year, number)[1]:02}"
        chosen = (own.get("since"), own.get("until")) == (since, until)
        rest = without(fresh(pairs), *SPAN)
        href = address(rest if chosen else (*rest, ("since", since), ("until", until)))
        values.append(Value(month, counts[month], href, chosen, round(100 * counts[month] / most, 1)))
    return Facet("Time", tuple(values[:SHOWN_VALUES]), tuple(values[SHOWN_VALUES:]))


def _let_go(pairs: Pairs, name: str, text: str) -> str:
    return address(without(fresh(pairs), name, value=text))
