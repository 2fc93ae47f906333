"""docs/mcp.md says what the server says: its tables are generated from the server itself, and a test compares.

`DOWSE_UPDATE_DOCS=1 pytest tests/serve/mcp/test_docs.py` writes them anew.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

import dowse
from dowse.serve.mcp import resources
from dowse.serve.mcp.server import INSTRUCTIONS, TOOLS, described
from dowse.serve.mcp.token_paging import DEFAULT_TOKENS, MOST_TOKENS
from mcp_clients import SOURCE

PAGE = Path(__file__).parents[3] / "docs" / "mcp.md"
UPDATE = bool(os.environ.get("DOWSE_UPDATE_DOCS"))
SHARED = ("budget_tokens", "cursor")


def argument(name: str, schema: dict[str, Any], required: bool) -> str:
    told = schema.get("description", "").rstrip(".")
    choices = " or ".join(f"`{each}`" for each in schema.get("enum", ()))
    limits = f"{schema.get('minimum', '')} to {schema['maximum']}" if "maximum" in schema else ""
    default = f"{schema['default']} unless given" if "default" in schema else ""
    about = "; ".join(each for each in (choices, told, limits, default) if each)
    mark = "" if required else "?"
    return f"`{name}{mark}`" + (f" ({about})" if about else "")


def tools() -> str:
    rows = ["| tool | | takes | answers with |", "|---|---|---|---|"]
    for tool in map(described, TOOLS):
        required = tool.input_schema.get("required", ())
        own = {name: each for name, each in tool.input_schema["properties"].items() if name not in SHARED}
        takes = "<br>".join(argument(name, each, name in required) for name, each in own.items())
        assert tool.output_schema
        gives = ", ".join(f"`{name}`" for name in tool.output_schema["properties"])
        assert tool.annotations
        only = "" if tool.annotations.read_only_hint else " Only with `--allow-write`."
        cells = (f"`{tool.name}`", (tool.description or "") + only, takes, gives)
        rows.append("| " + " | ".join(each.replace("|", "\\|") for each in cells) + " |")
    limits = f"`budget_tokens` is {DEFAULT_TOKENS:,} unless given, and at most {MOST_TOKENS:,}."
    return "\n".join([*rows, "", limits])


def things() -> str:
    rows = ["| resource | |", "|---|---|"]
    rows += [f"| `{each.uri_template}` | {each.description} |" for each in resources.templates()]
    rows += [f"| `{each.uri}` | {each.description} |" for each in resources.listed()]
    for prompt in resources.prompts():
        given = ", ".join(f"`{each.name}`{'' if each.required else ' (optional)'}" for each in prompt.arguments or ())
        rows += ["", f"The prompt `{prompt.name}` takes {given}. {prompt.description}"]
    return "\n".join(rows)


@pytest.mark.parametrize(("name", "make"), [("mcp tools", tools), ("mcp resources", things)])
def test_generated_block_is_what_the_server_says(name: str, make: Any) -> None:
    start, stop = f"<!-- generated: {name} -->\n", f"<!-- end: {name} -->"
    before, rest = PAGE.read_text("utf-8").split(start)
    found, after = rest.split(stop)
    if UPDATE:
        PAGE.write_text(f"{before}{start}{make()}\n{stop}{after}", "utf-8")
    else:
        assert found == make() + "\n", f"{PAGE.name} is out of date: DOWSE_UPDATE_DOCS=1 pytest {Path(__file__).name}"


def test_the_instructions_name_every_tool_that_reads() -> None:
    named = set(re.findall(r"`([a-z_]+)`", INSTRUCTIONS))
    reading = {each.name for each in TOOLS if not each.writes}
    assert reading - named <= {"index_status"}
    assert named - reading <= {"text"}


def test_the_example_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a stranger would: in a project's folder, with the `dowse` command on the path."""
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), flags=re.DOTALL)
    copytree(SOURCE / "dowse" / "sample" / "acme" / "docs", tmp_path / "docs")
    with dowse.open(tmp_path / ".dowse", embedder="none") as engine:
        engine.index([tmp_path / "docs"])
    script = tmp_path / "bin" / "dowse"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nPYTHONPATH={SOURCE} DOWSE_EMBEDDER=none exec {sys.executable} -m dowse "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "docs/mcp.md", "exec"), {})
    assert re.search(r"^\S+\.md:\d+-\d+ · ", capsys.readouterr().out, flags=re.MULTILINE)
