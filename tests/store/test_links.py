"""Both stores against the contract of names and edges, and against each other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contracts.links import LinksContract, named
from dowse.ports import Store
from dowse.store.embedded import EmbeddedStore
from dowse.store.memory import MemoryStore
from dowse.types import Document, Edge


class TestMemoryStore(LinksContract):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore()


class TestEmbeddedStore(LinksContract):
    @pytest.fixture
    def store(self, index_folder: Path) -> Iterator[Store]:
        store = EmbeddedStore(index_folder)
        yield store
        store.close()


PATHS = ("a.py", "b.py", "c.md")
SYMBOLS = ("load", "Load", "save", "Cart.total")
DOCUMENTS = {(path, symbols): named(path, *symbols) for path in PATHS for symbols in ((), SYMBOLS[:2], SYMBOLS[1:])}
CHUNKS = sorted({chunk.id for document in DOCUMENTS.values() for chunk in document.chunks})
EDGES = st.builds(
    Edge,
    st.sampled_from(CHUNKS),
    st.sampled_from(CHUNKS),
    st.sampled_from(("calls", "sequence", "mentions")),
    st.sampled_from((0.5, 1.0)),
)
CHANGES = st.one_of(
    st.tuples(st.just("put"), st.sampled_from(sorted(DOCUMENTS))),
    st.tuples(st.just("remove"), st.sampled_from(PATHS)),
    st.tuples(st.sampled_from(("link", "llm")), st.sampled_from(PATHS), st.lists(EDGES, max_size=4)),
    st.tuples(st.just("relink"), st.sampled_from(PATHS)),
)


def _id(path: str) -> str:
    return DOCUMENTS[path, ()].id


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(CHANGES, max_size=10))
def test_the_stores_agree_on_names_edges_and_what_waits(
    changes: list[tuple[object, ...]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    embedded, memory = EmbeddedStore(tmp_path_factory.mktemp("links") / "index"), MemoryStore()
    stores: tuple[Store, ...] = (embedded, memory)
    writers = [store.writer() for store in stores]
    for change in changes:
        for writer in writers:
            match change:
                case "put", key:
                    writer.put([DOCUMENTS[key]])  # type: ignore[index]
                case "remove", str(path):
                    writer.remove([_id(path)])
                case "relink", str(path):
                    writer.relink("link", [_id(path)])
                case str(maker), str(path), list(edges):
                    writer.put_edges(maker, {_id(path): edges})
            writer.publish()
    for writer in writers[1:]:
        assert list(writer.renamed()) == list(writers[0].renamed())
        for maker in ("link", "llm"):
            assert set(writer.unlinked(maker)) == set(writers[0].unlinked(maker))
    first, second = (_seen(store) for store in stores)
    assert first == second
    for writer in writers:
        writer.close()
    embedded.close()


def _seen(store: Store) -> tuple[object, ...]:
    reader = store.reader()
    return (
        list(reader.neighbours(CHUNKS)),
        list(reader.neighbours(CHUNKS, incoming=True)),
        list(reader.named("symbol", [*SYMBOLS, "total"])),
        list(reader.names_from("symbol", "l", 10)),
        dict(reader.get(CHUNKS)),
        [tuple(reader.document_chunks(_id(path))) for path in PATHS],
    )


def test_what_is_linked_is_there_after_closing_and_opening_again(index_folder: Path) -> None:
    store = EmbeddedStore(index_folder)
    writer = store.writer()
    document: Document = DOCUMENTS["a.py", SYMBOLS[:2]]
    first, second = (chunk.id for chunk in document.chunks)
    writer.put([document])
    writer.put_edges("link", {document.id: [Edge(first, second, "calls", 0.5, "why")]})
    writer.close()
    store.close()
    again = EmbeddedStore(index_folder, read_only=True)
    assert list(again.reader().neighbours([first])) == [Edge(first, second, "calls", 0.5, "why")]
    assert [each.name for each in again.reader().named("symbol", ["load"])] == ["Load", "load"]
    again.close()
