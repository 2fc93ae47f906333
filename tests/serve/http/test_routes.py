"""Every route of the HTTP face, asked over real connections."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import dowse
from dowse.config import Config
from dowse.serve.backend import Access, Backend
from dowse.types import QueryRequest
from http_server import Client, indexed, run, running_server

RETRY = "def retry_payment(card):\n    for attempt in range(3):\n        charge(card)\n"
FILES = {
    "app/pay.py": f"import time\n\n\n{RETRY}\n\ndef charge(card):\n    return gateway.post(card)\n",
    "app/login.go": "package app\n\nfunc Login(name string) Token {\n\treturn issue(name)\n}\n",
    "docs/rollback.md": "# Rollback\n\nTo undo a payment deployment, run the job.\n\n## Alerts\n\nTell #ops.\n",
    **{f"notes/{n:02}.md": f"# Note {n}\n\nPayment note number {n} about retry and cards.\n" for n in range(30)},
}
QUESTION = "retry payment"


@pytest.fixture(scope="module")
def client(index: Path) -> Iterator[Client]:
    with running_server(index) as client:
        yield client


def without_times(row: dict) -> dict:
    return row | {"query_metadata": {k: v for k, v in row["query_metadata"].items() if k not in ("total_ms", "stages")}}


def test_query_search_and_the_command_give_the_same_object(client: Client, index: Path) -> None:
    printed = run("search", "--index", str(index), "--json", "-k", "4", "--lang", "python", QUESTION)
    expected = without_times(json.loads(printed.stdout))
    assert expected["chunks"]
    body = {"text": QUESTION, "top_k": 4, "language_filter": ["python"]}
    by_post = client.post("/v1/query", body)
    by_get = client.get("/v1/search", {"q": QUESTION, "top_k": 4, "language_filter": "python"})
    assert by_post.status == by_get.status == 200
    assert without_times(by_post.json) == without_times(by_get.json) == expected


def test_pages_are_one_ranking_without_repeats(client: Client) -> None:
    plain = client.get("/v1/search", {"q": QUESTION, "top_k": 7}).json
    seen, cursor, pages = [], "", 0
    while cursor is not None:
        page = client.post("/v1/query", {"text": QUESTION, "top_k": 7, "cursor": cursor}).json
        seen += [chunk["id"] for chunk in page["chunks"]]
        cursor, pages = page["next_cursor"], pages + 1
    assert [chunk["id"] for chunk in plain["chunks"]] == seen[:7]
    assert len(seen) == len(set(seen)) > 4 * 7
    assert pages == -(-len(seen) // 7)
    assert "next_cursor" not in plain


@pytest.mark.parametrize("cursor", ["zzzz", "####", "MTA", "LTEuYWJj", "x" * 4000])
def test_a_cursor_that_is_not_ours_is_refused(client: Client, cursor: str) -> None:
    answer = client.get("/v1/search", {"q": QUESTION, "cursor": cursor})
    assert answer.status == 400
    assert "empty" in answer.json["detail"]


def test_a_cursor_of_another_question_is_refused(client: Client) -> None:
    cursor = client.get("/v1/search", {"q": QUESTION, "top_k": 2, "cursor": ""}).json["next_cursor"]
    answer = client.get("/v1/search", {"q": "login", "top_k": 2, "cursor": cursor})
    assert answer.status == 400
    assert "a different query" in answer.json["detail"]


def test_facets_count_the_candidates_of_the_question(client: Client, index: Path) -> None:
    facets = client.get("/v1/search", {"q": QUESTION, "facets": "true"}).json["facets"]
    with dowse.open(index, embedder="hash", read_only=True) as engine:
        candidates = engine.query(QUESTION, top_k=300).query_metadata
    union = dict(candidates.counts)["union"]
    assert sum(facets["corpus_type"].values()) == union
    assert facets["document_source"] == {"shop": union}
    only = client.get("/v1/search", {"q": QUESTION, "facets": "true", "language_filter": "go"}).json["facets"]
    assert only["language"] == {"go": sum(only["corpus_type"].values())}


def test_a_stream_ends_with_the_result_of_the_query(client: Client) -> None:
    answer = client.get("/v1/query/stream", {"q": QUESTION, "rerank": "heuristic"})
    names = [name for name, _ in answer.events]
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert names[0] == "first"
    assert names[-1] == "done"
    whole = client.get("/v1/search", {"q": QUESTION, "rerank": "heuristic"}).json
    assert without_times(answer.events[-1][1]["result"]) == without_times(whole)


def test_a_bad_question_is_a_problem_and_not_a_stream(client: Client) -> None:
    answer = client.get("/v1/query/stream", {"q": QUESTION, "top_k": 0})
    assert answer.status == 400
    assert answer.headers["content-type"] == "application/problem+json"


def test_explain_says_why_and_why_not(client: Client) -> None:
    why = client.get("/v1/explain", {"q": QUESTION, "top_k": 40, "target": "shop/app/pay.py"}).json
    assert why["rank"] is not None
    not_there = client.post("/v1/explain", {"text": QUESTION, "language_filter": ["go"], "target": "shop/app/pay.py:4"})
    assert not_there.json["rank"] is None
    assert not_there.json["loss"]["stage"] == "filter"
    assert not_there.json["change"]["rank"] >= 1
    assert client.get("/v1/explain", {"q": QUESTION}).status == 400
    assert client.get("/v1/explain", {"q": QUESTION, "target": "shop/none.py"}).status == 404


def test_a_chunk_is_found_by_its_id(client: Client) -> None:
    hit = client.get("/v1/search", {"q": QUESTION}).json["chunks"][0]
    chunk = client.get(f"/v1/chunks/{hit['id']}").json
    assert {name: chunk[name] for name in ("id", "text", "source_uri", "start_line")} == {
        name: hit[name] for name in ("id", "text", "source_uri", "start_line")
    }
    assert chunk["stale"] is False
    assert client.get("/v1/chunks/0123456789abcdef").status == 404
    assert client.get("/v1/chunks/nonsense").status == 404


def test_lines_of_a_file_are_those_that_were_indexed(client: Client) -> None:
    lines = FILES["app/pay.py"].split("\n")
    found = client.get("/v1/files/shop/app/pay.py", {"start": 4, "end": 6}).json
    assert [(row["number"], row["text"]) for row in found["lines"]] == [(n, lines[n - 1]) for n in (4, 5, 6)]
    whole = client.get("/v1/files/app/pay.py").json
    assert [row["text"] for row in whole["lines"]] == lines[: whole["total_lines"]]
    assert (whole["start_line"], whole["end_line"]) == (1, whole["total_lines"])


@pytest.mark.parametrize(("start", "end", "status"), [(0, 1, 400), (5, 2, 400), (999, 1000, 404), ("x", 2, 400)])
def test_lines_that_do_not_exist_are_told(client: Client, start: object, end: int, status: int) -> None:
    assert client.get("/v1/files/shop/app/pay.py", {"start": start, "end": end}).status == status


def test_sources_and_status_keep_this_machine_to_themselves(client: Client, index: Path) -> None:
    status = client.get("/v1/status").json
    assert status["documents"] == len(FILES)
    assert [source["name"] for source in client.get("/v1/sources").json["sources"]] == ["shop"]
    for path in ("/v1/status", "/v1/sources", "/v1/search?q=retry", "/v1/files/shop/app/pay.py"):
        assert str(index.parent).encode() not in client.get(path).body
    with running_server(index, access=Access(absolute_paths=True)) as other:
        assert other.get("/v1/status").json["path"] == str(index)
        lies_at = index.parent / "shop" / "app" / "pay.py"
        assert other.get("/v1/files/shop/app/pay.py").json["absolute_path"] == str(lies_at)


def test_services_are_listed_and_a_missing_one_is_told(client: Client) -> None:
    assert set(client.get("/v1/services").json) == {"services", "edges"}
    answer = client.get("/v1/services/nowhere")
    assert answer.status == 404
    assert "no service 'nowhere'" in answer.json["detail"]


def test_health_ready_and_metrics(client: Client) -> None:
    assert client.get("/healthz").json == {"ok": True}
    assert client.get("/readyz").json == {"ok": True}
    client.get("/v1/search", {"q": "counted"})
    text = client.get("/metrics").body.decode()
    assert 'dowse_requests_total{method="GET",route="/v1/search",status="200"}' in text
    assert f"dowse_documents {float(len(FILES))}" in text


def test_the_openapi_document_names_every_route(client: Client) -> None:
    document = client.get("/openapi.json").json
    wanted = {
        "/v1/query", "/v1/search", "/v1/query/stream", "/v1/explain", "/v1/chunks/{id}", "/v1/files/{path}",
        "/v1/symbols", "/v1/related/{id}", "/v1/outline/{path}", "/v1/services", "/v1/services/{name}", "/v1/sources",
        "/v1/index", "/v1/jobs", "/v1/jobs/{id}", "/v1/jobs/{id}/events", "/v1/feedback", "/v1/status",
        "/healthz", "/readyz", "/metrics",
    }  # fmt: skip
    assert wanted <= set(document["paths"])
    assert document["openapi"].startswith("3.1")


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/nowhere", 404), ("DELETE", "/v1/query", 405), ("GET", "/docs", 404)]
)
def test_what_is_not_there_is_a_problem(client: Client, method: str, path: str, status: int) -> None:
    answer = client.send(method, path)
    assert answer.status == status == answer.json["status"]
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"text": " "},
        {"text": "x", "top_k": 0},
        {"text": "x", "topk": 3},
        {"text": "x", "where": [{"op": "eq", "field": "nowhere", "value": "x"}]},
        {"text": "x", "where": [{"op": "like"}]},
        {"text": "x", "corpus_filter": ["NONSENSE"]},
        {"text": "x", "created_after": "yesterday"},
        {"text": "x", "profile": "nonsense"},
        ["x"],
    ],
)
def test_a_question_that_does_not_fit_is_told_what_is_wrong(client: Client, row: object) -> None:
    answer = client.post("/v1/query", row)
    assert answer.status == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json["detail"]
    assert answer.json["type"] == "urn:dowse:error:BadRequestError"


def test_a_filter_of_clauses_means_the_same_as_in_python(client: Client, index: Path) -> None:
    clauses = [
        {"op": "glob", "field": "file_path", "patterns": ["notes/0*.md"]},
        {"op": "ne", "field": "language", "value": "go"},
    ]
    found = client.post("/v1/query", {"text": QUESTION, "where": clauses, "top_k": 50}).json["chunks"]
    with dowse.open(index, embedder="hash", read_only=True) as engine:
        expected = engine.query(QUESTION, path_filter=["notes/0*.md"], top_k=50).chunks
    assert [chunk["id"] for chunk in found] == [chunk.id for chunk in expected]
    assert len(found) == 10


def test_a_stale_file_is_marked(tmp_path: Path) -> None:
    place = indexed(tmp_path / "index", tmp_path / "shop", {"a.md": "# One\n\nretry payments\n"})
    (tmp_path / "shop" / "a.md").write_text("# Two\n\nsomething else entirely\n")
    with running_server(place) as client:
        assert client.get("/v1/search", {"q": "retry"}).json["chunks"][0]["stale"] is True
        assert client.get("/v1/files/shop/a.md").json["stale"] is True
        assert client.get("/v1/files/shop/a.md").json["lines"][0]["text"] == "# One"


def test_pages_go_on_with_their_ranking_though_the_index_changes(tmp_path: Path) -> None:
    files = {f"{n:02}.md": f"# Note {n}\n\nretry of payment number {n}\n" for n in range(12)}
    place = indexed(tmp_path / "index", tmp_path / "shop", files)
    with Backend.open(place, Config(embedder="hash")) as backend:
        request = QueryRequest(QUESTION, top_k=5)
        first = backend.query(request, cursor="")
        indexed(place, tmp_path / "shop", {"new.md": "# New\n\nretry payment retry payment\n"})
        second = backend.query(request, cursor=first["next_cursor"])
        again = backend.query(request, cursor="")
    assert not {c["id"] for c in first["chunks"]} & {c["id"] for c in second["chunks"]}
    assert again["chunks"][0]["source_uri"] == "shop/new.md"


def test_symbols_outline_and_related_are_what_the_commands_print(client: Client, index: Path) -> None:
    pairs = (
        ("/v1/symbols?name=charge", ("symbols", "charge")),
        ("/v1/outline/shop/docs", ("outline", "shop/docs")),
        ("/v1/related/shop/app/pay.py", ("related", "shop/app/pay.py")),
    )
    for path, words in pairs:
        answer = client.get(path)
        printed = run(*words, "--index", str(index), "--json")
        assert answer.status == 200, path
        assert answer.json == json.loads(printed.stdout), path
    assert client.get("/v1/symbols?name=nothing_like_this_at_all").json["symbols"] == []
    assert client.get("/v1/related/nothing_like_this_at_all").status == 404
    assert client.get("/v1/outline/shop/none").status == 404
    assert client.get("/v1/symbols").status == 400
