"""Values that users hold are dataclasses, and the tools for dataclasses work on them."""

from __future__ import annotations

import copy
import pickle
from dataclasses import asdict, astuple, fields, is_dataclass, replace
from typing import Any, get_type_hints

import msgspec
import pytest

from dowse import filters
from dowse.query.pipeline import answer
from dowse.tokenizer import Tokenizer
from dowse.types import (
    Chunk,
    Defined,
    EdgeContext,
    ParentContext,
    QueryRequest,
    QueryResult,
    Score,
    ScoredChunk,
    ServiceContext,
)
from shop_store import TrigramEmbedder, shop_store

QUESTION = "retry failed calls"


@pytest.fixture(scope="module")
def result() -> QueryResult:
    """With all that can be reached from a result: scores, parents, edges, services."""
    request = QueryRequest(QUESTION, explain=True, graph=True, parents="attach", expand_graph=True)
    return answer(request, shop_store().reader(), TrigramEmbedder(), Tokenizer())


def test_a_scored_chunk_begins_with_the_fields_of_a_chunk() -> None:
    own = fields(ScoredChunk)
    chunk = msgspec.structs.fields(Chunk)
    assert [each.name for each in own[: len(chunk)]] == [each.name for each in chunk]
    hints, inner = get_type_hints(ScoredChunk), get_type_hints(Chunk)
    for mine, theirs in zip(own, chunk, strict=False):
        assert hints[mine.name] == inner[theirs.name] or mine.name == "timestamp"  # text, as in JSON
        assert mine.default == ("" if theirs.required else theirs.default) or mine.name == "id"


def test_every_value_that_users_hold_is_a_dataclass(result: QueryResult) -> None:
    seen: set[type] = set()

    def walk(value: Any) -> None:
        if isinstance(value, tuple | dict):
            for each in value.values() if isinstance(value, dict) else value:
                walk(each)
        elif is_dataclass(value):
            seen.add(type(value))
            for each in fields(value):
                walk(getattr(value, each.name))
        else:
            assert not isinstance(value, msgspec.Struct)

    walk(result)
    walk(QueryRequest(QUESTION, where=(filters.by_repo("x"), filters.by_meta("a", "b"))))
    reached = {QueryResult, ScoredChunk, Score, ParentContext, ServiceContext}
    assert reached | {QueryRequest, filters.In, filters.Eq} <= seen


@pytest.mark.parametrize(
    "value",
    [
        QueryRequest(QUESTION, where=(filters.Ne("language", "go"),)),
        Score("dense", 0.5, 1, "why"),
        Defined("f", "function", "a.f", 1, 2),
        ParentContext("1", "section", "text"),
        EdgeContext("1", "calls", "a calls b", 1.0, 1),
        ServiceContext("pay", ("bank",)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_tools_for_dataclasses_work(value: Any) -> None:
    _check(value)


def test_tools_for_dataclasses_work_on_a_result_and_its_hits(result: QueryResult) -> None:
    assert result.chunks
    _check(result)
    for hit in result.chunks:
        _check(hit)
        assert asdict(hit)["scores"] == tuple(asdict(each) for each in hit.scores)


def _check(value: Any) -> None:
    names = [each.name for each in fields(value)]
    assert list(asdict(value)) == names
    assert len(astuple(value)) == len(names)
    for other in (replace(value), copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert other == value
        assert repr(other) == repr(value)
        assert set(vars(other)) == set(names)
    assert hash(replace(value)) == hash(value)


def test_a_pickled_hit_holds_the_hit_and_nothing_of_its_query() -> None:
    """Its explanation is written out: the arrays it is made from stay behind."""
    unread = answer(QueryRequest(QUESTION), shop_store().reader(), TrigramEmbedder(), Tokenizer()).chunks[0]
    data = pickle.dumps(unread)
    assert b"dowse.query" not in data
    assert b"numpy" not in data
    plain = pickle.dumps(ScoredChunk(**{each.name: getattr(unread, each.name) for each in fields(unread)}))
    assert len(data) <= len(plain)
    kept = pickle.loads(data)
    assert kept.scores == unread.scores
    assert kept == unread


def test_a_hit_has_no_other_fields() -> None:
    hit = ScoredChunk("1", "d", "text", "DOC_PAGE", "docs/a.md")
    assert hit.scores == ()
    with pytest.raises(AttributeError, match="'ScoredChunk' object has no attribute 'nonsense'"):
        _ = hit.nonsense  # type: ignore[attr-defined]
