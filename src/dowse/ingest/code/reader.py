"""A file of source code or settings goes in; a Document with a chunk for each of its symbols comes out.

A language whose grammar is installed is parsed; any other, and a file too broken to parse, is cut by its layout.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from dowse.ingest.chunking.document import Heading, build, decode, file_name
from dowse.ingest.chunking.pack import CODE
from dowse.ingest.code.chunk_by_layout import pieces_by_layout
from dowse.ingest.code.chunk_by_symbol import cut
from dowse.ingest.code.document import CodeFile, document_of
from dowse.ingest.code.grammars import Grammar, grammar_of
from dowse.ingest.code.parse import line_starts, parse
from dowse.ingest.sources.kinds import Kind, classify
from dowse.ports import SourceFile
from dowse.types import Document

LONGEST_LINE_CHARS = 5_000  # chosen: beyond it a file is generated or packed, and its names are nobody's
# What only C++ writes in a header, at the start of a line.
_CPP_HEADER = re.compile(
    r"^[ \t]*(?:class\s+\w|namespace\b|template\s*<|(?:public|private|protected)\s*:|using\s+\w)", re.M
)


@dataclass(frozen=True)
class CodeReader:
    """Reads any language: by its grammar if there is one, else by its layout."""

    name: str = "code"

    def read(self, file: SourceFile) -> Document:
        text = decode(file.data)
        kind = _kind(file, text)
        heading = Heading(file_name(file))
        grammar = _grammar(file, kind)
        parsed = _parsed(file, kind, heading, text, grammar) if grammar and text.strip() else None
        return parsed or build(file, kind, text, heading, pieces_by_layout(text, kind.language))


def _kind(file: SourceFile, text: str) -> Kind:
    kind = classify(file.path)
    if file.language:
        return replace(kind, language=file.language)
    if kind.language == "c" and file.path.endswith(".h") and _CPP_HEADER.search(text):
        return replace(kind, language="cpp")
    return kind


def _grammar(file: SourceFile, kind: Kind) -> Grammar | None:
    if kind.language is None:
        return None
    return grammar_of("tsx" if kind.language == "typescript" and file.path.lower().endswith("x") else kind.language)


def _parsed(file: SourceFile, kind: Kind, heading: Heading, text: str, grammar: Grammar) -> Document | None:
    lines = text.split("\n")
    sizes = list(map(len, lines))
    if max(sizes) > LONGEST_LINE_CHARS:
        return None
    offsets = line_starts(sizes)
    syntax = parse(text, lines, offsets, grammar)
    if syntax is None:
        return None
    budget = CODE.fitted(text)
    code = CodeFile(file, kind, heading, text, offsets, syntax, budget)
    return document_of(code, cut(syntax, text, offsets, budget))
