"""Groups of hits by document: arithmetic of their value, their passages, copies and explanations."""

from __future__ import annotations

from math import sqrt
from typing import Any

import pytest

from dowse.ports import StoreReader
from dowse.query.facets import faceted
from dowse.query.pipeline import answer, prepared
from dowse.query.stages.document_groups import PASSAGES, GroupByDocument, MergeCopies
from dowse.query.stages.state import Hit, Query, QueryState
from dowse.serve.wire.result import result_object
from dowse.store.memory import MemoryStore
from dowse.tokenizer import Tokenizer
from dowse.types import Defined, QueryRequest, QueryResult
from factories import PLAIN, of_chunks
from values import replace

FILES = 30


def chunk(path: str, at: int, text: str, **fields: Any) -> Any:
    given = {"file_path": path, "start_line": at, "end_line": at, "corpus_type": "CODE_LOGIC"}
    return replace(PLAIN, text=text, source_uri=f"shop/{path}", **(given | fields))


@pytest.fixture(scope="module")
def reader() -> StoreReader:
    store = MemoryStore()
    for number in range(FILES):
        path = f"part{number:02}.py"
        rows = [chunk(path, at, f"retry the payment {number} {at} " + "filler " * number) for at in range(1, 6)]
        store.put([of_chunks(path, rows)])
    store.publish()
    return store.reader()


def ask(reader: StoreReader, text: str, **fields: Any) -> QueryResult:
    return answer(QueryRequest(text, group="document", **fields), reader, None, Tokenizer())


def test_top_k_counts_documents_and_each_has_its_passages(reader: StoreReader) -> None:
    result = ask(reader, "retry payment", top_k=7)
    assert len(result.chunks) == len(result.groups) == 7
    assert len({each.document for each in result.groups}) == 7
    for best, group in zip(result.chunks, result.groups, strict=True):
        assert group.chunks[0] is best
        assert len(group.chunks) <= PASSAGES
        assert {each.file_path for each in group.chunks} == {best.file_path}
        assert all(each.confidence is not None for each in group.chunks)
    scores = [each.final_score for each in result.chunks]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= each <= 1 for each in scores)


def test_fewer_documents_are_a_prefix_of_more(reader: StoreReader) -> None:
    few, many = (ask(reader, "retry payment", top_k=k).groups for k in (3, 9))
    assert [each.document for each in few] == [each.document for each in many[:3]]


def test_chunks_stay_the_unit_without_the_option(reader: StoreReader) -> None:
    result = answer(QueryRequest("retry payment"), reader, None, Tokenizer())
    assert result.groups == ()
    assert result_object(result)["groups"] == []


def test_groups_on_the_wire_and_behind_pages(reader: StoreReader) -> None:
    result = ask(reader, "retry payment", top_k=2)
    row = result_object(result)
    assert [each["document"] for each in row["groups"]] == [each.source_uri for each in result.chunks]
    assert row["groups"][0]["chunks"][0]["id"] == result.chunks[0].id
    request = QueryRequest("retry payment", top_k=2, group="document")
    found = faceted(prepared(request, reader, None, Tokenizer()), facets=True)
    assert len(found.groups) == len(found.ranked) > 2
    assert [each.document for each in found.groups[:2]] == [each.source_uri for each in result.chunks]


def test_value_of_a_document() -> None:
    first = [Hit(chunk("net/pool.py", at, "x", id=f"{at:016}", document_id="a"), 0.5) for at in (1, 2)]
    other = Hit(chunk("net/client.py", 1, "x", id=f"{9:016}", document_id="b"), 0.4)
    state = QueryState(Query("connection pool", 10), hits=(first[0], other, first[1]))
    hits = GroupByDocument(Tokenizer())(state).hits
    mass = 10 / 11 + 0.8 * 10 / 13
    name = 1.25 * 0.5 / (0.25 + 0.5)
    assert [hit.value for hit in hits] == pytest.approx([(1 + name) / 2.3, sqrt(10 / 12 / mass) / 2.3])
    assert hits[0].scores[-1].why.startswith("(√1.00 mass of 2 passages + 1·0.83 file name")
    assert [each.chunk.id for each in hits[0].passages] == [first[1].chunk.id]


def test_identical_passages_become_one_hit() -> None:
    rows = [
        Hit(chunk(path, 3, "same", id=f"{at:016}", document_id=path, content_hash=of), 1 - at / 10)
        for at, (path, of) in enumerate((("a.py", "h"), ("b.py", "h"), ("c.py", "other")))
    ]
    hits = MergeCopies()(QueryState(Query("q", 10), hits=tuple(rows))).hits
    assert [(hit.chunk.file_path, hit.copies) for hit in hits] == [("a.py", ("shop/b.py:3",)), ("c.py", ())]
    grouped = GroupByDocument(Tokenizer())(QueryState(Query("q", 10), hits=hits)).hits
    assert {hit.copies for hit in grouped} == {("shop/b.py:3",), ()}


def test_the_definition_comes_before_its_pieces_and_uses() -> None:
    own = Defined("Router", "class", "web.Router", 5, 90)
    store = MemoryStore()
    rows = [
        chunk("web.py", 50, "Router router Router router piece", symbol_name="Router", qualified_name="web.Router"),
        chunk("web.py", 5, "class Router:", symbol_name="Router", qualified_name="web.Router", defines=(own,)),
        chunk("web.py", 95, "Router Router Router", symbol_name="use"),
        chunk("web.py", 99, "router router", symbol_name="router", qualified_name="web.router"),
    ]
    store.put([of_chunks("web.py", rows)])
    store.publish()
    for text in ("Router", "web.Router"):
        found = answer(QueryRequest(text), store.reader(), None, Tokenizer()).chunks
        assert [each.start_line for each in found[:2]] == [5, 50]
        assert ask(store.reader(), text).chunks[0].start_line == 5
