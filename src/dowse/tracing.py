"""Log records and OpenTelemetry spans of queries, made from their results.

Spans are made after the fact from the timings in `query_metadata`, so the two never disagree and no stage depends on
tracing. Without the `opentelemetry` package, or without a configured exporter, no span is made.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from dowse.types import QueryResult

LOGGER = "dowse.query"
SPAN = "dowse.query"
_NS_PER_MS = 1_000_000


class Tracing(msgspec.Struct, frozen=True):
    """Reporter of queries. `tracer` is OpenTelemetry's, or None."""

    tracer: Any
    logger: logging.Logger
    span: str = SPAN  # name of the span of a query

    def report(self, result: QueryResult) -> None:
        """Write one log record and one span. The text of the query is in neither: it may hold private data."""
        self.log(result)
        if self.tracer is not None:
            self.trace(result)

    def log(self, result: QueryResult) -> None:
        """Write one log record: WARNING if a stage was skipped, else INFO."""
        level = logging.WARNING if result.degraded else logging.INFO
        if self.logger.isEnabledFor(level):
            found = facts(result)
            summary = ", ".join(f"{name}={value}" for name, value in found.items())
            self.logger.log(level, "query: %s", summary, extra={"dowse": found})

    def trace(self, result: QueryResult) -> None:
        """Make one span with a child for each stage."""
        from opentelemetry import trace

        metadata, ended_ns = result.query_metadata, time.time_ns()
        at_ns = ended_ns - round(metadata.total_ms * _NS_PER_MS)
        whole = self.tracer.start_span(self.span, start_time=at_ns)
        if not whole.is_recording():  # OpenTelemetry is installed without an exporter
            return
        flat = {f"dowse.{name}": value for name, value in facts(result).items() if name != "stages"}
        whole.set_attributes({name: value for name, value in flat.items() if value is not None})  # no nulls there
        inside = trace.set_span_in_context(whole)
        for stage, spent_ms in metadata.stages:
            # Legs ran in parallel and are drawn one after the other: durations are true, starts are not.
            span = self.tracer.start_span(f"dowse.stage.{stage}", context=inside, start_time=at_ns)
            at_ns += round(spent_ms * _NS_PER_MS)
            span.end(end_time=at_ns)
        for each in result.degraded:
            whole.add_event("degraded", {"stage": each.stage, "reason": each.reason})
        whole.end(end_time=ended_ns)


def tracing() -> Tracing:
    """Return a reporter with OpenTelemetry's tracer if that is installed; the application chooses the exporter."""
    logger = logging.getLogger(LOGGER)
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())  # else warnings go to stderr in programs without logging
    try:
        from opentelemetry import trace
    except ImportError:
        return Tracing(None, logger)
    return Tracing(trace.get_tracer("dowse"), logger)


def facts(result: QueryResult) -> dict[str, Any]:
    """Return the facts of a query for a log or a span, as plain values."""
    metadata = result.query_metadata
    return {
        "total_ms": round(metadata.total_ms, 3),
        "hits": len(result.chunks),
        "nothing_found": result.nothing_found,
        "confidence": result.confidence,
        "query_type": None if result.query_type is None else str(result.query_type),
        "fusion": metadata.fusion,
        "model": metadata.model,
        "chunks": metadata.chunks,
        "degraded": [each.stage for each in result.degraded],
        "stages": {stage: round(spent_ms, 3) for stage, spent_ms in metadata.stages},
    }
