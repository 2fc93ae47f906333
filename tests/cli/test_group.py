"""`dowse search` groups by document for people, and returns chunks as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import dowse
from dowse.cli.main import cli


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("group")
    for name in ("one", "two"):
        text = "\n\n".join(f"# Part {at}\n\n{'retry the payment ' * 40}{name} {at}" for at in range(4))
        (folder / f"{name}.md").write_text(text, "utf-8")
    with dowse.open(folder / "index", embedder=None) as engine:
        engine.index([folder / "one.md", folder / "two.md"])
    return folder / "index"


def _lines(index: Path, *arguments: str) -> list[str]:
    result = CliRunner().invoke(cli, ["search", *arguments, "--index", str(index), "retry payment"])
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def test_a_pipe_prints_a_document_once_unless_chunks_are_asked_for(index: Path) -> None:
    assert len(_lines(index, "-q")) == 2
    assert len(_lines(index, "-q", "--group", "none")) > 2


def test_json_holds_chunks_unless_groups_are_asked_for(index: Path) -> None:
    plain, grouped = (json.loads("".join(_lines(index, "--json", *more))) for more in ((), ("--group", "document")))
    assert len(plain["chunks"]) > 2
    assert plain["groups"] == []
    assert [len(grouped[name]) for name in ("chunks", "groups")] == [2, 2]
