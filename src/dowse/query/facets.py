"""A look around an answer: a prepared query goes in; its result, all that was ranked behind it and counts by field
come out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass

from msgspec.structs import replace

from dowse.identity import number_id
from dowse.query.pipeline import Prepared, run
from dowse.query.result import result_of
from dowse.query.stages.state import Slate, Traced
from dowse.types import Chunk, QueryResult, ScoredChunk

FACETS = (
    "corpus_type", "document_source", "repo_name", "service_name", "language", "section_type", "channel", "author",
    "month",
)  # fmt: skip
MOST_VALUES = 50  # of one field; chosen: more is a list to search in, not to choose from

Counts = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Survey:
    """`ranked` begins with the result's own chunks; the rest is what a larger top_k out of the same pool would show."""

    result: QueryResult
    ranked: tuple[ScoredChunk, ...]
    facets: tuple[tuple[str, Counts], ...]  # by field, over all candidates; empty unless asked for


def survey(ready: Prepared, executor: Executor | None = None, *, facets: bool = False) -> Survey:
    """All waves run once, and shown twice: trimmed as a query trims it, and whole."""
    traced = run(ready.waves, ready.slate, executor, ready.deadline)
    traced = Traced(traced.slate, (*ready.trace, *traced.trace))
    slate = traced.slate
    result = result_of(traced, ready.asked)
    whole = Traced(slate.changed(query=replace(slate.query, k=len(slate.hits))), traced.trace)
    ranked = result_of(whole, ready.asked).chunks if len(slate.hits) > slate.query.k else result.chunks
    return Survey(result, ranked, counted(_candidates(slate, ready)) if facets else ())


def counted(chunks: Iterable[Chunk]) -> tuple[tuple[str, Counts], ...]:
    """By field, how many chunks have each value: the most frequent first, then by name. Fields without any are left
    out.
    """
    tallies: dict[str, Counter[str]] = {name: Counter() for name in FACETS}
    for chunk in chunks:
        for name in FACETS:
            value = f"{chunk.timestamp:%Y-%m}" if name == "month" and chunk.timestamp else getattr(chunk, name, None)
            if value:
                tallies[name][value] += 1
    ordered = ((name, sorted(tally.items(), key=lambda item: (-item[1], item[0]))) for name, tally in tallies.items())
    return tuple((name, tuple(values[:MOST_VALUES])) for name, values in ordered if values)


def _candidates(slate: Slate, ready: Prepared) -> Iterable[Chunk]:
    """What the legs found, and what joined later."""
    found = {hit.chunk.id: hit.chunk for hit in slate.hits}
    fused = [] if slate.fused is None else [number_id(each) for each in slate.fused.ids.tolist()]
    return {**found, **ready.asked.reader.get([each for each in fused if each not in found])}.values()
