"""What every store must do with names and edges: a class to inherit, whose subclass gives the `store` fixture."""

from __future__ import annotations

import pytest

from dowse.ports import Store, StoreWriter
from dowse.types import Document, Edge, Service
from factories import PLAIN, document, of_chunks
from values import replace


def named(path: str, *symbols: str) -> Document:
    """A file with a chunk for each symbol, `Class.method` by its qualified name."""
    chunks = [
        replace(PLAIN, text=f"def {each}", symbol_name=each.rpartition(".")[2], qualified_name=each) for each in symbols
    ]
    return of_chunks(path, chunks)


class LinksContract:
    """Names, edges by maker, and what waits to be linked."""

    @pytest.fixture
    def writer(self, store: Store) -> StoreWriter:
        return store.writer()

    def bearers(self, store: Store, kind: str, *names: str) -> list[tuple[str, str]]:
        return [(each.name, each.chunk_id) for each in store.reader().named(kind, names)]

    # --- names ------------------------------------------------------------------------------------------

    def test_a_symbol_is_known_by_its_name_and_the_ends_of_its_qualified_name(
        self, store: Store, writer: StoreWriter
    ) -> None:
        given = named("a/pay.py", "shop.Cart.total")
        writer.put([given])
        writer.publish()
        own = given.chunks[0].id
        for name in ("total", "Cart.total", "shop.Cart.total"):
            assert self.bearers(store, "symbol", name) == [(name, own)]
        assert self.bearers(store, "file", "pay.py") == [("pay.py", own)]
        assert self.bearers(store, "module", "pay") == [("pay", own)]
        assert self.bearers(store, "symbol", "Cart") == self.bearers(store, "symbol") == []

    def test_names_are_found_in_any_case_of_ascii_and_by_their_start(self, store: Store, writer: StoreWriter) -> None:
        writer.put([named("a.py", "getUser", "GetUser", "get_users", "Über", "über", "a%c", "abc")])
        writer.publish()
        reader = store.reader()
        assert [each.name for each in reader.named("symbol", ["GETUSER"])] == ["GetUser", "getUser"]
        assert [each.name for each in reader.named("symbol", ["ÜBER"])] == ["Über"]
        assert [each.name for each in reader.names_from("symbol", "GET", 9)] == ["get_users", "GetUser", "getUser"]
        assert [each.name for each in reader.names_from("symbol", "get_", 9)] == ["get_users"]
        assert [each.name for each in reader.names_from("symbol", "a%", 9)] == ["a%c"]
        assert [each.name for each in reader.names_from("symbol", "g", 2)] == ["get_users", "GetUser"]

    def test_names_of_replaced_and_removed_documents_go(self, store: Store, writer: StoreWriter) -> None:
        writer.put([named("a.py", "old"), named("b.py", "kept")])
        writer.put([named("a.py", "new")])
        writer.remove([document("b.py").id])
        writer.publish()
        assert self.bearers(store, "symbol", "old", "kept") == []
        assert len(self.bearers(store, "symbol", "new")) == 1

    def test_a_name_that_stays_goes_over_to_the_chunk_that_bears_it_now(
        self, store: Store, writer: StoreWriter
    ) -> None:
        writer.put([named("a.py", "first", "moved"), named("b.py", "moved")])
        again = named("a.py", "moved", "second")
        writer.put([again])
        writer.publish()
        elsewhere = named("b.py", "moved").chunks[0].id
        own = {each.symbol_name: each.id for each in again.chunks}
        assert sorted(self.bearers(store, "symbol", "moved")) == sorted((("moved", elsewhere), ("moved", own["moved"])))
        assert self.bearers(store, "file", "a.py") == [("a.py", own["moved"])]  # it was the first's
        assert self.bearers(store, "symbol", "second") == [("second", own["second"])]

    def test_only_names_that_came_or_went_are_renamed(self, writer: StoreWriter) -> None:
        writer.put([named("a.py", "one", "two")])
        assert list(writer.renamed()) == [("file", "a.py"), ("module", "a"), ("symbol", "one"), ("symbol", "two")]
        writer.relink("link", [])
        writer.put([named("a.py", "two", "three")])
        assert list(writer.renamed()) == [("symbol", "one"), ("symbol", "three")]
        writer.put_services([Service("shop")], [])
        writer.put_services([Service("shop"), Service("auth")], [])
        assert ("service", "auth") in writer.renamed()
        assert ("service", "shop") in writer.renamed()

    # --- edges ------------------------------------------------------------------------------------------

    def test_a_maker_replaces_its_own_edges_and_leaves_those_of_others(self, store: Store, writer: StoreWriter) -> None:
        a, b, c = (chunk.id for chunk in document("a.py", "one", "two", "three").chunks)
        chunks = [replace(PLAIN, text=text) for text in ("one", "two", "three")]
        given = of_chunks("a.py", chunks, [Edge(a, b, "calls", 0.5, "by the reader")])
        writer.put([given])
        writer.publish()
        writer.put_edges("link", {given.id: [Edge(a, b, "calls", 0.9), Edge(b, c, "mentions", 0.6)]})
        writer.put_edges("llm", {given.id: [Edge(c, a, "caused_by", 0.4)]})
        edges = store.reader().neighbours([a, b, c])
        assert [(each.relation, each.weight) for each in edges] == [
            ("mentions", 0.6),
            ("calls", 0.5),
            ("caused_by", 0.4),
        ]
        writer.put_edges("link", {given.id: []})
        assert [each.relation for each in store.reader().neighbours([a, b, c])] == ["calls", "caused_by"]
        writer.put([given])
        writer.publish()
        assert [each.relation for each in store.reader().neighbours([a, b, c])] == ["calls"]

    def test_edges_of_a_document_that_is_gone_are_passed_over(self, store: Store, writer: StoreWriter) -> None:
        a, b = (chunk.id for chunk in document("a.py", "one", "two").chunks)
        writer.put_edges("link", {"0" * 16: [Edge(a, b, "calls")]})
        assert list(store.reader().neighbours([a])) == []

    def test_what_changed_waits_to_be_linked_by_every_maker(self, writer: StoreWriter) -> None:
        first, second = document("a.py", "one"), document("b.py", "two")
        writer.put([first, second])
        assert set(writer.unlinked("link")) == {first.id, second.id}
        writer.put_edges("link", {first.id: [], second.id: []})
        assert list(writer.unlinked("link")) == []
        assert len(writer.unlinked("llm")) == 2
        writer.put([document("a.py", "one, changed")])
        assert list(writer.unlinked("link")) == [first.id]
        writer.relink("link", [second.id, "0" * 16])
        assert set(writer.unlinked("link")) == {first.id, second.id}

    def test_who_was_tied_to_a_chunk_that_went_waits_again(self, store: Store, writer: StoreWriter) -> None:
        target, other, speaker = document("a.py", "one", "two"), document("b.py", "three"), document("c.md", "four")
        writer.put([target, other, speaker])
        edges = {
            target.id: [],
            other.id: [Edge(other.chunks[0].id, target.chunks[1].id, "calls")],
            speaker.id: [Edge(speaker.chunks[0].id, target.chunks[0].id, "mentions")],
        }
        writer.put_edges("link", edges)
        writer.put([document("a.py", "one", "two, changed")])
        assert set(writer.unlinked("link")) == {target.id, other.id}
        writer.publish()
        (kept,) = store.reader().neighbours([target.chunks[0].id], incoming=True)
        assert kept.source_id == speaker.chunks[0].id

    # --- how much a chunk is used -----------------------------------------------------------------------

    def count(self, store: Store, chunk_id: str) -> int:
        return store.reader().get([chunk_id])[chunk_id].connection_count

    def test_connections_are_the_other_chunks_that_edges_tie_a_chunk_to(
        self, store: Store, writer: StoreWriter
    ) -> None:
        """Each once, in both directions; what only stands beside it does not count."""
        target, speaker = document("a.py", "one", "two"), document("b.md", "three", "four")
        one, two = (chunk.id for chunk in target.chunks)
        three, four = (chunk.id for chunk in speaker.chunks)
        writer.put([target, speaker])
        writer.publish()
        writer.put_edges(
            "link", {target.id: [Edge(one, two, "sequence"), Edge(one, two, "calls"), Edge(one, one, "x")]}
        )
        said = [Edge(three, one, "mentions"), Edge(three, one, "documents"), Edge(four, one, "mentions")]
        writer.put_edges("link", {speaker.id: said})
        counts = [self.count(store, each) for each in (one, two, three, four)]
        assert counts == [3, 1, 1, 1]
        assert [each.connection_count for each in store.reader().document_chunks(target.id)] == [3, 1]
        writer.remove([speaker.id])
        writer.publish()
        assert self.count(store, one) == 1

    def test_connections_of_a_kept_chunk_survive_a_change_of_its_document(
        self, store: Store, writer: StoreWriter
    ) -> None:
        target, speaker = document("a.py", "one", "two"), document("b.md", "three")
        writer.put([target, speaker])
        writer.put_edges("link", {speaker.id: [Edge(speaker.chunks[0].id, target.chunks[0].id, "mentions")]})
        writer.put([document("a.py", "one", "two, changed")])
        writer.publish()
        assert self.count(store, target.chunks[0].id) == 1
