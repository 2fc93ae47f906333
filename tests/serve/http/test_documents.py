"""Documents without files over HTTP: put, bulk, delete, their limits and their errors."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import dowse
from dowse.config import Config
from dowse.serve.backend import Access
from dowse.serve.http.options import ServerLimits
from http_server import WAIT_S, Answer, Client, indexed, running_server

NDJSON = {"Content-Type": "application/x-ndjson"}


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return indexed(tmp_path / "index", tmp_path / "shop", {"a.md": "# Retry\n\nretry payments\n"})


@pytest.fixture
def client(index: Path) -> Iterator[Client]:
    limits = ServerLimits(documents_bytes=200_000)
    with running_server(index, access=Access(write=True), limits=limits) as client:
        yield client


def put(client: Client, path: str, row: Any) -> Answer:
    return client.send("PUT", f"/v1/documents/{path}", json.dumps(row).encode(), {"Content-Type": "application/json"})


def bulk(client: Client, rows: list[Any]) -> Answer:
    lines = b"\n".join(row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows)
    return client.send("POST", "/v1/documents", lines, NDJSON)


def found(client: Client, query: str, **fields: Any) -> list[str]:
    return [each["source_uri"] for each in client.post("/v1/query", {"text": query} | fields).json["chunks"]]


def embedded(client: Client) -> None:
    ends = time.monotonic() + WAIT_S
    while any(job["state"] in ("waiting", "running") for job in client.get("/v1/jobs").json["jobs"]):
        assert time.monotonic() < ends
        time.sleep(0.02)


def test_a_document_is_put_replaced_and_deleted(client: Client) -> None:
    answer = put(client, "T-1", {"title": "Zebra", "text": "zebra crossing", "metadata": {"team": "core"}})
    assert (answer.status, answer.json["added"], answer.json["problems"]) == (200, 1, [])
    assert found(client, "zebra")[0] == "documents/T-1"
    assert put(client, "T-1", {"title": "Zebra", "text": "zebra stable"}).json["changed"] == 1
    assert put(client, "T-1", {"title": "Zebra", "text": "zebra stable"}).json["unchanged"] == 1
    embedded(client)
    assert client.send("DELETE", "/v1/documents/T-1").json == {"removed": 1}
    assert "documents/T-1" not in found(client, "zebra")
    assert client.send("DELETE", "/v1/documents/T-1").status == 404


def test_an_answer_means_that_the_document_is_durable(client: Client, index: Path) -> None:
    put(client, "T-1", {"text": "zebra crossing"})
    with dowse.open(index, read_only=True, embedder=None) as engine:
        assert engine.query("zebra").chunks[0].source_uri == "documents/T-1"


def test_an_id_may_have_slashes_and_a_source(client: Client) -> None:
    assert put(client, "https%3A%2F%2Fwiki.example.com%2Fa?source=wiki", {"text": "okapi page"}).json["added"] == 1
    assert found(client, "okapi")[0] == "wiki/https://wiki.example.com/a"
    assert client.send("DELETE", "/v1/documents/https%3A%2F%2Fwiki.example.com%2Fa").status == 404
    assert client.send("DELETE", "/v1/documents/https%3A%2F%2Fwiki.example.com%2Fa?source=wiki").status == 200


def test_bytes_are_read_by_their_media_type(client: Client) -> None:
    data = base64.b64encode(b"<h1>Okapi</h1><p>Lives in the forest.</p>").decode()
    assert put(client, "okapi", {"data": data, "media_type": "text/html"}).status == 200
    hit = client.post("/v1/query", {"text": "okapi forest"}).json["chunks"][0]
    assert "<p>" not in hit["text"]


def test_many_documents_in_one_request_with_an_error_for_each_bad_one(client: Client) -> None:
    rows = [{"id": "a", "text": "alpaca"}, b"{no json", {"id": "b"}, b"", {"id": "c", "text": "camel"}, {"text": "x"}]
    answer = bulk(client, rows)
    assert (answer.status, answer.json["added"]) == (200, 2)
    assert [each["path"] for each in answer.json["problems"]] == ["document 2", "b", "document 5"]
    assert found(client, "camel")[0] == "documents/c"


def test_vectors_follow_in_a_job(client: Client) -> None:
    bulk(client, [{"id": str(number), "text": f"note {number}"} for number in range(40)])
    embedded(client)
    (job, *_) = client.get("/v1/jobs").json["jobs"]
    assert (job["kind"], job["state"], job["report"]["pending"]) == ("embed", "done", 0)
    assert client.get("/v1/status").json["pending"] == 0


def test_writers_at_once_all_succeed(client: Client) -> None:
    answers: list[int] = []

    def work(number: int) -> None:
        answers.append(put(client, f"n{number}", {"text": f"ocelot {number}"}).status)

    threads = [Thread(target=work, args=(number,)) for number in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert answers == [200] * 6
    assert sum(each.startswith("documents/n") for each in found(client, "ocelot", top_k=10)) == 6


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({}, "text or data"),
        ({"text": "x", "colour": 1}, "colour"),
        ({"text": "x", "id": "other"}, "differ"),
        ({"text": "x", "source": "other"}, "differ"),
        ({"text": "x", "source": "shop"}, "differ"),
        ({"text": "x", "created_at": "soon"}, "soon"),
        ({"text": "x", "created_at": 1e300}, "not a time"),
        ({"data": "!!", "media_type": "text/html"}, "base64"),
        ({"data": "eA==", "media_type": "image/png"}, "media type"),
        ([], "invalid body"),
    ],
)
def test_a_bad_document_is_refused_with_the_reason(client: Client, row: Any, told: str) -> None:
    answer = put(client, "T-1", row)
    assert answer.status == 400
    assert told in answer.json["detail"]


def test_files_are_neither_replaced_nor_deleted(client: Client, tmp_path: Path) -> None:
    answer = put(client, "a.md?source=shop", {"text": "mine"})
    assert (answer.status, "choose another name" in answer.json["detail"]) == (400, True)
    assert str(tmp_path) not in answer.json["detail"]
    assert client.send("DELETE", "/v1/documents/a.md?source=shop").status == 400
    assert found(client, "retry payments")[0] == "shop/a.md"


def test_a_body_has_a_limit_and_a_type(client: Client) -> None:
    assert put(client, "T-1", {"text": "x" * 200_001}).status == 413
    assert client.send("POST", "/v1/documents", b"{}", {"Content-Type": "application/json"}).status == 415


def test_a_read_only_server_refuses_documents(index: Path) -> None:
    with running_server(index) as client:
        assert put(client, "T-1", {"text": "x"}).status == 403
        assert bulk(client, [{"id": "a", "text": "x"}]).status == 403
        assert client.send("DELETE", "/v1/documents/T-1").status == 403


def test_without_a_model_there_is_no_job(index: Path) -> None:
    with running_server(index, access=Access(write=True), config=Config(embedder="none")) as client:
        assert put(client, "T-1", {"text": "x"}).json["pending"] > 0
        assert client.get("/v1/jobs").json["jobs"] == []
