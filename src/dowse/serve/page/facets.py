"""Facets and filter chips of the search page, each with a link that toggles the filter."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Mapping, Sequence
from dataclasses import replace

from dowse.serve.backend import Backend
from dowse.serve.page.address import TIME_RANGE, PageQuery, Pairs, address, fresh, without
from dowse.serve.page.hits import KINDS
from dowse.serve.page.why import Values
from dowse.serve.plain_text import clean_line

Counts = Mapping[str, Mapping[str, int]]

SHOWN_VALUES = 7  # of a facet, before "more"; chosen
MONTH = "month"
FIELDS: Mapping[str, tuple[str, str]] = {  # field of a chunk: title, and filter field of a request
    "corpus_type": ("Kind", "corpus_filter"),
    "document_source": ("Source", "source_filter"),
    "repo_name": ("Repository", "repo_filter"),
    "service_name": ("Service", "service_filter"),
    "language": ("Language", "language_filter"),
    "section_type": ("Section", "section_filter"),
    "channel": ("Channel", "channel_filter"),
    "author": ("Author", "author_filter"),
}


def facets(backend: Backend, query: PageQuery, counts: Counts) -> list[Values]:
    """List the facets with a choice. A count includes the candidates that pass all other filters."""
    found = [_facet(field, _values(backend, query, field, counts), query.pairs) for field in FIELDS]
    found.append(_months(_unfiltered(backend, query, MONTH, counts), query.pairs))
    return [each for each in found if each is not None]


def chips(pairs: Pairs) -> list[Values]:
    """List all filters of the URL, including those without a facet."""
    titles = {name: title for title, name in FIELDS.values()} | {"since": "Since", "until": "Until"}
    found = []
    for name, text in pairs:
        if name.endswith("_filter") or name in TIME_RANGE or name.startswith("created_"):
            title = titles.get(name, name.removesuffix("_filter").replace("_", " ").capitalize())
            shown = KINDS.get(text, clean_line(text)) if name == "corpus_filter" else clean_line(text)
            found.append({"label": f"{title}: {shown}", "href": _removed(pairs, name, text)})
    return found


def _facet(field: str, counts: Mapping[str, int], pairs: Pairs) -> Values | None:
    title, name = FIELDS[field]
    chosen = {text for key, text in pairs if key == name}
    if len(counts) < 2 and not chosen:
        return None  # a single value is no choice
    values = [
        dict(
            label=KINDS.get(text, clean_line(text)) if field == "corpus_type" else clean_line(text),
            count=count,
            href=_removed(pairs, name, text) if text in chosen else address((*fresh(pairs), (name, text))),
            chosen=text in chosen,
            bar=0.0,
        )
        for text, count in counts.items()
    ]
    values.sort(key=lambda value: not value["chosen"])
    return _shown(title, values)


def _values(backend: Backend, query: PageQuery, field: str, counts: Counts) -> Mapping[str, int]:
    """Count the values of a field, including chosen ones without candidates."""
    found = _unfiltered(backend, query, field, counts)
    chosen = [text for key, text in query.pairs if key == FIELDS[field][1]]
    return dict(found) | {  # of a family the sum: CODE includes CODE_LOGIC and its siblings
        text: sum(count for name, count in found.items() if name.startswith(f"{text.upper()}_"))
        for text in chosen
        if text not in found
    }


def _unfiltered(backend: Backend, query: PageQuery, field: str, counts: Counts) -> Mapping[str, int]:
    """Count the values of a field without its own filter, which would leave only the chosen one."""
    fields = tuple(TIME_RANGE) if field == MONTH else (FIELDS[field][1],)
    if not any(name in fields for name, _ in query.pairs):
        return counts.get(field, {})
    freed = dict.fromkeys(TIME_RANGE.values()) if field == MONTH else {FIELDS[field][1]: ()}
    request = replace(query.request, rerank=False, mmr=False, top_k=1, explain=False, **freed)
    found: Counts = backend.query(request, facets=True)["facets"]
    return found.get(field, {})


def _months(counts: Mapping[str, int], pairs: Pairs) -> Values | None:
    """Make the facet of months, newest first."""
    own = dict(pairs)
    if len(counts) < 2 and not (own.get("since") or own.get("until")):
        return None
    most = max(counts.values(), default=1)
    values = []
    for month in sorted(counts, reverse=True):
        year, number = int(month[:4]), int(month[5:])
        since, until = f"{month}-01", f"{month}-{monthrange(year, number)[1]:02}"
        chosen = (own.get("since"), own.get("until")) == (since, until)
        rest = without(fresh(pairs), *TIME_RANGE)
        href = address(rest if chosen else (*rest, ("since", since), ("until", until)))
        bar = round(100 * counts[month] / most, 1)  # per cent of the largest count
        values.append({"label": month, "count": counts[month], "href": href, "chosen": chosen, "bar": bar})
    return _shown("Time", values)


def _shown(title: str, values: Sequence[Values]) -> Values:
    return {"title": title, "first": values[:SHOWN_VALUES], "more": values[SHOWN_VALUES:]}


def _removed(pairs: Pairs, name: str, text: str) -> str:
    return address(without(fresh(pairs), name, value=text))
