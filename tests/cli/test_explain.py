"""`dowse explain` on a real index: what is printed, as text and as JSON, and with which exit code."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import dowse
from dowse.cli.main import cli


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    (root / "retry.py").write_text("def retry_payment(order):\n    return charge(order)\n")
    (root / "retry.go").write_text("package pay\n\nfunc RetryPayment() error {\n\treturn charge()\n}\n")
    (root / "tulips.md").write_text("# Tulips\n\nThey grow in spring. \x1b[2J\n")
    with dowse.open(root / ".dowse", embedder=None) as engine:
        engine.index([root])
    return root


def run(project: Path, *arguments: str) -> Result:
    flags = ["--index", str(project / ".dowse")]
    return CliRunner().invoke(cli, ["explain", *flags, *arguments], env={"DOWSE_EMBEDDER": "none"})


def test_what_is_among_the_hits_is_told_with_its_rank(project: Path) -> None:
    found = run(project, "retry payment", str(project / "retry.py"))
    assert found.exit_code == 0
    assert "\nRank 1, score 0." in found.stdout
    assert "BM25" in found.stdout
    assert re.search(r"^  fuse .* #1  z", found.stdout, flags=re.MULTILINE)


def test_filter_and_the_change_that_helps_are_told(project: Path) -> None:
    found = run(project, "--lang", "go", "retry payment", str(project / "retry.py:1"))
    assert found.exit_code == 1
    assert "Missing. Dropped at stage filter: the filter excludes it: language is one of go." in found.stdout
    assert "Fix: remove language_filter. The target then ranks " in found.stdout
    assert "Try: dowse search 'retry payment'\n" in found.stdout


def test_command_to_try_finds_the_target(project: Path) -> None:
    (command,) = re.findall(r"^Try: dowse (.*)$", run(project, "-k1", "charge", str(project / "retry.go")).stdout, re.M)
    index = ["--index", str(project / ".dowse")]
    found = CliRunner().invoke(cli, [*shlex.split(command), "-l", *index], env={"DOWSE_EMBEDDER": "none"})
    assert "retry.go" in found.stdout


def test_json_has_the_way_the_loss_and_the_change(project: Path) -> None:
    found = run(project, "--json", "--lang", "go", "retry payment", str(project / "retry.py"))
    answer = json.loads(found.stdout)
    assert answer["loss"]["stage"] == "filter"
    assert answer["change"]["fields"] == {"language_filter": []}
    assert answer["change"]["rank"] >= 1
    assert answer["chunk"]["file_path"] == "retry.py"
    assert {"dense", "bm25_code", "bm25_nlp", "fuse"} - {place["stage"] for place in answer["way"]} == {"dense"}


def test_nothing_that_helps_is_said_and_nothing_indexed_moves_the_cursor(project: Path) -> None:
    found = run(project, "retry payment", str(project / "tulips.md"))
    assert found.exit_code == 1
    assert "it contains no word of the query" in found.stdout
    assert "No fix found: Dowse tried " in found.stdout
    assert "\x1b" not in found.stdout


def test_place_that_is_not_indexed_is_told(project: Path) -> None:
    found = run(project, "retry", "nowhere.py")
    assert found.exit_code == 1
    assert "nowhere.py is not in the index" in found.stderr
