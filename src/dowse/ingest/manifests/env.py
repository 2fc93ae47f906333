"""Environment files: names and comments of variables as chunks; values only to find the hosts in a manifest."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from posixpath import dirname, join, normpath

from dowse.ingest.chunking.document import ChunkSpan, build, decode
from dowse.ingest.chunking.pack import CODE, windows
from dowse.ingest.sources.content import sibling_bytes
from dowse.ports import SourceFile
from dowse.types import Document

_SETTING = re.compile(r"(?P<name>\s*(?:export\s+)?[A-Za-z_][\w.-]*)\s*[=:]\s*(?P<value>.*)")
_COMMENT = re.compile(r"\s+#.*")
# $NAME, ${NAME}, ${NAME:-default}, ${NAME:+other}, ${NAME:?message}; the default may hold one more variable.
_VARIABLE = re.compile(
    r"\$(?:(?P<escape>\$)|(?P<plain>[A-Za-z_]\w*)"
    r"|\{(?P<name>[A-Za-z_]\w*)(?:(?P<mark>:?[-+?])(?P<other>(?:[^{}]|\$\{[^{}]*\})*))?\})"
)
MOST_CHARS = 2_000  # of a value with its variables filled in; chosen: an address is far shorter


def read_env(file: SourceFile) -> Document:
    """Read the names of settings. A value may be a secret of any form."""
    text = without_values(decode(file.data))
    spans = windows(text, (0, len(text)), CODE.fitted(text))
    return build(file, text, (ChunkSpan(span, "Environment variables", symbol_kind="settings") for span in spans))


def without_values(text: str) -> str:
    """Keep `NAME=` and comments, line for line; any other line may be part of a value."""
    lines: list[str] = []
    quote = ""
    for line in text.split("\n"):
        if quote:
            quote = "" if quote in line else quote
            lines.append("")
            continue
        found = _SETTING.fullmatch(line)
        lines.append(f"{found['name']}=" if found else line if line.lstrip().startswith("#") else "")
        value = found["value"] if found else ""
        if value[:1] in ("'", '"') and value[:1] not in value[1:]:
            quote = value[0]
    return "\n".join(lines)


def env_values(file: SourceFile, paths: Iterable[str]) -> dict[str, str]:
    """Read the values of environment files, named relative to a manifest; a later file wins."""
    values: dict[str, str] = {}
    for path in paths:
        data = sibling_bytes(file, normpath(join(dirname(file.path), path))) if "$" not in path else None
        for line in data.decode("utf-8", "replace").splitlines() if data else ():
            if (found := _SETTING.fullmatch(line)) and not line.lstrip().startswith("#"):
                name, value = found["name"].split()[-1], found["value"].strip()
                quote = value[:1] if value[:1] in ("'", '"') else ""
                value = value[1:].partition(quote)[0] if quote else _COMMENT.sub("", value)
                values[name] = value if quote == "'" else filled(value, values)[0]
    return values


def filled(text: str, values: Mapping[str, str]) -> tuple[str, bool]:
    """Fill in variables as Compose does; also return whether a value was used. Unknown ones stay as written."""
    used = False

    def value_of(found: re.Match[str]) -> str:
        nonlocal used
        if found["escape"]:
            return "$"
        value, mark = values.get(found["plain"] or found["name"]), found["mark"] or ""
        known = value is not None and not (mark.startswith(":") and not value)
        if mark.endswith("-" if not known else "+"):
            other, inside = filled(found["other"], values)
            used = used or inside
            return other
        if value is None or not known:
            return "" if mark.endswith("+") else found[0]
        used = True
        return value

    return _VARIABLE.sub(value_of, text)[:MOST_CHARS] if "$" in text else text, used
