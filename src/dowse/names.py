"""A document goes in; what other documents may call its chunks comes out: symbols, files, modules, threads, codes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dowse.types import Chunk, ChunkId, Document, Name

SYMBOL, FILE, MODULE, THREAD, CODE, SERVICE = "symbol", "file", "module", "thread", "code", "service"

# WF-5031, INC-207, CVE-2024-3094: something that people number and speak of by its number.
CODE_PATTERN = re.compile(r"(?<![\w-])[A-Z][A-Z0-9]{1,9}(?:-\d{1,6}){1,2}(?![\w-])")
SEPARATORS = re.compile(r"::|->|[.#/]")  # between the parts of a qualified name

# Files that speak for their folder: `import solver` may mean solver/__init__.py.
_FOLDER_FILES = frozenset(("__init__", "__main__", "index", "mod"))
_NUMBERED = re.compile(r"(?:adr[-_ ]?)?0*(\d{1,5})\b", re.IGNORECASE)  # 0006-retry-budget.md
# A row of a table that begins with a code, a heading that holds one, a field that says "the number of this is".
_DEFINED = re.compile(
    rf"^(?:\|[ \t]*[`*]*(?P<row>{CODE_PATTERN.pattern})[`*]*[ \t]*\||#{{1,6}} .*?(?P<heading>{CODE_PATTERN.pattern}))",
    re.MULTILINE,
)
_LITERAL = re.compile(rf"[\"'`](?P<code>{CODE_PATTERN.pattern})[\"'`]")
_MOST_CODES = 200  # a chunk; chosen: a table of that many rows is data


def names_of(document: Document) -> tuple[Name, ...]:
    """Sorted; a name that several chunks of the document bear belongs to the first of them.

    A symbol is known by its qualified name and by the last two parts and the last of it, `Service.GetQuote` and
    `GetQuote`; a file by its name, and as a module by the part before the dot; a conversation by its thread; an error
    code by the table row, heading or literal that defines it.
    """
    found: dict[tuple[str, str], ChunkId] = {}
    for chunk in sorted(document.chunks, key=lambda each: each.level != "chunk"):  # what is searched comes first
        for key in _names(chunk, document.path):
            found.setdefault(key, chunk.id)
    return tuple(Name(kind, name, found[kind, name], document.id) for kind, name in sorted(found))


def _names(chunk: Chunk, path: str) -> Iterator[tuple[str, str]]:
    folder, _, file = path.rpartition("/")
    stem = file.partition(".")[0]
    yield FILE, file
    yield MODULE, folder.rpartition("/")[2] if stem in _FOLDER_FILES else stem
    if chunk.language == "go":  # a package is a folder
        yield MODULE, folder.rpartition("/")[2]
    for name in filter(None, (chunk.symbol_name, chunk.qualified_name)):
        yield from ((SYMBOL, each) for each in symbol_names(name))
    for defined in chunk.defines:
        yield from ((SYMBOL, each) for each in symbol_names(defined.qualified_name))
    if chunk.thread_id:
        yield THREAD, thread_name(chunk)
    if chunk.level == "chunk":
        yield from ((CODE, code) for code in _codes(chunk, stem))


def symbol_names(qualified: str) -> Iterator[str]:
    """What a symbol goes by: its qualified name, the last two parts of it, and the last."""
    yield qualified
    parts = SEPARATORS.split(qualified)
    for end in (parts[-1:], parts[-2:]):
        if all(end):
            yield ".".join(end)


def thread_name(chunk: Chunk) -> str:
    return f"{chunk.channel or ''}/{chunk.thread_id}"


def _codes(chunk: Chunk, stem: str) -> Iterator[str]:
    if chunk.corpus_type == "DOC_ADR" and (number := _NUMBERED.match(stem)):
        yield f"ADR-{number[1]}"
    if chunk.corpus_type.startswith("CONVO") or "-" not in chunk.text:
        return
    if chunk.corpus_type.startswith("DOC"):
        found = (match["row"] or match["heading"] for match in _DEFINED.finditer(chunk.text))
    else:
        found = (match["code"] for match in _LITERAL.finditer(chunk.text))
    for _, code in zip(range(_MOST_CODES), found, strict=False):
        yield code
