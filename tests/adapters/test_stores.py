"""Stores and loaders of other frameworks over an index: filters, types of metadata, ids, errors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dowse
from dowse.adapters.collection import DocumentCollection
from dowse.adapters.foreign_filters import compared, haystack_filter, langchain_filter
from dowse.adapters.metadata import loaded, restored, stored
from dowse.engine import Engine
from dowse.errors import BadRequestError
from dowse.filters import Eq, Gt, In, Not, Or, Prefix, fulfils

ROWS = [
    ("a", "retry the payment", {"year": 2021, "tags": ["x"], "draft": True}),
    ("b", "retry the refund", {"year": 2023, "team": "core"}),
    ("c", "cancel the payment", {"year": "2023"}),
]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with dowse.open(tmp_path / ".dowse", embedder=None) as engine:
        yield engine


@pytest.fixture
def collection(engine: Engine) -> DocumentCollection:
    found = DocumentCollection(engine, "here")
    found.put(ROWS)
    return found


def need(framework: str) -> None:
    if find_spec(framework) is None:
        (pytest.fail if os.environ.get("DOWSE_REQUIRE_FRAMEWORKS") else pytest.skip)(f"{framework} is not installed")


values = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)


@given(st.dictionaries(st.text(min_size=1, max_size=5), values, max_size=4))
def test_metadata_keeps_its_types(given: dict[str, Any]) -> None:
    assert restored(stored(given).items()) == {key: value for key, value in given.items() if value is not None}


def test_documents_come_back_as_they_were_given(collection: DocumentCollection) -> None:
    found = collection.get(collection.infos(["c", "a", "missing"]))
    assert [(each.id, each.text, each.metadata) for each in found] == [ROWS[2], ROWS[0]]


def test_a_long_document_comes_back_whole_and_is_found_by_a_passage(collection: DocumentCollection) -> None:
    text = "\n".join(f"Line {number} speaks of the number {number}.\n" for number in range(900)).strip()
    collection.put([("long", text, {})])
    assert [each.text for each in collection.get(collection.infos(["long"]))] == [text]
    best = collection.search("number 777", 3)[0]
    assert (best.id, "777" in best.text, len(best.text) < len(text)) == ("long", True, True)


def test_one_engine_holds_several_collections(collection: DocumentCollection, engine: Engine) -> None:
    other = DocumentCollection(engine, "there")
    other.put([("a", "retry nothing", {})])
    assert {each.id for each in collection.search("retry", 9)} == {"a", "b"}
    assert other.remove(["a", "b"]) == 1
    assert len(collection.infos()) == 3


def test_a_document_that_cannot_be_added_is_named_and_the_others_stay(collection: DocumentCollection) -> None:
    with pytest.raises(BadRequestError, match="empty: missing content, or both kinds: give either text or data"):
        collection.put([("new", "text", {}), ("empty", "", {})])
    assert [info.path for info in collection.infos(["new", "empty"])] == ["new"]


@pytest.mark.parametrize(
    ("filter", "wanted"),
    [
        (None, "ab"),
        ({"year": 2023}, "b"),
        ({"year": {"$gte": 2021, "$lt": 2023}}, "a"),
        ({"team": {"$ne": "core"}}, "a"),
        ({"$or": [{"team": "core"}, {"draft": True}]}, "ab"),
        ({"$and": [{"team": "core"}, {"year": 2021}]}, ""),
        ({"$not": {"team": "core"}}, "a"),
        ({"year": {"$in": [2021, 1999]}}, "a"),
        ({"year": {"$nin": [2021]}}, "b"),
        ({"team": None}, "a"),
        (dowse.by_meta("team", "core"), "b"),
        ((dowse.exclude(dowse.by_meta("team", "core")),), "a"),
    ],
)
def test_filters_of_langchain(collection: DocumentCollection, filter: Any, wanted: str) -> None:
    assert "".join(sorted(each.id for each in collection.search("retry", 9, langchain_filter(filter)))) == wanted


def test_filters_of_haystack_nest() -> None:
    year = {"field": "meta.year", "operator": ">=", "value": 2021}
    team = {"field": "meta.team", "operator": "in", "value": ["core", "web"]}
    assert haystack_filter(year) == (Or(((Gt("meta.year", 2021),), (Eq("meta.year", 2021),))),)
    both = (*haystack_filter(year), In("meta.team", ("core", "web")))
    assert haystack_filter({"operator": "AND", "conditions": [year, team]}) == both
    assert haystack_filter({"operator": "NOT", "conditions": [year, team]}) == (Not(both),)
    assert haystack_filter({"operator": "OR", "conditions": [team, team]}) == (Or((both[1:], both[1:])),)
    assert haystack_filter({"field": "id", "operator": "==", "value": "7"}) == (Eq("file_path", "7"),)
    assert haystack_filter({"field": "team", "operator": "==", "value": None}) == (Not((Prefix("meta.team", ""),)),)


@pytest.mark.parametrize(
    ("operator", "value"),
    [("like", 1), (">", "one"), (">", [1]), (">", {}), ("in", 1), ("$regex", "x")],
)
def test_a_comparison_without_a_meaning_is_refused(operator: str, value: Any) -> None:
    with pytest.raises(BadRequestError):
        compared("meta.year", operator, value)


@pytest.mark.parametrize("filter", [{"$nor": []}, {"$or": {}}, {"year": {"$near": 3}}])
def test_an_operator_that_langchain_does_not_have_is_refused(filter: dict[str, Any]) -> None:
    with pytest.raises(BadRequestError):
        langchain_filter(filter)


numbers = st.none() | st.integers(-3, 3)


@given(numbers, st.sampled_from(["==", "!=", ">", ">=", "<", "<="]), st.integers(-3, 3))
def test_a_comparison_means_what_it_says(value: int | None, operator: str, bound: int) -> None:
    meaning = {
        "==": value == bound,
        "!=": value != bound,
        ">": value is not None and value > bound,
        ">=": value is not None and value >= bound,
        "<": value is not None and value < bound,
        "<=": value is not None and value <= bound,
    }
    stored_value = None if value is None else str(value)
    assert fulfils(lambda _: stored_value, (compared("meta.n", operator, bound),)) is meaning[operator]


def test_dates_compare_in_order() -> None:
    clause = compared("meta.date", ">", datetime(2020, 1, 1))
    assert fulfils(lambda _: "2020-01-02T00:00:00", (clause,))
    assert not fulfils(lambda _: "2019-12-31T00:00:00", (clause,))


def test_documents_of_a_loader_get_ids_that_loading_again_replaces(engine: Engine) -> None:
    rows = [
        (None, "page one", {"source": "/data/a.pdf", "page": 0, "title": "Report", "author": "Ada"}),
        (None, "page two", {"source": "/data/a.pdf", "page": 1}),
        (None, "a page", {"source": "https://wiki.example.com/a"}),
        ("own", "with an id", {}),
        (None, "  ", {"source": "blank"}),
        (None, "no origin", {}),
    ]
    first, second, page, own, other = loaded(rows, "loaded")
    assert [first.id, second.id, page.id, own.id] == [
        "/data/a.pdf",
        "/data/a.pdf#2",
        "https://wiki.example.com/a",
        "own",
    ]
    assert other.id == "document#1"
    assert (first.title, first.author, page.url) == ("Report", "Ada", "https://wiki.example.com/a")
    for added, unchanged in ((5, 0), (0, 5)):
        report = engine.add(loaded(rows, "loaded"))
        assert (report.added, report.unchanged, report.problems) == (added, unchanged, ())
    assert engine.query("a page", where=dowse.by_source("https://wiki.example.com/a")).chunks[0].text == "a page"


def test_a_loader_of_langchain_feeds_an_index(engine: Engine, tmp_path: Path) -> None:
    need("langchain_core")
    from langchain_core.document_loaders import BaseLoader
    from langchain_core.documents import Document

    from dowse.adapters import from_langchain

    class Notes(BaseLoader):
        def lazy_load(self) -> Iterator[Document]:
            yield Document("Rotate the keys every month.", metadata={"source": "notes/keys.txt", "line": 3})

    assert engine.add(from_langchain(Notes().lazy_load())).added == 1
    hit = engine.query("rotate keys").chunks[0]
    assert (hit.source_uri, restored(hit.meta)) == (
        "documents/notes/keys.txt",
        {"source": "notes/keys.txt", "line": 3},
    )


def test_a_reader_of_llama_index_feeds_an_index(engine: Engine, tmp_path: Path) -> None:
    need("llama_index")
    from llama_index.core import SimpleDirectoryReader

    from dowse.adapters import from_llama_index

    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "keys.txt").write_text("Rotate the keys every month.")
    for added in (1, 0):
        documents = SimpleDirectoryReader(str(tmp_path / "notes")).load_data()
        assert engine.add(from_llama_index(documents, source="files")).added == added
    assert engine.query("rotate keys").chunks[0].source_uri.endswith("notes/keys.txt")


def test_a_haystack_pipeline_finds_what_was_written(tmp_path: Path) -> None:
    need("haystack")
    from haystack import Pipeline
    from haystack.dataclasses import Document

    from dowse.adapters import HaystackDocumentStore, HaystackRetriever

    store = HaystackDocumentStore(tmp_path / ".dowse", embedder=None)
    store.write_documents([Document(id=name, content=text, meta=meta) for name, text, meta in ROWS])
    pipeline = Pipeline()
    pipeline.add_component("retriever", HaystackRetriever(store, top_k=2))
    again = Pipeline.from_dict(pipeline.to_dict(), allowed_modules=["dowse.adapters.haystack"])
    store.engine.close()
    filters = {"field": "meta.year", "operator": ">", "value": 2022}
    found = again.run({"retriever": {"query": "retry", "filters": filters}})["retriever"]["documents"]
    again.get_component("retriever").document_store.engine.close()
    assert [(each.id, each.meta) for each in found] == [("b", {"year": 2023, "team": "core"})]
    assert 0 < found[0].score <= 1


def test_max_marginal_relevance_and_scores_of_the_vector_store(engine: Engine) -> None:
    need("langchain_core")
    from dowse.adapters import LangChainVectorStore

    store = LangChainVectorStore(engine)
    store.add_texts([text for _, text, _ in ROWS], [meta for *_, meta in ROWS], ids=[name for name, *_ in ROWS])
    assert {each.id for each in store.max_marginal_relevance_search("retry", k=2)} == {"a", "b"}
    scored = store.similarity_search_with_relevance_scores("retry the payment", k=3)
    assert next(each.id for each, _ in scored) == "a"
    assert all(0 <= score <= 1 for _, score in scored)
    assert [each.id for each in store.as_retriever(search_kwargs={"filter": {"team": "core"}}).invoke("retry")] == ["b"]
    with pytest.raises(BadRequestError, match="for as many documents"):
        store.add_documents(store.get_by_ids(["a", "b"]), ids=["1"])
    assert store.delete()
    assert store.similarity_search("retry") == []
