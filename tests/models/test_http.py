"""The remote embedder against a small server on this machine that behaves, misbehaves and recovers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from contracts.embedder import EmbedderContract
from dowse.errors import BadRequestError, ModelUnavailableError
from dowse.models.embed_hash import HashEmbedder
from dowse.models.embed_http import ATTEMPTS, BATCH, HttpEmbedder
from dowse.ports import Embedder

KEY = "sk-very-secret"
Answer = tuple[int, Any]
Behaviour = Callable[[dict[str, Any]], Answer]


@dataclass
class Endpoint:
    """What the server was asked, and the address to ask it at."""

    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)


@contextmanager
def serving(behave: Behaviour, **extra_headers: str) -> Iterator[Endpoint]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            endpoint.requests.append(body | {"path": self.path})
            endpoint.headers.append(dict(self.headers))
            status, answer = behave(body)
            data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in extra_headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    endpoint = Endpoint(f"http://127.0.0.1:{server.server_port}/v1")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def rows(texts: list[str]) -> list[dict[str, Any]]:
    """What a real endpoint answers: vectors of any length, here from the hash embedder."""
    vectors = 3 * HashEmbedder(64).embed(texts, role="chunk")
    return [{"object": "embedding", "index": n, "embedding": row.tolist()} for n, row in enumerate(vectors)]


def good(body: dict[str, Any]) -> Answer:
    if any(not text for text in body["input"]):
        return 400, {"error": {"message": "input cannot be an empty string"}}
    return 200, {"object": "list", "data": rows(body["input"]), "model": body["model"]}


def embedder_at(endpoint: Endpoint, pauses_s: list[float] | None = None, **options: Any) -> HttpEmbedder:
    sink = [] if pauses_s is None else pauses_s
    return HttpEmbedder(endpoint.url, "small-model", sleep=sink.append, **options)


class TestHttpEmbedderContract(EmbedderContract):
    @pytest.fixture
    def embedder(self) -> Iterator[Embedder]:
        with serving(good) as endpoint:
            yield embedder_at(endpoint)


def test_the_request_is_what_an_openai_client_sends() -> None:
    with serving(good) as endpoint:
        embedder_at(endpoint, api_key=KEY).embed(["one", "two"], role="chunk")
    assert endpoint.requests[0] == {
        "path": "/v1/embeddings",
        "model": "small-model",
        "input": ["one", "two"],
        "encoding_format": "float",
    }
    assert endpoint.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_without_a_key_none_is_sent() -> None:
    with serving(good) as endpoint:
        embedder_at(endpoint).embed(["one"], role="chunk")
    assert "Authorization" not in endpoint.headers[0]


def test_many_texts_are_sent_in_batches_and_come_back_in_order() -> None:
    texts = [f"text number {n}" for n in range(2 * BATCH + 1)]
    with serving(good) as endpoint:
        found = embedder_at(endpoint).embed(texts, role="chunk")
    sizes = sorted(len(request["input"]) for request in endpoint.requests)
    assert sizes == [1, 1, BATCH, BATCH]  # one of the single ones asked for the dimension
    np.testing.assert_allclose(found, HashEmbedder(64).embed(texts, role="chunk"), atol=1e-6)


def test_rows_are_ordered_by_their_index() -> None:
    def shuffled(body: dict[str, Any]) -> Answer:
        return 200, {"data": rows(body["input"])[::-1]}

    with serving(shuffled) as endpoint:
        found = embedder_at(endpoint).embed(["one", "two", "three"], role="chunk")
    np.testing.assert_allclose(found, HashEmbedder(64).embed(["one", "two", "three"], role="chunk"), atol=1e-6)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_passing_failure_is_tried_again(status: int) -> None:
    answers = iter([(status, {}), (status, {})])
    with serving(lambda body: next(answers, None) or good(body)) as endpoint:
        pauses_s: list[float] = []
        assert embedder_at(endpoint, pauses_s).dimension == 64
    assert len(endpoint.requests) == 3
    assert 0.5 * 0.5 <= pauses_s[0] <= 0.5
    assert 0.5 * 1.0 <= pauses_s[1] <= 1.0


def test_the_server_says_how_long_to_wait() -> None:
    answers = iter([(429, {})])
    with serving(lambda body: next(answers, None) or good(body), Retry_After="3") as endpoint:
        pauses_s: list[float] = []
        embedder_at(endpoint, pauses_s).embed(["one"], role="query")
    assert pauses_s == [3.0]


def test_a_lasting_failure_ends_in_an_error_that_says_why() -> None:
    with serving(lambda body: (503, b"out of memory")) as endpoint:
        pauses_s: list[float] = []
        with pytest.raises(ModelUnavailableError, match="503: out of memory"):
            embedder_at(endpoint, pauses_s).embed(["one"], role="query")
    assert len(endpoint.requests) == ATTEMPTS
    assert len(pauses_s) == ATTEMPTS - 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_the_callers_mistake_is_not_tried_again_and_the_key_is_not_shown(status: int) -> None:
    with (
        serving(lambda body: (status, {"error": f"wrong key {KEY}"})) as endpoint,
        pytest.raises(ModelUnavailableError, match=f"replies {status}") as caught,
    ):
        embedder_at(endpoint, api_key=KEY).embed(["one"], role="query")
    assert len(endpoint.requests) == 1
    assert KEY not in str(caught.value)
    assert KEY not in repr(embedder_at(endpoint, api_key=KEY))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_does_not_carry_the_key_elsewhere(status: int) -> None:
    with (
        serving(good) as elsewhere,
        serving(lambda body: (status, b""), Location=elsewhere.url) as endpoint,
        pytest.raises(ModelUnavailableError, match=f"replies {status}"),
    ):
        embedder_at(endpoint, api_key=KEY).embed(["one"], role="query")
    assert elsewhere.requests == []


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>",
        [],
        {},
        {"data": None},
        {"data": []},
        {"data": [{"index": 0}]},
        {"data": [{"index": 0, "embedding": "AAAA"}]},
        {"data": [{"index": 0, "embedding": []}]},
        {"data": [{"index": 5, "embedding": [1.0]}]},
        {"data": [{"embedding": [1.0]}, {"embedding": [1.0]}]},
        {"data": [{"embedding": [None, 1.0]}]},
        {"data": [{"embedding": [0.0, 0.0]}]},
        b'{"data": [{"embedding": [NaN, 1.0]}]}',
    ],
    ids=repr,
)
def test_nonsense_is_refused(answer: Any) -> None:
    with serving(lambda body: (200, answer)) as endpoint, pytest.raises(ModelUnavailableError):
        embedder_at(endpoint).embed(["one"], role="query")


def test_a_dimension_that_changes_is_refused() -> None:
    sizes = iter([4, 5])
    with serving(lambda body: (200, {"data": [{"embedding": [1.0] * next(sizes)}]})) as endpoint:
        embedder = embedder_at(endpoint)
        assert embedder.dimension == 4
        with pytest.raises(ModelUnavailableError, match="1 × 5 where 1 × 4"):
            embedder.embed(["one"], role="query")


def test_a_closed_port_is_unavailable() -> None:
    with serving(good) as endpoint:
        pass
    pauses_s: list[float] = []
    with pytest.raises(ModelUnavailableError, match="does not reply"):
        embedder_at(endpoint, pauses_s).embed(["one"], role="query")
    assert len(pauses_s) == ATTEMPTS - 1


def test_a_server_that_does_not_answer_in_time_is_unavailable() -> None:
    release = threading.Event()

    def slow(body: dict[str, Any]) -> Answer:
        release.wait(10)
        return 200, {}

    with serving(slow) as endpoint:
        with pytest.raises(ModelUnavailableError, match="does not reply"):
            embedder_at(endpoint, timeout_s=0.05).embed(["one"], role="query")
        release.set()


def test_a_known_family_gets_its_prefixes() -> None:
    with serving(good) as endpoint:
        embedder = HttpEmbedder(endpoint.url, "nomic-embed-text")
        embedder.embed(["one"], role="query")
        embedder.embed(["one"], role="chunk")
    sent = [request["input"] for request in endpoint.requests]
    assert ["search_query: one"] in sent
    assert ["search_document: one"] in sent


def test_the_model_is_named_with_its_host() -> None:
    assert HttpEmbedder("https://models.example.com/v1/", "m").model == "m@models.example.com"


@pytest.mark.parametrize("url", ["ftp://host/v1", "https://", "https://me:secret@host/v1"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        HttpEmbedder(url, "m")
    assert "secret" not in str(caught.value)
