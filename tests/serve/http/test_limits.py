"""Too large, too slow, too many, and clients who leave: the server says so, and goes on answering the others."""

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dowse
from dowse.models.embed_hash import HashEmbedder
from dowse.ports import Matrix
from dowse.serve.backend import Backend
from dowse.serve.http.options import LONGEST_HEADERS_BYTES, ServerLimits
from dowse.serve.wire.result import Object
from dowse.types import QueryRequest, Role
from http_server import WAIT_S, Answer, Client, running_server

FILES = {"a.md": "# Retry\n\nretry payments\n", "b.md": "# Login\n\nlogin of users\n"}


class GatedEmbedder:
    """The hash embedder, but questions wait at a gate."""

    def __init__(self) -> None:
        self._inner = HashEmbedder()
        self.gate = threading.Event()
        self.waiting = threading.Semaphore(0)  # released once for each who came to the gate

    @property
    def model(self) -> str:
        return self._inner.model

    @property
    def dimension(self) -> int:
        return self._inner.dimension

    def embed(self, texts: Sequence[str], *, role: Role) -> Matrix:
        if role == "query":
            self.waiting.release()
            assert self.gate.wait(WAIT_S)
        return self._inner.embed(texts, role=role)


@contextmanager
def gated(index: Path, limits: ServerLimits) -> Iterator[tuple[Client, GatedEmbedder]]:
    """A server whose questions wait until they are let through; by the end they are."""
    embedder = GatedEmbedder()
    backend = Backend(dowse.open(index, read_only=True, create=False, embedder=embedder))
    with running_server(index, limits=limits, backend=backend) as client:
        try:
            yield client, embedder
        finally:
            embedder.gate.set()


def until(fact: Any) -> None:
    ends = time.monotonic() + WAIT_S
    while not fact():
        assert time.monotonic() < ends, "it did not come about"
        time.sleep(0.01)


def under_way(client: Client) -> int:
    text = client.get("/metrics").body.decode()
    return int(
        float(next(line for line in text.splitlines() if line.startswith("dowse_requests_under_way")).split()[1])
    )


def test_a_body_that_is_too_large_is_refused_before_it_is_read(index: Path) -> None:
    with running_server(index, limits=ServerLimits(body_bytes=1000)) as client:
        assert client.post("/v1/query", {"text": "x" * 900}).status == 200
        answer = client.post("/v1/query", {"text": "x" * 1000})
        assert answer.status == 413
        assert "1,000 bytes" in answer.json["detail"]


def test_a_body_without_a_length_is_counted_as_it_comes(index: Path) -> None:
    with running_server(index, limits=ServerLimits(body_bytes=1000)) as client, _raw(client) as raw:
        raw.sendall(b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
        raw.sendall(b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
        raw.sendall(b"3e8\r\n" + b"x" * 1000 + b"\r\n1\r\nx\r\n0\r\n\r\n")
        assert raw.makefile("rb").readline().split()[1] == b"413"


def test_a_body_that_comes_too_slowly_is_refused(index: Path) -> None:
    with running_server(index, limits=ServerLimits(body_s=0.2)) as client, _raw(client) as raw:
        raw.sendall(b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
        raw.sendall(b"Content-Length: 100\r\n\r\n{")
        assert raw.makefile("rb").readline().split()[1] == b"408"


def test_headers_without_end_are_refused(index: Path) -> None:
    with running_server(index) as client, _raw(client) as raw:
        raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
        raw.sendall(b"X-Filler: " + b"x" * LONGEST_HEADERS_BYTES)
        assert raw.makefile("rb").readline().split()[1] == b"400"
        assert client.get("/healthz").status == 200


def test_a_body_that_is_no_json_is_told(index: Path) -> None:
    with running_server(index) as client:
        typed = {"Content-Type": "text/plain"}
        assert client.send("POST", "/v1/query", b'{"text": "x"}', typed).status == 415
        assert client.send("POST", "/v1/query", b'{"text": ', {"Content-Type": "application/json"}).status == 400
        assert client.send("POST", "/v1/query", b"\xff\xfe", {"Content-Type": "application/json"}).status == 400


def test_more_than_the_server_can_take_is_told_to_come_back(index: Path) -> None:
    limits = ServerLimits(concurrency=2, queue=1, per_client=100)
    with gated(index, limits) as (client, embedder), ThreadPoolExecutor(3) as pool:
        taken = [pool.submit(client.get, "/v1/search", {"q": f"retry {n}"}) for n in range(3)]
        until(lambda: under_way(client) == 3)
        refused = client.get("/v1/search", {"q": "one more"})
        embedder.gate.set()
        answers: list[Answer] = [each.result() for each in taken]
    assert refused.status == 503
    assert int(refused.headers["retry-after"]) >= 1
    assert [each.status for each in answers] == [200, 200, 200]


def test_more_than_one_client_may_have_is_told_to_wait(index: Path) -> None:
    limits = ServerLimits(concurrency=2, queue=10, per_client=2)
    with gated(index, limits) as (client, embedder), ThreadPoolExecutor(2) as pool:
        taken = [pool.submit(client.get, "/v1/search", {"q": f"retry {n}"}) for n in range(2)]
        until(lambda: under_way(client) == 2)
        refused = client.get("/v1/search", {"q": "one more"})
        embedder.gate.set()
        assert [each.result().status for each in taken] == [200, 200]
        until(lambda: under_way(client) == 0)
        again = client.get("/v1/search", {"q": "one more"})
    assert refused.status == 429
    assert int(refused.headers["retry-after"]) >= 1
    assert again.status == 200


def test_the_loop_answers_while_all_threads_work(index: Path) -> None:
    with gated(index, ServerLimits(concurrency=1, queue=10)) as (client, embedder), ThreadPoolExecutor(1) as pool:
        slow = pool.submit(client.get, "/v1/search", {"q": "retry"})
        assert embedder.waiting.acquire(timeout=WAIT_S)
        assert client.get("/healthz").status == 200
        assert client.get("/openapi.json").status == 200
        assert not slow.done()
        embedder.gate.set()
        assert slow.result().status == 200


def test_an_answer_that_takes_too_long_is_told_and_its_place_stays_taken(index: Path) -> None:
    limits = ServerLimits(concurrency=1, queue=0, request_s=0.2)
    with gated(index, limits) as (client, embedder):
        late = client.get("/v1/search", {"q": "retry"})
        full = client.get("/v1/search", {"q": "retry"})
        embedder.gate.set()
        until(lambda: client.get("/v1/search", {"q": "retry"}).status == 200)
    assert late.status == 504
    assert late.json["type"] == "urn:dowse:error:DeadlineError"
    assert full.status == 503


class Watched:
    """A backend whose streams stop at a gate after their first event, and say how far they were taken."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.gate = threading.Event()
        self.taken: list[str] = []
        self.ended = threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def stream(self, request: QueryRequest) -> Iterator[Object]:
        try:
            for event in self._backend.stream(request):
                if self.taken:
                    assert self.gate.wait(WAIT_S)
                self.taken.append(event["event"])
                yield event
        finally:
            self.ended.set()


def test_a_client_who_leaves_ends_the_work(index: Path) -> None:
    engine = dowse.open(index, read_only=True, create=False, embedder="hash")
    watched = Watched(Backend(engine))
    with running_server(index, backend=watched) as client:
        with _raw(client) as raw:
            raw.sendall(b"GET /v1/query/stream?q=retry&rerank=heuristic HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert raw.makefile("rb").readline().split()[1] == b"200"
        # The server sees that the client is gone, and notes the answer as ended, while the work stands at the gate.
        until(lambda: b'route="/v1/query/stream"' in client.get("/metrics").body)
        watched.gate.set()
        assert watched.ended.wait(WAIT_S)
        until(lambda: under_way(client) == 0)
    assert "done" not in watched.taken


def test_events_come_when_they_are_there_and_not_at_the_end(index: Path) -> None:
    engine = dowse.open(index, read_only=True, create=False, embedder="hash")
    watched = Watched(Backend(engine))
    with running_server(index, backend=watched) as client, _raw(client) as raw:
        raw.sendall(b"GET /v1/query/stream?q=retry HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        lines = raw.makefile("rb")
        while b"event: first" not in lines.readline():
            pass
        assert watched.taken == ["first"]
        watched.gate.set()
        assert b"event: done" in lines.read()


@contextmanager
def _raw(client: Client) -> Iterator[socket.socket]:
    with socket.create_connection((client.host, client.port), timeout=WAIT_S) as found:
        yield found
