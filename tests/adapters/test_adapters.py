"""The adapters hand on what a retriever found, in its order; real LangChain and LlamaIndex are used where installed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dowse
from dowse.adapters import KnowledgeTool
from dowse.adapters.metadata import metadata
from dowse.engine import Engine
from dowse.errors import NoIndexError, NoRecallError
from dowse.query.context import estimated_tokens
from dowse.types import ScoredChunk
from values import replace

ROOT = Path(__file__).parents[2]
SAMPLE = Path(dowse.__file__).parent / "sample" / "acme"
QUESTION = "how are retries limited"
HIT = ScoredChunk(
    "00000000000000aa", "d", "func Retry() {}", "CODE_LOGIC", "shop/retry.go", document_source="shop",
    file_path="retry.go", language="go", start_line=3, end_line=9, symbol_name="Retry", final_score=0.75, stale=False,
    timestamp="2026-01-02T00:00:00+00:00", meta=(("team", "core"), ("score", "of their own")),
)  # fmt: skip


@dataclass(frozen=True)
class Fixed:
    """A retriever that has its hits already."""

    hits: tuple[ScoredChunk, ...]

    def retrieve(self, query: str, top_k: int | None = None) -> Sequence[ScoredChunk]:
        return self.hits[:top_k]


@dataclass(frozen=True)
class Failing:
    error: Exception

    def retrieve(self, query: str, top_k: int | None = None) -> Sequence[ScoredChunk]:
        raise self.error


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("adapters")
    with dowse.open(place / ".dowse", embedder="none") as engine:
        engine.index([SAMPLE / "docs", SAMPLE / "services" / "booking-api"])
    return place


@pytest.fixture
def engine(folder: Path) -> Iterator[Engine]:
    with dowse.open(folder / ".dowse", read_only=True, embedder="none") as engine:
        yield engine


def need(framework: str) -> None:
    """Where frameworks are part of the checks, one that is missing is a failure."""
    if find_spec(framework) is None:
        missing = pytest.fail if os.environ.get("DOWSE_REQUIRE_FRAMEWORKS") else pytest.skip
        missing(f"{framework} is not installed")


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "adapters.md").read_text("utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("block", blocks(), ids=lambda block: re.findall(r"adapters import (\w+)", block)[-1])
def test_an_example_of_the_page_runs(
    block: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    needs = {
        "langchain": "langchain_core",
        "LangChain": "langchain_core",
        "LlamaIndex": "llama_index",
        "Haystack": "haystack",
    }
    for name, package in needs.items():
        if name in block:
            need(package)
    monkeypatch.chdir(folder)
    exec(compile(block, "docs/adapters.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "booking-api" in printed or "docs/" in printed or '"passages": [{' in printed


# --- metadata ---------------------------------------------------------------------------------------


def test_metadata_is_flat_plain_and_leaves_out_what_is_not_known() -> None:
    found = metadata(HIT)
    assert found["citation"] == "shop/retry.go:3-9"
    assert (found["chunk_id"], found["title"], found["score"]) == (HIT.id, "Retry", 0.75)
    assert found["timestamp"] == "2026-01-02T00:00:00+00:00"
    assert found["stale"] is False
    assert "author" not in found
    assert "page" not in found
    assert all(isinstance(value, str | int | float | bool) for value in found.values())


def test_a_users_own_key_never_hides_one_of_ours() -> None:
    assert metadata(HIT)["score"] == 0.75
    assert metadata(HIT)["meta.score"] == "of their own"


# --- OpenAI -----------------------------------------------------------------------------------------


def test_the_schema_is_strict_and_describes_both_apis() -> None:
    tool = KnowledgeTool(Fixed((HIT,)), name="look", top_k=4)
    function = tool.schema["function"]
    assert tool.schema["type"] == "function"
    assert tool.responses_schema == {"type": "function", **function}
    assert (function["name"], function["strict"]) == ("look", True)
    parameters = function["parameters"]
    assert parameters["additionalProperties"] is False
    assert sorted(parameters["required"]) == sorted(parameters["properties"])
    json.dumps(tool.schema)


def test_a_call_gives_the_engines_hits_in_its_order(engine: Engine) -> None:
    tool = KnowledgeTool(engine, budget_tokens=100_000)
    answer = json.loads(tool.call(json.dumps({"query": QUESTION, "top_k": 5})))
    hits = engine.retrieve(QUESTION, 5)
    assert [each["text"] for each in answer["passages"]] == [hit.text for hit in hits]
    assert [each["number"] for each in answer["passages"]] == [1, 2, 3, 4, 5]
    assert answer["left_out"] == 0


def test_null_for_top_k_means_the_tools_own() -> None:
    hits = tuple(replace(HIT, id=f"{number:016x}") for number in range(9))
    answer = json.loads(KnowledgeTool(Fixed(hits), top_k=4).call('{"query": "x", "top_k": null}'))
    assert len(answer["passages"]) == 4


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(max_size=600), min_size=1, max_size=12), st.integers(200, 3000))
def test_an_answer_keeps_to_its_budget_and_counts_what_it_left_out(texts: list[str], budget_tokens: int) -> None:
    hits = tuple(replace(HIT, text=text) for text in texts)
    tool = KnowledgeTool(Fixed(hits), top_k=12, budget_tokens=budget_tokens)
    said = tool.call('{"query": "x", "top_k": null}')
    answer = json.loads(said)
    assert len(answer["passages"]) + answer["left_out"] == len(texts)
    assert [each["text"] for each in answer["passages"]] == texts[: len(answer["passages"])]
    assert len(answer["passages"]) == 1 or estimated_tokens(said) <= budget_tokens


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("not json", "not JSON"),
        ("[]", "needs a query"),
        ("{}", "needs a query"),
        ('{"query": "  "}', "needs a query"),
        ('{"query": 7}', "needs a query"),
        ('{"query": "x", "top_k": 51}', "from 1 to 50"),
        ('{"query": "x", "top_k": "many"}', "from 1 to 50"),
        ('{"query": "x", "top_k": -1}', "from 1 to 50"),
    ],
)
def test_a_models_mistake_is_told_to_the_model(arguments: str, says: str) -> None:
    assert says in json.loads(KnowledgeTool(Fixed((HIT,))).call(arguments))["error"]


@pytest.mark.parametrize("error", [NoIndexError("there is no index; run `dowse index .`"), NoRecallError("all down")])
def test_what_dowse_cannot_do_is_told_to_the_model(error: Exception) -> None:
    assert json.loads(KnowledgeTool(Failing(error)).call('{"query": "x"}')) == {"error": str(error)}


def test_a_bug_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        KnowledgeTool(Failing(ZeroDivisionError())).call('{"query": "x"}')


# --- frameworks -------------------------------------------------------------------------------------


def test_langchain_documents_are_the_engines_hits_in_its_order(engine: Engine) -> None:
    need("langchain_core")
    from dowse.adapters import LangChainRetriever

    hits = engine.retrieve(QUESTION, 4)
    retriever = LangChainRetriever(retriever=engine, top_k=4)
    documents = retriever.invoke(QUESTION)
    assert [each.page_content for each in documents] == [hit.text for hit in hits]
    assert [each.id for each in documents] == [hit.id for hit in hits]
    assert [each.metadata for each in documents] == [metadata(hit) for hit in hits]
    assert retriever.batch([QUESTION, QUESTION]) == [documents, documents]


def test_a_langchain_retriever_is_part_of_a_chain() -> None:
    need("langchain_core")
    from langchain_core.runnables import RunnableLambda

    from dowse.adapters import LangChainRetriever

    chain = LangChainRetriever(retriever=Fixed((HIT,))) | RunnableLambda(len)
    assert chain.invoke("anything") == 1


def test_llama_index_nodes_are_the_engines_hits_in_its_order(engine: Engine) -> None:
    need("llama_index")
    from dowse.adapters import LlamaIndexRetriever

    hits = engine.retrieve(QUESTION, 4)
    nodes = LlamaIndexRetriever(engine, top_k=4).retrieve(QUESTION)
    assert [each.node.get_content() for each in nodes] == [hit.text for hit in hits]
    assert [each.node.node_id for each in nodes] == [hit.id for hit in hits]
    assert [each.score for each in nodes] == [hit.final_score for hit in hits]
    assert nodes[0].metadata == metadata(hits[0])


def test_a_model_behind_llama_index_reads_the_citation_and_not_the_rest() -> None:
    need("llama_index")
    from llama_index.core.schema import MetadataMode

    from dowse.adapters import LlamaIndexRetriever

    (node,) = LlamaIndexRetriever(Fixed((HIT,))).retrieve("anything")
    shown = node.node.get_content(metadata_mode=MetadataMode.LLM)
    assert "citation: shop/retry.go:3-9" in shown
    assert "chunk_id" not in shown


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [("LangChainRetriever", "langchain_core", "langchain"), ("LlamaIndexRetriever", "llama_index", "llama-index")],
)
def test_a_missing_framework_is_named_with_the_command_that_installs_it(name: str, package: str, extra: str) -> None:
    script = f"""
import sys
sys.modules[{package!r}] = None
from dowse.errors import MissingExtraError
try:
    from dowse.adapters import {name}
except MissingExtraError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert f"pip install '.[{extra}]'" in found.stdout


def test_the_adapters_load_no_framework_before_it_is_asked_for() -> None:
    script = (
        "import sys, dowse.adapters; from dowse import KnowledgeTool; print([m for m in sys.modules if 'lang' in m])"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "langchain_core" not in found.stdout
