"""Query as curl command, shell command, Python code and MCP tool call, for copying."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct

from dowse.serve.page.address import texts_of
from dowse.serve.wire import flags
from dowse.types import QueryRequest

TICK = timedelta(microseconds=1)  # --since includes the given day by subtracting a tick, so we add one
_FILTERS = ("corpus", "path", "repo", "language", "service", "source")
_AGENT = {"top_k": "limit"} | {f"{name}_filter": name for name in _FILTERS}  # arguments of the MCP tool `search`


class ServerAddress(Struct, frozen=True):
    """Base URL of the server, and the path of the index if the operator allows it."""

    base: str
    index: str = "path/to/index"
    needs_token: bool = False


def copies(request: QueryRequest, server: ServerAddress) -> tuple[tuple[str, str, str], ...]:
    """Spell the query in each language: its name, the text, and a note."""
    given = _given(request)
    agent, unsupported = _agent(request.text, given)
    note = f"The MCP tool does not support {', '.join(unsupported)}." if unsupported else ""
    return (
        ("curl", _curl(request.text, given | _syntax(request, "operators"), server), ""),
        ("CLI", command_line(request), ""),
        ("Python", _python(request.text, given | _syntax(request, "plain"), server.index), ""),
        ("MCP", agent, note),
    )


def _given(request: QueryRequest) -> dict[str, Any]:
    """List the fields that differ from their defaults; the page itself sets `explain`."""
    plain = QueryRequest(request.text)
    names = [each.name for each in fields(request) if each.name not in ("text", "syntax", "explain", "where")]
    return {name: value for name in names if (value := getattr(request, name)) != getattr(plain, name)}


def _syntax(request: QueryRequest, usual: str) -> dict[str, Any]:
    return {} if request.syntax == usual else {"syntax": request.syntax}


def _curl(text: str, given: Mapping[str, Any], server: ServerAddress) -> str:
    pairs = [("q", text), *((name, each) for name, value in given.items() for each in texts_of(name, value))]
    secret = ' -H "Authorization: Bearer $DOWSE_TOKEN"' if server.needs_token else ""
    query = urlencode(pairs, errors="replace")
    return f"curl -s{secret} {shlex.quote(f'{server.base}/v1/search?{query}')}"


def command_line(request: QueryRequest) -> str:
    """Spell a request as a command for the shell, which groups by document unless told otherwise."""
    given = {name: value for name, value in _given(request).items() if name != "group"}
    given |= _syntax(request, "operators")
    given |= {} if request.group == "document" else {"group": "none"}
    words = [word for name, value in given.items() for word in flags.words(name, _typed(name, value))]
    return shlex.join(["dowse", "search", *words, *(["--"] if request.text.startswith("-") else []), request.text])


def _typed(name: str, value: Any) -> Sequence[str]:
    if isinstance(value, datetime):
        return [(value + TICK if name == "created_after" else value - TICK).isoformat()]
    if name == "rerank" and value is False:
        return ["none"]
    return [",".join(value)] if name == "legs" else texts_of(name, value)


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
    """Make the tool call; the tool takes one value for a filter, and no ranking settings."""
    arguments: dict[str, Any] = {"query": text}
    unsupported = []
    for name, value in given.items():
        one = value[0] if isinstance(value, tuple) and len(value) == 1 else value
        if name in _AGENT and not isinstance(one, tuple):
            arguments[_AGENT[name]] = one
        else:
            unsupported.append(name)
    return json.dumps({"name": "search", "arguments": arguments}, ensure_ascii=False, indent=2), unsupported
