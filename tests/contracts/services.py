"""What every store must do with the service graph: a class to inherit, whose subclass gives the `store` fixture."""

from __future__ import annotations

from math import log

import pytest

from dowse.errors import BadRequestError
from dowse.ports import Store
from dowse.types import Service, ServiceEdge
from factories import document

AUTH = Service("auth", "acme", "go", "prod", (8080, 9090), ("00000000000000aa",))
SHOP, STRIPE = Service("shop"), Service("stripe", external=True)
CALLS = ServiceEdge("shop", "auth", "http", ("00000000000000ab",), "AUTH_URL in shop's manifest")


class ServiceGraphContract:
    """Services and edges come back as they were given, sorted."""

    def test_a_new_store_knows_no_services(self, store: Store) -> None:
        assert list(store.reader().services()) == []
        assert list(store.reader().service_edges()) == []

    def test_services_and_edges_come_back_whole_and_sorted(self, store: Store) -> None:
        writer = store.writer()
        paid = ServiceEdge("shop", "stripe", "http")
        writer.put_services([STRIPE, SHOP, AUTH], [paid, CALLS])
        writer.close()
        assert list(store.reader().services()) == [AUTH, SHOP, STRIPE]
        assert list(store.reader().service_edges()) == [CALLS, paid]

    def test_a_new_graph_replaces_the_old_one_wholly(self, store: Store) -> None:
        writer = store.writer()
        writer.put_services([SHOP, AUTH], [CALLS])
        writer.put_services([STRIPE], [])
        writer.close()
        assert list(store.reader().services()) == [STRIPE]
        assert list(store.reader().service_edges()) == []

    def test_an_edge_to_itself_is_dropped_and_equal_edges_join_their_evidence(self, store: Store) -> None:
        writer = store.writer()
        own = ServiceEdge("shop", "shop", "http")
        again = ServiceEdge("shop", "auth", "http", ("00000000000000ac", "00000000000000ab"), "later")
        writer.put_services([SHOP, AUTH], [own, CALLS, again])
        writer.close()
        (edge,) = store.reader().service_edges()
        assert edge.evidence == ("00000000000000ab", "00000000000000ac")
        assert edge.description == CALLS.description

    def test_an_edge_to_nowhere_is_refused_and_changes_nothing(self, store: Store) -> None:
        writer = store.writer()
        writer.put_services([SHOP, AUTH], [CALLS])
        with pytest.raises(BadRequestError, match="stripe"):
            writer.put_services([SHOP], [ServiceEdge("shop", "stripe")])
        with pytest.raises(BadRequestError, match="twice"):
            writer.put_services([SHOP, SHOP], [])
        writer.close()
        assert list(store.reader().service_edges()) == [CALLS]

    def test_names_are_data_and_never_syntax(self, store: Store) -> None:
        odd = Service("o'brien\"; DROP TABLE services; --")
        writer = store.writer()
        writer.put_services([odd], [])
        writer.close()
        assert list(store.reader().services()) == [odd]

    def test_attainable_words_counts_known_and_unknown_terms(self, store: Store) -> None:
        writer = store.writer()
        writer.put([document("a", "apple pear"), document("b", "apple")])
        writer.close()
        terms = ["appl", "appl", "zebra"]
        often, never = log(1 + (2 - 2 + 0.5) / (2 + 0.5)), log(1 + (2 - 0 + 0.5) / (0 + 0.5))
        found = store.reader().attainable_words({"bm25_nlp": terms, "bm25_code": []})
        assert found["bm25_nlp"] == pytest.approx(2 * often + never)
        assert found["bm25_code"] == 0
