"""Properties of every query, checked with generated requests."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from math import isfinite
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dowse.filters import from_request, matches
from dowse.query.assemble import Parts
from dowse.query.cache import Caches
from dowse.query.pipeline import answer
from dowse.query.plan.profiles import PROFILES
from dowse.store.memory import MemoryStore
from dowse.tokenizer import Tokenizer
from dowse.types import LEGS, QueryRequest, QueryResult
from shop_store import NOW, SLACK, OverlapReranker, TrigramEmbedder, documents, shop_store
from values import replace

EMBEDDER, TOKENIZER = TrigramEmbedder(), Tokenizer()
PARTS = Parts(cross_encoder=OverlapReranker(), now=lambda: NOW)
WORDS = (
    "retry", "payments", "RetryCharge", "rollback", "service", "down", "how to", "deploy", "503", "`GetUser`", "why",
    "lunch", "zzz", "the", "who wrote guide.md", "port?", "ß",
)  # fmt: skip


@cache
def store() -> MemoryStore:
    return shop_store()


TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
SHARE = st.none() | st.floats(0, 1)
SWITCH = st.none() | st.booleans()
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "corpus_filter": st.sampled_from([("CODE",), ("DOC",), ("CONVO",), ("DOC_RUNBOOK", "CODE_DEPLOY")]),
        "service_filter": st.sampled_from(["auth-service", "payment-service"]),
        "repo_filter": st.sampled_from([("shop",), ("docs", "ops")]),
        "language_filter": st.just(("go",)),
        "channel_filter": st.just(("incident",)),
    },
)
KNOBS = st.fixed_dictionaries(
    {},
    optional={
        "top_k": st.integers(1, 30), "profile": st.sampled_from([each.name for each in PROFILES]),
        "fusion": st.sampled_from(["z", "rrf", "minmax"]), "alpha": SHARE, "missing_rank": st.none() | st.just(1000),
        "depth": st.none() | st.integers(1, 40),
        "rerank": st.sampled_from([None, True, False, "heuristic", "heuristic,cross-encoder"]),
        "rerank_weight": SHARE, "freshness_weight": SHARE, "boost": SWITCH, "mmr": SWITCH, "diversity": SHARE,
        "graph": SWITCH, "graph_bidirectional": SWITCH, "graph_hops": st.sampled_from([None, 1, 2]),
        "parents": st.sampled_from([None, "off", "attach", "replace"]), "expand_graph": SWITCH,
        "legs": st.sampled_from([LEGS, ("dense",), ("bm25_code",), ("bm25_code", "bm25_nlp")]),
        "explain": st.booleans(),
    },
)  # fmt: skip


def ask(text: str, parts: Parts = PARTS, pool: ThreadPoolExecutor | None = None, **fields: Any) -> QueryResult:
    parts = replace(parts, documents=store().documents)
    return answer(QueryRequest(text, **fields), store().reader(), EMBEDDER, TOKENIZER, pool, parts=parts)


def shown(result: QueryResult) -> list[tuple[str, float]]:
    return [(each.id, each.final_score) for each in result.chunks]


@settings(max_examples=150)
@given(TEXTS, KNOBS, FILTERS)
def test_filters_hold_on_every_path(text: str, knobs: dict[str, Any], filters: dict[str, Any]) -> None:
    """For hits, for chunks found by graph and names, and for parents."""
    result = ask(text, **knobs, **filters)
    where = from_request(QueryRequest(text, **filters))
    chunks = {chunk.id: chunk for each in documents() for chunk in each.chunks}
    for each in result.chunks:
        assert matches(each, where)
        assert all(matches(chunks[parent.id], where) for parent in each.parents)


@settings(max_examples=150)
@given(TEXTS, KNOBS)
def test_hits_are_sorted_distinct_finite_and_in_range(text: str, knobs: dict[str, Any]) -> None:
    result = ask(text, **knobs)
    scores = [each.final_score for each in result.chunks]
    assert scores == sorted(scores, reverse=True) or "mmr" in result.query_metadata["stages"]
    assert all(0 <= score <= 1 for score in scores)
    assert len({each.id for each in result.chunks}) == len(scores)
    for each in result.chunks:
        assert all(isfinite(score.value) for score in each.scores)
        assert each.rerank_score is None or 0 <= each.rerank_score <= 1
        assert each.fusion_score is None or 0 <= each.fusion_score <= 1


@settings(max_examples=75)
@given(TEXTS, KNOBS)
def test_the_same_question_twice_has_the_same_answer(text: str, knobs: dict[str, Any]) -> None:
    assert ask(text, **knobs).chunks == ask(text, **knobs).chunks


@settings(max_examples=50)
@given(TEXTS, KNOBS)
def test_caches_and_threads_change_nothing(text: str, knobs: dict[str, Any]) -> None:
    parts = replace(PARTS, caches=Caches())
    with ThreadPoolExecutor(3) as pool:
        plain = ask(text, **knobs)
        assert ask(text, parts, pool, **knobs).chunks == plain.chunks
        assert ask(text, parts, pool, **knobs).chunks == plain.chunks  # now from the caches
        assert ask(text, parts, pool, **knobs, cache=False).chunks == plain.chunks


@settings(max_examples=75)
@given(TEXTS, st.integers(1, 40))
def test_as_many_hits_as_asked_for_or_as_there_are(text: str, top_k: int) -> None:
    """min(top_k, available); the trigram leg finds every chunk that has a vector."""
    available = store().reader().stats.chunks
    assert len(ask(text, top_k=top_k).chunks) == min(top_k, available)


@settings(max_examples=50)
@given(TEXTS, st.integers(1, 20))
def test_asking_for_fewer_gives_the_first_of_more(text: str, top_k: int) -> None:
    """One trim, at the end: the order does not depend on it (depth and window fixed)."""
    more = ask(text, top_k=20, depth=60)
    assert shown(ask(text, top_k=top_k, depth=60)) == shown(more)[:top_k]


@settings(max_examples=50)
@given(TEXTS, st.sampled_from(["z", "rrf", "minmax"]), st.permutations(LEGS))
def test_the_order_of_legs_does_not_matter(text: str, fusion: Any, legs: Any) -> None:
    assert shown(ask(text, fusion=fusion, legs=tuple(legs))) == shown(ask(text, fusion=fusion))


@settings(max_examples=40)
@given(TEXTS)
def test_a_leg_that_agrees_never_lowers_a_hit_in_rrf(text: str) -> None:
    """Monotone: one more list that ranks a chunk never lowers its raw score."""
    weights = (("dense", 1.0), ("bm25_code", 1.0), ("bm25_nlp", 1.0))
    alone = {
        each.id: each.rrf_score for each in ask(text, fusion="rrf", weights=weights, legs=("dense",), top_k=30).chunks
    }
    both = ask(text, fusion="rrf", weights=weights, legs=("dense", "bm25_nlp"), top_k=30).chunks
    assert all((each.rrf_score or 0) >= (alone.get(each.id) or 0) - 1e-12 for each in both)


@pytest.mark.parametrize("profile", [each.name for each in PROFILES])
def test_an_empty_store_is_safe(profile: str) -> None:
    empty = MemoryStore()
    empty.publish()
    result = answer(QueryRequest("anything", profile=profile), empty.reader(), EMBEDDER, TOKENIZER, parts=PARTS)
    assert result.chunks == ()
    assert result.nothing_found


def test_a_changed_chunk_does_not_get_an_old_score() -> None:
    """Cached scores are keyed by content, so a changed text at the same place is scored again."""
    own = shop_store()
    parts = replace(PARTS, caches=Caches())
    request = QueryRequest("lunch at noon", top_k=30, freshness_weight=0.0)
    before = answer(request, own.reader(), EMBEDDER, TOKENIZER, parts=parts)
    lunch = next(each for each in before.chunks if "lunch" in each.text)
    slack = next(each for each in documents() if each.path == "slack.json")
    changed = replace(slack.chunks[-1], text="no lunch today", content_hash="changed")
    own.put([replace(slack, chunks=(*slack.chunks[:-1], changed))])
    own.publish()
    after = answer(request, own.reader(), EMBEDDER, TOKENIZER, parts=parts)
    fresh = answer(replace(request, cache=False), own.reader(), EMBEDDER, TOKENIZER, parts=parts)
    assert (lunch.rerank_score, len(SLACK)) == (1.0, 4)
    assert after.chunks == fresh.chunks
    assert next(each.rerank_score for each in after.chunks if each.text == "no lunch today") == 1 / 2
