"""The demo: with the hashing embedder always, with the default model where its weights are."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from dowse.cli.main import cli
from dowse.cli.manage.demo import ACTS, command_line
from dowse.config import default_models_folder
from dowse.models import fetch, registry
from dowse.sample import SampleQuery, queries

MODELS = Path(os.environ.get("DOWSE_MODELS") or default_models_folder())
HERE = fetch.locate(registry.get(registry.DEFAULT), MODELS) is not None or bool(os.environ.get("DOWSE_REQUIRE_MODELS"))


@pytest.fixture
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment without settings, whose temporary folder is the test's own."""
    for name in [each for each in os.environ if each.startswith("DOWSE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("DOWSE_CONFIG", os.devnull)
    monkeypatch.setenv("DOWSE_EMBEDDER", "hash")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _demo(*flags: str) -> tuple[str, str]:
    result = CliRunner().invoke(cli, ["demo", *flags], prog_name="dowse")
    assert result.exit_code == 0, result.stderr
    return result.stdout, result.stderr


def test_the_demo_asks_queries_of_different_kinds() -> None:
    kinds = {query.text: query.kind for query in queries()}
    assert [kinds[text] for text in ACTS] == ["identifier", "paraphrase", "error", "filtered"]


def test_a_command_line_is_what_a_person_would_type() -> None:
    query = SampleQuery("two words", "a", "b", "c", "filtered", (("path_filter", "docs/**"), ("language_filter", "go")))
    assert command_line(query) == "dowse search --path 'docs/**' --lang go 'two words'"


def test_the_demo_explains_its_hits_and_leaves_nothing_behind(nobody: Path) -> None:
    out, err = _demo()
    assert "$ dowse fetchWithBackoff" in out
    assert "→ services/quote-engine/internal/fuel/client.go is #1" in out
    assert out.count("bm25_code") >= len(ACTS)
    assert "dowse demo --keep" in err
    assert list(nobody.iterdir()) == []


def test_kept_the_sample_can_be_searched_on(nobody: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = json.loads(_demo("--keep", "--json")[0])
    place = Path(answer["index"])
    assert place.is_dir()
    monkeypatch.chdir(place.parent)
    result = CliRunner().invoke(cli, ["search", "-l", "-k", "1", "fetchWithBackoff"])
    assert result.stdout == "services/quote-engine/internal/fuel/client.go\n"


def test_json_holds_the_report_and_every_result(nobody: Path) -> None:
    answer = json.loads(_demo("--json", "--index", "there")[0])
    assert answer["index"] == str(nobody / "there")
    assert answer["report"]["problems"] == []
    assert [query["text"] for query in answer["queries"]] == list(ACTS)
    for query in answer["queries"]:
        assert query["result"]["query"] == query["text"]


@pytest.mark.model
@pytest.mark.skipif(not HERE, reason="the default model's weights are not here; run `dowse models pull`")
def test_with_the_default_model_every_answer_comes_first(nobody: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOWSE_EMBEDDER", "auto")
    monkeypatch.setenv("DOWSE_MODELS", str(MODELS))
    answer = json.loads(_demo("--json")[0])
    assert {query["text"]: query["rank"] for query in answer["queries"]} == dict.fromkeys(ACTS, 1)
    paraphrase = answer["queries"][1]["result"]["chunks"][0]
    assert paraphrase["bm25_code_score"] == paraphrase["bm25_nlp_score"] == 0
