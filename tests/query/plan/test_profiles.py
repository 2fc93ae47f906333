"""The six profiles and users' own: a small company goes in; each system's order, constants and examples are checked."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime
from typing import Any

import numpy as np
import pytest

from dowse.errors import BadRequestError
from dowse.query.assemble import Assembly, Parts
from dowse.query.pipeline import answer, prepared
from dowse.query.plan.profiles import LINKS, ORDER, PROFILES, SHARED, SLOTS, Profile, named
from dowse.query.stages.freshness_and_boost import BoostRule
from dowse.query.stages.graph import GraphOptions
from dowse.query.stages.leg_weights import Alpha
from dowse.query.user_profiles import with_own
from dowse.store.memory import MemoryStore
from dowse.tokenizer import Tokenizer
from dowse.types import QueryRequest, QueryResult, QueryType, ScoredChunk
from shop_store import NOW, ROLLBACK, WHOLE, OverlapReranker, TrigramEmbedder, shop_store
from values import replace

EMBEDDER = TrigramEmbedder()


def at_now() -> datetime:
    return NOW


PARTS = Parts(cross_encoder=OverlapReranker(), now=at_now)


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return shop_store()


def ask(store: MemoryStore, text: str, profile: str = "engineering", parts: Parts = PARTS, **more: Any) -> QueryResult:
    request = QueryRequest(text, profile=profile, **more)
    return answer(request, store.reader(), EMBEDDER, Tokenizer(), parts=replace(parts, documents=store.documents))


def stages(store: MemoryStore, profile: str, **more: Any) -> list[str]:
    """Names in the order they run; the last, which changes nothing, is that of the confidence."""
    request = QueryRequest("how to retry payments", profile=profile, **more)
    ready = prepared(request, store.reader(), EMBEDDER, Tokenizer(), parts=PARTS)
    names = [step.stage.name for wave in ready.waves for step in wave]
    assert names.pop() == "confidence"
    return names


LEGS_TO_HITS = ["prepare", "dense", "bm25_code", "bm25_nlp", "fuse", "hydrate"]
SMOOTHING_TO_HITS = [*LEGS_TO_HITS[:-1], "smoothing", "hydrate"]
PROSE_TO_HITS = ["prepare", "dense", "bm25_nlp", "fuse", "hydrate"]


# engineering


def test_engineering_runs_its_stages_in_order(store: MemoryStore) -> None:
    """Rerank → freshness → boost → services."""
    wanted = [*LEGS_TO_HITS, "cross-encoder", "freshness", "boost", "services"]
    assert stages(store, "engineering", expand_graph=True) == wanted


def test_engineering_has_its_constants() -> None:
    own = named("engineering").adjusted(QueryRequest("q"))
    assert (own.top_k, own.depth, own.window) == (20, 3 * 20, 50)
    assert (own.fusion, own.rank_constant, own.weights) == (
        "rrf", 60, (("dense", 1.0), ("bm25_code", 1.0), ("bm25_nlp", 1.0)),
    )  # fmt: skip
    assert (own.freshness_half_life_days, own.freshness_weight, own.boost_cap) == (90.0, 0.1, None)


def test_more_than_fifty_hits_can_be_asked_for() -> None:
    assert named("engineering").adjusted(QueryRequest("q", top_k=80)).window == 80


@pytest.mark.parametrize("text", ["GetUser function", "lunch", "zzz qqq", "payment"])
def test_any_query_gives_something(store: MemoryStore, text: str) -> None:
    assert ask(store, text).chunks


def test_engineering_finds_its_examples(store: MemoryStore) -> None:
    """`GetUser function` finds the function first; `auth-service 503` finds Slack; `auth-service port` the manifest."""
    assert ask(store, "GetUser function").chunks[0].symbol_name == "GetUser"
    assert "CONVO_SLACK" in {each.corpus_type for each in ask(store, "auth-service 503", top_k=5).chunks}
    assert "CODE_DEPLOY" in {each.corpus_type for each in ask(store, "auth-service port", top_k=5).chunks}


@pytest.mark.parametrize(
    ("field", "value", "attribute"),
    [
        ("corpus_filter", ["CODE_LOGIC"], "corpus_type"),
        ("service_filter", "auth-service", "service_name"),
        ("repo_filter", ["ops"], "repo_name"),
    ],
)
def test_filters_of_engineering_hold(store: MemoryStore, field: str, value: Any, attribute: str) -> None:
    found = ask(store, "payment service port", **{field: value}).chunks
    assert found
    assert {getattr(each, attribute) for each in found} == {value if isinstance(value, str) else value[0]}


def test_top_k_is_exact(store: MemoryStore) -> None:
    assert len(ask(store, "service", top_k=3).chunks) == 3


def test_without_rerank_there_is_no_rerank_score(store: MemoryStore) -> None:
    """None against set."""
    assert all(each.rerank_score is None for each in ask(store, "payment", rerank=False).chunks)
    for each in ask(store, "payment").chunks:
        assert None not in (each.rrf_score, each.rerank_score, each.fusion_score)
        assert each.final_score > 0 or each.rerank_score == 0


def test_the_cross_encoder_replaces_the_score(store: MemoryStore) -> None:
    """The reranker alone decides the order."""
    for each in ask(store, "who wants coffee").chunks:
        if not each.corpus_type.startswith("CONVO"):
            assert each.final_score == each.rerank_score


def test_freshness_follows_its_formula(store: MemoryStore) -> None:
    found = {each.text: each for each in ask(store, "payment-service gateway timeouts").chunks}
    fresh = found["payment-service is down, the gateway answers with timeouts"]
    assert fresh.rerank_score is not None
    assert fresh.final_score == pytest.approx(0.9 * fresh.rerank_score + 0.1 * 2 ** (-2 / 90))


def test_the_final_score_is_set_when_freshness_is_off(store: MemoryStore) -> None:
    for each in ask(store, "deploy the payment service", freshness_weight=0.0, rerank=False).chunks:
        factor = 1.3 if each.corpus_type in ("CODE_DEPLOY", "DOC_RUNBOOK") else 1.0
        assert each.final_score == pytest.approx(min(1.0, (each.fusion_score or 0) * factor))


def test_services_around_the_hits_are_added(store: MemoryStore) -> None:
    result = ask(store, "CreateOrder", expand_graph=True, service_filter="order-service")
    assert result.service_context is not None
    around = dict(result.service_context)["order-service"]
    assert set(around.calls) == {"payment-service", "auth-service"}
    assert ask(store, "CreateOrder").service_context is None


def test_without_a_cross_encoder_nothing_is_said_unless_asked(store: MemoryStore) -> None:
    """Rerank only if there is a reranker."""
    bare = Parts(now=at_now)
    assert ask(store, "payment", parts=bare).degraded == ()
    assert [each.stage for each in ask(store, "payment", parts=bare, rerank=True).degraded] == ["cross-encoder"]


# documents


def test_documents_runs_its_stages_in_order(store: MemoryStore) -> None:
    """Expand → search → merge → rerank → MMR → parents; without an LLM, the rest of it."""
    assert stages(store, "documents") == [*PROSE_TO_HITS, "mmr", "parents"]
    own = named("documents")
    assert (own.top_k, own.diversity, own.alpha, own.expand, own.rerank) == (5, 0.3, 0.7, True, ("llm",))
    assert own.llm_scale == (0.0, 10.0)


def test_documents_gives_five_with_section_and_document(store: MemoryStore) -> None:
    result = ask(store, "rollback of a deployment", "documents")
    assert len(result.chunks) == 5
    rollback = next(each for each in result.chunks if "kubectl" in each.text)
    assert [(each.level, each.text) for each in rollback.parents] == [("document", WHOLE), ("section", ROLLBACK)]
    assert {each.stage for each in result.degraded} == {"expand", "llm"}  # no key: said, and answered all the same


# entities


def test_entities_puts_the_exact_name_first(store: MemoryStore) -> None:
    assert stages(store, "entities") == [*LEGS_TO_HITS, "heuristic", "exact"]
    for name in ("GetUser", "ChargeCard", "RetryCharge", "Stub"):
        assert ask(store, name, "entities").chunks[0].symbol_name == name
    assert dict(named("entities").weights or ()) == {"dense": 1.0, "bm25_code": 0.6 / 2, "bm25_nlp": 0.6 / 2}


def test_entities_keeps_the_score_before_the_heuristic(store: MemoryStore) -> None:
    """The original score is preserved in the result."""
    first = ask(store, "RetryCharge", "entities").chunks[0]
    history = {score.stage: score for score in first.scores}
    assert history["fuse"].value == first.fusion_score
    assert history["heuristic"].why.startswith("+2 exact name")


# papers


def test_papers_has_its_constants() -> None:
    own = named("papers")
    assert (own.alpha, own.rank_constant, own.missing_rank, own.merge) == (0.7, 60, 1000, "nested")
    assert (own.rerank, own.rerank_weight, own.llm_scale, own.llm_characters) == (("llm",), 0.7, (1.0, 10.0), 500)
    assert own.adjusted(QueryRequest("q")).depth == 20
    assert own.window == 50  # five hits are wanted, but the reranker sees the pool


def test_papers_gives_the_worked_example(store: MemoryStore) -> None:
    """c3 0.016314, c1 0.016211, c5 0.015799, c2 0.011221, c4 0.005422."""
    assembly = Assembly(named("papers"), store.reader(), Tokenizer())
    method = assembly.method()
    dense, sparse = [2, 4, 1, 0, 3], [1, 0, 2, 3, 4]  # of c1 … c5; 0 is not found
    weights = np.array([Alpha(0.7).by_leg({"dense": 4, "bm25_nlp": 4})[leg] for leg in ("dense", "bm25_nlp")])  # type: ignore[index]
    found = method.parts(np.zeros((2, 5)), np.array([dense, sparse]), weights).sum(axis=0)
    wanted = [
        0.7 / (60 + 2) + 0.3 / (60 + 1),
        0.7 / (60 + 4) + 0.3 / (60 + 1000),
        0.7 / (60 + 1) + 0.3 / (60 + 2),
        0.7 / (60 + 1000) + 0.3 / (60 + 3),
        0.7 / (60 + 3) + 0.3 / (60 + 4),
    ]
    assert found.tolist() == pytest.approx(wanted, abs=1e-12)
    assert np.argsort(-found).tolist() == [2, 0, 4, 1, 3]
    assert found[2] == pytest.approx(0.01631, abs=1e-5)


@pytest.mark.parametrize(
    ("text", "kind", "alpha", "top_k", "style"),
    [
        ("what port does auth-service listen on", QueryType.FACTUAL, 0.5, 5, "concise"),
        ("explain how payments are retried", QueryType.CONCEPTUAL, 0.8, 10, "detailed"),
        ("compare idempotent writes and locks", QueryType.COMPARISON, 0.7, 15, "structured"),
        ("who wrote guide.md", QueryType.METADATA, 0.5, 5, "direct"),
    ],
)
def test_papers_adapts_to_the_type_of_question(
    store: MemoryStore, text: str, kind: QueryType, alpha: float, top_k: int, style: str
) -> None:
    ready = prepared(QueryRequest(text, profile="papers"), store.reader(), EMBEDDER, Tokenizer())
    assert (ready.profile.alpha, ready.profile.top_k) == (alpha, top_k)
    result = ask(store, text, "papers")
    assert (result.query_type, result.answer_style) == (kind, style)


def test_what_the_request_says_wins_over_the_type(store: MemoryStore) -> None:
    request = QueryRequest("explain how payments are retried", profile="papers", top_k=3, alpha=0.0)
    ready = prepared(request, store.reader(), EMBEDDER, Tokenizer())
    assert (ready.profile.alpha, ready.profile.top_k) == (0.0, 3)


def test_a_given_type_is_believed(store: MemoryStore) -> None:
    request = QueryRequest("payments", profile="papers", query_type=QueryType.COMPARISON)
    assert prepared(request, store.reader(), EMBEDDER, Tokenizer()).profile.top_k == 15


# graph


def test_graph_runs_its_stages_in_order(store: MemoryStore) -> None:
    """Fusion → parents → reranker → minimum; the graph between."""
    wanted = [*PROSE_TO_HITS, "graph", "parents", "cross-encoder", "min_score", "graph_slots"]
    assert stages(store, "graph", rerank="cross-encoder", min_score=0.05) == wanted
    own = named("graph").adjusted(QueryRequest("q"))
    assert (own.alpha, own.depth, own.min_score) == (1 - 0.3, 3 * 10, 0.0)
    assert own.graph_options == GraphOptions(by_cosine=True, literal=True)
    assert (own.graph_options.seeds, own.graph_options.hops, own.graph_options.decay) == (10, 2, (1.0, 0.7, 0.5))


def test_graph_puts_parents_in_their_childrens_place(store: MemoryStore) -> None:
    result = ask(store, "rollback procedure kubectl", "graph", graph=False)
    first = result.chunks[0]
    assert (first.level, first.text) == ("section", ROLLBACK)
    assert first.child_id is not None
    assert len({each.id for each in result.chunks}) == len(result.chunks)


def test_graph_keeps_results_above_both_minimums(store: MemoryStore) -> None:
    """A reranker minimum of 0.1 and a minimum of 0.05 would drop everything on raw RRF."""
    assert ask(store, "retries of payments", "graph", min_score=0.05).chunks


# default, and what holds for all.


def test_default_runs_what_the_design_says(store: MemoryStore) -> None:
    wanted = [*SMOOTHING_TO_HITS, "signals", "cross-encoder", "freshness", "boost", "exact", "parents"]
    assert stages(store, "default") == wanted
    own = named("default")
    assert (own.top_k, own.fusion, own.alpha, own.parents, own.mmr, own.graph) == (
        10,
        "z",
        0.7,
        "attach",
        False,
        False,
    )


@pytest.mark.parametrize("profile", [each.name for each in PROFILES])
def test_every_profile_answers_and_can_have_every_stage(store: MemoryStore, profile: str) -> None:
    result = ask(
        store, "how to retry payments with RetryCharge", profile, mmr=True, graph=True, expand_graph=True,
        min_score=0.01, rerank="heuristic,cross-encoder", parents="attach", boost=True, freshness_weight=0.2,
    )  # fmt: skip
    assert result.chunks
    assert all(0 <= each.final_score <= 1 for each in result.chunks)
    names = [name for name, _ in result.query_metadata.stages]
    for stage in (
        "graph",
        "heuristic",
        "cross-encoder",
        "freshness",
        "boost",
        "min_score",
        "mmr",
        "parents",
        "services",
    ):
        assert stage in names
    assert names.index("heuristic") < names.index("cross-encoder")


def test_profiles_have_every_place_once() -> None:
    for each in PROFILES:
        assert sorted(each.order) == sorted(SLOTS)
    assert set(ORDER) == set(SLOTS)


def test_adjusting_twice_changes_nothing() -> None:
    request = QueryRequest("q", top_k=7, mmr=True, rerank="heuristic", graph_hops=1, graph_weight=0.4)
    for each in PROFILES:
        once = each.adjusted(request)
        assert once.adjusted(request) == once


def test_shared_fields_exist_on_both_sides() -> None:
    ours = set(Profile.__struct_fields__)
    theirs = {each.name for each in fields(QueryRequest)}
    assert set(SHARED) <= ours & theirs


def test_a_request_can_turn_everything_off(store: MemoryStore) -> None:
    off: dict[str, Any] = {"rerank": False, "freshness_weight": 0.0, "boost": False, "parents": "off"}
    assert stages(store, "default", **off) == [*SMOOTHING_TO_HITS, "signals", "exact"]


def test_result_types_of_the_five_systems_are_all_there() -> None:
    """One ScoredChunk holds the fields of the results of all profiles."""
    ours = {each.name for each in fields(ScoredChunk)}
    s0 = {
        "id", "text", "context_prefix", "corpus_type", "source_uri", "service_name", "repo_name", "file_path",
        "language", "symbol_name", "signature", "section_path", "author", "timestamp", "channel", "dense_score",
        "bm25_code_score", "bm25_nlp_score", "rrf_score", "rerank_score", "final_score",
    }  # fmt: skip
    s2_s3_s4 = {"summary", "connection_count", "section_type", "page", "meta", "document_id", "document_title"}
    assert s0 | s2_s3_s4 | {"document_source", "graph_context", "parents"} <= ours


# Users' own.


def test_a_table_makes_a_profile() -> None:
    table = {
        "base": "engineering", "top_k": 7, "rerank": ["heuristic"], "boost_cap": 2, "min_score": 0.1,
        "weights": {"dense": 2, "bm25_code": 1, "bm25_nlp": 0},
        "boost_rules": [{"words": ["Blast  Radius"], "corpus_types": ["DOC_ADR"], "factor": 1.4}],
        "graph_options": {"hops": 1, "relations": ["calls"]},
        "by_type": {"factual": {"alpha": 0.4, "top_k": 3}},
    }  # fmt: skip
    made = named("mine", with_own({"mine": table}))
    assert made == replace(
        named("engineering"), name="mine", top_k=7, rerank=("heuristic",), boost_cap=2.0, min_score=0.1,
        weights=(("dense", 2.0), ("bm25_code", 1.0), ("bm25_nlp", 0.0)),
        boost_rules=(BoostRule(("blast radius",), ("DOC_ADR",), 1.4),),
        graph_options=GraphOptions(hops=1, relations=("calls",)), by_type=((QueryType.FACTUAL, 0.4, 3),),
    )  # fmt: skip


def test_a_table_may_change_a_built_in_and_stand_on_another() -> None:
    tables: dict[str, dict[str, Any]] = {"default": {"top_k": 25}, "mine": {"mmr": True}}
    profiles = with_own(tables)
    assert named("default", profiles) == replace(named("default"), top_k=25)
    assert named("mine", profiles) == replace(named("default"), name="mine", top_k=25, mmr=True)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"topk": 5}, r"\[profiles.mine\]: unknown key 'topk'; did you mean 'top_k'"),
        ({"top_k": 0}, "top_k is 0; expected int >= 1"),
        ({"top_k": True}, "top_k is True"),
        ({"alpha": 2}, "alpha is 2; expected float <= 1.0"),
        ({"fusion": "borda"}, "choose from z, rrf, minmax"),
        ({"rerank": ["magic"]}, "choose from heuristic"),
        ({"order": ["mmr", "mmr"]}, "each once"),
        ({"weights": {"dense": 1}}, "give a weight to each of"),
        ({"boost_rules": [{"words": ["a"]}]}, "missing required field corpus_types"),
        ({"boost_rules": [{"words": ["a"], "corpus_types": ["NOVEL"], "factor": 1}]}, "choose from CODE_LOGIC"),
        ({"llm_scale": [10, 0]}, "a lower and a higher end"),
        ({"graph_options": {"jumps": 2}}, "choose from"),
        ({"mmr": "yes"}, "expected bool, got str"),
        ({"base": "nothing"}, "unknown profile 'nothing'"),
    ],
)
def test_a_wrong_table_names_table_and_key(table: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRequestError, match=message):
        with_own({"mine": table})


def test_an_unknown_profile_says_how_to_make_it() -> None:
    with pytest.raises(
        BadRequestError, match=r"unknown profile 'x'; choose from default, .*\[profiles.x\] in dowse.toml"
    ):
        named("x")


def test_former_keys_of_a_table_are_still_read() -> None:
    made = named("mine", with_own({"mine": {"crowd": 0.2, "pull": 0.4, "steer": True}}))
    assert (made.hubness, made.smoothing) == (0.2, 0.4)
    both = named("mine", with_own({"mine": {"crowd": 0.2, "hubness": 0.3}}))
    assert both.hubness == 0.3


def test_a_wrong_value_under_a_former_key_is_an_error() -> None:
    with pytest.raises(BadRequestError, match=r"hubness is 2; expected float <= 1.0"):
        with_own({"mine": {"crowd": 2}})


def test_every_link_and_place_can_be_written_in_a_table() -> None:
    made = named("mine", with_own({"mine": {"rerank": list(LINKS), "order": list(SLOTS)}}))
    assert (made.rerank, made.order) == (LINKS, SLOTS)
