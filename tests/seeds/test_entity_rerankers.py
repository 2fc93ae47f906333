"""Rerankers alone and inside a retriever: boosts by name, thresholds, the cross-encoder and its files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dowse import (
    Candidate,
    Chunk,
    CrossEncoderReranker,
    HeuristicReranker,
    HybridRetriever,
    MemoryStore,
    RetrievalPipeline,
    ScoreReranker,
)
from dowse.errors import BadRequestError, ModelUnavailableError
from dowse.models import cross_encoder, fetch, registry
from shop_store import TrigramEmbedder, shop_store

LONG = "it holds a lot of text that is long enough not to be a stub of anything"


def entity(key: str, name: str, score: float = 0.5, content: str = LONG, **more: Any) -> dict[str, Any]:
    """A search result as the other system has it."""
    about = SimpleNamespace(id=key, name=name, type="class", content=content, **more)
    return {"entity": about, "score": score, "source": "vector"}


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    return shop_store()


def test_an_exact_name_comes_first_with_its_boosts() -> None:
    given = [entity("a", "types", 0.9), entity("b", "EntityStore", 0.2)]
    best, other = HeuristicReranker().rerank("EntityStore", given)
    # Exact name 2.0; the query's terms are entity and store, 0.5 each.
    assert (best.entity_id, best.original_score, best.reranked_score) == ("b", 0.2, pytest.approx(0.2 + 2.0 + 2 * 0.5))
    assert (other.reranked_score, other.source) == (0.9, "vector")


def test_terms_in_a_summary_raise_above_the_original_score() -> None:
    given = [entity("a", "DatabaseConnection", 0.8), entity("b", "Pool", 0.6, summary="A database connection pool.")]
    found = {each.entity_id: each for each in HeuristicReranker().rerank("database connection", given)}
    assert found["b"].reranked_score == pytest.approx(0.6 + 0.3 * 2 / 2)
    assert found["b"].reranked_score > found["b"].original_score
    assert found["a"].reranked_score == pytest.approx(0.8 + 2 * 0.5)


def test_a_stub_loses_and_many_connections_gain() -> None:
    many = SimpleNamespace(connection_count=6)
    given = [entity("stub", "Store", 0.5, content="pass"), entity("hub", "Other", 0.5, metadata=many)]
    found = {each.entity_id: each for each in HeuristicReranker().rerank("store", given, top_k=2)}
    assert found["hub"].reranked_score == pytest.approx(0.5 + 0.2)
    stub = HeuristicReranker().rerank("cache", [entity("stub", "Store", 0.5, content="")])[0]
    assert stub.reranked_score == pytest.approx(stub.original_score - 0.3)


def test_boosts_are_scaled_only_where_scores_are_in_0_to_1(store: MemoryStore) -> None:
    found = RetrievalPipeline(store, TrigramEmbedder(), profile="entities").query("ChargeCard").chunks
    assert found[0].symbol_name == "ChargeCard"
    assert all(0 <= each.final_score <= 1 for each in found)


@pytest.mark.parametrize("given", [[object()], [{"id": "x"}], [7]])
def test_candidates_without_id_and_text_are_refused_with_a_sentence(given: list[Any]) -> None:
    with pytest.raises(BadRequestError, match="give chunks, hits, or objects with id and text"):
        HeuristicReranker().rerank("q", given)


def test_hits_of_a_retriever_can_be_reranked_again(store: MemoryStore) -> None:
    hits = HybridRetriever(store, TrigramEmbedder()).retrieve("ChargeCard", 5)
    again = HeuristicReranker().rerank("ChargeCard", hits)
    assert again[0].chunk.symbol_name == "ChargeCard"
    assert {each.original_score for each in again} == {each.final_score for each in hits}


def test_a_threshold_drops_alone_and_inside_a_retriever(store: MemoryStore) -> None:
    chunk = Chunk("1", "d", "t", "DOC_PAGE", "s")
    kept = ScoreReranker(0.5).rerank("q", [Candidate(chunk, 0.4), Candidate(chunk, 0.6), Candidate(chunk, 0.9)])
    assert [each.score for each in kept] == [0.9, 0.6]
    every = HybridRetriever(store, TrigramEmbedder()).retrieve("payment retries", 8)
    middle = every[4].final_score
    some = HybridRetriever(store, TrigramEmbedder(), reranker=ScoreReranker(middle)).retrieve("payment retries", 8)
    assert 0 < len(some) < len(every)
    assert all(each.final_score >= middle for each in some)
    strict = HybridRetriever(store, TrigramEmbedder(), reranker=ScoreReranker(0.999))
    assert all(each.final_score >= 0.999 for each in strict.retrieve("payment retries", 8))


def test_what_a_reranker_of_the_user_leaves_out_is_dropped(store: MemoryStore) -> None:
    class OnlyCode:
        def rerank(self, query: str, results: list[Any], top_k: int) -> list[Any]:
            kept = [each for each in results if each["corpus_type"] == "CODE_LOGIC"]
            for each in kept:
                each.score = 1 / len(each.content)
            return sorted(kept, key=lambda each: -each.score)[:top_k]

    found = HybridRetriever(store, TrigramEmbedder(), reranker=OnlyCode()).retrieve("payment", 10)
    assert {each.corpus_type for each in found} == {"CODE_LOGIC"}


# The cross-encoder and its files.


def test_the_default_cross_encoder_is_named_listed_and_pinned() -> None:
    entry = registry.RERANKERS[0]
    assert cross_encoder.DEFAULT == entry.hub_id == "cross-encoder/ms-marco-MiniLM-L-6-v2"
    assert len(entry.revision) == 40
    assert registry.revision_of(entry.hub_id.upper()) == entry.revision
    assert registry.revision_of("org/other") is None


def fetched(monkeypatch: pytest.MonkeyPatch, asked: list[Any]) -> None:
    def download(hub_id: str, names: Any, into: Path, *, optional: Any = (), revision: str | None = None) -> None:
        asked.append((hub_id, revision))
        for name in names:
            (into / name).write_text(f"content of {name}")

    monkeypatch.setattr(fetch, "download_files", download)


def test_hashes_are_recorded_by_the_first_fetch_and_checked_from_then_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    fetched(monkeypatch, asked)
    folder = fetch.pull(cross_encoder.DEFAULT, tmp_path)
    assert asked == [(cross_encoder.DEFAULT, registry.RERANKERS[0].revision)]
    assert "config.json" in (folder / registry.HASHES).read_text()
    assert registry.unchanged(folder) == folder
    (folder / "config.json").write_text("changed")
    with pytest.raises(ModelUnavailableError, match=r"config.json changed since its download; delete"):
        CrossEncoderReranker(models_folder=tmp_path)


def test_without_the_hub_the_message_names_model_and_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def download(*given: Any, **named: Any) -> None:
        raise ModelUnavailableError("the model hub did not reply to the request for config.json")

    monkeypatch.setattr(fetch, "download_files", download)
    with pytest.raises(
        ModelUnavailableError, match=r"model 'cross-encoder/ms-marco-MiniLM-L-6-v2' is unavailable: the"
    ):
        CrossEncoderReranker(models_folder=tmp_path)


def test_the_command_line_lists_the_default_cross_encoder(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "dowse", "models", "list", "--json"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=os.environ | {"DOWSE_MODELS": str(tmp_path)}
    )
    (row,) = json.loads(done.stdout)["rerankers"]
    assert (row["hub_id"], row["path"]) == (cross_encoder.DEFAULT, None)
