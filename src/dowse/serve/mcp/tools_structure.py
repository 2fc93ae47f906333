"""MCP tools `find_symbol`, `outline` and `related`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dowse.errors import NotFoundError
from dowse.lookup import outline as outlines
from dowse.lookup.symbols import SymbolMatch
from dowse.serve.backend import Backend
from dowse.serve.mcp import answers
from dowse.serve.mcp import arguments as takes
from dowse.serve.mcp.text import safe_line, safe_path, safe_text, shortened
from dowse.serve.mcp.tools_search import SourceNaming, encodings, inside, paging_of, title
from dowse.serve.plain_text import plural
from dowse.serve.wire.result import Object, chunk_object
from dowse.types import DocumentInfo

MOST_OUTLINED = 30  # files shown with their symbols; chosen: more files are shown as folders
MOST_SYMBOLS = 200  # chosen: nobody reads more definitions of one name
MOST_NEIGHBOURS = 500  # chosen
_MOST_LOCATIONS = 3  # of the target, in an answer


def find_symbol(backend: Backend, arguments: takes.FindSymbolArguments) -> answers.SymbolsAnswer:
    """Find the definitions of a name, or of similar names if there are none."""
    found = backend.engine.symbols(arguments.name, kind=arguments.kind or None, limit=MOST_SYMBOLS)
    if not found:
        kind = f" of kind {arguments.kind!r}; omit kind" if arguments.kind else "; call search with its purpose"
        raise NotFoundError(f"no symbol {arguments.name!r} in the index{kind}, or find_references for any word")
    exact = [each for each in found if each.match in ("exact", "case")]
    paging, naming = paging_of("find_symbol", arguments), SourceNaming.of(backend)
    cut: list[str] = []

    def symbol(row: SymbolMatch) -> answers.McpSymbol:
        body = safe_text(_body(backend, row)) if arguments.include_body else ""
        text = shortened(body, paging.item_tokens)
        if text != body:
            cut.append(f"{safe_line(row.name)} is cut; call read with the lines {row.start_line}-{row.end_line} of it")
        lines = naming.lines(chunk_object(row.chunk)) | {"start_line": row.start_line, "end_line": row.end_line}
        return answers.McpSymbol(
            **lines,
            name=safe_line(row.name),
            kind=safe_line(row.kind),
            signature=safe_line(row.signature),
            summary=safe_line(row.chunk.summary),
            text=text,
        )

    page = paging.page(exact or list(found), lambda row: row.chunk.id, symbol, encodings)
    near = f"no exact match for {safe_line(arguments.name)!r}; these names are similar"
    shown = {each.name for each in page.items}
    notes = (*(() if exact else (near,)), *(each for each in cut if each.partition(" is cut")[0] in shown))
    return answers.SymbolsAnswer(page.items, notes=notes, **page.end)


def _body(backend: Backend, symbol: SymbolMatch) -> str:
    """Return the lines of a definition, which may have several chunks."""
    if symbol.start_line is None or symbol.end_line is None:
        return symbol.chunk.text
    found = backend.file(symbol.chunk.source_uri, symbol.start_line, symbol.end_line)
    return "\n".join(row["text"] for row in found["lines"])


def outline(backend: Backend, arguments: takes.OutlineArguments) -> answers.OutlineAnswer:
    """List a few files with their symbols, or many files as folders."""
    path = inside(backend, arguments.path)
    found = backend.engine.documents(path)
    if not found:
        raise NotFoundError(f"{path} is not in the index; call index_status for the sources, or search for paths")
    naming = SourceNaming.of(backend)
    if len(found) <= MOST_OUTLINED:
        rows = [row for each in backend.engine.outline(path, depth=arguments.depth) for row in _file(each, naming)]
        note = ""
    else:
        rows = list(_folders(found, naming, arguments.depth))
        note = f"{len(found):,} files, so only folders are listed; call again with one of them, or with a file"
    page = paging_of("outline", arguments).page(rows, "{0.source}/{0.path}/{0.name}".format, lambda row: row, encodings)
    return answers.OutlineAnswer(page.items, notes=(note,) if note else (), **page.end)


def related(backend: Backend, arguments: takes.RelatedArguments) -> answers.RelatedAnswer:
    wanted = (arguments.relation,) if arguments.relation else ()
    found = backend.related(inside(backend, arguments.target), wanted, MOST_NEIGHBOURS)
    naming = SourceNaming.of(backend)

    def neighbour(row: Object) -> answers.McpNeighbour:
        return answers.McpNeighbour(
            **naming.lines(row["chunk"]),
            relation=safe_line(row["relation"]),
            direction=row["direction"],
            title=title(row["chunk"]),
            corpus=row["chunk"]["corpus_type"],
            why=safe_line(row["sentence"]),
        )

    key = "{0[direction]}{0[relation]}{0[chunk][id]}".format
    page = paging_of("related", arguments).page(found["neighbours"], key, neighbour, encodings)
    alone = f"no {arguments.relation or 'relation'} from or to this target; search for its name instead"
    of = tuple(answers.IndexedLines(**naming.lines(each)).where for each in found["chunks"][:_MOST_LOCATIONS])
    return answers.RelatedAnswer(of, page.items, notes=() if page.items else (alone,), **page.end)


def _file(found: outlines.DocumentOutline, naming: SourceNaming) -> Iterator[answers.OutlineEntry]:
    path, source = safe_path(found.path), naming.source(found.source)
    last = found.total_lines
    yield answers.OutlineEntry(safe_line(found.title), "file", 1, path, 1 if last else None, last, source)
    for entry in found.entries:
        yield answers.OutlineEntry(
            name=safe_line(entry.signature or entry.name),
            kind=safe_line(entry.kind),
            depth=entry.depth + 2,
            start_line=entry.start_line,
            end_line=entry.end_line,
        )


def _folders(found: Sequence[DocumentInfo], naming: SourceNaming, depth: int) -> Iterator[answers.OutlineEntry]:
    """List folders to a depth below the common folder with their number of files, and the files beside them."""
    shared = _shared([f"{each.source}/{each.path}".split("/")[:-1] for each in found])
    counts: dict[tuple[str, ...], int] = {}
    for info in found:
        parts = (info.source, *info.path.split("/"))
        for length in range(len(shared) + 1, min(len(parts), len(shared) + depth + 1)):
            counts[parts[:length]] = counts.get(parts[:length], 0) + (length < len(parts))
        if len(parts) <= len(shared) + depth:
            counts[parts] = 0
    for parts, files in sorted(counts.items()):
        name = f"{parts[-1]}/ ({plural(files, 'file')})" if files else parts[-1]
        source, path = parts[0], "/".join(parts[1:])
        yield answers.OutlineEntry(
            name=safe_path(name),
            kind="folder" if files else "file",
            depth=len(parts) - len(shared),
            path=safe_path(path or source),
            source=naming.source(source),
        )


def _shared(folders: Sequence[list[str]]) -> list[str]:
    """Return the common prefix: the least and the greatest folder differ where any two do."""
    first, last = min(folders), max(folders)
    same = [a == b for a, b in zip(first, last, strict=False)]
    return first[: same.index(False) if False in same else len(same)]
