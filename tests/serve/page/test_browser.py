"""The page in a real Chromium: asked, narrowed, explained, steered by keys, without script, attacked, and looked at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, urlsplit

import pytest

import dowse
from browser import ACCESSIBLE, WatchedPage, chromium, eventually, watched
from dowse.evaluate.judgments import kept
from dowse.serve.backend import Access
from http_server import Client, indexed, running_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow

COMPOSE = """services:
  web: {image: acme/web, environment: {API_URL: "http://api:8080"}}
  api: {image: acme/api, environment: {DATABASE_URL: "postgres://db:5432/x"}}
  db: {image: "postgres:16"}
"""
FILES = {
    "app/pay.py": 'def retry_payment(card):\n    """Try again."""\n    for _ in range(3):\n        charge(card)\n',
    "app/long.py": "\n".join(f"def step_{n}(value):\n    return value + {n}  # payment {n}" for n in range(120)),
    "app/login.go": "package app\n\n// No retry here.\nfunc Login(name string) Token {\n\treturn issue(name)\n}\n",
    "docs/rollback.md": "---\nauthor: Ada\ndate: 2026-02-01\n---\n# Rollback\n\nTo retry, call `retry_payment`.\n",
    "docs/old.md": "---\nauthor: Bob\ndate: 2025-11-30\n---\n# Old ways\n\nWe used to retry each payment by hand.\n",
    "deploy/docker-compose.yml": COMPOSE,
    **{f"notes/{n:02}.md": f"# Note {n}\n\nA payment of customer {n} and how to retry it.\n" for n in range(12)},
}
ASKED = "/?q=retry+payment"
DOCUMENT = "/documents/shop/app/pay.py?q=retry&first=1&last=4"
PAGES = ("/", f"{ASKED}&target=shop/app/login.go", DOCUMENT, "/services", "/services/api", "/status", "/jobs")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def client(index: Path) -> Iterator[Client]:
    with running_server(index, access=Access(write=True)) as client:
        yield client


@pytest.fixture
def window(browser: Browser, client: Client) -> Iterator[WatchedPage]:
    with watched(browser, client.port) as window:
        yield window
        assert window.wrong == []


@pytest.fixture
def plain(browser: Browser, client: Client) -> Iterator[WatchedPage]:
    """A window that runs no script."""
    with watched(browser, client.port, java_script_enabled=False) as window:
        yield window


def parameters(window: WatchedPage) -> dict[str, list[str]]:
    return parse_qs(urlsplit(window.page.url).query)


# --- asking -----------------------------------------------------------------------------------------


def test_typing_searches_and_the_address_holds_the_question(window: WatchedPage) -> None:
    page = window.go("/")
    page.get_by_label("Query", exact=True).press_sequentially("retry payment", delay=20)
    page.wait_for_url(f"**{ASKED}")
    window.settled()
    typed = window.hits()
    assert page.locator(".group").count() == 10 <= len(typed)  # documents, with their passages
    window.go(ASKED)
    assert window.hits() == typed


def test_first_hits_come_before_the_order_that_settles(window: WatchedPage, client: Client) -> None:
    told = client.get("/v1/query/stream", {"q": "retry payment", "rerank": "heuristic", "group": "document"}).events
    orders = [
        [each["id"] for group in event["result"]["groups"] for each in group["chunks"]]
        or [each["id"] for each in event["result"]["chunks"]]
        for _, event in told
    ]
    assert orders[0] != orders[-1], "the reranker must change something, or this shows nothing"
    page = window.go("/?rerank=heuristic")
    page.get_by_label("Query", exact=True).fill("retry payment")
    window.settled()
    states = page.evaluate("window.seen.states")
    assert states[0]["settling"]
    assert not states[-1]["settling"]
    assert set(states[0]["hits"]) == set(orders[0])
    assert window.hits() == states[-1]["hits"]
    assert set(window.hits()) == set(orders[-1])


def test_a_facet_narrows_and_its_chip_takes_it_back(window: WatchedPage) -> None:
    page = window.go(ASKED)
    before = window.hits()
    page.locator("#facets").get_by_role("link", name="go", exact=False).first.click()
    page.wait_for_selector(".chips")
    window.settled()
    assert parameters(window)["language_filter"] == ["go"]
    assert [each.inner_text() for each in page.locator(".group .path").all()] == ["shop/app/login.go"]
    page.get_by_role("link", name="Remove filter Language: go").click()
    page.wait_for_selector(".chips", state="detached")
    assert "language_filter" not in parameters(window)
    assert window.hits() == before
    page.go_back()
    page.wait_for_selector(".chips")
    assert parameters(window)["language_filter"] == ["go"]


def test_a_switch_changes_the_order_and_the_address(window: WatchedPage) -> None:
    page = window.go(ASKED)
    page.get_by_text("Settings").click()
    page.get_by_label("Fusion").select_option("rrf")
    page.wait_for_url("**fusion=rrf*")
    window.settled()
    eventually(page, "document.querySelector('#summary').innerText.includes('rrf')")


def test_hits_of_one_document_stand_together(window: WatchedPage) -> None:
    page = window.go("/?q=step+payment&top_k=20")
    paths = [each.inner_text() for each in page.locator(".group .path").all()]
    assert len(paths) == len(set(paths)) < len(window.hits())


def test_the_why_panel_draws_every_leg_and_stage_and_stays_open_in_the_address(window: WatchedPage) -> None:
    page = window.go(f"{ASKED}&rerank=heuristic")
    hit = window.hits()[0]
    page.locator(f"#hit-{hit} .why summary").click()
    page.wait_for_url(f"**why={hit}*")
    page.reload()
    panel = page.locator(f"#hit-{hit} .why")
    assert panel.locator("svg.trace").is_visible()
    assert [panel.locator(f".dot.{leg}").count() for leg in ("dense", "bm25_code", "bm25_nlp")] == [1, 1, 1]
    stages = panel.locator("tbody th").all_inner_texts()
    assert stages[:4] == ["dense", "bm25_code", "bm25_nlp", "fuse"]
    assert "heuristic" in stages
    assert panel.locator(".bar .fill.dense").bounding_box()["width"] > 0  # type: ignore[index]


def test_why_not_says_what_lost_a_place_and_leads_to_what_brings_it(window: WatchedPage) -> None:
    page = window.go(f"{ASKED}&top_k=1&fusion=rrf")
    page.get_by_label("Expected file, line or chunk").fill("shop/app/login.go")
    page.get_by_role("button", name="Explain", exact=True).click()
    card = page.locator("#why-not")
    assert "Dropped at" in card.inner_text()
    card.locator("a").nth(1).click()
    window.settled()
    assert "shop/app/login.go" in page.locator(".group .path").all_inner_texts()


def test_copies_reach_the_clipboard(browser: Browser, client: Client) -> None:
    with watched(browser, client.port, permissions=["clipboard-read", "clipboard-write"]) as window:
        page = window.go(ASKED)
        page.get_by_role("button", name="Copy location").first.click()
        page.wait_for_selector("button:has-text('Copied')")
        place = page.evaluate("navigator.clipboard.readText()")
        assert place.startswith("shop/")
        page.get_by_text("CLI", exact=True).click()
        page.get_by_role("button", name="Copy as CLI").click()
        eventually(page, "navigator.clipboard.readText().then(text => text.startsWith('dowse search'))")
        assert page.evaluate("navigator.clipboard.readText()") == "dowse search 'retry payment'"


def test_keys_reach_the_box_the_hits_the_list_of_keys_and_a_document(window: WatchedPage) -> None:
    page = window.go(ASKED)
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "q"
    page.keyboard.press("Escape")
    hits = window.hits()
    held = "document.activeElement.closest('.hit')?.dataset.id"
    for key, expected in (("j", hits[0]), ("j", hits[1]), ("k", hits[0])):
        page.keyboard.press(key)
        assert page.evaluate(held) == expected
    page.keyboard.press("w")
    assert page.locator(f"#hit-{hits[0]} .why[open]").count() == 1
    page.keyboard.press("?")
    assert page.locator("dialog#keys").is_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")
    page.wait_for_url("**/documents/shop/**")


def test_a_thumb_is_kept(window: WatchedPage, index: Path) -> None:
    page = window.go("/?q=customer+7")
    hit = window.hits()[0]
    page.get_by_role("button", name="Result 1 is relevant").click()
    page.wait_for_selector("button[aria-pressed=true]")
    assert ("customer 7", hit, 1.0) in [(each.query, each.target, each.grade) for each in kept(index)]


# --- without script ---------------------------------------------------------------------------------


def test_without_script_one_can_search_narrow_ask_why_and_why_not(plain: WatchedPage, index: Path) -> None:
    page = plain.go("/")
    page.get_by_label("Query", exact=True).fill("retry payment")
    page.get_by_role("button", name="Search").click()
    assert page.locator(".group").count() == 10
    page.locator(".why summary").first.click()
    assert page.locator("svg.trace").first.is_visible()
    page.locator("#facets").get_by_role("link", name="markdown").click()
    assert parameters(plain)["language_filter"] == ["markdown"]
    page.get_by_text("Settings").click()
    page.get_by_label("Reranker").select_option("heuristic")
    page.get_by_role("button", name="Search").click()
    assert parameters(plain) == {"q": ["retry payment"], "language_filter": ["markdown"], "rerank": ["heuristic"]} | {
        name: values for name, values in parameters(plain).items() if values == [""]
    }
    page.get_by_label("Expected file, line or chunk").fill("shop/app/pay.py")
    page.get_by_role("button", name="Explain", exact=True).click()
    assert "Dropped at" in page.locator("#why-not").inner_text()
    page.get_by_role("link", name="Next page").click()
    assert page.locator(".rank").first.inner_text() == "11"
    judged = len(kept(index))
    page.get_by_role("button", name="Result 12 is not relevant").click()
    assert len(kept(index)) == judged + 1
    assert parameters(plain)["q"] == ["retry payment"]
    assert page.locator("button.copy:visible, #theme-button:visible").count() == 0  # what only script can do


def test_without_script_services_and_documents_are_links(plain: WatchedPage) -> None:
    page = plain.go("/services")
    page.locator(".map a[data-name=api]").click()
    assert page.get_by_role("heading", level=1).inner_text() == "api"
    page.goto(plain.base + ASKED)
    page.locator(".hit a.open").first.click()
    assert page.locator(".line.here").count() > 0


# --- other pages ------------------------------------------------------------------------------------


def test_the_map_lights_the_blast_radius_and_needs_of_a_service(window: WatchedPage) -> None:
    page = window.go("/services")
    page.locator(".map a[data-name=api]").click()
    page.wait_for_url("**/services/api")
    assert page.locator(".box.caller").get_attribute("data-name") == "web"
    assert page.locator(".box.called").get_attribute("data-name") == "db"
    lit = page.eval_on_selector_all(".arrow.lit", "all => all.map(e => [e.dataset.source, e.dataset.target]).sort()")
    assert lit == [["api", "db"], ["web", "api"]]
    page.get_by_role("link", name="evidence 1").first.click()
    page.wait_for_url("**/documents/shop/deploy/docker-compose.yml*")


def test_a_document_has_lines_outline_and_neighbours(window: WatchedPage) -> None:
    page = window.go(DOCUMENT)
    assert page.locator(".document-text .line").count() == 4
    assert page.locator(".line.here .number").all_inner_texts() == ["1", "2", "3", "4"]
    assert page.locator(".outline a").all_inner_texts() == ["retry_payment"]
    assert page.locator(".document-text mark").count() >= 1
    page.locator(".neighbours a", has_text="shop/docs/rollback.md").first.click()
    assert page.get_by_role("heading", level=1).inner_text() == "Rollback"


def test_a_job_is_followed_to_its_end(window: WatchedPage) -> None:
    page = window.go("/jobs")
    page.get_by_role("button", name="Update the index").click()
    page.wait_for_url("**/jobs/*")
    page.wait_for_selector(".state:text-is('done')")
    page.wait_for_selector(f"text={len(FILES)} unchanged")


# --- attacked ---------------------------------------------------------------------------------------

ATTACKS = (
    "<script>window.hacked=1</script>",
    "<img src=x onerror=window.hacked=1>",
    '"><svg onload=window.hacked=1>',
    "'onmouseover='window.hacked=1'autofocus onfocus='window.hacked=1",
    "</title></textarea></style></script><script>window.hacked=1</script>",
    "{{7*7}}{% raw %}<b>bold</b>",
    "javascript:window.hacked=1",
    "<iframe srcdoc='<script>parent.hacked=1</script>'></iframe><base href=//evil.example>",
    "<a href=javascript:window.hacked=1>click</a><form action=//evil.example><button>go",
)


def _attacked(root: Path) -> dict[str, str]:
    """In file names, titles, authors, headings, text, code, symbols, services, channels and people."""
    files = {
        f"code/{n}.py": f"# zebra {attack}\ndef zebra_{n}():\n    return {attack!r}\n"
        for n, attack in enumerate(ATTACKS)
    }
    for number, attack in enumerate(ATTACKS):
        name = attack.replace("/", "∕") + f" {number}.md"
        front = f"---\ntitle: {json.dumps(attack)}\nauthor: {json.dumps(attack)}\nteam: {json.dumps(attack)}\n---\n"
        files[f"names/{name}"] = f"{front}# zebra {attack}\n\nzebra {attack}\n\n## {attack}\n\n[zebra]({attack})\n"
        manifest = {"kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": attack, "namespace": attack}}
        files[f"k8s/{number}.yaml"] = json.dumps(manifest) + "\n# zebra\n"
    people = [{"id": "U1", "name": ATTACKS[0], "profile": {"display_name": ATTACKS[1], "real_name": ATTACKS[1]}}]
    files["export/users.json"] = json.dumps(people)
    files["export/channels.json"] = json.dumps([{"id": "C1", "name": ATTACKS[1].replace("/", "∕")}])
    said = [
        {"type": "message", "ts": f"177383520{n}.000100", "user": "U1", "text": f"zebra {a}"}
        for n, a in enumerate(ATTACKS)
    ]
    files[f"export/{ATTACKS[1].replace('/', '∕')}/2026-03-18.json"] = json.dumps(said)
    return files


def test_nothing_that_was_indexed_becomes_markup_or_script(browser: Browser, tmp_path: Path) -> None:
    index = indexed(tmp_path / "index", tmp_path / "zoo", _attacked(tmp_path))
    with dowse.open(index, read_only=True) as engine:
        documents = [f"{each.source}/{each.path}" for each in engine.documents("zoo")]
        services = [each.name for each in engine.services().services]
    assert len(documents) >= 3 * len(ATTACKS)
    assert set(ATTACKS) & set(services)
    with (
        running_server(index, access=Access(write=True, absolute_paths=True)) as client,
        watched(browser, client.port) as window,
    ):
        visited = [f"/?q={quote(text)}&top_k=50" for text in ("zebra", *ATTACKS)]
        visited += [f"/?q=zebra&target={quote(documents[0])}&author_filter={quote(ATTACKS[1])}", "/status", "/jobs"]
        visited += [f"/documents/{quote(each)}?q=zebra" for each in documents]
        visited += ["/services", *(f"/services/{quote(each, safe='')}" for each in services)]
        for path in visited:
            _check_harmless(window, path)
        page = window.go("/")
        page.get_by_label("Query", exact=True).fill(f"zebra {ATTACKS[1]}")
        window.settled()
        page.locator(".why summary").first.click()
        _check_now(window, "typed")
        assert "<img src=x" in page.locator("#results").inner_text()


def _check_harmless(window: WatchedPage, path: str) -> None:
    answer = window.page.goto(window.base + path)
    assert answer is not None
    assert answer.status == 200, path
    _check_now(window, path)


def _check_now(window: WatchedPage, path: str) -> None:
    page = window.page
    page.wait_for_timeout(20)
    assert page.evaluate("window.hacked") is None, path
    assert window.violations() == [], path
    assert window.wrong == [], path
    strange = "iframe, base, embed, object, main img, main script, main style, [onerror], [onload], [onfocus], [style]"
    assert page.locator(strange).count() == 0, path
    own = page.eval_on_selector_all("script", "all => all.map(each => new URL(each.src).pathname)")
    assert own == ["/static/theme.js", "/static/page.js"], path
    links = "all => all.map(each => new URL(each.href.baseVal ?? each.href, location).protocol)"
    assert set(page.eval_on_selector_all("a", links)) <= {"http:", "vscode:"}, path
    actions = page.eval_on_selector_all("form", "all => all.map(each => new URL(each.action).host)")
    assert set(actions) <= {urlsplit(window.base).netloc}, path


def test_the_policy_would_stop_a_script_that_got_through(window: WatchedPage) -> None:
    page = window.go("/status")
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.hacked=1\">')")
    eventually(page, "window.seen.violations.length > 0")
    assert page.evaluate("window.hacked") is None
    window.wrong.clear()  # this breach was ours


# --- looked at --------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible(browser: Browser, client: Client, scheme: str) -> None:
    with watched(browser, client.port, color_scheme=scheme) as window:
        for path in PAGES:
            page = window.go(path)
            page.evaluate("document.querySelectorAll('main details').forEach(each => { each.open = true; })")
            assert page.evaluate(ACCESSIBLE) == [], path


def test_the_checker_notices_faults(window: WatchedPage) -> None:
    page = window.go("/status")
    page.evaluate(
        "document.querySelector('main').insertAdjacentHTML('beforeend', "
        "'<h4>deep</h4><button></button><img src=/static/icon.svg><p id=live class=pale>pale</p>');"
        "document.querySelector('.pale').style.color = '#eeeeee'"
    )
    faults = " ".join(page.evaluate(ACCESSIBLE))
    assert all(
        part in faults for part in ("skips a level", "no name: button", "no alt", "id live twice", "contrast 1.")
    )


def test_dark_and_light_follow_the_system_until_the_reader_chooses(browser: Browser, client: Client) -> None:
    paper = "getComputedStyle(document.documentElement).backgroundColor"
    found = {}
    for scheme in ("light", "dark"):
        with watched(browser, client.port, color_scheme=scheme) as window:
            found[scheme] = window.go("/").evaluate(paper)
            if scheme == "dark":
                window.page.get_by_role("button", name="Theme: auto").click()
                assert window.page.evaluate(paper) == found["light"]
                window.page.reload()
                assert window.page.evaluate(paper) == found["light"]
                window.page.get_by_role("button", name="Theme: light").click()
                assert window.page.evaluate(paper) == found["dark"]
    assert found["light"] != found["dark"]


def test_on_a_phone_nothing_runs_over_the_side_and_filters_are_one_tap_away(browser: Browser, client: Client) -> None:
    with watched(browser, client.port, viewport={"width": 360, "height": 740}, has_touch=True) as window:
        for path in PAGES:
            page = window.go(path)
            page.evaluate("document.querySelectorAll('main details').forEach(each => { each.open = true; })")
            assert page.evaluate("document.documentElement.scrollWidth") == 360, path
        page = window.go(ASKED)
        page.get_by_role("link", name="Filters").tap()
        assert page.evaluate("document.querySelector('#facets').getBoundingClientRect().top") < 740


def test_with_a_token_the_browser_asks_for_a_password_and_then_all_works(browser: Browser, index: Path) -> None:
    token = "a-token-of-enough-characters"
    with (
        running_server(index, token=token) as client,
        watched(browser, client.port, http_credentials={"username": "me", "password": token}) as window,
    ):
        assert client.get("/").status == 401
        page = window.go("/")
        page.get_by_label("Query", exact=True).fill("retry payment")
        window.settled()
        assert page.locator(".group").count() == 10
        assert token not in page.content()
    assert window.wrong == []


def test_an_empty_index_says_what_to_type(browser: Browser, tmp_path: Path) -> None:
    dowse.open(tmp_path / "index", embedder=None).close()
    with running_server(tmp_path / "index") as client, watched(browser, client.port) as window:
        for path in ("/", ASKED, "/services", "/status"):
            page = window.go(path)
            assert page.locator("pre", has_text="dowse index PATH").is_visible(), path
            assert page.evaluate(ACCESSIBLE) == [], path


def test_a_broken_index_says_so_and_what_to_do(browser: Browser, tmp_path: Path) -> None:
    index = indexed(tmp_path / "index", tmp_path / "shop", {"a.md": "# Retry\n\nretry payments\n"})
    with running_server(index) as client, watched(browser, client.port) as window:
        page = window.go(ASKED)
        assert len(window.hits()) == 1
        for file in index.glob("dowse.db*"):
            file.write_bytes(b"this is no database" * 1000)
        page.get_by_label("Query", exact=True).fill("retry cards")
        page.wait_for_selector(".problem")
        typed = page.locator(".problem").inner_text()
        window.go("/?q=retry+refunds")
        shown = page.locator(".problem").inner_text()
        assert str(tmp_path) not in typed + shown  # where it lies is nobody's business
        assert all("is damaged" in each and "restore a backup" in each for each in (typed, shown))
        assert page.evaluate(ACCESSIBLE) == []
