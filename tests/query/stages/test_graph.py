"""The chunk graph over real stores: hits and edges go in; who joins them, where and why, is checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dowse.filters import by_repo, matches
from dowse.identity import chunk_id
from dowse.ports import Store, StoreReader
from dowse.query.stages.fusion import Fuse, ReciprocalRank, ZScore
from dowse.query.stages.graph import Graph, GraphOptions, GraphSlots, extended
from dowse.query.stages.leg_weights import Alpha
from dowse.query.stages.legs import Hydrate
from dowse.query.stages.state import Hit, Query, QueryState, Ranking
from dowse.store.embedded import EmbeddedStore
from dowse.store.memory import MemoryStore
from dowse.tokenizer import Tokenizer
from dowse.types import ChunkId, Edge
from factories import PLAIN, ids, of_chunks, vectors
from values import replace

DIMENSION = 8
NAMES = ("apple", "birch", "cedar", "daisy", "elder", "fern", "grape", "hazel")


def id_of(name: str) -> ChunkId:
    return chunk_id(f"docs/{name}", "chunk", f"{name} grows", 0)


def edge(source: str, target: str, weight: float = 1.0, relation: str = "calls", description: str = "") -> Edge:
    return Edge(id_of(source), id_of(target), relation, weight, description)


def fill(store: Store, edges: Sequence[Edge], **repos: str) -> Store:
    """A document a name, each with one chunk; the edges leave from their source's document."""
    writer = store.writer()
    for name in NAMES:
        own = [each for each in edges if each.source_id == id_of(name)]
        like = replace(PLAIN, text=f"{name} grows", repo_name=repos.get(name, "garden"), symbol_name=name)
        writer.put([of_chunks(name, [like], own)])
    writer.publish()
    writer.use_model("test-model", DIMENSION)
    pending = [each.content_hash for each in writer.pending(100)]
    writer.put_vectors(pending, vectors(pending, DIMENSION))
    writer.close()
    return store


def state_of(reader: StoreReader, *names: str, k: int = 10, repo: str | None = None, window: int = 50) -> QueryState:
    """What fusion and hydration leave when the word leg was asked for these names, and the dense leg for the first."""
    where = (by_repo(repo),) if repo else ()
    terms = tuple(Tokenizer().query(" ".join(names))["bm25_nlp"])
    vector = reader.vectors(ids(id_of(names[0])))[0][0]
    lists = (
        Ranking("dense", reader.search_vectors(vector, 3, where), vector=vector),
        Ranking("bm25_nlp", reader.search_words("bm25_nlp", terms, 20, where), terms=terms),
    )
    state = QueryState(Query(" ".join(names), k, where, terms=(("bm25_nlp", terms),)), lists)
    return Hydrate(reader, window)(Fuse(reader, ZScore(), Alpha(0.3))(state))


def only(state: QueryState, *names: str) -> QueryState:
    """The same state with these hits alone, in this order."""
    by_id = {hit.chunk.id: hit for hit in state.hits}
    return replace(state, hits=tuple(by_id[id_of(name)] for name in names))


def named(hits: Sequence[Hit]) -> list[str]:
    return [str(hit.chunk.symbol_name) for hit in hits]


def found(state: QueryState, name: str) -> Hit:
    return next(hit for hit in state.hits if hit.chunk.id == id_of(name))


def fusion_value(state: QueryState, hit: Hit) -> float:
    assert state.fused is not None
    assert hit.row is not None
    return float(state.fused.values[hit.row])


def cosine(reader: StoreReader, state: QueryState, name: str) -> float:
    vector = next(each.vector for each in state.lists if each.vector is not None)
    return max(float(reader.score_vectors(vector, ids(id_of(name)))[0]), 0.0)


@pytest.fixture(params=["memory", "embedded"])
def store(request: pytest.FixtureRequest, index_folder: Path) -> Iterator[Store]:
    made: Store = MemoryStore() if request.param == "memory" else EmbeddedStore(index_folder)
    yield made
    made.close()


def walked(store: Store, edges: Sequence[Edge], options: GraphOptions | None = None, **repos: str) -> QueryState:
    reader = fill(store, edges, **repos).reader()
    return Graph(reader, options or GraphOptions(seeds=1))(only(state_of(reader, "apple", "birch"), "apple", "birch"))


def test_discovered_chunk_is_scored_by_path_and_by_fusion_value(store: Store) -> None:
    """Discovered chunks get scores of all legs, as complete scoring does."""
    state = walked(store, [edge("apple", "cedar", 0.9)])
    hit = found(state, "cedar")
    assert hit.value == pytest.approx(0.7 * fusion_value(state, hit) + 0.3 * (0.7 * 0.9))
    assert state.fused is not None
    dense = next(column for column in state.fused.columns if column.leg == "dense")
    assert dense.scores[hit.row] == pytest.approx(
        float(store.reader().score_vectors(state.lists[0].vector, ids(id_of("cedar")))[0])  # type: ignore[arg-type]
    )


def test_seeds_have_no_graph_part_unless_another_seed_links_to_them(store: Store) -> None:
    """A seed has g = 0 unless another seed links to it."""
    state = walked(store, [edge("apple", "birch", 0.5)], GraphOptions(seeds=2))
    apple, birch = found(state, "apple"), found(state, "birch")
    assert apple.value == pytest.approx(0.7 * fusion_value(state, apple))
    assert birch.value == pytest.approx(0.7 * fusion_value(state, birch) + 0.3 * (0.7 * 0.5))


def test_a_way_back_to_the_seed_itself_counts_nothing(store: Store) -> None:
    state = walked(store, [edge("apple", "cedar"), edge("cedar", "apple")])
    apple = found(state, "apple")
    assert apple.value == pytest.approx(0.7 * fusion_value(state, apple))


def test_decay_is_by_hop_and_its_last_value_holds_beyond_the_list(store: Store) -> None:
    """The decay list is indexed by hop; its last element holds beyond its end."""
    chain = [edge("apple", "cedar"), edge("cedar", "daisy"), edge("daisy", "elder")]
    state = walked(store, chain, GraphOptions(seeds=1, hops=3, decay=(1.0, 0.6)))
    for name in ("cedar", "daisy", "elder"):
        hit = found(state, name)
        assert hit.value == pytest.approx(0.7 * fusion_value(state, hit) + 0.3 * 0.6)


def test_best_path_is_the_best_product_and_not_the_first_edge(store: Store) -> None:
    """g = decay[hop] · Π edge weights on the best path, not the first one visited."""
    ways = [edge("apple", "daisy", 0.1), edge("apple", "cedar", 1.0), edge("cedar", "daisy", 0.9)]
    state = walked(store, ways)
    hit = found(state, "daisy")
    assert hit.value == pytest.approx(0.7 * fusion_value(state, hit) + 0.3 * max(0.7 * 0.1, 0.5 * (1.0 * 0.9)))
    assert [context.hops for context in hit.graph] == [1, 2]


def test_another_seeds_way_counts_where_the_better_one_is_the_seeds_own(store: Store) -> None:
    ways = [edge("apple", "cedar", 1.0), edge("birch", "cedar", 0.5), edge("cedar", "apple", 1.0)]
    state = walked(store, ways, GraphOptions(seeds=2))
    apple = found(state, "apple")
    assert apple.value == pytest.approx(0.7 * fusion_value(state, apple) + 0.3 * (0.5 * (0.5 * 1.0)))


def test_edges_are_followed_backwards_only_when_asked(store: Store) -> None:
    edges = [edge("cedar", "apple")]
    reader = fill(store, edges).reader()
    before = only(state_of(reader, "apple"), "apple")
    assert named(Graph(reader, GraphOptions())(before).hits) == ["apple"]
    assert set(named(Graph(reader, GraphOptions(bidirectional=True))(before).hits)) == {"apple", "cedar"}


def test_relations_and_weak_edges_are_left_out_when_asked(store: Store) -> None:
    edges = [edge("apple", "cedar", 0.9, "imports"), edge("apple", "daisy", 0.2), edge("apple", "elder", 0.5)]
    state = walked(store, edges, GraphOptions(seeds=1, relations=("calls",), min_weight=0.5))
    assert set(named(state.hits)) == {"apple", "birch", "elder"}


def test_no_hop_leaves_the_filter(store: Store) -> None:
    """Graph hops must not leak chunks outside the filter."""
    edges = [edge("apple", "cedar"), edge("cedar", "daisy"), edge("apple", "elder")]
    reader = fill(store, edges, cedar="secret").reader()
    before = state_of(reader, "apple", repo="garden")
    after = Graph(reader, GraphOptions(seeds=1))(only(before, "apple"))
    assert set(named(after.hits)) == {"apple", "elder"}  # daisy passes, but the way to it does not


def test_edge_to_a_chunk_that_is_gone_leads_nowhere(store: Store) -> None:
    reader = fill(store, [Edge(id_of("apple"), "00000000deadbeef", "calls"), edge("apple", "cedar")]).reader()
    after = Graph(reader, GraphOptions(seeds=1))(only(state_of(reader, "apple"), "apple"))
    assert set(named(after.hits)) == {"apple", "cedar"}


def test_edge_context_is_in_words_and_on_discovered_chunks_only(store: Store) -> None:
    """Only chunks that the graph discovered have an edge context; seeds have none."""
    state = walked(store, [edge("apple", "birch"), edge("cedar", "apple", 0.8, "part_of", "chapter two")],
                   GraphOptions(seeds=2, bidirectional=True))  # fmt: skip
    assert found(state, "apple").graph == found(state, "birch").graph == ()
    (context,) = found(state, "cedar").graph
    assert context.from_id == id_of("apple")
    assert context.description == "cedar (docs/cedar) is part of apple (docs/apple): chapter two"
    assert (context.relation, context.weight, context.hops) == ("part_of", 0.8, 1)
    assert found(state, "cedar").scores[-1].why.endswith("part_of 0.8, 1 hop")


def test_graph_profile_keeps_the_literal_formula(store: Store) -> None:
    """Worked example: 0.3·0.8·0.5 = 0.12 and 0.7·0.9 + 0.3 = 0.93."""
    options = GraphOptions(seeds=1, decay=(1.0, 0.7, 0.5), by_cosine=True, literal=True)
    edges = [edge("apple", "cedar", 0.4), edge("cedar", "daisy", 0.8)]
    reader = fill(store, edges).reader()
    state = Graph(reader, options)(
        replace(only(state_of(reader, "apple", k=1), "apple"), lists=state_of(reader, "apple").lists)
    )
    assert found(state, "apple").value == pytest.approx(0.7 * cosine(reader, state, "apple") + 0.3)
    assert found(state, "cedar").value == pytest.approx(0.3 * 0.7 * 0.4)
    assert found(state, "daisy").value == pytest.approx(0.3 * 0.5 * 0.8)  # the last edge alone counts
    assert pytest.approx(0.12) == 0.3 * 0.5 * 0.8
    assert Graph(reader, options)._value(0.9, "cosine", None, seed=True)[0] == pytest.approx(0.93)


def test_blend_takes_the_cosine_and_not_the_fusion_value_when_asked(store: Store) -> None:
    """The cosine is blended; RRF only selects."""
    reader = fill(store, [edge("apple", "cedar")]).reader()
    before = state_of(reader, "apple", "birch")
    rrf = Hydrate(reader, 50)(Fuse(reader, ReciprocalRank(), Alpha(0.5))(replace(before, fused=None, hits=())))
    after = Graph(reader, GraphOptions(by_cosine=True))(rrf)
    for hit in after.hits:
        graph = 0.7 if hit.chunk.id == id_of("cedar") else 0.0
        assert hit.value == pytest.approx(0.7 * cosine(reader, after, str(hit.chunk.symbol_name)) + 0.3 * graph)


def test_without_vectors_the_fusion_value_stands_in_for_the_cosine(store: Store) -> None:
    reader = fill(store, [edge("apple", "cedar")]).reader()
    whole = state_of(reader, "apple", "birch")
    words = replace(whole, lists=whole.lists[1:], fused=None, hits=())
    before = Hydrate(reader, 50)(Fuse(reader, ZScore(), Alpha(0.5))(words))
    after = Graph(reader, GraphOptions(by_cosine=True))(before)
    apple = found(after, "apple")
    assert apple.value == pytest.approx(0.7 * fusion_value(after, apple))


def test_slots_keep_room_for_what_the_graph_found(store: Store) -> None:
    """Without slots, discovered chunks never surface when top_k is not above the number of seeds."""
    literal = GraphOptions(seeds=10, literal=True, by_cosine=True)
    reader = fill(store, [edge("apple", "hazel", 0.9), edge("birch", "grape", 0.5)]).reader()
    before = replace(state_of(reader, "apple", "birch", "cedar", "daisy", "elder", k=3))
    before = only(before, "apple", "birch", "cedar", "daisy", "elder")
    after = Graph(reader, literal)(before)
    assert all(not hit.graph for hit in after.hits[:3])
    kept = GraphSlots(2)(after)
    assert [bool(hit.graph) for hit in kept.hits[:3]] == [False, True, True]
    assert named(kept.hits[1:3]) == ["hazel", "grape"]
    assert sorted(named(kept.hits)) == sorted(named(after.hits))
    assert [hit.value for hit in kept.hits[:3]] == sorted((hit.value for hit in kept.hits[:3]), reverse=True)


def test_slots_change_nothing_when_the_graph_has_its_places_or_found_nothing(store: Store) -> None:
    state = walked(store, [edge("apple", "cedar")])
    assert GraphSlots(0)(state) is state
    assert GraphSlots(1)(state) is state
    assert GraphSlots(2)(only(state, "apple", "birch")).hits == only(state, "apple", "birch").hits


def test_what_fusion_knew_beyond_the_window_joins_with_its_own_row(store: Store) -> None:
    reader = fill(store, [edge("apple", "birch")]).reader()
    before = state_of(reader, "apple", "birch", window=1)
    assert before.fused is not None
    seed = str(before.hits[0].chunk.symbol_name)
    other = {"apple": "birch", "birch": "apple"}[seed]
    after = Graph(reader, GraphOptions(bidirectional=True))(before)
    assert found(after, other).row == before.fused.ids.tolist().index(int(id_of(other), 16))
    assert after.fused is before.fused


def test_rows_that_were_fused_keep_their_numbers_and_values(store: Store) -> None:
    reader = fill(store, []).reader()
    before = state_of(reader, "apple", "birch")
    assert before.fused is not None
    there = len(before.fused.ids)
    new = [each for each in map(id_of, NAMES) if int(each, 16) not in before.fused.ids.tolist()]
    longer = extended(reader, before, new)
    assert len(longer.ids) == there + len(new)
    assert np.array_equal(longer.ids[:there], before.fused.ids)
    assert np.array_equal(longer.values[:there], before.fused.values)
    assert all(
        np.array_equal(a.scores[:there], b.scores) for a, b in zip(longer.columns, before.fused.columns, strict=True)
    )
    assert all((column.ranks[there:] == 0).all() for column in longer.columns)


def test_a_hub_brings_no_more_chunks_than_the_frontier(store: Store) -> None:
    hub = [edge("apple", name, weight) for name, weight in zip(NAMES[2:], (0.2, 0.9, 0.4, 0.8, 0.3, 0.1), strict=True)]
    state = walked(store, hub, GraphOptions(seeds=1, hops=1, frontier=2))
    assert {str(hit.chunk.symbol_name) for hit in state.hits if hit.graph} == {"daisy", "fern"}


def test_nothing_fused_and_nothing_hit_is_left_alone(store: Store) -> None:
    reader = fill(store, []).reader()
    empty = QueryState(Query("?", 10))
    assert Graph(reader, GraphOptions())(empty) is empty


WEIGHTS = st.floats(0.05, 1.0, allow_nan=False)
EDGES = st.lists(
    st.builds(edge, st.sampled_from(NAMES), st.sampled_from(NAMES), WEIGHTS, st.sampled_from(["calls", "imports"])),
    max_size=14,
    unique_by=lambda each: (each.source_id, each.target_id, each.relation),
)


def best_by_hand(edges: Sequence[Edge], seeds: Sequence[ChunkId], allowed: set[ChunkId]) -> dict[ChunkId, float]:
    """All simple paths of at most two edges, written out."""
    best: dict[ChunkId, float] = {}
    for seed in seeds:
        for one in edges:
            if one.source_id != seed or one.target_id == seed or one.target_id not in allowed:
                continue
            best[one.target_id] = max(best.get(one.target_id, 0), 0.7 * one.weight)
            for two in edges:
                end = two.target_id
                if two.source_id == one.target_id and end not in (seed, one.target_id) and end in allowed:
                    best[end] = max(best.get(end, 0), 0.5 * one.weight * two.weight)
    return best


@given(EDGES, st.sets(st.sampled_from(NAMES[1:]), max_size=3), st.integers(1, 3))
def test_graph_values_are_those_of_all_paths_written_out(edges: list[Edge], hidden: set[str], seeds: int) -> None:
    """Filters hold on every path, ties do not flicker, values stay in [0,1] and no hit is lost."""
    reader = fill(MemoryStore(), edges, **dict.fromkeys(hidden, "secret")).reader()
    before = state_of(reader, "apple", "birch", "cedar", repo="garden")
    graph = Graph(reader, GraphOptions(seeds=seeds))
    after = graph(before)
    allowed = {id_of(name) for name in NAMES if name not in hidden}
    expected = best_by_hand(edges, [hit.chunk.id for hit in before.hits[:seeds]], allowed)
    assert {hit.chunk.id for hit in after.hits} == {hit.chunk.id for hit in before.hits} | set(expected)
    for hit in after.hits:
        assert matches(hit.chunk, before.query.where)
        assert 0 <= hit.value <= 1
        assert hit.value == pytest.approx(0.7 * fusion_value(after, hit) + 0.3 * expected.get(hit.chunk.id, 0.0))
    assert [hit.value for hit in after.hits] == sorted((hit.value for hit in after.hits), reverse=True)
    again = graph(before)
    assert again.hits == after.hits
