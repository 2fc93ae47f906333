"""A request enters; the same question leaves as a shell command, a call over HTTP, a line of Python and an agent's tool
call.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import click

from dowse.serve.page.address import texts_of
from dowse.serve.wire import flags as cli_search_flags
from dowse.types import QueryRequest

TICK = timedelta(microseconds=1)  # a day typed as --since counts wholly, so the command takes away what we add
_AGENT: Mapping[str, str] = {  # the fields that the tool `search` of our MCP server has
    "top_k": "limit",
    "corpus_filter": "corpus",
    "path_filter": "path",
    "repo_filter": "repo",
    "language_filter": "language",
    "service_filter": "service",
    "source_filter": "source",
}


@dataclass(frozen=True)
class Copy:
    name: str
    text: str
    note: str = ""


@dataclass(frozen=True)
class Origin:
    """Where the answer came from: the server's own address, and the index if its place may be told."""

    base: str
    index: str = "path/to/index"
    needs_token: bool = False


def copies(request: QueryRequest, origin: Origin) -> tuple[Copy, ...]:
    given = _given(request)
    agent, left_out = _agent(request.text, given)
    note = f"An agent's search has no {', '.join(left_out)}." if left_out else ""
    return (
        Copy("curl", _curl(request.text, given, origin)),
        Copy("CLI", _command(request.text, given)),
        Copy("Python", _python(request.text, given, origin.index)),
        Copy("MCP", agent, note),
    )


def _given(request: QueryRequest) -> dict[str, Any]:
    """What differs from a question without wishes; `explain` is the page's own."""
    plain = QueryRequest(request.text)
    names = [each.name for each in fields(request) if each.name not in ("text", "explain", "where")]
    return {name: value for name in names if (value := getattr(request, name)) != getattr(plain, name)}


def _curl(text: str, given: Mapping[str, Any], origin: Origin) -> str:
    pairs = [("q", text), *((name, each) for name, value in given.items() for each in texts_of(name, value))]
    secret = ' -H "Authorization: Bearer $DOWSE_TOKEN"' if origin.needs_token else ""
    query = urlencode(pairs, errors="replace")
    return f"curl -s{secret} {shlex.quote(f'{origin.base}/v1/search?{query}')}"


def _command(text: str, given: Mapping[str, Any]) -> str:
    options = {each.name: each for each in _options()}
    words = [word for name, value in given.items() for word in _flag(options[name], name, value)]
    return shlex.join(["dowse", "search", *words, *(["--"] if text.startswith("-") else []), text])


def _options() -> list[click.Option]:
    @click.command()
    @cli_search_flags.add(cli_search_flags.REQUEST)
    def search(**_flags: Any) -> None: ...

    return [each for each in search.params if isinstance(each, click.Option)]


def _flag(option: click.Option, name: str, value: Any) -> list[str]:
    flag = max(option.opts, key=len)
    if name == "rerank":
        return [] if value is True else [flag, "none" if value is False else str(value)]
    if isinstance(value, bool):
        return [flag if value else option.secondary_opts[-1]]
    if isinstance(value, datetime):
        return [flag, (value + TICK if name == "created_after" else value - TICK).isoformat()]
    if name == "legs":
        return [flag, ",".join(value)]
    return [word for text in texts_of(name, value) for word in (flag, text)]


def _python(text: str, given: Mapping[str, Any], index: str) -> str:
    moments = any(isinstance(value, datetime) for value in given.values())
    words = [repr(text), *(f"{name}={_literal(value)}" for name, value in given.items())]
    return "\n".join(
        [
            *(["from datetime import datetime", ""] if moments else []),
            "import dowse",
            "",
            f"with dowse.open({index!r}) as engine:",
            f"    result = engine.query({', '.join(words)})",
        ]
    )


def _literal(value: Any) -> str:
    if isinstance(value, datetime):
        return f"datetime.fromisoformat({value.isoformat()!r})"
    return repr(list(value)) if isinstance(value, tuple) else repr(str(value) if isinstance(value, str) else value)


def _agent(text: str, given: Mapping[str, Any]) -> tuple[str, list[str]]:
    """The tool takes one value a filter, and none of the finer points."""
    arguments: dict[str, Any] = {"query": text}
    left_out = []
    for name, value in given.items():
        one = value[0] if isinstance(value, tuple) and len(value) == 1 else value
        if name in _AGENT and not isinstance(one, tuple):
            arguments[_AGENT[name]] = one
        else:
            left_out.append(name)
    return json.dumps({"name": "search", "arguments": arguments}, ensure_ascii=False, indent=2), left_out
