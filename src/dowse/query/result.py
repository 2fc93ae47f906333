"""The end of the path: a traced slate goes in, the result that every face shows comes out."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import partial
from math import floor
from typing import Any

import msgspec
import numpy as np

from dowse.identity import id_number
from dowse.ports import StoreReader, StoreStats
from dowse.query.explain.why import Historian, Matched
from dowse.query.stages.confidence import Confidence
from dowse.query.stages.state import Hit, Slate, Traced
from dowse.tokenizer import Tokenizer
from dowse.types import Chunk, QueryMetadata, QueryRequest, QueryResult, Score, ScoredChunk

# A leg's count goes by its own name; these stages' by what they made.
COUNT_NAMES: Mapping[str, str] = {"fuse": "union", "hydrate": "hydrated", "window": "hydrated"}


_DEFAULTS: Mapping[str, Any] = {
    each.name: each.default
    for each in fields(ScoredChunk)
    if each.name not in Chunk.__dataclass_fields__ and each.name != "scores"
}


class Asked(msgspec.Struct, frozen=True):
    """What the result has to know besides the slate."""

    request: QueryRequest
    fusion: str
    model: str | None  # that embedded the question
    reader: StoreReader
    tokenizer: Tokenizer
    answer_style: str
    started_s: float  # on time.perf_counter


def coverage(stats: StoreStats) -> float:
    """Share of the chunks that have a vector; an empty store lacks none."""
    return stats.vectors / stats.chunks if stats.chunks else 1.0


def coverage_note(stats: StoreStats) -> str:
    share = floor(100 * coverage(stats))  # never "100 %" while one is missing
    return f"vectors cover {share} % of the chunks; run `dowse index` to finish them"


def result_of(traced: Traced, asked: Asked) -> QueryResult:
    """The one trim to k happens here."""
    slate = traced.slate
    sure = slate.confidence
    shown = slate.hits[: slate.query.k]
    matched = _matched(shown, slate, asked.reader) if asked.request.explain else ({},) * len(shown)
    count = 1 + max((hit.row for hit in shown if hit.row is not None), default=-1)
    historian = None if slate.fused is None else Historian(slate.fused, count)
    chunks = tuple(_scored(hit, slate, held, historian) for hit, held in zip(shown, matched, strict=True))
    variants = tuple(each.text for each in slate.query.variants)
    return QueryResult(
        query=asked.request.text,
        chunks=chunks,
        query_type=slate.query_type,
        answer_style=asked.answer_style,
        nothing_found=not chunks or (sure is not None and sure.nothing_found),
        confidence=None if sure is None else sure.value,
        degraded=slate.degraded,
        expanded_queries=(asked.request.text, *variants) if variants else (),
        metadata_answer=slate.metadata_answer,
        service_context=slate.service_context,
        query_metadata=_metadata(traced, asked, len(chunks)),
    )


def _matched(hits: Sequence[Hit], slate: Slate, reader: StoreReader) -> Sequence[Matched]:
    """Which of the question's terms each hit holds."""
    ids = np.array([id_number(hit.found.id) for hit in hits], np.uint64)
    return reader.held_terms(dict(slate.query.terms), ids)


def _scored(hit: Hit, slate: Slate, matched: Matched, historian: Historian | None) -> ScoredChunk:
    """Past the constructor: a frozen one sets its fields one by one, and 46 of them take five times as long as this."""
    fused, row = slate.fused, hit.row
    made = object.__new__(ScoredChunk)
    given = vars(made)
    given.update(vars(hit.chunk))
    given.update(_DEFAULTS)
    _give_later(given, hit, slate.confidence)
    if fused is None or row is None or historian is None:
        given["scores"] = hit.scores
        return made
    historian.give_legs(given, row)
    given["rrf_score"] = float(fused.raw[row]) if fused.method.name == "rrf" else None
    given["fusion_score"] = historian.value(row)
    given["_tell"] = partial(_told, historian, row, matched, hit.scores)
    return made


def _told(historian: Historian, row: int, matched: Matched, later: tuple[Score, ...]) -> tuple[Score, ...]:
    return (*historian(row, matched), *later)


def changed(chunk: ScoredChunk, **given: Any) -> ScoredChunk:
    """`dataclasses.replace` past the constructor, as above."""
    made = object.__new__(ScoredChunk)
    vars(made).update(vars(chunk), **given)
    return made


def _give_later(given: dict[str, Any], hit: Hit, sure: Confidence | None) -> None:
    """What the stages after fusion say. A boost may lift a value above 1 for the order's sake; it is shown as 1."""
    given["rerank_score"] = hit.rerank
    given["final_score"] = min(hit.value, 1.0)
    given["parents"] = hit.parents
    given["graph_context"] = hit.graph
    if sure is not None:
        given["confidence"] = sure.of_hits.get(hit.chunk.id)
    if (child := hit.child) is not None:
        given["child_id"] = child.id
        if child.start_line is not None:
            given["child_lines"] = (child.start_line, child.end_line or child.start_line)


def _metadata(traced: Traced, asked: Asked, returned: int) -> QueryMetadata:
    counts = {COUNT_NAMES.get(each.stage, each.stage): each.count for each in traced.trace if each.count is not None}
    return QueryMetadata(
        total_ms=1000 * (time.perf_counter() - asked.started_s),
        stages=tuple((each.stage, each.ms) for each in traced.trace),
        counts=(
            *counts.items(),
            ("returned", returned),
            ("dropped", traced.slate.dropped),
        ),
        embedding_coverage=coverage(asked.reader.stats),
        model=asked.model,
        fusion=asked.fusion,
        chunks=asked.reader.stats.chunks,
    )
