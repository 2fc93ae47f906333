"""Chromium for tests of the page; records script errors and content security policy violations."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium")
REQUIRED = os.environ.get("DOWSE_CI") == "1"  # then a missing browser is a failure
WAIT_MS = 60_000  # what a loaded machine may take; nothing waits for it when all is well

_WATCH = """
window.seen = {violations: [], states: []};
document.addEventListener("securitypolicyviolation", (event) =>
  window.seen.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
addEventListener("DOMContentLoaded", () => {
  const results = document.getElementById("results");
  if (!results) return;
  new MutationObserver(() => window.seen.states.push({
    hits: [...results.querySelectorAll(".hit")].map((each) => each.dataset.id),
    settling: !!results.querySelector(".settling"),
  })).observe(results, {childList: true});
});
"""


@dataclass
class WatchedPage:
    """A browser page and the errors recorded in it."""

    page: Page
    base: str
    wrong: list[str] = field(default_factory=list)

    def go(self, path: str) -> Page:
        self.page.goto(self.base + path)
        return self.page

    def hits(self) -> list[str]:
        found: list[str] = self.page.eval_on_selector_all(".hit", "all => all.map(each => each.dataset.id)")
        return found

    def settled(self) -> None:
        self.page.wait_for_selector("#results:not([aria-busy]) #summary:not(:has(.settling))")

    def violations(self) -> list[str]:
        found: list[str] = self.page.evaluate("window.seen.violations")
        return found


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Chromium; skip the test where it is missing, unless DOWSE_CI=1 requires it."""
    missing = "no /usr/bin/chromium" if CHROMIUM is None else "" if find_spec("playwright") else "no playwright"
    if missing and not REQUIRED:
        pytest.skip(f"{missing}; apt-get install chromium, pip install playwright")
    assert not missing, missing
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # Containers run as root, where Chromium's own sandbox does not start.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def watched(browser: Browser, port: int, **settings: Any) -> Iterator[WatchedPage]:
    """Open a new window that records alerts, policy violations and script errors."""
    context = browser.new_context(**({"viewport": {"width": 1200, "height": 900}} | settings))
    context.set_default_timeout(WAIT_MS)
    context.add_init_script(_WATCH)
    found = WatchedPage(context.new_page(), f"http://127.0.0.1:{port}")
    found.page.on("pageerror", lambda error: found.wrong.append(f"error: {error}"))
    found.page.on("dialog", lambda dialog: (found.wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    found.page.on(
        "console",
        lambda said: found.wrong.append(said.text) if "Content Security Policy" in said.text else None,
    )
    try:
        yield found
    finally:
        context.close()


ACCESSIBLE = Path(__file__).with_name("accessible.js").read_text("utf-8").split("\n", 1)[1]


def eventually(page: Page, expression: str, patience_s: float = 30.0) -> None:
    """Wait until an expression holds.

    `wait_for_function` cannot be used: it evaluates text inside the page, which the content security policy forbids.
    """
    deadline_s = time.monotonic() + patience_s
    while not page.evaluate(expression):
        assert time.monotonic() < deadline_s, f"waited in vain for {expression}"
        page.wait_for_timeout(50)
