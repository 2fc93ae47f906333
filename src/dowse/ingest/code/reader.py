"""Reader of source code and settings: a chunk for each symbol.

A language whose grammar is installed is parsed; any other, and a file with too many syntax errors, is cut by its
layout.
"""

from __future__ import annotations

import re

from msgspec.structs import replace

from dowse.ingest.chunking.document import Heading, build, decode, file_name, starts_of
from dowse.ingest.chunking.pack import CODE
from dowse.ingest.code.chunk_by_layout import pieces_by_layout
from dowse.ingest.code.chunk_by_symbol import cut
from dowse.ingest.code.document import CodeFile, document_of
from dowse.ingest.code.grammars import Grammar, grammar_of
from dowse.ingest.code.parse import parse
from dowse.ingest.sources.kinds import Kind, kind_of
from dowse.ports import SourceFile
from dowse.types import Document

LONGEST_LINE_CHARS = 5_000  # chosen: a file with a longer line is generated or minified
# Words of a header at the start of a line that C++ has and C has not.
_CPP_HEADER = re.compile(
    r"^[ \t]*(?:class\s+\w|namespace\b|template\s*<|(?:public|private|protected)\s*:|using\s+\w)", re.M
)


def read_code(file: SourceFile) -> Document:
    """Read any language: by its grammar if there is one, else by its layout."""
    text = decode(file.data)
    kind = kind_of(file)
    if not file.language and kind.language == "c" and file.path.endswith(".h") and _CPP_HEADER.search(text):
        kind = replace(kind, language="cpp")
    heading = Heading(file_name(file))
    tsx = kind.language == "typescript" and file.path.lower().endswith("x")
    grammar = grammar_of("tsx" if tsx else kind.language or "")
    parsed = _parsed(file, kind, heading, text, grammar) if grammar and text.strip() else None
    return parsed or build(file, text, pieces_by_layout(text, kind.language), kind=kind, heading=heading)


def _parsed(file: SourceFile, kind: Kind, heading: Heading, text: str, grammar: Grammar) -> Document | None:
    lines = text.split("\n")
    if max(map(len, lines)) > LONGEST_LINE_CHARS:
        return None
    offsets = starts_of(text)
    syntax = parse(text, lines, offsets, grammar)
    if syntax is None:
        return None
    budget = CODE.fitted(text)
    code = CodeFile(file, kind, heading, text, offsets, syntax, budget)
    return document_of(code, cut(syntax, text, offsets, budget))
