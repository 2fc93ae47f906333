"""TREC files that we write can be read again, and those of others are sorted by score."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dowse.errors import BadRequestError, NotFoundError
from dowse.evaluate.trec import falling, qrels_lines, read_qrels, read_run, run_lines

IDS = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=1, max_size=8)


@given(st.dictionaries(IDS, st.dictionaries(IDS, st.sampled_from([0.0, 1.0, 2.5]), min_size=1), min_size=1))
def test_judgments_survive_the_round_trip(tmp_path: Path, grades: dict[str, dict[str, float]]) -> None:
    file = tmp_path / "qrels"
    file.write_text("\n".join(qrels_lines(grades)), encoding="utf-8")
    assert read_qrels(file) == grades


@given(st.dictionaries(IDS, st.lists(IDS, min_size=1, unique=True), min_size=1))
def test_rankings_survive_the_round_trip(tmp_path: Path, rankings: dict[str, list[str]]) -> None:
    file = tmp_path / "run"
    file.write_text("\n".join(run_lines({q: falling(own) for q, own in rankings.items()})), encoding="utf-8")
    assert read_run(file) == rankings


def test_a_run_is_sorted_by_score_and_not_by_its_ranks(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("q Q0 low 1 0.5 x\nq Q0 high 2 0.9 x\nq Q0 high 3 0.1 x\n")
    assert read_run(tmp_path / "run") == {"q": ["high", "low"]}


def test_a_line_is_what_other_tools_expect() -> None:
    assert list(run_lines({"q": [("d", 0.25)]}, tag="ours")) == ["q Q0 d 1 0.25 ours"]
    assert list(qrels_lines({"q": {"d": 2.0}})) == ["q 0 d 2"]


@pytest.mark.parametrize("identity", ["", "two words", "tab\tin it"])
def test_an_id_with_blanks_cannot_be_written(identity: str) -> None:
    with pytest.raises(BadRequestError, match="is empty or contains a space"):
        list(qrels_lines({identity: {"d": 1.0}}))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("q Q0 d 1 0.5\n", r"run:1 does not have 6 fields"),
        ("\n", "is empty"),
        ("q Q0 d one 0.5 x\n", "must be numbers"),
    ],
)
def test_a_run_that_cannot_be_read_is_told_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "run").write_text(text)
    with pytest.raises(BadRequestError, match=told):
        read_run(tmp_path / "run")


def test_a_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no file"):
        read_qrels(tmp_path / "qrels")
