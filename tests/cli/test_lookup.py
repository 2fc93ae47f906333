"""`dowse symbols`, `outline`, `related` and `link` on a real index: what is printed, and with which exit code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import dowse
from dowse.cli.main import cli

SOLVER = '''"""Tours."""


class TourError(Exception):
    """No tour."""


class Planner:
    """Plans tours."""

    def plan_tour(self, stops):
        """The shortest way."""
        return sorted(stops)
'''
APP = "from plan.solver import Planner\n\n\ndef run_all(stops):\n    return Planner().plan_tour(stops)\n"
PAGE = """# Tours

Intro to the matter, long enough to stand alone as a section of its own in the index here.

## Planning

The work is done by `plan_tour`.
"""
TALK = [
    {
        "type": "message",
        "ts": "1773835200.000100",
        "user": "U1",
        "text": "plan_tour is slow \x1b[2J",
        "thread_ts": "1773835200.000100",
    }
]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    for folder in ("plan", "ops"):
        (root / folder).mkdir()
    (root / "plan" / "solver.py").write_text(SOLVER)
    (root / "plan" / "app.py").write_text(APP)
    (root / "tours.md").write_text(PAGE)
    (root / "ops" / "2026-03-18.json").write_text(json.dumps(TALK))
    with dowse.open(root / ".dowse", embedder=None) as engine:
        engine.index([root], embed=False)
    return root


def run(project: Path, *arguments: str) -> Result:
    first, *rest = arguments
    flags = ["--index", str(project / ".dowse")]
    return CliRunner().invoke(cli, [first, *flags, *rest], env={"DOWSE_EMBEDDER": "none"})


def answer(project: Path, *arguments: str) -> Any:
    return json.loads(run(project, *arguments, "--json").stdout)


# --- symbols ----------------------------------------------------------------------------------------


def test_a_symbol_is_found_with_its_line_and_kind(project: Path) -> None:
    found = run(project, "symbols", "plan_tour")
    assert found.exit_code == 0
    assert found.stdout.startswith("plan/solver.py:11  method  Planner.plan_tour")


@pytest.mark.parametrize(
    ("asked", "match"),
    [("Planner.plan_tour", "exact"), ("Planner::plan_tour", "exact"), ("plan_tour()", "exact"), ("PLAN_TOUR", "case"),
     ("plan_t", "start"), ("tour plan", "part")],
)  # fmt: skip
def test_names_are_found_as_people_remember_them(project: Path, asked: str, match: str) -> None:
    found = answer(project, "symbols", asked)["symbols"]
    assert ("Planner.plan_tour", match) in [(each["name"], each["match"]) for each in found]


def test_every_definition_of_a_chunk_has_its_own_lines(project: Path) -> None:
    (error,) = answer(project, "symbols", "TourError")["symbols"]
    assert (error["start_line"], error["kind"], error["file_path"]) == (4, "class", "plan/solver.py")


def test_a_kind_filters_and_nothing_found_is_exit_code_1(project: Path) -> None:
    assert run(project, "symbols", "plan_tour", "--kind", "class").exit_code == 1
    assert run(project, "symbols", "zzz").exit_code == 1
    assert run(project, "symbols", " ").exit_code == 2


# --- outline ----------------------------------------------------------------------------------------


def test_the_outline_of_code_has_symbols_with_their_lines(project: Path) -> None:
    (document,) = answer(project, "outline", "plan/solver.py")["documents"]
    entries = [(each["name"], each["kind"], each["depth"], each["start_line"]) for each in document["entries"]]
    assert entries == [("TourError", "class", 0, 4), ("Planner", "class", 0, 8), ("Planner.plan_tour", "method", 1, 11)]
    shallow = answer(project, "outline", "plan/solver.py", "--depth", "1")["documents"][0]["entries"]
    assert [each["name"] for each in shallow] == ["TourError", "Planner"]


def test_the_outline_of_a_page_has_its_sections(project: Path) -> None:
    found = run(project, "outline", "tours.md")
    assert "Tours  DOC_PAGE" in found.stdout
    assert "Planning" in found.stdout


def test_a_folder_has_an_outline_of_each_file_and_an_unknown_path_none(project: Path) -> None:
    assert [each["path"] for each in answer(project, "outline", "plan")["documents"]] == [
        "plan/app.py",
        "plan/solver.py",
    ]
    assert run(project, "outline", "nowhere.py").exit_code == 1


# --- related ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["plan_tour", "plan/solver.py:12"])
def test_what_speaks_of_a_symbol_is_related_to_it(project: Path, target: str) -> None:
    found = answer(project, "related", target)
    ties = {(each["relation"], each["direction"], each["chunk"]["file_path"]) for each in found["neighbours"]}
    assert ("calls", "in", "plan/app.py") in ties
    assert ("mentions", "in", "ops/2026-03-18.json") in ties
    assert {path for relation, _, path in ties if relation in ("mentions", "documents")} == {
        "ops/2026-03-18.json",
        "tours.md",
    }


def test_ties_are_told_in_words_and_can_be_chosen(project: Path) -> None:
    found = run(project, "related", "plan_tour", "--relation", "calls")
    assert found.stdout.startswith("← plan/app.py:")
    assert "calls TourError and 2 more (plan/solver.py:1): as Planner" in found.stdout
    assert found.stdout.count("\n") == 1


def test_nothing_indexed_moves_the_cursor(project: Path) -> None:
    assert "\x1b" not in run(project, "related", "plan_tour").stdout


def test_an_unknown_target_says_how_to_find_a_similar_one(project: Path) -> None:
    found = run(project, "related", "plan_tuor")
    assert found.exit_code == 1
    assert "dowse symbols plan_tuor" in found.stderr


# --- link -------------------------------------------------------------------------------------------


def test_linking_again_changes_nothing(project: Path) -> None:
    before = answer(project, "related", "plan_tour")
    assert answer(project, "link", "--again")["documents"] == 4
    assert answer(project, "related", "plan_tour") == before
    assert answer(project, "link")["documents"] == 0


def test_a_language_model_must_be_configured_first(project: Path) -> None:
    found = run(project, "link", "--llm")
    assert found.exit_code == 5
    assert "dowse config set llm_base_url" in found.stderr
