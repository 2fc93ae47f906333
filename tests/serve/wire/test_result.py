from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dowse import errors
from dowse.reports import IndexReport, Problem
from dowse.serve.wire import result as wire
from dowse.types import (
    Degradation,
    EdgeContext,
    ParentContext,
    QueryMetadata,
    QueryResult,
    Score,
    ScoredChunk,
    ServiceContext,
)
from dowse.views import FrozenDict

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
number = st.floats(allow_nan=False, allow_infinity=False)
pairs = st.dictionaries(text, text, max_size=3).map(lambda found: tuple(found.items()))
moments = st.datetimes(min_value=datetime(1970, 1, 1), timezones=st.just(UTC))

chunks = st.builds(
    ScoredChunk,
    id=text, document_id=text, text=text, corpus_type=text, source_uri=text,
    start_line=st.none() | st.integers(1, 9), timestamp=st.none() | moments.map(datetime.isoformat), meta=pairs,
    calls_out=st.lists(text, max_size=2).map(tuple),
    dense_score=st.none() | number, final_score=number, stale=st.none() | st.booleans(),
    scores=st.lists(st.builds(Score, text, number, st.integers(0, 9), text), max_size=2).map(tuple),
    parents=st.lists(st.builds(ParentContext, text, text, text), max_size=1).map(tuple),
    graph_context=st.lists(st.builds(EdgeContext, text, text, text, number, st.integers(1, 3)), max_size=1).map(tuple),
)  # fmt: skip
metadata = st.builds(
    QueryMetadata,
    total_ms=number,
    stages=st.dictionaries(text, number, max_size=3).map(lambda found: tuple(found.items())),
    counts=st.dictionaries(text, st.integers(), max_size=3).map(lambda found: tuple(found.items())),
    model=st.none() | text,
)
services = st.builds(ServiceContext, text, edges=st.lists(pairs.map(FrozenDict), max_size=2).map(tuple))
results = st.builds(
    QueryResult,
    query=text,
    chunks=st.lists(chunks, max_size=3).map(tuple),
    degraded=st.lists(st.builds(Degradation, text, text), max_size=2).map(tuple),
    expanded_queries=st.lists(text, max_size=2).map(tuple),
    service_context=st.none() | st.dictionaries(text, services, max_size=2).map(FrozenDict),
    query_metadata=metadata,
)


@given(results)
def test_every_result_becomes_json_with_objects_for_pairs(result: QueryResult) -> None:
    row = json.loads(wire.encode(wire.result_object(result)))
    assert [chunk["meta"] for chunk in row["chunks"]] == [dict(chunk.meta) for chunk in result.chunks]
    assert row["query_metadata"]["counts"] == dict(result.query_metadata.counts)
    assert {name: each["edges"] for name, each in (row["service_context"] or {}).items()} == {
        name: [dict(edge) for edge in each.edges] for name, each in (result.service_context or {}).items()
    }


def test_a_result_has_the_documented_shape() -> None:
    chunk = ScoredChunk(
        "00ff",
        "d",
        "text",
        "DOC_PAGE",
        "acme/a.md",
        timestamp="2026-01-31T12:00:00Z",
        meta=(("team", "payments"),),
        final_score=0.5,
        scores=(Score("dense", 0.7, 1, "cosine"),),
    )
    result = QueryResult(
        "q",
        (chunk,),
        degraded=(Degradation("dense", "down"),),
        service_context=FrozenDict(api=ServiceContext("api", calls=("db",), edges=(FrozenDict(type="db"),))),
        query_metadata=QueryMetadata(1.5, stages=(("fuse", 0.1),), counts=(("dense", 3),)),
    )
    row = json.loads(wire.encode(wire.result_object(result)))
    assert row.keys() >= {
        "query", "query_type", "chunks", "nothing_found", "confidence", "degraded", "expanded_queries",
        "metadata_answer", "service_context", "query_metadata",
    }  # fmt: skip
    assert row["chunks"][0]["timestamp"] == "2026-01-31T12:00:00Z"
    assert row["chunks"][0]["meta"] == {"team": "payments"}
    assert row["chunks"][0]["scores"] == [{"stage": "dense", "value": 0.7, "rank": 1, "why": "cosine"}]
    assert row["chunks"][0]["dense_score"] is None
    assert row["degraded"] == [{"stage": "dense", "reason": "down"}]
    assert row["service_context"]["api"]["edges"] == [{"type": "db"}]
    assert row["query_metadata"]["stages"] == {"fuse": 0.1}
    assert row["query_metadata"]["counts"] == {"dense": 3}


def test_a_missing_timestamp_is_null() -> None:
    row = wire.chunk_object(ScoredChunk("00ff", "d", "text", "DOC_PAGE", "acme/a.md"))
    assert row["timestamp"] is None


def test_a_report_names_skips_by_reason() -> None:
    report = IndexReport(added=1, skipped=(("binary", 2),), problems=(Problem("a\udcff", "not valid UTF-8"),))
    row = json.loads(wire.encode(wire.report_object(report)))
    assert row["skipped"] == {"binary": 2}
    assert row["problems"] == [{"path": "a?", "reason": "not valid UTF-8"}]


def _tree(kind: type[errors.DowseError]) -> list[type[errors.DowseError]]:
    return [kind, *(below for child in kind.__subclasses__() for below in _tree(child))]


@pytest.mark.parametrize("kind", [k for k in _tree(errors.DowseError) if k.__module__ == errors.__name__])
def test_every_error_has_an_outcome_of_its_own(kind: type[errors.DowseError]) -> None:
    assert kind in wire.OUTCOMES
    assert wire.error_object(kind("message"))["error"]["type"] == kind.__name__


def test_an_unknown_subclass_has_the_outcome_of_its_parent() -> None:
    class Special(errors.NoIndexError):
        pass

    assert wire.outcome(Special("x")) == wire.OUTCOMES[errors.NoIndexError]


def test_documented_exit_codes() -> None:
    codes = {kind.__name__: int(outcome.exit_code) for kind, outcome in wire.OUTCOMES.items()}
    assert codes["BadRequestError"] == 2
    assert codes["NoIndexError"] == codes["CorruptIndexError"] == codes["SchemaVersionError"] == 3
    assert codes["ModelUnavailableError"] == 5
