"""Symbols by name: definitions and not their pieces, names without underscores, names with a typo, whole bodies."""

from __future__ import annotations

from pathlib import Path

import pytest

import dowse
from dowse.serve.backend import Backend
from dowse.serve.mcp.arguments import FindSymbolArguments
from dowse.serve.mcp.tools_structure import find_symbol

STEPS = 150
BODY = "\n".join(f"    step_{n} = url_for_step({n}) + prepare_the_long_argument(number_{n})" for n in range(STEPS))
CODE = f'''class SecureCookieSession:
    """A session."""


def url_for(
    endpoint,
):
    """Generate a URL with url_for."""
{BODY}
    return endpoint
'''


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> dowse.Engine:
    folder: Path = tmp_path_factory.mktemp("code")
    (folder / "helpers.py").write_text(CODE)
    engine = dowse.open(tmp_path_factory.mktemp("index"), embedder=None)
    engine.index([folder])
    return engine


def test_the_pieces_of_a_long_function_are_not_listed(engine: dowse.Engine) -> None:
    pieces = [each for each in engine.show("helpers.py") if each.symbol_name == "url_for"]
    assert len(pieces) > 1
    (found,) = [each for each in engine.symbols("url_for") if each.name == "url_for"]
    assert found.start_line == CODE.split("\n").index("def url_for(") + 1


@pytest.mark.parametrize(
    ("asked", "name", "match"),
    [
        ("urlfor", "url_for", "case"),
        ("UrlFor", "url_for", "case"),
        ("url_fro", "url_for", "near"),
        ("SecureCookeSession", "SecureCookieSession", "near"),
    ],
)
def test_a_name_is_found_without_its_underscores_and_with_a_typo(
    engine: dowse.Engine, asked: str, name: str, match: str
) -> None:
    first = engine.symbols(asked)[0]
    assert (first.name, first.match) == (name, match)


def test_agents_get_the_whole_body(engine: dowse.Engine) -> None:
    asked = FindSymbolArguments(name="url_for", include_body=True, budget_tokens=20_000)
    (symbol,) = find_symbol(Backend(engine), asked).symbols
    assert symbol.text.split("\n")[0] == "def url_for("
    assert symbol.text.rstrip().endswith("return endpoint")


def test_agents_are_told_when_a_body_is_cut(engine: dowse.Engine) -> None:
    answer = find_symbol(Backend(engine), FindSymbolArguments(name="url_for", include_body=True, budget_tokens=1_000))
    assert any("url_for is cut" in each for each in answer.notes)


def test_agents_get_near_names_on_a_miss(engine: dowse.Engine) -> None:
    answer = find_symbol(Backend(engine), FindSymbolArguments(name="SecureCookeSession"))
    assert [each.name for each in answer.symbols] == ["SecureCookieSession"]
    assert "similar" in answer.notes[0]
