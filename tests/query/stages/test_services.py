"""Service context over a real store: services and edges go in, who calls whom around the hits is checked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dowse.errors import NotFoundError
from dowse.filters import by_repo
from dowse.query.stages.services import AddServices, ServiceGraph, _citing
from dowse.query.stages.state import Hit, Query, QueryState
from dowse.store.memory import MemoryStore
from dowse.types import Service, ServiceContext, ServiceEdge
from factories import PLAIN, document
from values import replace

NAMES = ("auth", "cart", "mail", "shop", "stripe")
CHAIN = (
    ServiceEdge("shop", "cart", "http"),
    ServiceEdge("cart", "auth", "grpc"),
    ServiceEdge("cart", "stripe", "http"),
    ServiceEdge("auth", "mail", "queue"),
)
GRAPH = ServiceGraph(tuple(Service(name) for name in NAMES), CHAIN)


def around(graph: ServiceGraph, name: str, depth: int = 1) -> ServiceContext:
    return dict(graph.neighbourhood([name], depth))[name]


def test_neighbourhood_names_direct_callers_and_callees() -> None:
    """A neighbourhood of depth 1 holds calls, callers and edges."""
    cart = around(GRAPH, "cart")
    assert cart.calls == ("auth", "stripe")
    assert cart.called_by == ("shop",)
    assert [(dict(edge)["source"], dict(edge)["target"], dict(edge)["type"]) for edge in cart.edges] == [
        ("cart", "auth", "grpc"),
        ("cart", "stripe", "http"),
        ("shop", "cart", "http"),
    ]


def test_depth_goes_on_through_neighbours() -> None:
    assert around(GRAPH, "shop", 2).calls == ("auth", "cart", "stripe")
    assert around(GRAPH, "mail", 3).called_by == ("auth", "cart", "shop")


def test_unknown_services_are_left_out_and_names_are_sorted() -> None:
    """Unknown names are omitted; services are sorted."""
    assert list(GRAPH.neighbourhood(["shop", "nobody", "auth", "shop"])) == ["auth", "shop"]


def test_blast_radius_is_all_callers_and_downstream_all_callees() -> None:
    """Blast radius: transitive callers; downstream: transitive callees."""
    assert GRAPH.blast_radius("mail") == ("auth", "cart", "shop")
    assert GRAPH.downstream("shop") == ("auth", "cart", "mail", "stripe")
    assert GRAPH.downstream("mail") == ()
    assert GRAPH.blast_radius("mail", depth=1) == ("auth",)


def test_blast_radius_of_an_unknown_service_names_the_known_ones() -> None:
    with pytest.raises(NotFoundError, match="auth, cart"):
        GRAPH.blast_radius("zzz")


@pytest.mark.parametrize("name", ["checkout", "chekoutservice", "Checkout-Service", "outservice"])
def test_an_unknown_name_suggests_a_near_one(name: str) -> None:
    graph = ServiceGraph((Service("checkoutservice"), Service("cart")), ())
    with pytest.raises(NotFoundError, match=r"did you mean checkoutservice\?$"):
        graph.around(name)


def test_a_name_means_the_services_of_all_repositories_that_have_it() -> None:
    graph = ServiceGraph((Service("a/web"), Service("b/web"), Service("web-api")), ())
    assert graph.meant("web") == ("a/web", "b/web")
    assert graph.meant("WEB_API") == ("web-api",)
    assert graph.meant("we") == ()


def test_a_ring_of_services_ends() -> None:
    ring = ServiceGraph((Service("a"), Service("b")), (ServiceEdge("a", "b"), ServiceEdge("b", "a")))
    assert ring.downstream("a") == ring.blast_radius("a") == ("b",)


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=12))
def test_who_is_downstream_has_the_other_in_its_blast_radius(pairs: list[tuple[str, str]]) -> None:
    graph = ServiceGraph(GRAPH.services, tuple(ServiceEdge(a, b) for a, b in pairs if a != b))
    for name in NAMES:
        assert name not in graph.downstream(name)
        for other in graph.downstream(name):
            assert name in graph.blast_radius(other)


def stored() -> MemoryStore:
    """Two repositories; the edge from shop to auth is shown by a chunk of each."""
    store = MemoryStore()
    shop = document("shop.yaml", "AUTH_URL http auth", like=replace(PLAIN, service_name="shop", repo_name="open"))
    auth = document("auth.yaml", "auth listens", like=replace(PLAIN, service_name="auth", repo_name="closed"))
    store.put([shop, auth])
    evidence = (shop.chunks[0].id, auth.chunks[0].id, "00000000deadbeef")
    store.put_services(
        [Service("shop"), Service("auth"), Service("mail", external=True)],
        [
            ServiceEdge("shop", "auth", "http", evidence, "AUTH_URL"),
            ServiceEdge("auth", "mail", "queue", evidence[1:2], "MAIL_QUEUE"),
        ],
    )
    store.publish()
    return store


def asked(store: MemoryStore, *services: str, k: int = 10, repo: str | None = None) -> QueryState:
    chunks = {chunk.service_name: chunk for chunk in store.reader().chunks.values()}
    hits = tuple(Hit(chunks[name], 0.5) for name in services)
    where = (by_repo(repo),) if repo else ()
    return AddServices(store.reader())(QueryState(Query("q", k, where), hits=hits))


def test_services_of_the_hits_that_are_shown_get_their_surroundings() -> None:
    """Neighbours are those of the services of the hits."""
    store = stored()
    assert list(asked(store, "shop", "auth").service_context or ()) == ["auth", "shop"]
    assert list(asked(store, "shop", "auth", k=1).service_context or ()) == ["shop"]
    assert asked(store).service_context == {}


def test_evidence_outside_the_filter_or_gone_is_not_cited() -> None:
    """Evidence outside the filter stays hidden."""
    store = stored()
    auth_id = document("auth.yaml", "auth listens").chunks[0].id
    edges = [dict(edge) for edge in dict(asked(store, "auth").service_context or ())["auth"].edges]
    assert auth_id in edges[0]["evidence"]
    assert "deadbeef" not in edges[1]["evidence"]
    hidden = [dict(edge) for edge in dict(asked(store, "auth", repo="open").service_context or ())["auth"].edges]
    assert [edge["evidence"] for edge in hidden if edge["target"] == "mail"] == [""]
    assert [edge["description"] for edge in hidden if edge["target"] == "mail"] == [""]
    assert [edge["description"] for edge in hidden if edge["target"] == "auth"] == [
        ""
    ]  # half of its evidence is hidden


def test_hits_are_left_as_they_are() -> None:
    state = asked(stored(), "shop")
    assert [hit.value for hit in state.hits] == [0.5]


def test_a_description_is_hidden_when_part_of_its_evidence_is() -> None:
    edge = ServiceEdge(
        "order", "payment", "http", ("a" * 16, "b" * 16), "calls in order.go, PAYMENT_URL in deploy.yaml"
    )
    partly = _citing(edge, {"a" * 16}, filtered=True)
    assert (partly.evidence, partly.description) == (("a" * 16,), "")
    assert _citing(edge, {"a" * 16, "b" * 16}, filtered=True) == edge
    assert _citing(edge, {"a" * 16}, filtered=False).description == edge.description
