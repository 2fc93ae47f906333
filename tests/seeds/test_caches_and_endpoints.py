"""Caches, models of their own for stages, and endpoints that hang."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

import dowse
from dowse import Config
from dowse.errors import UnavailableError
from dowse.models import embed_http
from dowse.models.embed_http import HttpEmbedder
from dowse.query.cache import uncached
from fake_llm import fake_llm, says


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy stands between the tests and their own machine."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def index(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    for number in range(3):
        (tmp_path / "docs" / f"{number}.md").write_text(f"# Note {number}\n\nWe retry payments {number} times.\n")
    with dowse.open(tmp_path / "index", embedder=None) as engine:
        engine.index([tmp_path / "docs"])
    return tmp_path / "index"


SCORES = {"scores": [{"id": f"P{at}", "score": at} for at in range(1, 4)]}


def test_without_the_cache_everything_is_asked_again(index: Path) -> None:
    with fake_llm(says(SCORES)) as endpoint:
        config = Config(llm_base_url=endpoint.url, llm_model="large")
        with dowse.open(index, embedder=None, config=config) as engine:
            asked = []
            for cache in (True, True, False, False, True):
                engine.query("retry payments", rerank="llm", cache=cache)
                asked.append(len(endpoint.requests))
    assert asked == [1, 1, 2, 3, 3]


def test_a_model_of_its_own_reranks(index: Path) -> None:
    with fake_llm(says(SCORES | {"variants": ["pay again"], "type": "factual"})) as endpoint:
        config = Config(llm_base_url=endpoint.url, llm_model="large", llm_rerank_model="lite")
        with dowse.open(index, embedder=None, config=config) as engine:
            result = engine.query("retry payments", rerank="llm", expand=True)
    assert [request["model"] for request in endpoint.requests] == ["large", "lite"]
    assert result.chunks[0].rerank_score is not None


def test_a_plug_in_without_a_memory_is_used_as_it_is() -> None:
    model: Any = object()
    assert uncached(model) is model


def test_an_embedding_endpoint_that_hangs_costs_its_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    assert embed_http.QUERY_S == 10
    monkeypatch.setattr(embed_http, "QUERY_S", 0.3)
    release = threading.Event()

    def hang(handler: Any, body: Any, endpoint: Any) -> None:
        release.wait(20)

    with fake_llm(hang) as endpoint:
        started_s = time.monotonic()
        try:
            with pytest.raises(UnavailableError):
                HttpEmbedder(endpoint.url, "m").embed(["retry"], role="query")
        finally:
            release.set()
        assert time.monotonic() - started_s < 2 * 0.3
