"""Facets: a query result with all ranked hits behind it, and counts of its candidates by field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from concurrent.futures import Executor

import msgspec

from dowse.identity import number_id
from dowse.query.pipeline import PreparedQuery, run
from dowse.query.result import groups_of, result_with, scored_chunks
from dowse.query.stages.state import QueryState, Traced
from dowse.types import Chunk, DocumentGroup, QueryResult, ScoredChunk

FACETS = (
    "corpus_type", "document_source", "repo_name", "service_name", "language", "section_type", "channel", "author",
    "month",
)  # fmt: skip
MOST_VALUES = 50  # of one field; chosen: nobody chooses from a longer list

Counts = tuple[tuple[str, int], ...]


class FacetedResult(msgspec.Struct, frozen=True):
    """A result, all ranked hits (its own first), and counts by field."""

    result: QueryResult
    ranked: tuple[ScoredChunk, ...]
    groups: tuple[DocumentGroup, ...]  # of all ranked hits, if the request groups them
    facets: tuple[tuple[str, Counts], ...]  # by field, over all candidates; empty unless requested


def faceted(ready: PreparedQuery, executor: Executor | None = None, *, facets: bool = False) -> FacetedResult:
    """Run all waves, and return the hits twice: trimmed as a query trims them, and all."""
    traced = run(ready.waves, ready.state, executor, ready.deadline)
    traced = Traced(traced.state, (*ready.trace, *traced.trace))
    state = traced.state
    ranked = scored_chunks(state.hits, state, ready.context)
    result = result_with(ranked[: state.query.k], traced, ready.context)
    groups = groups_of(state.hits, ranked, state, ready.context) if ready.context.group == "document" else ()
    return FacetedResult(result, ranked, groups, counted(_candidates(state, ready)) if facets else ())


def counted(chunks: Iterable[Chunk]) -> tuple[tuple[str, Counts], ...]:
    """Return counts of values by field, most frequent first, then by name. Fields without values are omitted."""
    counters: dict[str, Counter[str]] = {name: Counter() for name in FACETS}
    for chunk in chunks:
        for name in FACETS:
            value = f"{chunk.timestamp:%Y-%m}" if name == "month" and chunk.timestamp else getattr(chunk, name, None)
            if value:
                counters[name][value] += 1
    ordered = (
        (name, sorted(counter.items(), key=lambda item: (-item[1], item[0]))) for name, counter in counters.items()
    )
    return tuple((name, tuple(values[:MOST_VALUES])) for name, values in ordered if values)


def _candidates(state: QueryState, ready: PreparedQuery) -> Iterable[Chunk]:
    found = {hit.chunk.id: hit.chunk for hit in state.hits}
    fused = [] if state.fused is None else [number_id(each) for each in state.fused.ids.tolist()]
    return {**found, **ready.context.reader.get([each for each in fused if each not in found])}.values()
