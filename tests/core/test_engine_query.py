"""The engine's questions over a real index: profiles of the settings, rerankers, streams, contexts and why not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import dowse
from contracts.tiny_encoder import random_encoder, with_head, write_folder
from dowse.config import Config
from dowse.engine import Engine
from dowse.errors import BadRequestError
from dowse.ports import Retriever
from dowse.types import QueryType
from values import replace

FILES = {
    "net/retry.py": "def retry_call(call):\n    '''Retries a failed call with growing pauses.'''\n    return call()\n",
    "net/client.py": "class HttpClient:\n    '''Sends requests and retries them.'''\n",
    "docs/runbook.md": "# Rollback\n\nUndo the deployment by kubectl, tell the channel.\n\n# Retries\n\nThree.\n",
    "docs/notes.md": "# Lunch\n\nAt noon, in the kitchen.\n",
}
SETTINGS = """
[profiles.terse]
top_k = 2
rerank = ["heuristic"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        place = tmp_path / "repo" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    (tmp_path / "repo" / "dowse.toml").write_text(SETTINGS)
    return tmp_path


@pytest.fixture
def engine(folder: Path, index_folder: Path) -> Iterator[Engine]:
    config = replace(Config.load(folder / "repo", {}), threads=1)
    with dowse.open(index_folder, config=config, embedder="hash") as opened:
        opened.index([folder / "repo"])
        yield opened


def test_a_profile_of_the_settings_can_be_asked_for(engine: Engine) -> None:
    result = engine.query("retry a call", profile="terse")
    assert len(result.chunks) == 2
    assert all(each.rerank_score is not None for each in result.chunks)
    with pytest.raises(BadRequestError, match=r"unknown profile 'terser'; choose from .*terse"):
        engine.query("retry", profile="terser")


def test_a_wrong_profile_table_is_told_when_it_is_needed(folder: Path, index_folder: Path) -> None:
    (folder / "repo" / "dowse.toml").write_text("[profiles.odd]\nfusion = 'magic'\n")
    with (
        dowse.open(index_folder, config=Config.load(folder / "repo", {}), embedder="none") as engine,
        pytest.raises(BadRequestError, match=r"\[profiles.odd\]: fusion is 'magic'; choose from z, rrf, minmax"),
    ):
        engine.query("anything")


def test_profiles_that_are_no_tables_are_refused(folder: Path) -> None:
    (folder / "repo" / "dowse.toml").write_text("profiles = 3\n")
    with pytest.raises(BadRequestError, match=r"profiles must be tables; write \[profiles.NAME\]"):
        Config.load(folder / "repo", {})


def test_tables_of_user_and_project_add_up(folder: Path) -> None:
    user = folder / "config.toml"
    user.write_text("[profiles.mine]\ntop_k = 3\n[profiles.terse]\ntop_k = 9\n")
    config = Config.load(folder / "repo", {"DOWSE_CONFIG": str(user)})
    assert {name: table["top_k"] for name, table in config.profiles.items()} == {"mine": 3, "terse": 2}


def test_an_engine_is_a_retriever(engine: Engine) -> None:
    retriever: Retriever = engine
    assert [each.id for each in retriever.retrieve("retry", 2)] == [
        each.id for each in engine.query("retry", top_k=2).chunks
    ]
    assert len(retriever.retrieve("retry")) > 2


def test_a_name_is_found_and_a_type_is_told(engine: Engine) -> None:
    result = engine.query("why does retry_call wait so long in the kitchen at noon")
    assert "def retry_call" in result.chunks[0].text
    assert (result.query_type, result.answer_style) == (QueryType.CONCEPTUAL, "detailed")


def test_a_stream_ends_with_what_query_gives(engine: Engine) -> None:
    *_, last = engine.stream("retry_call", mmr=True, rerank="heuristic")
    assert last.kind == "done"
    assert last.result.chunks == engine.query("retry_call", mmr=True, rerank="heuristic").chunks


def test_context_cites_and_fits(engine: Engine) -> None:
    context = engine.context("undo the deployment", budget_tokens=200)
    assert context.passages
    assert any("kubectl" in each.text for each in context.passages)


def test_why_not_names_the_stage(engine: Engine) -> None:
    answer = engine.explain("lunch in the kitchen", "docs/runbook.md:3", top_k=1)
    assert answer is not None


def test_services_are_there_even_when_there_are_none(engine: Engine) -> None:
    assert engine.query("retry", expand_graph=True).service_context == {}
    assert engine.services().services == ()


def test_a_configured_cross_encoder_judges(engine: Engine, folder: Path, index_folder: Path) -> None:
    model = write_folder(folder / "tiny-reranker", with_head(random_encoder(1), 1))
    config = replace(engine.config, reranker=str(model))
    with dowse.open(index_folder, config=config, embedder="hash", read_only=True) as judged:
        result = judged.query("retry a call")
        assert all(each.rerank_score is not None for each in result.chunks)
        assert result.degraded == ()
        assert all(each.rerank_score is None for each in judged.query("retry a call", rerank=False).chunks)
        again = judged.query("retry a call")
        assert again.chunks == result.chunks


def test_a_cross_encoder_that_cannot_be_opened_is_named(engine: Engine, folder: Path, index_folder: Path) -> None:
    (folder / "empty").mkdir()
    config = replace(engine.config, reranker=str(folder / "empty"))
    with dowse.open(index_folder, config=config, embedder="hash", read_only=True) as judged:
        result = judged.query("retry a call")
    assert [each.stage for each in result.degraded] == ["cross-encoder"]
    assert "has no config.json" in result.degraded[0].reason
    assert result.chunks


def test_unknown_fields_are_refused(engine: Engine) -> None:
    with pytest.raises(BadRequestError, match="unknown query field 'rerankk'"):
        engine.query("x", rerankk=True)
