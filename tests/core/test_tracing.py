"""Logs and spans of a query: made from a result, with the timings that the result shows."""

from __future__ import annotations

import json
import logging
import subprocess
import sys

import msgspec
import pytest

from dowse.reports import QueryMetadata
from dowse.tracing import LOGGER, Tracing, facts, tracing
from dowse.types import Chunk, Degradation, QueryResult, ScoredChunk

CHUNK = Chunk(id="00000000000000aa", document_id="d", text="t", corpus_type="DOC_PAGE", source_uri="s/d")
RESULT = QueryResult(
    "a secret question",
    chunks=(ScoredChunk(**msgspec.structs.asdict(CHUNK)),),
    query_type="factual",
    confidence=0.8,
    query_metadata=QueryMetadata(12.5, (("prepare", 0.5), ("dense", 8.0), ("fuse", 1.25)), fusion="z", chunks=7),
)
LOST = QueryResult("q", degraded=(Degradation("dense", "no model"),))


def test_facts_hold_the_timings_of_query_metadata() -> None:
    told = facts(RESULT)
    assert told["stages"] == dict(RESULT.query_metadata.stages)
    assert (told["total_ms"], told["hits"], told["fusion"], told["confidence"]) == (12.5, 1, "z", 0.8)
    assert json.loads(json.dumps(told)) == told


def test_query_is_logged_with_its_facts_and_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, LOGGER):
        Tracing(None, logging.getLogger(LOGGER)).report(RESULT)
    (record,) = caplog.records
    assert record.dowse == facts(RESULT)  # type: ignore[attr-defined]
    assert "secret" not in record.getMessage()
    assert "total_ms=12.5" in record.getMessage()


def test_a_degraded_query_is_a_warning_and_a_good_one_is_quiet(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, LOGGER):
        Tracing(None, logging.getLogger(LOGGER)).report(RESULT)
        Tracing(None, logging.getLogger(LOGGER)).report(LOST)
    assert [(record.levelname, record.dowse["degraded"]) for record in caplog.records] == [  # type: ignore[attr-defined]
        ("WARNING", ["dense"])
    ]


def test_without_opentelemetry_there_is_no_tracer() -> None:
    script = (
        "import sys; sys.modules['opentelemetry'] = None; from dowse.tracing import tracing; print(tracing().tracer)"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "None"


def test_telling_without_a_listener_does_nothing() -> None:
    tracing().report(RESULT)
    tracing().report(LOST)


def test_spans_are_one_a_stage_below_one_a_query_with_the_same_durations() -> None:
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    export = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    processors = pytest.importorskip("opentelemetry.sdk.trace.export")
    exporter = export.InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(processors.SimpleSpanProcessor(exporter))
    Tracing(provider.get_tracer("test"), logging.getLogger(LOGGER)).report(RESULT)
    spans = {span.name: span for span in exporter.get_finished_spans()}
    whole = spans.pop("dowse.query")
    assert set(spans) == {"dowse.stage.prepare", "dowse.stage.dense", "dowse.stage.fuse"}
    for stage, spent_ms in RESULT.query_metadata.stages:
        span = spans[f"dowse.stage.{stage}"]
        assert span.end_time - span.start_time == round(spent_ms * 1_000_000)
        assert span.parent.span_id == whole.context.span_id
        assert whole.start_time <= span.start_time <= span.end_time <= whole.end_time
    assert whole.attributes["dowse.hits"] == 1
    assert "secret" not in str(dict(whole.attributes))


def test_what_was_lost_is_an_event_of_the_span() -> None:
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    export = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    processors = pytest.importorskip("opentelemetry.sdk.trace.export")
    exporter = export.InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(processors.SimpleSpanProcessor(exporter))
    Tracing(provider.get_tracer("test"), logging.getLogger(LOGGER)).report(LOST)
    (whole,) = exporter.get_finished_spans()
    assert [dict(event.attributes) for event in whole.events] == [{"stage": "dense", "reason": "no model"}]
