"""Results: the finished state of a query becomes the public QueryResult with its hits."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from functools import partial
from math import floor, isnan
from typing import Any

import msgspec
from msgspec import structs

from dowse.ports import QuerySession, StoreStats
from dowse.query.explain.why import Historian, Matched
from dowse.query.rows import iso
from dowse.query.stages.legs import numbers
from dowse.query.stages.state import Hit, QueryState, Traced
from dowse.reports import QueryMetadata
from dowse.types import LEGS, Chunk, DocumentGroup, Grouping, QueryRequest, QueryResult, Score, ScoredChunk

# Names of counts that differ from the name of their stage.
COUNT_NAMES: Mapping[str, str] = {"fuse": "union", "hydrate": "hydrated", "window": "hydrated"}


_DEFAULTS: Mapping[str, Any] = {
    each.name: each.default
    for each in fields(ScoredChunk)
    if each.name not in Chunk.__struct_fields__ and each.name != "scores"
}
Groups = tuple[DocumentGroup, ...]
Staleness = Callable[[Collection[str]], Mapping[str, bool]]
"""By document id, whether its file changed since it was indexed; unknown documents are left out."""


def unchecked(document_ids: Collection[str]) -> Mapping[str, bool]:
    return {}


class ResultContext(msgspec.Struct, frozen=True):
    """Values that the result needs besides the state of its query."""

    request: QueryRequest
    fusion: str
    model: str | None  # that embedded the question
    reader: QuerySession
    answer_style: str
    started_s: float  # on time.perf_counter
    staleness: Staleness = unchecked
    group: Grouping = "none"
    expanded: bool = False  # whether other wordings were asked for


def coverage(stats: StoreStats) -> float:
    """Return the share of chunks that have a vector; 1 for an empty store."""
    return stats.vectors / stats.chunks if stats.chunks else 1.0


def coverage_note(stats: StoreStats) -> str:
    share = floor(100 * coverage(stats))  # never "100 %" while one is missing
    return f"vectors cover {share} % of the chunks; run `dowse index` to finish them"


def result_of(traced: Traced, context: ResultContext) -> QueryResult:
    """Return the answer; the one trim to k happens here."""
    state = traced.state
    return result_with(scored_chunks(state.hits[: state.query.k], state, context), traced, context)


def groups_of(hits: Sequence[Hit], shown: Sequence[ScoredChunk], state: QueryState, context: ResultContext) -> Groups:
    """Return the documents of hits that were grouped; `shown` are the hits in their public form."""
    known = {each.document_id: each.stale for each in shown if each.stale is not None}
    same = structs.replace(context, staleness=lambda _: known)  # passages are of the same documents
    others = iter(scored_chunks([each for hit in hits for each in hit.passages], state, same))
    return tuple(
        DocumentGroup(best.source_uri, (best, *(next(others) for _ in hit.passages)))
        for hit, best in zip(hits, shown, strict=True)
    )


def scored_chunks(hits: Sequence[Hit], state: QueryState, context: ResultContext) -> tuple[ScoredChunk, ...]:
    """Return hits in their public form, the only place that makes it."""
    words = any(each.terms is not None for each in state.lists)  # else no score has terms to explain
    matched: Sequence[Matched] = ({},) * len(hits)
    if context.request.explain and words:
        matched = context.reader.held_terms(dict(state.query.terms), numbers(hit.found.id for hit in hits))
    count = 1 + max((hit.row for hit in hits if hit.row is not None), default=-1)
    historian = None if state.fused is None else Historian(state.fused, count)
    stale = context.staleness({hit.chunk.document_id for hit in hits})
    return tuple(
        _scored_chunk(hit, state, stale, partial(_explained, hit, held, historian))
        for hit, held in zip(hits, matched, strict=True)
    )


def result_with(chunks: tuple[ScoredChunk, ...], traced: Traced, context: ResultContext) -> QueryResult:
    """Return the answer that shows these hits."""
    state = traced.state
    sure = state.confidence
    hits = state.hits[: len(chunks)]
    variants = tuple(each.text for each in state.query.variants)
    return QueryResult(
        query=context.request.text,
        chunks=chunks,
        groups=groups_of(hits, chunks, state, context) if context.group == "document" else (),
        query_type=state.query_type,
        answer_style=context.answer_style,
        nothing_found=state.metadata_answer is None and (not chunks or (sure is not None and sure.nothing_found)),
        confidence=None if sure is None else sure.value,
        degraded=state.degraded,
        expanded_queries=(context.request.text, *variants) if variants or context.expanded else (),
        metadata_answer=state.metadata_answer,
        service_context=state.service_context,
        query_metadata=_metadata(traced, context, len(chunks)),
    )


def _scored_chunk(
    hit: Hit, state: QueryState, stale: Mapping[str, bool], explain: Callable[[], tuple[Score, ...]]
) -> ScoredChunk:
    """Make the public form of a hit, past the frozen constructor.

    The constructor sets 48 fields one by one and takes five times as long. And `scores` is left out on purpose:
    `ScoredChunk.__getattr__` calls `explain` when it is first read.
    """
    shown = object.__new__(ScoredChunk)
    given = vars(shown)
    given.update(structs.asdict(hit.chunk))
    given.update(_DEFAULTS)
    if hit.chunk.timestamp is not None:
        given["timestamp"] = iso(hit.chunk.timestamp)
    given["stale"] = stale.get(hit.chunk.document_id)
    given["rerank_score"] = hit.rerank
    given["final_score"] = min(hit.value, 1.0)  # a boost may lift a value above 1
    given["parents"] = hit.parents
    given["copies"] = hit.copies
    given["graph_context"] = hit.graph
    if state.confidence is not None:
        given["confidence"] = state.confidence.of_hits.get(hit.chunk.id)
    if (child := hit.child) is not None:
        given["child_id"] = child.id
        if child.start_line is not None:
            given["child_lines"] = (child.start_line, child.end_line or child.start_line)
    if (fused := state.fused) is not None and (row := hit.row) is not None:
        for column in fused.columns:  # a paraphrase's scores are in the history only
            if not column.variant and column.leg in LEGS and not isnan(score := float(column.scores[row])):
                given[f"{column.leg}_score"] = score
        given["rrf_score"] = float(fused.raw[row]) if fused.method.name == "rrf" else None
        given["fusion_score"] = float(fused.values[row])
    given["_explain"] = explain
    return shown


def _explained(hit: Hit, matched: Matched, historian: Historian | None) -> tuple[Score, ...]:
    later = (Score(*structs.astuple(each)) for each in hit.scores)
    return (*(historian(hit.row, matched) if historian is not None and hit.row is not None else ()), *later)


def _metadata(traced: Traced, context: ResultContext, returned: int) -> QueryMetadata:
    counts = {COUNT_NAMES.get(each.stage, each.stage): each.count for each in traced.trace if each.count is not None}
    return QueryMetadata(
        total_ms=1000 * (time.perf_counter() - context.started_s),
        stages=tuple((each.stage, each.ms) for each in traced.trace),
        counts=(*counts.items(), ("returned", returned), ("dropped", traced.state.dropped)),
        embedding_coverage=coverage(context.reader.stats),
        model=context.model,
        fusion=context.fusion,
        chunks=context.reader.stats.chunks,
    )
