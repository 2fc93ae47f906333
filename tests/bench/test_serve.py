"""The load generator of bench.serve measures what it says."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # bench/ is beside src/, not in the package

from bench.http_load import RATE, Load, ask

from bench import serve
from http_server import Client, indexed, running_server


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("bench")
    with running_server(indexed(folder / "index", folder / "shop", {"a.md": "# Retry\n\nretry payments\n"})) as client:
        yield client


def test_the_limit_is_the_cpu_that_was_left_by_what_a_query_takes() -> None:
    load = Load([0.01] * 100, seconds=10.0, server_cpu_s=0.9, own_cpu_s=0.1, free_cpu_s=15.0)
    assert load.rate == 100 / 10
    assert load.limit(0.01) == pytest.approx((15.0 / 10) / 0.01)


def test_a_rate_that_leaves_cores_idle_fails() -> None:
    """A query takes the server 10 ms: 20 s of CPU are 2,000 queries, in 10 s, of which 95 % are wanted."""
    for asked, verdict in ((1_890, "fail"), (1_910, "pass")):
        load = Load([0.01] * asked, seconds=10.0, server_cpu_s=0.01 * asked, free_cpu_s=20.0)
        assert next(serve._rate_figures(load, 0.008)).verdict == verdict


def test_no_more_than_the_bar_is_wanted_where_the_cpu_could_give_more() -> None:
    load = Load([0.01] * 1_950, seconds=10.0, server_cpu_s=5.0, free_cpu_s=20.0)
    assert next(serve._rate_figures(load, 0.001)).bar == pytest.approx(0.95 * RATE)


@pytest.mark.parametrize("path", ["/v1/search", "/v1/query/stream"])
def test_every_question_is_asked_once_and_answered(client: Client, path: str) -> None:
    texts = (f"retry {n}" for n in count())
    load = ask(client.port, texts, [os.getpid()], count=20, path=path, connections=3, rate=1000)
    assert len(load.latencies_s) == 20
    assert load.errors == 0
    assert next(texts) == "retry 20"


def test_what_is_refused_counts_as_an_error(client: Client) -> None:
    blank = iter([" "] * 4)
    assert ask(client.port, blank, [os.getpid()], count=4, connections=2, rate=1000).errors == 4


def test_no_more_is_asked_than_the_rate_allows(client: Client) -> None:
    texts = (f"retry {n}" for n in count())
    load = ask(client.port, texts, [os.getpid()], count=10, connections=2, rate=50)
    assert load.seconds >= (10 - 1) / 50


def test_questions_differ_for_forty_thousand(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = [serve.queries.Question(f"question {n} word{n}", [], []) for n in range(20)]
    file = tmp_path / "queries.json"
    file.write_bytes(serve.msgspec.json.encode(rows))
    monkeypatch.setattr(serve.queries, "questions", lambda: file)
    found = list(islice(serve._texts(), 20 * 20))
    assert len(set(found)) == 20 * 20
