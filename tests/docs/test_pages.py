"""The pages say what the program does: blocks that can be generated are, and a test compares.

`DOWSE_UPDATE_DOCS=1 pytest tests/docs/test_pages.py` writes them anew.
"""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import click
import pytest

from dowse.cli.main import COMMANDS, cli
from dowse.config import SETTINGS, Config, as_texts
from dowse.serve.wire.flags import FIELDS, QueryField
from dowse.serve.wire.result import OUTCOMES, Exit

ROOT = Path(__file__).parents[2]
UPDATE = bool(os.environ.get("DOWSE_UPDATE_DOCS"))
WIDTH = 96
MEANINGS = {
    Exit.HITS: "done; a search has results",
    Exit.NOTHING: "no results, or a failed check of `dowse doctor`",
    Exit.USAGE: "usage error: a wrong flag, value or settings file",
    Exit.NO_INDEX: "no usable index",
    Exit.PARTIAL: "partly done: some files failed",
    Exit.REMOTE: "model unavailable",
    Exit.BUG: "bug in Dowse",
    Exit.INTERRUPTED: "interrupted",
}


def help_of(command: click.Command, *names: str) -> str:
    width = {"max_content_width": WIDTH, "terminal_width": WIDTH}
    ctx = click.Context(command, info_name=" ".join(names), help_option_names=["-h", "--help"], **width)
    return "\n".join(line.rstrip() for line in ctx.get_help().splitlines())


def commands() -> str:
    parts = [f"## dowse\n\n```text\n{help_of(cli, 'dowse')}\n```"]
    parent = click.Context(cli, info_name="dowse")
    for name, _, _ in COMMANDS:
        command = cli.get_command(parent, name)
        assert command is not None
        parts.append(f"## dowse {name}\n\n```text\n{help_of(command, 'dowse', name)}\n```")
        if isinstance(command, click.Group):
            for inner in command.list_commands(parent):
                child = command.get_command(parent, inner)
                assert child is not None
                parts.append(f"### dowse {name} {inner}\n\n```text\n{help_of(child, 'dowse', name, inner)}\n```")
    return "\n\n".join(parts)


def query_settings() -> str:
    def row(field: QueryField) -> str:
        old = f"`{field.old.partition('/')[0]}`" if field.old else ""
        flag = f"`{field.flags[-1].partition('/')[0]}`" if field.flags else ""
        value = field.value.replace("|", "\\|")
        help_ = field.help.replace("*", "\\*")
        return f"| `{field.name}` | `{value}` | {help_} | {flag} | {old} |"

    head = ["| name | value | effect | flag | former flag |", "|---|---|---|---|---|"]
    return "\n".join([*head, *map(row, FIELDS.values())])


def exits() -> str:
    rows = [f"| {code.value} | {MEANINGS[code]} |" for code in Exit]
    return "\n".join(["| code | meaning |", "|---|---|", *rows])


def errors() -> str:
    rows = [
        f"| `{kind.__name__}` | {(kind.__doc__ or '').strip()} | {int(found.exit_code)} | {found.http_status} |"
        for kind, found in OUTCOMES.items()
    ]
    return "\n".join(["| error | what it means | exit | HTTP |", "|---|---|---|---|", *rows])


def settings() -> str:
    defaults = as_texts(Config())
    machine = {"models_folder": "the user's cache folder", "threads": "the number of cores"}
    rows = [
        f"| `{each.name}` | `{each.variable}` | {each.help} | {machine.get(each.name, defaults.get(each.name, ''))} |"
        for each in SETTINGS
    ]
    return "\n".join(["| setting | variable | | default |", "|---|---|---|---|", *rows])


def routes() -> str:
    from tempfile import TemporaryDirectory

    import dowse
    from dowse.serve.backend import Backend
    from dowse.serve.http.admission import AdmissionControl
    from dowse.serve.http.app import api_operations
    from dowse.serve.http.context import RequestContext
    from dowse.serve.http.metrics import Metrics
    from dowse.serve.http.operations import document
    from dowse.serve.http.options import ServerOptions

    options = ServerOptions()
    with TemporaryDirectory() as folder, Backend(dowse.open(folder, embedder=None)) as backend:
        context = RequestContext(backend, AdmissionControl(options.limits), options)
        found = document(api_operations(context, Metrics(backend, context.admission)))
    rows = [
        f"| `{method.upper()} {path}` | {' '.join(operation['description'].split())} |"
        for path, operations in found["paths"].items()
        for method, operation in operations.items()
    ]
    return "\n".join(["| route | |", "|---|---|", *rows])


BLOCKS: dict[str, tuple[str, Callable[[], str]]] = {
    "commands": ("docs/cli.md", commands),
    "exits": ("docs/cli.md", exits),
    "query settings": ("docs/cli.md", query_settings),
    "errors": ("docs/errors.md", errors),
    "settings": ("docs/config.md", settings),
    "routes": ("docs/http.md", routes),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_generated_block_is_what_the_program_says(name: str) -> None:
    page, make = BLOCKS[name]
    path = ROOT / page
    start, stop = f"<!-- generated: {name} -->\n", f"\n<!-- end: {name} -->"
    text = path.read_text("utf-8")
    assert start in text, f"{page} has no block {name}"
    before, rest = text.split(start)
    found, after = rest.split(stop)
    if UPDATE:
        path.write_text(before + start + make() + stop + after, "utf-8")
    else:
        assert found == make(), f"{page} is out of date: DOWSE_UPDATE_DOCS=1 pytest tests/docs/test_pages.py"


PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_commands_in_the_readme_exist() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    words = set(re.findall(r"^(?:\$ )?dowse ([a-z]+)\b", text, flags=re.MULTILINE))
    known = {name for name, _, _ in COMMANDS}
    assert words <= known, words - known


def test_every_tracked_page_is_reachable_from_the_readme() -> None:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    reached, queue = set(), [ROOT / "README.md"]
    while queue:
        page = queue.pop()
        if page in reached:
            continue
        reached.add(page)
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8")):
            found = (page.parent / target).resolve() if "://" not in target else None
            if found and found.is_dir():
                queue += sorted(found.glob("*.md"))
            elif found and found.suffix == ".md" and found.exists():
                queue.append(found)
    ours = {ROOT / name for name in listed.stdout.split() if not name.startswith(("src/dowse/sample/acme", ".github/"))}
    assert not {str(page.relative_to(ROOT)) for page in ours - reached}
