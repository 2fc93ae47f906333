"""Questions that the graphs answer: the relation, the answer with its places, and silence about everything else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import dowse
from dowse.cli.main import cli
from dowse.config import Config
from dowse.errors import UnavailableError
from dowse.filters import by_path
from dowse.query.answers.graph import AnswerFromGraph
from dowse.query.plan.graph_questions import GraphQuestion, graph_question
from dowse.serve.backend import Backend
from dowse.serve.mcp.arguments import SearchArguments
from dowse.serve.mcp.tools_search import search
from http_server import running_server

SAMPLE = Path(dowse.__file__).parent / "sample" / "acme"
QUERIES = json.loads((SAMPLE.parent / "queries.json").read_text())


@pytest.mark.parametrize(
    ("text", "asked", "subject", "kind"),
    [
        ("which services call checkout", "callers", "checkout", "service"),
        ("Who calls the currency conversion service?", "callers", "currency conversion", "service"),
        ("what uses `RetryBudget`", "callers", "RetryBudget", "symbol"),
        ("which functions call fetchWithBackoff()", "callers", "fetchWithBackoff", "symbol"),
        ("callers of Service.GetQuote", "callers", "Service.GetQuote", ""),
        ("what breaks when rate-cache is down?", "breaks", "rate-cache", ""),
        ("what would break if our auth service goes offline", "breaks", "auth", "service"),
        ("blast radius of kafka", "breaks", "kafka", ""),
        ("what does checkout depend on", "callees", "checkout", ""),
        ("which services does web call", "callees", "web", "service"),
        ("where is class RetryBudget defined", "defined", "RetryBudget", "symbol"),
        ("where is url_for used", "used", "url_for", ""),
        ("references to url_for", "used", "url_for", ""),
    ],
)
def test_a_question_names_a_relation_and_its_subject(text: str, asked: str, subject: str, kind: str) -> None:
    found = graph_question(text)
    assert found is not None
    assert (found.asked, found.subject, found.kind) == (asked, subject, kind)


def test_a_question_may_name_both_ends() -> None:
    assert graph_question("where does the web app call cart?") == GraphQuestion("call", "web", "service", "cart")


@pytest.mark.parametrize(
    "text",
    [
        "retry budget",
        "how does checkout call the payment service",
        "where do we retry payments",
        "what is a call graph",
        "which port does redis listen on",
        "where are sessions stored",
        "fix: callers of the API must not retry, and what uses it breaks when it is down " + "x" * 100,
        "",
    ],
)
def test_other_questions_ask_for_no_relation(text: str) -> None:
    assert graph_question(text) is None


@given(st.text(max_size=200))
def test_any_text_can_be_looked_at(text: str) -> None:
    for asked in (text, f"who calls {text}", f"where is {text} defined", f"what breaks when {text} is down"):
        found = graph_question(asked)
        assert found is None or found.subject == found.subject.strip()


# --- answers ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("answers") / "index"
    with dowse.open(folder, embedder="none") as engine:
        engine.index([SAMPLE], embed=False)
    return folder


@pytest.fixture
def engine(index: Path) -> Iterator[dowse.Engine]:
    with dowse.open(index, embedder="none", read_only=True) as opened:
        yield opened


@pytest.mark.parametrize(
    ("text", "names", "file", "line"),
    [
        ("which services call quote-engine", ["booking-api (", "route-planner ("],
         "deploy/k8s/booking-api.yaml", "QUOTE_ENGINE"),
        ("what breaks when rate-cache is down", ["quote-engine (", "Indirectly also booking-api"],
         "deploy/k8s/quote-engine.yaml", "RATE_CACHE_ADDR"),
        ("what does booking api depend on", ["bookings-db (", "tracking-hub ("],
         "deploy/k8s/booking-api.yaml", "DATABASE_URL"),
        ("where does quote-engine call rate-cache", ["RATE_CACHE_ADDR"],
         "services/quote-engine/cmd/quote-engine/main.go", "RATE_CACHE_ADDR"),
        ("where is booking-api defined", ["is defined in"], "docker-compose.yml", "booking-api:"),
        ("who calls RetryBudget.tryWithdraw", ["Geocoder.get (", "QuoteClient.call ("],
         "services/booking-api/src/geocoder.ts", "tryWithdraw"),
        ("where is tryWithdraw used", ["on 2 lines"], "services/booking-api/src/quotes.ts", "tryWithdraw"),
        ("where is fetchWithBackoff defined", ["is defined in"], "services/quote-engine/internal/fuel/client.go",
         "fetchWithBackoff"),
        ("what does QuoteClient.call call", ["RetryBudget.tryWithdraw ("], "services/booking-api/src/retryBudget.ts",
         "tryWithdraw"),
    ],
)  # fmt: skip
def test_the_answer_cites_lines_that_show_it(
    engine: dowse.Engine, text: str, names: list[str], file: str, line: str
) -> None:
    answer = engine.query(text).metadata_answer
    assert answer is not None
    assert all(name in answer for name in names)
    lines = (SAMPLE / file).read_text().splitlines()
    cited = [part.split(":")[1] for part in answer.replace(")", " ").replace(",", " ").split() if f"{file}:" in part]
    assert any(line in lines[int(number.strip(".;")) - 1] for number in cited), answer


@pytest.mark.parametrize(
    "text", ["which services call nothing-like-this", "who calls the", "where is retry used", "where is Nobody defined"]
)
def test_an_unknown_subject_leaves_the_search_alone(engine: dowse.Engine, text: str) -> None:
    found = engine.query(text)
    assert found.metadata_answer is None
    assert not [each for each in found.degraded if each.stage == "graph_answer"]


def test_other_queries_have_no_such_stage_and_the_answer_changes_no_hit(engine: dowse.Engine) -> None:
    asked = engine.query("which services call quote-engine")
    assert "graph_answer" in dict(asked.query_metadata.stages)
    assert len(asked.chunks) == len(engine.query("which services call quote-engin").chunks) > 0
    assert asked.confidence is not None
    other = engine.query("services that call quote-engine")
    assert other.metadata_answer is None
    assert "graph_answer" not in dict(other.query_metadata.stages)


def test_queries_of_the_sample_get_no_answer_that_they_do_not_ask_for() -> None:
    texts = [each["text"] for each in QUERIES]
    assert len(texts) > 10
    assert not [text for text in texts if graph_question(text) is not None]


def test_a_filter_hides_edges_whose_evidence_it_excludes(engine: dowse.Engine) -> None:
    for text in ("which services call quote-engine", "who calls RetryBudget.tryWithdraw", "where is tryWithdraw used"):
        assert engine.query(text, where=[by_path("docs/**")]).metadata_answer is None


def test_a_failing_graph_is_noted_and_the_search_goes_on(engine: dowse.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: object, state: object) -> None:
        raise UnavailableError("no graph")

    monkeypatch.setattr(AnswerFromGraph, "__call__", fail)
    found = engine.query("which services call quote-engine")
    assert found.chunks
    assert [(each.stage, each.reason) for each in found.degraded if each.stage == "graph_answer"] == [
        ("graph_answer", "no graph")
    ]


QUESTION = "which services call quote-engine"


@pytest.mark.parametrize("option", ["--json", "--group=none", "--jsonl"])
def test_the_command_line_has_the_answer(index: Path, option: str) -> None:
    done = CliRunner().invoke(cli, ["search", option, "--index", str(index), QUESTION], prog_name="dowse")
    assert "quote-engine is used by booking-api (" in (done.stderr if option == "--jsonl" else done.stdout)


def test_agents_page_and_http_have_the_answer(index: Path) -> None:
    with Backend.open(index, Config(embedder="none")) as backend:
        assert "booking-api (" in search(backend, SearchArguments(query=QUESTION)).answer
    with running_server(index) as client:
        page = client.get("/", {"q": QUESTION}).body.decode()
        assert page.index("quote-engine is used by booking-api (") < page.index("<article")
        assert "booking-api (" in client.get("/v1/search", {"q": QUESTION}).json["metadata_answer"]
