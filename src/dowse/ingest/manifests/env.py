"""A file of environment variables goes in; a Document of their names and comments comes out, never of their values."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dowse.ingest.chunking.document import Heading, Piece, build, decode, file_name
from dowse.ingest.chunking.pack import CODE, windows
from dowse.ingest.sources.kinds import kind_of
from dowse.ports import SourceFile
from dowse.types import Document

_SETTING = re.compile(r"(?P<name>\s*(?:export\s+)?[A-Za-z_][\w.-]*)\s*[=:]\s*(?P<value>.*)")


@dataclass(frozen=True)
class EnvReader:
    """Which settings there are is worth finding; what they are set to here may be a secret of any form."""

    name: str = "env"

    def read(self, file: SourceFile) -> Document:
        text = without_values(decode(file.data))
        spans = windows(text, (0, len(text)), CODE.fitted(text))
        pieces = (Piece(span, "Environment variables", symbol_kind="settings") for span in spans)
        return build(file, kind_of(file), text, Heading(file_name(file)), pieces)


def without_values(text: str) -> str:
    """`NAME=` and comments, line for line. What is neither may be the rest of a value, and goes."""
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
