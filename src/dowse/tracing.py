"""What a query took, for those who watch from outside: results go in, a log line and OpenTelemetry spans come out.

Spans are made after the fact, from the same timings that `query_metadata` shows, so the two never disagree and the
stages know nothing of it. Without the `opentelemetry` package, or without a configured exporter, nothing is made.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dowse.types import QueryResult

LOGGER = "dowse.query"
SPAN = "dowse.query"
_NS_PER_MS = 1_000_000


@dataclass(frozen=True)
class Tracing:
    """Tells of queries. `tracer` is OpenTelemetry's, or None."""

    tracer: Any
    logger: logging.Logger

    def tell(self, result: QueryResult) -> None:
        """One log record at level INFO, a WARNING when something was lost, and one span with one below it a stage.

        The question itself is neither logged nor traced: it may hold what its asker would not want kept.
        """
        lost = bool(result.degraded)
        level = logging.WARNING if lost else logging.INFO
        if self.logger.isEnabledFor(level):
            told = facts(result)
            summary = ", ".join(f"{name}={value}" for name, value in told.items())
            self.logger.log(level, "query: %s", summary, extra={"dowse": told})
        if self.tracer is not None:
            self._spans(result, time.time_ns())

    def _spans(self, result: QueryResult, ended_ns: int) -> None:
        from opentelemetry import trace

        metadata = result.query_metadata
        at_ns = ended_ns - _ns(metadata.total_ms)
        whole = self.tracer.start_span(SPAN, start_time=at_ns)
        if not whole.is_recording():  # nobody listens: OpenTelemetry is installed, and no exporter is set up
            return
        whole.set_attributes(_attributes(facts(result)))
        inside = trace.set_span_in_context(whole)
        for stage, spent_ms in metadata.stages:
            # Legs ran side by side and are drawn one after the other: durations are true, starts are not.
            span = self.tracer.start_span(f"dowse.stage.{stage}", context=inside, start_time=at_ns)
            at_ns += _ns(spent_ms)
            span.end(end_time=at_ns)
        for each in result.degraded:
            whole.add_event("degraded", {"stage": each.stage, "reason": each.reason})
        whole.end(end_time=ended_ns)


def tracing() -> Tracing:
    """With OpenTelemetry's tracer where that is installed; which exporter it has is the application's choice."""
    logger = logging.getLogger(LOGGER)
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())  # else warnings go to stderr in a program that set up no logging
    try:
        from opentelemetry import trace
    except ImportError:
        return Tracing(None, logger)
    return Tracing(trace.get_tracer("dowse"), logger)


def facts(result: QueryResult) -> dict[str, Any]:
    """What a log or a span says of a query, in plain values."""
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


def _attributes(told: dict[str, Any]) -> dict[str, Any]:
    """OpenTelemetry's attributes are flat and never null; timings are the spans themselves."""
    return {f"dowse.{name}": value for name, value in told.items() if name != "stages" and value is not None}


def _ns(spent_ms: float) -> int:
    return round(spent_ms * _NS_PER_MS)
