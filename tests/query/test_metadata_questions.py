"""Questions about documents, asked of an engine: answered from metadata, without searching, in every face."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import dowse
from dowse.cli.main import cli
from dowse.engine import Engine
from dowse.query.plan.metadata_questions import MetadataQuestion, metadata_question
from dowse.query.retrievers import QueryProcessor

FILES = {
    "papers/budgets.md": "---\ntitle: Quasar Budgets\nauthors: [Jane Smith, Bo Li]\njournal: Systems Letters\n"
    "keywords: [retries, budgets]\ndate: 2023-04-05\ndoi: 10.1234/qb.7\n---\n\nLimits of retries.\n",
    "papers/hedging.md": "---\ntitle: Hedged Requests\nauthors: [Jane Smith]\njournal: Queue\ndate: 2024-01-01\n---\n\n"
    "Hedging of requests.\n",
    "runbooks/cache.md": "# Cache\n\nRestart redis first.\n",
    "runbooks/disk.md": "# Disk\n\nDelete old logs.\n",
    "notes/redis.md": "# Redis\n\nWe use redis.\n",
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("metadata")
    for name, text in FILES.items():
        (folder / "team" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "team" / name).write_text(text)
    with dowse.open(folder / ".dowse", embedder=None) as engine:
        engine.index([folder / "team"])
    return folder / ".dowse"


@pytest.fixture
def engine(index: Path) -> Iterator[Engine]:
    with dowse.open(index, read_only=True, embedder=None) as engine:
        yield engine


@dataclass
class CountingLLM:
    """Language model that counts its calls."""

    model: str = "counting"
    calls: list[str] = field(default_factory=list)

    def complete_json(self, prompt: str, schema: Any, timeout_s: float, *, max_tokens: int) -> Any:
        self.calls.append(prompt)
        return {"type": "metadata", "variants": []}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Who are the authors?", "Jane Smith, Bo Li"),
        ("authors?", "Jane Smith, Bo Li"),
        ("who wrote this?", "Jane Smith, Bo Li"),
        ("What is the title?", "Quasar Budgets"),
        ("what is the doi", "10.1234/qb.7"),
        ("doi?", "10.1234/qb.7"),
        ("publication date?", "2023-04-05"),
        ("when was it published?", "2023-04-05"),
        ("What is the journal?", "Systems Letters"),
        ("keywords?", "retries, budgets"),
    ],
)
@pytest.mark.parametrize("scope", ["document_filter", "path_filter", "source_filter"])
def test_a_document_in_scope_needs_no_name(engine: Engine, text: str, wanted: str, scope: str) -> None:
    (info,) = engine.documents("papers/budgets.md")
    value = {"document_filter": info.id, "path_filter": "papers/budgets.md", "source_filter": "papers/budgets.md"}
    result = engine.query(text, profile="papers", **{scope: [value[scope]]})
    assert wanted in (result.metadata_answer or "")
    assert (result.nothing_found, result.query_type) == (False, "metadata")
    assert {hit.file_path for hit in result.chunks} == {"papers/budgets.md"}


@pytest.mark.parametrize(
    ("text", "answer", "evidence"),
    [
        ("how many papers from 2023", "1 paper from 2023: “Quasar Budgets” (team/papers/budgets.md).", ["budgets"]),
        ("how many papers are there?", "2 papers: ", ["budgets", "hedging"]),
        ("how many papers from 1999", "0 papers from 1999.", []),
        ("how many runbooks do we have", "2 runbooks: ", ["cache", "disk"]),
        ("papers from 2024", "From 2024: “Hedged Requests”", ["hedging"]),
        ("papers by Jane Smith", "By Jane Smith: ", ["budgets", "hedging"]),
        ("papers by smith from 2023", "By smith from 2023: ", ["budgets"]),
        ("which runbooks mention redis", "Mention redis: “Cache”", ["cache"]),
        ("which authors are there", "Authors: Jane Smith (2), Bo Li (1).", []),
        ("list all venues", "Venues: Queue (1), Systems Letters (1).", []),
        ("what years are in the index", "Years: 2023 (1), 2024 (1).", []),
        ("which keywords are there?", "Keywords: budgets (1), retries (1).", []),
        ("which corpora are there", "Corpora: DOC_PAPER (2), DOC_RUNBOOK (2), DOC_PAGE (1).", []),
    ],
)
def test_a_collection_is_counted_and_listed(engine: Engine, text: str, answer: str, evidence: list[str]) -> None:
    result = engine.query(text)
    assert (result.metadata_answer or "").startswith(answer)
    assert not result.nothing_found
    assert sorted(Path(hit.file_path or "").stem for hit in result.chunks) == evidence
    assert not {"bm25_nlp", "fuse", "expand"} & set(dict(result.query_metadata.stages))


def test_a_filter_limits_what_is_counted(engine: Engine) -> None:
    result = engine.query("how many papers are there?", path_filter=["papers/h*"])
    assert (result.metadata_answer or "").startswith("1 paper: “Hedged")


@pytest.mark.parametrize(
    "text",
    [
        "load config from env var", "read file from disk", "title", "authors", "doi", "keywords", "page from cache",
        "how many parcels fit into one route", "how many threads does the pool have", "list topics", "set the title",
        "which module imports redis", "files by name", "notes from 2020 meeting room", "documents by default",
    ],
)  # fmt: skip
def test_other_queries_are_no_questions_about_metadata(text: str) -> None:
    assert metadata_question(text) is None


def test_a_question_without_a_document_in_scope_searches_and_says_why(engine: Engine) -> None:
    result = engine.query("Who are the authors?")
    assert result.metadata_answer is None
    assert any("no document is in scope" in each.reason for each in result.degraded)


def test_a_person_and_a_year_are_told_apart() -> None:
    assert metadata_question("papers by Jane Smith from 2023") == MetadataQuestion(
        "works", "Jane Smith", "paper", "2023"
    )


def test_an_answer_from_metadata_asks_no_language_model(engine: Engine) -> None:
    llm = CountingLLM()
    processor = QueryProcessor(engine._store, None, llm)  # type: ignore[arg-type]
    result = processor.process("papers by Jane Smith")
    assert "By Jane Smith" in (result.metadata_answer or "")
    assert llm.calls == []


def test_the_command_prints_the_answer_and_does_not_say_that_nothing_was_found(index: Path) -> None:
    found = CliRunner().invoke(cli, ["search", "papers by Jane Smith", "--index", str(index)])
    assert found.exit_code == 0
    assert found.stdout.startswith("By Jane Smith: “Quasar Budgets”")
    assert "no good match" not in found.stderr
    paths = CliRunner().invoke(cli, ["search", "-l", "which authors are there", "--index", str(index)])
    assert (paths.exit_code, paths.stdout) == (0, "")
    assert "Authors: Jane Smith (2)" in paths.stderr


@pytest.mark.parametrize(
    ("query", "wanted"), [("Jane Smith", {"budgets", "hedging"}), ("Bo Li", {"budgets"}), ("Quasar", {"budgets"})]
)
def test_authors_and_titles_of_front_matter_are_found_by_words(engine: Engine, query: str, wanted: set[str]) -> None:
    result = engine.query(query)
    assert {Path(hit.file_path or "").stem for hit in result.chunks} == wanted
    assert not result.nothing_found
