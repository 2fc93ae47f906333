"""Scores of questions on repositories, as arithmetic."""

from __future__ import annotations

from math import log2

import pytest
from bench.code_search import Shown, Target, ndcg


def shown(*paths: str) -> list[Shown]:
    return [Shown(path, ((1, 10),)) for path in paths]


def test_a_target_counts_at_its_first_hit() -> None:
    assert ndcg(shown("a.py", "a.py", "b.py"), [Target("src/b.py")]) == pytest.approx(1 / log2(4))
    assert ndcg(shown("src/b.py"), [Target("b.py")]) == 1.0
    assert ndcg(shown("sub.py"), [Target("b.py")]) == 0.0


def test_the_ideal_holds_all_targets() -> None:
    ideal = 1 + 1 / log2(3)
    assert ndcg(shown("a.py", "b.py"), [Target("a.py"), Target("b.py")]) == pytest.approx(1.0)
    assert ndcg(shown("a.py", "a.py"), [Target("a.py"), Target("b.py")]) == pytest.approx(1 / ideal)


def test_lines_must_overlap_where_they_are_given() -> None:
    target = Target.parse("a.py:11-20")
    assert target == Target("a.py", (11, 20))
    assert ndcg(shown("a.py"), [target]) == 0.0
    assert ndcg([Shown("a.py", ((1, 10), (20, 30)))], [target]) == 1.0
    assert Target.parse("a.py") == Target("a.py")
