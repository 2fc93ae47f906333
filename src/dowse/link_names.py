"""Names of chunks, by which other documents mention them: symbols, files, modules, threads, codes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

import msgspec

from dowse.types import Chunk, ChunkId, Document

SYMBOL, FILE, MODULE, THREAD, CODE, SERVICE = "symbol", "file", "module", "thread", "code", "service"

# WF-5031, INC-207, CVE-2024-3094: numbered things that people mention by number.
CODE_PATTERN = re.compile(r"(?<![\w-])[A-Z][A-Z0-9]{1,9}(?:-\d{1,6}){1,2}(?![\w-])")
SEPARATORS = re.compile(r"::|->|[.#/]")  # between the parts of a qualified name

# Files that represent their folder: `import solver` may mean solver/__init__.py.
_FOLDER_FILES = frozenset(("__init__", "__main__", "index", "mod"))
_NUMBERED = re.compile(r"(?:adr[-_ ]?)?0*(\d{1,5})\b", re.IGNORECASE)  # 0006-retry-budget.md
# A row of a table that begins with a code, or a heading that holds one.
_DEFINED = re.compile(
    rf"^(?:\|[ \t]*[`*]*(?P<row>{CODE_PATTERN.pattern})[`*]*[ \t]*\||#{{1,6}} .*?(?P<heading>{CODE_PATTERN.pattern}))",
    re.MULTILINE,
)
_NUMBER = re.compile(r"-\d")  # part of every code, and absent from most texts
_LITERAL = re.compile(rf"[\"'`](?P<code>{CODE_PATTERN.pattern})[\"'`]")
_MOST_CODES = 200  # a chunk; chosen: a table of that many rows is data


class Name(msgspec.Struct, frozen=True):
    """A name of a chunk, by which other documents mention it."""

    kind: str  # symbol, file, module or thread
    name: str
    chunk_id: ChunkId
    document_id: str


def names_of(document: Document) -> tuple[Name, ...]:
    """Return names, sorted; a name that several chunks share belongs to the first of them.

    Names of a symbol: its qualified name, its last two parts and the last (`Service.GetQuote`, `GetQuote`). Of a file:
    its name, and as a module the part before the dot. Of a conversation: its thread. Of an error code: the table row,
    heading or literal that defines it.
    """
    found = named_chunks(document)
    return tuple(Name(kind, name, found[kind, name], document.id) for kind, name in sorted(found))


def named_chunks(document: Document) -> dict[tuple[str, str], ChunkId]:
    """Return the chunk of each kind and name: `names_of` without values, for the store, which writes thousands."""
    found: dict[tuple[str, str], ChunkId] = {}
    folder, _, file = document.path.rpartition("/")
    stem, package = file.partition(".")[0], folder.rpartition("/")[2]
    whole = [(FILE, file), (MODULE, package if stem in _FOLDER_FILES else stem)]
    chunks = [each for each in document.chunks if each.level == "chunk"]  # searchable ones first
    chunks += [each for each in document.chunks if each.level != "chunk"]
    if chunks:
        found.update(dict.fromkeys(whole, chunks[0].id))
    for chunk in chunks:
        for key in _names(chunk, stem):
            found.setdefault(key, chunk.id)
        if chunk.language == "go":  # a Go package is a folder
            found.setdefault((MODULE, package), chunk.id)
    return found


def _names(chunk: Chunk, stem: str) -> list[tuple[str, str]]:
    names: list[tuple[str, str]] = []
    if chunk.symbol_name or chunk.qualified_name or chunk.defines:  # prose has none
        spelled = {chunk.symbol_name, chunk.qualified_name, *[each.qualified_name for each in chunk.defines]}
        names += [(SYMBOL, each) for name in spelled if name for each in symbol_names(name)]
    if chunk.thread_id:
        names.append((THREAD, thread_name(chunk)))
    if chunk.level == "chunk" and (chunk.corpus_type == "DOC_ADR" or _NUMBER.search(chunk.text)):
        names += [(CODE, code) for code in _codes(chunk, stem)]
    return names


def symbol_names(qualified: str) -> tuple[str, ...]:
    """Return the names of a symbol: its qualified name, the last two parts of it, and the last."""
    parts = name_parts(qualified)
    if len(parts) == 1 or not parts[-1]:
        return (qualified,)
    return (qualified, parts[-1], f"{parts[-2]}.{parts[-1]}") if parts[-2] else (qualified, parts[-1])


def name_parts(qualified: str) -> list[str]:
    """Return the parts of a qualified name, including empty ones."""
    if qualified.replace(".", "").isidentifier():  # as nearly all: a third of the time
        return qualified.split(".")
    return SEPARATORS.split(qualified)


def thread_name(chunk: Chunk) -> str:
    return f"{chunk.channel or ''}/{chunk.thread_id}"


def _codes(chunk: Chunk, stem: str) -> Iterator[str]:
    if chunk.corpus_type == "DOC_ADR" and (number := _NUMBERED.match(stem)):
        yield f"ADR-{number[1]}"
    if chunk.corpus_type.startswith("CONVO"):
        return
    if chunk.corpus_type.startswith("DOC"):
        found = (match["row"] or match["heading"] for match in _DEFINED.finditer(chunk.text))
    else:
        found = (match["code"] for match in _LITERAL.finditer(chunk.text))
    yield from islice(found, _MOST_CODES)
