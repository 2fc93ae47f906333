"""The comparison of rankings: differences are taken question by question, and only over engines that finished."""

from __future__ import annotations

import sys
from math import log2
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # bench/ is beside src/, not in the package

from bench.peers import Peer  # noqa: E402
from bench.quality_outcomes import Outcome  # noqa: E402

from beir_folders import write_collection  # noqa: E402
from bench import quality_outcomes, report  # noqa: E402
from dowse.evaluate.datasets import load  # noqa: E402


def outcome(engine: str, dataset: str, *figures: float, setting: str = "default") -> Outcome:
    cost = 1.0, tuple(2.0 for _ in figures), 100.0, 0.5
    return Outcome(engine, setting, dataset, figures, *cost, {engine: "1.0"})


OUTCOMES = [
    outcome("dowse", "a", 0.8, 0.6), outcome("dowse", "b", 0.5, 0.5, 0.5, 0.5),
    outcome("peer", "a", 0.7, 0.5), outcome("peer", "b", 0.2, 0.2, 0.2, 0.2),
    outcome("half", "a", 0.1, 0.1),
]  # fmt: skip


def test_dowse_minus_a_peer_counts_every_collection_alike() -> None:
    found = quality_outcomes.against(OUTCOMES)
    assert list(found) == [("peer", "default")]  # the one that did not finish is left out
    assert found["peer", "default"].mean == pytest.approx((0.1 + 0.3) / 2)
    assert found["peer", "default"].low == pytest.approx(0.2)  # no question differs from its collection's mean


def test_an_outcome_is_found_again_as_it_was_kept(tmp_path: Path) -> None:
    quality_outcomes.save(tmp_path / "one.json", OUTCOMES[0])
    assert quality_outcomes.load(tmp_path / "one.json") == OUTCOMES[0]


def test_another_version_of_a_peer_is_measured_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOWSE_BENCH_CACHE", str(tmp_path))
    dataset = load(write_collection(tmp_path / "garden"))
    files = {
        quality_outcomes.kept_file(Peer("p", "p.py", "p", (f"p=={version}",)), "default", asked)
        for version in (1, 2)
        for asked in (dataset, dataset.limited(2))
    }
    assert len(files) == 2 * 2


def test_rankings_become_figures_and_a_hit_that_is_named_twice_counts_once(tmp_path: Path) -> None:
    asked, grades = {"q": "keep the soil wet"}, {"q": {"mulch": 2.0, "water": 1.0}}
    dataset = load(write_collection(tmp_path / "garden", questions=asked, grades=grades))
    reply = {"value": {"found": [["no", "no", "mulch"]], "index_cpu_s": 1.0, "cpu_ms": [3.0]}, "rss_mb": 9.0}
    found = quality_outcomes.outcome("p", "best", dataset, reply, {"import_cpu_s": 0.1, "versions": {"p": "1"}})
    assert found.ndcg == (pytest.approx((2 / log2(3)) / (2 / log2(2) + 1 / log2(3))),)  # at rank 2, not 3


def test_the_table_is_sorted_and_says_how_far_dowse_is_ahead() -> None:
    table = report._quality(quality_outcomes.whole(OUTCOMES, {"cpu": "x"}))
    lines = table.splitlines()
    assert "| a (2) | b (4) |" in lines[0]
    assert [line.split(" | ")[0] for line in lines[2:4]] == ["| dowse", "| peer"]
    assert "+0.2000 [+0.2000, +0.2000]" in lines[3]
    assert lines[-1] == "dowse 1.0, half 1.0, peer 1.0."
