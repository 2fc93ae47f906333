"""Python blocks of pages run as a reader would type them, and print what the comment behind `print` shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ["filters.md", *sorted(f"profiles/{path.name}" for path in (DOCS / "profiles").glob("*.md"))]
_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
_SHOWN = re.compile(r"^ *print\(.*\)  # (.*)$", re.MULTILINE)


@pytest.mark.parametrize("page", PAGES)
def test_examples_print_what_the_page_shows(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    source = "\n".join(_BLOCK.findall((DOCS / page).read_text("utf-8")))
    exec(compile(source, page, "exec"), {"__name__": page})
    shown = _SHOWN.findall(source)
    assert shown
    assert capsys.readouterr().out.splitlines() == shown
