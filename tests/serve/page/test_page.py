"""The page without a browser: addresses, lines, ways, facets, copies, the map, and what every answer of it carries."""

import json
import re
import shlex
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import click
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dowse.cli.options import add
from dowse.cli.query_options import query_options, request_fields
from dowse.config import Config
from dowse.errors import BadRequestError
from dowse.serve.backend import Access, Backend
from dowse.serve.http.options import EDITOR, ServerOptions, checked
from dowse.serve.mcp.arguments import SearchArguments
from dowse.serve.page.address import changed, parse_page_url, path_part
from dowse.serve.page.copy import ServerAddress, copies
from dowse.serve.page.facets import facets
from dowse.serve.page.hits import LONGEST_LINE_CHARS, SNIPPET_LINES, EditorLinks, Highlighter
from dowse.serve.page.render import FOLDER, POLICY, STATIC, Templates, breakable
from dowse.serve.page.routes import local_url
from dowse.serve.page.service_map import HEIGHT, WIDTH, service_map
from dowse.serve.page.why import GRID, score_trace
from dowse.serve.plain_text import clean
from dowse.serve.wire.flags import FIELDS
from dowse.serve.wire.request import parse_url
from dowse.types import LEGS, QueryRequest
from http_server import Client, indexed, running_server

FILES = {
    "app/pay.py": "import time\n\n\ndef retry_payment(card):\n    for attempt in range(3):\n        charge(card)\n",
    "app/login.go": "package app\n\nfunc Login(name string) Token {\n\treturn retry(name)\n}\n",
    "data/prices.json": '{"retry": 3}\n',
    "docs/rollback.md": "---\nauthor: Ada\ndate: 2026-02-01\n---\n# Rollback\n\nTo retry a payment, run the job.\n",
    "docs/old.md": "---\nauthor: Bob\ndate: 2025-11-30\n---\n# Old\n\nWe used to retry payments by hand.\n",
}
QUESTION = "retry payment"
PAGES = ("/", f"/?q={QUESTION.replace(' ', '+')}", "/documents/shop/app/pay.py", "/services", "/status", "/jobs")


@pytest.fixture(scope="module")
def client(index: Path) -> Iterator[Client]:
    with running_server(index) as client:
        yield client


@pytest.fixture
def backend(index: Path) -> Iterator[Backend]:
    with Backend.open(index, Config(embedder="hash")) as backend:
        yield backend


class Shown(HTMLParser):
    """The text of a page and the names of its elements."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(markup)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


# --- what every page is -----------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_every_page_is_html_under_a_policy_that_runs_only_our_own_files(client: Client, page: str) -> None:
    found = client.get(page)
    assert (found.status, found.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert found.headers["content-security-policy"] == POLICY
    assert "unsafe" not in POLICY
    assert POLICY.startswith("default-src 'none'; ")
    assert found.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("page", PAGES)
def test_every_page_is_also_json(client: Client, page: str) -> None:
    path, _, query = page.partition("?")
    found = client.get(f"{'/index' if path == '/' else path}.json?{query}")
    assert (found.status, found.headers["content-type"]) == (200, "application/json")
    assert isinstance(found.json, dict)


def test_the_search_page_as_json_is_what_the_api_answers(client: Client) -> None:
    page = client.get("/index.json", {"q": QUESTION, "top_k": 3}).json
    api = client.get("/v1/search", {"q": QUESTION, "top_k": 3, "facets": "true", "explain": "true"}).json
    assert [each["id"] for each in page["chunks"]] == [each["id"] for each in api["chunks"]]
    assert page["facets"] == api["facets"]


def test_a_document_that_is_itself_called_json_is_a_page(client: Client) -> None:
    assert client.get("/documents/shop/data/prices.json").headers["content-type"].startswith("text/html")
    assert client.get("/documents/shop/data/prices.json.json").json["file"]["path"] == "data/prices.json"


@pytest.mark.parametrize(
    ("page", "status"),
    [("/documents/shop/nothing.py", 404), ("/services/nobody", 404), ("/jobs/none", 404),
     (f"/?q={QUESTION}&alpha=7", 400), ("/?q=x&nonsense=1", 400), ("/?q=x&since=soon", 400),
     ("/documents/../../etc/passwd", 400), ("/chunks/zz", 404)],
)  # fmt: skip
def test_what_goes_wrong_is_a_page_that_says_so(client: Client, page: str, status: int) -> None:
    found = client.send("GET", page.replace(" ", "+"))
    assert found.status == status
    assert 'role="alert"' in found.body.decode()


def test_a_question_that_fails_while_it_is_typed_says_so_in_the_stream(client: Client) -> None:
    ((name, told),) = client.get("/search/events", {"q": QUESTION, "alpha": 7}).events
    assert name == "problem"
    assert "alpha is 7.0" in told["parts"]["results"]


def test_the_stream_shows_first_hits_then_orders_then_facets(client: Client) -> None:
    events = client.get("/search/events", {"q": QUESTION, "rerank": "heuristic"}).events
    names = [name for name, _ in events]
    assert names[0] == "first"
    assert names[-1] == "done"
    assert set(names[1:-1]) <= {"order"}
    assert all(set(told["parts"]) == {"results"} for _, told in events[:-1])
    assert set(events[-1][1]["parts"]) == {"results", "facets", "chips", "tools"}
    assert "settling" in events[0][1]["parts"]["results"]
    assert "settling" not in events[-1][1]["parts"]["results"]


def test_our_own_files_are_kept_by_browsers_for_as_long_as_they_do_not_change(client: Client) -> None:
    templates = Templates()
    for name in STATIC:
        found = client.get(templates.address(name))
        assert found.status == 200
        assert "immutable" in found.headers["cache-control"]
        assert found.body == (FOLDER / name).read_bytes()
    assert client.get("/static/page_routes.py").status == 404


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.html")), ids=lambda path: path.name)
def test_no_template_trusts_a_text_or_holds_script_or_style(path: Path) -> None:
    text = path.read_text("utf-8")
    assert not re.search(r"\|\s*safe|autoescape|Markup", text)
    assert not re.search(r"\sstyle=|<style|\son[a-z]+=|javascript:", text)
    assert all(" src=" in tag for tag in re.findall(r"<script[^>]*>", text))


# --- lines ------------------------------------------------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)


@given(TEXT, TEXT)
def test_pieces_of_a_line_are_the_line(text: str, query: str) -> None:
    line = Highlighter.of(query).line(text, 1)
    assert "".join(piece for piece, _ in line["spans"]) == clean(text).replace("\n", " ")


@given(
    st.lists(st.sampled_from(["<b>", "<img src=x>", "</p>", "<!--", "&lt;", '"', "'", "/", "a"]) | TEXT).map("".join)
)
def test_whatever_is_indexed_comes_out_as_text_and_never_as_an_element(text: str) -> None:
    shown = Templates().text("_problem.html", problem={"status": 400, "detail": text})
    assert Shown(shown).tags == ["div", "h2", "p"]
    assert Shown(str(breakable(text))).tags == ["wbr"] * text.count("/")


def test_words_of_the_question_are_marked_by_the_tokenizers_of_the_index() -> None:
    line = Highlighter.of("retry payments").line("retries of a payment, and nothing else", 7)
    assert [text for text, marked in line["spans"] if marked] == ["retries", "payment"]


def test_a_snippet_begins_a_line_before_its_first_match() -> None:
    text = "\n".join(["x"] * 20 + ["retry here"] + ["x"] * 20)
    passage = Highlighter.of("retry").snippet(text, 101)
    assert [line["number"] for line in passage["best"]] == [101 + 19 + n for n in range(SNIPPET_LINES)]
    assert len(passage["lines"]) == 41
    assert passage["is_cut"]


def test_a_line_of_a_megabyte_is_cut() -> None:
    ((text, _),) = Highlighter.of("").line("a" * 1_000_000, 1)["spans"]
    assert len(text) == LONGEST_LINE_CHARS + 1


# --- score trace ------------------------------------------------------------------------------------


def score(stage: str, value: float, rank: int) -> dict[str, Any]:
    return {"stage": stage, "value": value, "rank": rank, "why": ""}


def test_bars_are_shares_of_one_and_for_bm25_of_the_best_hit() -> None:
    found = score_trace([score("dense", 0.25, 3), score("bm25_nlp", 3.0, 1), score("fuse", 0.5, 2)], {"bm25_nlp": 4.0})
    assert [step["bar"] for step in found["rows"]] == [100 * 0.25, 100 * 3 / 4, 100 * 0.5]


def test_legs_run_together_in_fusion_and_better_ranks_stand_higher() -> None:
    scores = [*(score(leg, 1.0, rank) for leg, rank in zip(LEGS, (5, 1, 0), strict=True)), score("fuse", 0.9, 2)]
    picture = score_trace([*scores, score("heuristic", 1.0, 1)], {})["chart"]
    assert picture is not None
    dense, code, prose, fuse, last = picture["dots"]
    assert code.y < dense.y < prose.y  # what a leg did not rank stands lowest
    assert [(start.leg, stop) for start, stop in picture["lines"]] == [
        ("dense", fuse), ("bm25_code", fuse), ("bm25_nlp", fuse), ("", last)
    ]  # fmt: skip
    heights = [y for y, _ in picture["grid"]]
    assert heights == sorted(heights)
    assert len(heights) == len(GRID)


# --- addresses and facets ---------------------------------------------------------------------------


def test_blank_fields_of_a_form_ask_for_nothing() -> None:
    wanted = parse_page_url([("q", "retry"), ("alpha", ""), ("profile", " "), ("since", "")], Config())
    assert wanted.pairs == (("q", "retry"),)
    assert wanted.request == QueryRequest("retry", syntax="operators", explain=True, group="document")


def test_days_count_wholly_as_on_the_command_line() -> None:
    wanted = parse_page_url([("q", "x"), ("since", "2026-02-01"), ("until", "2026-02-28")], Config())
    after, before = wanted.request.created_after, wanted.request.created_before
    assert after is not None
    assert before is not None
    assert after < datetime(2026, 2, 1, tzinfo=UTC)
    assert before == datetime(2026, 3, 1, tzinfo=UTC)


def test_a_change_that_is_proposed_replaces_a_field_and_keeps_the_rest() -> None:
    pairs = (("q", "x"), ("language_filter", "go"), ("top_k", "3"), ("target", "a.py"), ("cursor", "c"))
    assert changed(pairs, {"top_k": 100, "language_filter": []}) == (("q", "x"), ("top_k", "100"))


@given(st.text(min_size=1, max_size=40))
def test_any_path_fits_into_an_address(path: str) -> None:
    assert re.fullmatch(r"[\w.~/%-]*", path_part(path.encode("utf-8", "replace").decode()), re.ASCII)


def test_a_name_that_is_no_text_fits_into_an_address() -> None:
    assert path_part("a\udcff.md") == "a%FF.md"


def test_a_chosen_value_leaves_the_others_to_choose_from(backend: Backend) -> None:
    wanted = parse_page_url([("q", QUESTION), ("language_filter", "go")], backend.engine.config)
    counts = backend.query(wanted.request, facets=True)["facets"]
    assert set(counts["language"]) == {"go"}
    (languages,) = [each for each in facets(backend, wanted, counts) if each["title"] == "Language"]
    assert {value["label"]: value["chosen"] for value in languages["first"]} == {
        "go": True, "json": False, "markdown": False, "python": False
    }  # fmt: skip
    without = next(value for value in languages["first"] if value["chosen"])
    assert without["href"] == "/?q=retry+payment"


def test_a_family_of_kinds_counts_all_its_kinds(backend: Backend) -> None:
    wanted = parse_page_url([("q", QUESTION), ("corpus_filter", "CODE")], backend.engine.config)
    whole = backend.query(parse_page_url([("q", QUESTION)], backend.engine.config).request, facets=True)["facets"]
    counts = backend.query(wanted.request, facets=True)["facets"]
    (kinds,) = [each for each in facets(backend, wanted, counts) if each["title"] == "Kind"]
    assert (kinds["first"][0]["label"], kinds["first"][0]["chosen"]) == ("all code", True)
    assert kinds["first"][0]["count"] == sum(n for name, n in whole["corpus_type"].items() if name.startswith("CODE_"))


def test_a_month_holds_its_first_and_its_last_day(backend: Backend) -> None:
    wanted = parse_page_url([("q", QUESTION)], backend.engine.config)
    found = facets(backend, wanted, backend.query(wanted.request, facets=True)["facets"])
    months = {value["label"]: value for each in found if each["title"] == "Time" for value in each["first"]}
    assert list(months) == ["2026-02", "2025-11"]
    for month, value in months.items():
        pairs = parse_qsl(urlsplit(value["href"]).query)
        year, number = map(int, month.split("-"))
        assert dict(pairs)["until"] == f"{month}-{monthrange(year, number)[1]}"
        narrowed = backend.query(parse_page_url(pairs, backend.engine.config).request)
        assert {row["timestamp"][:7] for row in narrowed["chunks"]} == {month}


@pytest.mark.parametrize("back", ["//evil.example", "https://evil.example", "/\\evil.example", "evil", "/a\nb", ""])
def test_a_form_leads_back_to_this_server_alone(back: str) -> None:
    assert local_url(back) == "/"
    assert local_url("/?q=x#hit-1") == "/?q=x#hit-1"


# --- copies -----------------------------------------------------------------------------------------

WISHES: dict[str, st.SearchStrategy[Any]] = {
    "top_k": st.integers(1, 99),
    "alpha": st.floats(0, 1, width=16),
    "fusion": st.sampled_from(["z", "rrf", "minmax"]),
    "rerank": st.sampled_from(["none", "heuristic", "llm"]),
    "mmr": st.booleans(),
    "graph": st.booleans(),
    "language_filter": st.lists(st.sampled_from(["go", "it's", "a b"]), min_size=1, max_size=2, unique=True).map(tuple),
    "meta_filter": st.just((("team", "pay=ments"),)),
    "created_after": st.datetimes(datetime(2000, 1, 1), datetime(2030, 1, 1)).map(
        lambda each: each.replace(tzinfo=UTC)
    ),
    "legs": st.just(("dense", "bm25_nlp")),
    "group": st.sampled_from(["none"]),
}
REQUESTS = st.builds(
    lambda text, wishes: QueryRequest(text, **wishes),
    st.text(st.characters(categories=["L", "P", "Zs"]), min_size=1, max_size=20).map(str.strip).filter(bool),
    st.fixed_dictionaries({}, optional=WISHES),
)


OLD_FLAGS = {flag for field in FIELDS.values() for flag in field.old.split("/") if flag}


def copied(request: QueryRequest) -> dict[str, str]:
    return {name: text for name, text, _ in copies(request, ServerAddress("http://127.0.0.1:8765"))}


@given(REQUESTS)
def test_the_copied_command_asks_the_same(request: QueryRequest) -> None:
    @click.command()
    @click.argument("text")
    @add(query_options())
    def search(text: str, **flags: Any) -> QueryRequest:
        return QueryRequest(text, **request_fields(flags))

    program, command, *words = shlex.split(copied(request)["CLI"])
    assert (program, command) == ("dowse", "search")
    assert not any(word.split("=")[0] in OLD_FLAGS for word in words[:-1])
    found = search.main(words, standalone_mode=False)
    assert found == replace(request, group=request.group or "none")  # a command groups unless it is told otherwise


@given(REQUESTS)
def test_the_copied_address_asks_the_same(request: QueryRequest) -> None:
    *_, url = shlex.split(copied(request)["curl"])
    asked, _ = parse_url(parse_qsl(urlsplit(url).query, keep_blank_values=True), Config())
    assert asked.request == request


@given(REQUESTS)
def test_the_copied_python_asks_the_same(request: QueryRequest) -> None:
    heard: list[QueryRequest] = []

    class Listener:
        def __enter__(self) -> "Listener":
            return self

        def __exit__(self, *_: object) -> None: ...

        def query(self, text: str, **fields: Any) -> None:
            heard.append(QueryRequest(text, **fields))

    code = copied(request)["Python"].replace("import dowse\n", "")
    exec(code, {"dowse": type("dowse", (), {"open": staticmethod(lambda _path: Listener())})})
    assert heard == [request]


@given(REQUESTS)
def test_the_copied_tool_call_is_one_that_our_tool_takes(request: QueryRequest) -> None:
    row = json.loads(copied(request)["MCP"])
    assert row["name"] == "search"
    limited = row["arguments"] | {"limit": min(row["arguments"].get("limit", 1), 30)}
    assert msgspec.convert(limited, SearchArguments).query == request.text


def test_a_copied_address_does_not_hold_the_token_but_says_where_it_goes() -> None:
    curl = copies(QueryRequest("x"), ServerAddress("http://h", needs_token=True))[0][1]
    assert '-H "Authorization: Bearer $DOWSE_TOKEN"' in curl


# --- the map ----------------------------------------------------------------------------------------

NAMES = st.sampled_from([f"s{number}" for number in range(8)])


def graph(ties: list[tuple[str, str]]) -> dict[str, Any]:
    names = sorted({name for tie in ties for name in tie} | {"alone"})
    services = [{"name": name, "language": None, "namespace": None, "ports": [], "external": False} for name in names]
    edges = [{"source": a, "target": b, "type": "http", "description": "", "evidence": []} for a, b in ties]
    return {"services": services, "edges": edges}


@given(st.lists(st.tuples(NAMES, NAMES), max_size=20, unique=True))
def test_every_service_has_a_place_of_its_own_whatever_calls_whom(ties: list[tuple[str, str]]) -> None:
    found = service_map(graph(ties))
    assert len(found.boxes) == len({box.name for box in found.boxes}) == len(graph(ties)["services"])
    assert len(found.arrows) == len(ties)
    for number, one in enumerate(found.boxes):
        assert 0 <= one.x <= found.width - WIDTH
        assert 0 <= one.y <= found.height - HEIGHT
        for other in found.boxes[:number]:
            assert abs(one.x - other.x) >= WIDTH or abs(one.y - other.y) >= HEIGHT


@given(st.lists(st.tuples(NAMES, NAMES).map(sorted).map(tuple).filter(lambda tie: tie[0] != tie[1]), unique=True))
def test_callers_stand_left_of_what_they_call_where_there_is_no_circle(ties: list[tuple[str, str]]) -> None:
    at = {box.name: box.x for box in service_map(graph(ties)).boxes}
    assert all(at[source] < at[target] for source, target in ties)


def test_the_blast_radius_is_lit_and_nothing_else() -> None:
    rows = graph([("web", "api"), ("api", "db"), ("job", "db"), ("web", "mail")])
    chosen = {"service": {"name": "api"}, "blast_radius": ["web"], "downstream": ["db"]}
    found = service_map(rows, chosen)
    assert {box.name: box.role for box in found.boxes if box.role} == {"api": "chosen", "web": "caller", "db": "called"}
    assert {(arrow.source, arrow.target) for arrow in found.arrows if arrow.is_lit} == {("web", "api"), ("api", "db")}


def test_a_broken_index_is_told_on_the_page_and_by_the_api_without_its_place(tmp_path: Path) -> None:
    index = indexed(tmp_path / "index", tmp_path / "shop", {"a.md": "# Retry\n\nretry payments\n"})
    with running_server(index) as client:
        for file in index.glob("dowse.db*"):
            file.write_bytes(b"this is no database" * 1000)
        page, api = client.get("/", {"q": "retry"}), client.get("/v1/search", {"q": "retry"})
    assert (page.status, api.status) == (500, 500)
    assert "the index/dowse.db is damaged" in api.json["detail"]
    assert "the index/dowse.db is damaged" in page.body.decode()


# --- editors, writing -------------------------------------------------------------------------------


def test_an_editor_is_linked_only_where_places_may_be_told(client: Client, index: Path) -> None:
    assert "vscode:" not in client.get("/", {"q": QUESTION}).body.decode()
    with running_server(index, access=Access(absolute_paths=True)) as telling:
        shown = telling.get("/", {"q": QUESTION, "language_filter": "python"}).body.decode()
    assert f'href="vscode://file{index.parent}/shop/app/pay.py:' in shown


def test_a_path_is_quoted_in_an_editors_link() -> None:
    assert EditorLinks(EDITOR, {"s": "/a b"}).link("s", 'c"<d>.py', 7) == "vscode://file/a%20b/c%22%3Cd%3E.py:7"


@pytest.mark.parametrize(
    "link", ["javascript:alert('{path}')", "https://x/{path}", "{path}", "vscode://file", "data:{path}"]
)
def test_a_link_that_a_browser_would_run_is_no_editor(link: str) -> None:
    with pytest.raises(BadRequestError, match="--editor"):
        checked(ServerOptions(editor=link))
    assert checked(ServerOptions(editor="idea://open?file={path}&line={line}"))


def form(client: Client, path: str, body: str, **headers: str) -> Any:
    return client.send("POST", path, body.encode(), {"Content-Type": "application/x-www-form-urlencoded"} | headers)


def test_a_read_only_server_keeps_no_judgment_and_starts_no_job(client: Client) -> None:
    hit = client.get("/v1/search", {"q": QUESTION}).json["chunks"][0]["id"]
    assert form(client, "/feedback", f"query=x&target={hit}&thumb=up").status == 403
    assert form(client, "/jobs", "").status == 403
    assert "thumbs" not in client.get("/", {"q": QUESTION}).body.decode()


def test_a_thumb_is_kept_and_leads_back_but_not_from_another_site(index: Path) -> None:
    from dowse.evaluate.judgments import kept

    with running_server(index, access=Access(write=True)) as writing:
        hit = writing.get("/v1/search", {"q": QUESTION}).json["chunks"][0]["id"]
        body = f"query=retry+payment&target={hit}&thumb=down&back=/%3Fq%3Dretry"
        foreign = form(writing, "/feedback", body, Origin="https://evil.example")
        found = form(writing, "/feedback", body, Origin=f"http://127.0.0.1:{writing.port}")
    assert foreign.status == 403
    assert (found.status, found.headers["location"]) == (303, "/?q=retry")
    assert [(each.query, each.target, each.grade) for each in kept(index)] == [(QUESTION, hit, 0.0)]
