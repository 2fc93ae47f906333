"""Reader of environment files: names and comments of variables, never their values."""

from __future__ import annotations

import re

from dowse.ingest.chunking.document import ChunkSpan, build, decode
from dowse.ingest.chunking.pack import CODE, windows
from dowse.ports import SourceFile
from dowse.types import Document

_SETTING = re.compile(r"(?P<name>\s*(?:export\s+)?[A-Za-z_][\w.-]*)\s*[=:]\s*(?P<value>.*)")


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
