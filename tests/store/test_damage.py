"""Faults in every file of an index: an answer is the same, degraded or an error, never another list or a crash."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from bench.reliability import damage

FAULTS = int(os.environ.get("DOWSE_FAULTS", "120"))


def test_no_fault_changes_an_answer_silently(index_folder: Path) -> None:
    pytest.importorskip("dowse.store.kernels._native", reason="the compiled kernel is not built")
    tally = damage.run(index_folder, FAULTS)
    assert tally.bad == []
    assert tally.outcomes["error"] + tally.outcomes["degraded"] > FAULTS // 10
    assert any(name.startswith("derived/") for name in tally.by_file)
    assert "dowse.db" in tally.by_file


def test_a_changed_answer_would_be_seen() -> None:
    same = [{"hits": f"{number}", "degraded": []} for number in range(len(damage.QUERIES))]
    other = [{"hits": "other", "degraded": []}, *same[1:]]
    assert damage.judged("answers", same, same)[0] == "same"
    assert damage.judged("answers", other, same)[0] == "wrong"
    assert damage.judged("answers", [other[0] | {"degraded": ["dense"]}, *same[1:]], same)[0] == "degraded"
    assert damage.judged("answers", [{"error": "damaged"}, *same[1:]], same)[0] == "error"
    assert damage.judged("crash", "signal", same)[0] == "crash"
