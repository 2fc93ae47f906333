"""The server answers whom it should and nobody else, and never reads or tells what was not indexed."""

import os
import socket
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dowse.errors import BadRequestError
from dowse.lookup.lines import MOST_LINES, lines_of
from dowse.serve.backend import Access, hide_paths
from dowse.serve.http.options import ServerOptions, checked, is_loopback, token_from
from dowse.types import Chunk, Source
from http_server import Client, indexed, running_server

TOKEN = "a-token-of-some-length-0123"
SECRET = "the crown jewels"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An indexed source, and beside it a file that was not indexed, with links that lead out of the source."""
    place = tmp_path_factory.mktemp("safety")
    (place / "outside.txt").write_text(SECRET)
    indexed(place / "index", place / "shop", {"a.md": "# Retry\n\nretry payments\n", "sub/b.md": "# Two\n\nmore\n"})
    (place / "shop" / "link").symlink_to(place)
    return place


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[Client]:
    with running_server(folder / "index", access=Access(write=True), cors=("https://app.example.com",)) as client:
        yield client


@pytest.fixture(scope="module")
def locked(folder: Path) -> Iterator[Client]:
    with running_server(folder / "index", token=TOKEN) as client:
        yield client


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", "", "a@127.0.0.1"]
)
def test_a_name_that_may_be_rebound_is_refused(client: Client, host: str) -> None:
    answer = client.get("/v1/search?q=retry", Host=host)
    assert answer.status == 421
    assert b"retry payments" not in answer.body


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:99", "127.0.0.1", "127.9.9.9:1", "[::1]:8765"])
def test_this_machines_own_names_are_answered(client: Client, host: str) -> None:
    assert client.get("/healthz", Host=host).status == 200


def test_a_name_that_the_operator_allows_is_answered(folder: Path) -> None:
    with running_server(folder / "index", allow_hosts=("search.example.com",)) as client:
        assert client.get("/healthz", Host="search.example.com").status == 200
        assert client.get("/healthz", Host="other.example.com").status == 421


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "file://", "https://app.example.com.evil"]
)
def test_pages_of_other_origins_are_refused(client: Client, origin: str) -> None:
    answer = client.post("/v1/query", {"text": "retry"}, Origin=origin)
    assert answer.status == 403
    assert "access-control-allow-origin" not in answer.headers


IMAGE = {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
FRAME = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}


@pytest.mark.parametrize("site", ["cross-site", "same-site", "Cross-Site"])
@pytest.mark.parametrize("more", [{}, IMAGE, FRAME])
def test_what_a_browser_marks_as_foreign_is_refused(client: Client, site: str, more: dict[str, str]) -> None:
    answer = client.get("/v1/search?q=retry", **{"Sec-Fetch-Site": site, **more})
    assert answer.status == 403
    assert b"retry payments" not in answer.body


def test_links_typed_addresses_and_named_origins_are_answered(client: Client) -> None:
    for headers in (
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
        {"Sec-Fetch-Site": "cross-site", "Origin": "https://app.example.com"},
    ):
        assert client.get("/v1/search?q=retry", **headers).status == 200, headers


def test_our_own_pages_may_ask(client: Client) -> None:
    assert client.post("/v1/query", {"text": "retry"}, Origin=f"http://127.0.0.1:{client.port}").status == 200


def test_a_named_origin_may_ask_after_a_preflight(client: Client) -> None:
    origin = {"Origin": "https://app.example.com"}
    before = client.send("OPTIONS", "/v1/query", headers=origin | {"Access-Control-Request-Method": "POST"})
    assert before.status == 204
    assert before.headers["access-control-allow-origin"] == "https://app.example.com"
    assert "authorization" in before.headers["access-control-allow-headers"]
    after = client.post("/v1/query", {"text": "retry"}, **origin)
    assert after.status == 200
    assert after.headers["access-control-allow-origin"] == "https://app.example.com"
    assert "access-control-allow-credentials" not in after.headers


def test_every_answer_keeps_browsers_careful(client: Client) -> None:
    for path in ("/v1/search?q=retry", "/nowhere", "/healthz", "/v1/search"):
        headers = client.get(path).headers
        assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers


@pytest.mark.parametrize(
    "given",
    [
        "",
        "Bearer",
        "Bearer wrong",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Token {TOKEN}",
        "Basic !!",
        f"Basic {TOKEN}",
    ],
)
def test_without_the_token_nothing_is_told(locked: Client, given: str) -> None:
    headers = {"Authorization": given} if given else {}
    for path in ("/v1/search?q=retry", "/openapi.json", "/metrics", "/v1/status", "/nowhere"):
        answer = locked.send("GET", path, headers=headers)
        assert answer.status == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")


def test_with_the_token_all_is_told(locked: Client) -> None:
    basic = b64encode(f"anyone:{TOKEN}".encode()).decode()
    for said in (f"Bearer {TOKEN}", f"bearer {TOKEN}", f"Basic {basic}"):
        assert locked.get("/v1/search?q=retry", Authorization=said).json["chunks"]


def test_probes_need_no_token(locked: Client) -> None:
    assert locked.get("/healthz").body == locked.get("/readyz").body == b'{"ok":true}'


TRAVERSALS = (
    "../outside.txt", "..%2foutside.txt", "%2e%2e/outside.txt", "shop/../../outside.txt", "shop/..%2f..%2foutside.txt",
    "/etc/passwd", "%2fetc%2fpasswd", "shop//etc/passwd", "~/.bashrc", "shop/link/outside.txt", "link/outside.txt",
    "shop/a.md%00.txt", "....//outside.txt", "shop/%252e%252e/outside.txt", "outside.txt",
)  # fmt: skip


@pytest.mark.parametrize("path", TRAVERSALS)
def test_no_path_leads_out_of_the_sources(client: Client, folder: Path, path: str) -> None:
    routes = ("files/", "outline/", "related/", "explain?q=retry&target=")
    for route in (f"/v1/{each}{path}" for each in routes):
        answer = client.send("GET", route)
        assert answer.status in (400, 404), route
        assert SECRET.encode() not in answer.body
        assert b"root:" not in answer.body
        assert str(folder).encode() not in answer.body


@pytest.mark.parametrize("path", ["../", "/etc", "~", "shop/../..", "shop/link", "elsewhere", "shop/link/outside.txt"])
def test_no_job_reads_outside_of_the_sources(client: Client, folder: Path, path: str) -> None:
    answer = client.post("/v1/index", {"paths": [path]})
    assert answer.status in (400, 404)
    assert str(folder).encode() not in answer.body


def test_an_absolute_path_of_an_indexed_file_is_refused_too(client: Client, folder: Path) -> None:
    """Else whoever asks could find out where things lie, guess by guess."""
    assert client.send("GET", f"/v1/files/{folder}/shop/a.md").status in (400, 404)
    assert client.get("/v1/explain", {"q": "retry", "target": str(folder / "shop" / "a.md")}).status == 400


def test_a_read_only_server_changes_nothing(folder: Path) -> None:
    with running_server(folder / "index") as client:
        hit = client.get("/v1/search?q=retry").json["chunks"][0]["id"]
        for path, row in (("/v1/index", {}), ("/v1/feedback", {"query": "retry", "target": hit, "grade": 1})):
            answer = client.post(path, row)
            assert answer.status == 403
            assert "--allow-write" in answer.json["detail"]


def test_another_address_than_loopback_needs_a_token() -> None:
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.com", "localhost.example.com"):
        with pytest.raises(BadRequestError, match="--token-file"):
            checked(ServerOptions(host=host))
        assert checked(ServerOptions(host=host, token=TOKEN)).host == host
    for host in ("127.0.0.1", "::1", "localhost", "127.1.2.3"):
        assert is_loopback(host)
        checked(ServerOptions(host=host))


def test_a_token_comes_from_a_file_or_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert token_from(file, {"DOWSE_TOKEN": "b" * 20}) == TOKEN
    assert token_from(None, {"DOWSE_TOKEN": f" {TOKEN} "}) == TOKEN
    assert token_from(None, {}) is None
    file.write_text("short")
    with pytest.raises(BadRequestError, match="16 or more ASCII"):
        token_from(file, {})
    with pytest.raises(BadRequestError, match="cannot read"):
        token_from(tmp_path / "none", {})


def test_a_token_is_never_shown() -> None:
    assert TOKEN not in repr(ServerOptions(token=TOKEN))


@pytest.mark.parametrize(
    "origin", ["*", "example.com", "https://example.com/page", "ftp://example.com", "null", "https://"]
)
def test_what_is_no_origin_is_refused(origin: str) -> None:
    with pytest.raises(BadRequestError, match="--cors"):
        checked(ServerOptions(cors=(origin,)))


def test_two_host_headers_are_refused(client: Client) -> None:
    with socket.create_connection(("127.0.0.1", client.port)) as raw:
        raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
        status = raw.makefile("rb").readline()
    assert status.split()[1] in (b"421", b"400")


def test_messages_do_not_name_places_of_this_machine() -> None:
    index = Path("/srv/indexes/acme")
    sources = [Source("shop", "/srv/code/shop"), Source("api", "/srv/code/shop/api")]
    told = hide_paths(
        "cannot read /srv/code/shop/api/x.py or /srv/code/shop/y; /srv/indexes/acme, /home/me/k.pem", index, sources
    )
    assert told == "cannot read api/x.py or shop/y; the index, k.pem"
    assert (
        hide_paths("GET /v1/sources lists them, see /openapi.json", index, sources)
        == "GET /v1/sources lists them, see /openapi.json"
    )


@given(
    st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"])), min_size=1, max_size=30),
    st.data(),
)
def test_lines_come_back_as_they_were_cut(lines: list[str], data: st.DataObject) -> None:
    """Whatever the cuts, overlapping or not, every line is there once and at its number."""
    starts = sorted({1, *data.draw(st.lists(st.integers(1, len(lines)), max_size=5))})
    ends = [*(start + 1 for start in starts[1:]), len(lines)]
    chunks = [
        Chunk(
            f"{n:016x}", "d", "\n".join(lines[a - 1 : b]), "DOC_PAGE", "s/p", start_line=a, end_line=min(b, len(lines))
        )
        for n, (a, b) in enumerate(zip(starts, ends, strict=True))
    ]
    found = lines_of(chunks, "s/p")
    assert list(found.texts) == lines[:MOST_LINES]
    first = data.draw(st.integers(1, len(lines)))
    assert list(lines_of(chunks, "s/p", first, first).texts) == [lines[first - 1]]


def test_a_named_pipe_beside_the_sources_is_not_waited_for(client: Client, folder: Path) -> None:
    pipe = folder / "shop" / "pipe.md"
    os.mkfifo(pipe)
    try:
        assert client.get("/v1/files/shop/pipe.md").status == 404
    finally:
        pipe.unlink()
