"""The MCP tools for structure: a backend and arguments enter; definitions, outlines and neighbours leave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dowse.errors import NotFoundError
from dowse.lookup import outline as outlines
from dowse.lookup.related import Neighbour
from dowse.lookup.symbols import Symbol
from dowse.serve.backend import Backend
from dowse.serve.mcp import answers
from dowse.serve.mcp import arguments as takes
from dowse.serve.mcp.text import place, shortened, told, told_line, told_path
from dowse.serve.mcp.tools_search import Naming, faces, inside, paging_of, title
from dowse.serve.plain_text import plural
from dowse.types import Chunk, DocumentInfo

MOST_OUTLINED = 30  # files whose insides are shown; chosen: more files are shown as folders
MOST_SYMBOLS = 200  # chosen: a name borne by more things is not worth walking
MOST_NEIGHBOURS = 500  # chosen
_OF = 3  # places of what was asked for that are named


def find_symbol(backend: Backend, asked: takes.FindSymbol) -> answers.SymbolsAnswer:
    """Those that bear the name, or, when none does, those that come near."""
    found = backend.engine.symbols(asked.name, kind=asked.kind or None, limit=MOST_SYMBOLS)
    if not found:
        kind = f" of kind {asked.kind!r}; leave kind out" if asked.kind else "; call search with what it does"
        raise NotFoundError(f"no symbol {asked.name!r} is indexed{kind}, or find_references for any word")
    bearing = [each for each in found if each.match in ("exact", "case")]
    paging, naming = paging_of("find_symbol", asked), Naming.of(backend)

    def symbol(row: Symbol) -> answers.Symbol:
        return _symbol(row, naming, paging.room_tokens if asked.include_body else 0)

    page = paging.page(bearing or list(found), lambda row: row.chunk.id, symbol, faces)
    near = f"nothing is called {told_line(asked.name)!r}; these come near"
    return answers.SymbolsAnswer(
        page.items, notes=() if bearing else (near,), truncated=page.truncated, cursor=page.cursor
    )


def outline(backend: Backend, asked: takes.Outline) -> answers.OutlineAnswer:
    """A few files with what stands in them, or many as folders."""
    path = inside(backend, asked.path)
    found = backend.engine.documents(path)
    if not found:
        raise NotFoundError(f"nothing indexed at {path}; index_status lists the sources, search finds paths")
    naming = Naming.of(backend)
    if len(found) <= MOST_OUTLINED:
        rows = [row for each in backend.engine.outline(path, depth=asked.depth) for row in _file(each, naming)]
        note = ""
    else:
        rows = list(_folders(found, naming, asked.depth))
        note = f"{len(found):,} files, so only folders are shown; ask for one of them, or a file, to see inside"
    page = paging_of("outline", asked).page(rows, lambda row: f"{row.source}/{row.path}/{row.name}", _same, faces)
    return answers.OutlineAnswer(
        page.items, notes=(note,) if note else (), truncated=page.truncated, cursor=page.cursor
    )


def related(backend: Backend, asked: takes.Related) -> answers.RelatedAnswer:
    wanted = (asked.relation,) if asked.relation else ()
    found = backend.engine.related(inside(backend, asked.target), relations=wanted, limit=MOST_NEIGHBOURS)
    naming = Naming.of(backend)

    def neighbour(row: Neighbour) -> answers.Neighbour:
        return _neighbour(row, naming)

    key = "{0.direction}{0.relation}{0.chunk.id}".format
    page = paging_of("related", asked).page(found.neighbours, key, neighbour, faces)
    alone = f"no {asked.relation or 'edge'} leads from here or to here; search for its name instead"
    of = tuple(_where(each, naming) for each in found.chunks[:_OF])
    return answers.RelatedAnswer(
        of,
        page.items,
        notes=() if found.neighbours else (alone,),
        truncated=page.truncated,
        cursor=page.cursor,
    )


# --- inside -----------------------------------------------------------------------------------------


def _symbol(row: Symbol, naming: Naming, room_tokens: int) -> answers.Symbol:
    chunk = row.chunk
    return answers.Symbol(
        name=told_line(row.name),
        path=told_path(chunk.file_path or chunk.source_uri),
        id=chunk.id,
        kind=told_line(row.kind),
        start_line=row.start_line,
        end_line=row.end_line,
        signature=told_line(row.signature),
        summary=told_line(chunk.summary),
        source=naming.source(chunk.document_source),
        text=shortened(told(chunk.text), room_tokens) if room_tokens else "",
    )


def _file(found: outlines.Outline, naming: Naming) -> Iterator[answers.OutlineEntry]:
    path, source = told_path(found.path), naming.source(found.source)
    last = found.total_lines
    yield answers.OutlineEntry(told_line(found.title), "file", 1, path, 1 if last else None, last, source)
    for entry in found.entries:
        yield answers.OutlineEntry(
            name=told_line(entry.signature or entry.name),
            kind=told_line(entry.kind),
            depth=entry.depth + 2,
            start_line=entry.start_line,
            end_line=entry.end_line,
        )


def _folders(found: Sequence[DocumentInfo], naming: Naming, depth: int) -> Iterator[answers.OutlineEntry]:
    """Folders to that depth below what all have in common, each with its number of files; files that lie as high."""
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
            name=told_path(name),
            kind="folder" if files else "file",
            depth=len(parts) - len(shared),
            path=told_path(path or source),
            source=naming.source(source),
        )


def _shared(folders: Sequence[list[str]]) -> list[str]:
    """What all begin with: the least and the greatest differ where any two do."""
    first, last = min(folders), max(folders)
    same = [a == b for a, b in zip(first, last, strict=False)]
    return first[: same.index(False) if False in same else len(same)]


def _neighbour(row: Neighbour, naming: Naming) -> answers.Neighbour:
    chunk = row.chunk
    return answers.Neighbour(
        relation=told_line(row.relation),
        direction=row.direction,
        path=told_path(chunk.file_path or chunk.source_uri),
        id=chunk.id,
        start_line=chunk.start_line,
        end_line=chunk.end_line,
        title=title(chunk.qualified_name or chunk.symbol_name, chunk.section_path, chunk.document_title),
        corpus=chunk.corpus_type,
        why=told_line(row.sentence),
        source=naming.source(chunk.document_source),
    )


def _where(chunk: Chunk, naming: Naming) -> str:
    path = told_path(chunk.file_path or chunk.source_uri)
    return place(path, chunk.start_line, chunk.end_line, naming.source(chunk.document_source))


def _same(row: answers.OutlineEntry) -> answers.OutlineEntry:
    return row
