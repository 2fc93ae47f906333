"""The MCP tools for looking around: a backend and arguments enter; references, services and the index's state leave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from time import monotonic, sleep

from dowse.errors import NotFoundError, UnavailableError
from dowse.filters import by_path
from dowse.lookup.references import MOST_CHUNKS, Reference
from dowse.serve.backend import Backend
from dowse.serve.jobs import OVER
from dowse.serve.mcp import answers
from dowse.serve.mcp import arguments as takes
from dowse.serve.mcp.text import shortened, told_line, told_path
from dowse.serve.mcp.tools_search import Naming, faces, inside, paging_of, title
from dowse.serve.wire.result import Object

REINDEX_S = 50.0  # then the run goes on by itself; chosen: clients give up on a call after a minute
_LOOK_S = 0.1
_BY_THE_LETTERS = "by whole words, not by types: other things of that name are among them"


def find_references(backend: Backend, asked: takes.FindReferences) -> answers.ReferencesAnswer:
    found = backend.engine.references(asked.symbol, (by_path(asked.path),) if asked.path else ())
    rows = [each for each in found.found if asked.definitions or not each.definition]
    if not found.found:
        raise NotFoundError(
            f"no indexed line holds {asked.symbol!r} as a word; check its case, or call search with what it does"
        )
    paging, naming = paging_of("find_references", asked), Naming.of(backend)

    def alone(row: Reference) -> answers.FileReferences:
        """A line with its file: pages are cut between lines, and lines of one file are put together afterwards."""
        return answers.FileReferences(
            told_path(row.chunk.file_path or row.chunk.source_uri),
            (_reference(row, paging.room_tokens),),
            naming.source(row.chunk.document_source),
        )

    page = paging.page(rows, lambda row: f"{row.chunk.source_uri}:{row.line}", alone, faces)
    notes = [_BY_THE_LETTERS] if rows else ["only its definition holds it; ask with definitions=true to see it"]
    notes += [f"only the first {MOST_CHUNKS:,} chunks that hold it were looked through"] if found.cut else []
    return answers.ReferencesAnswer(
        total=len(rows),
        files=tuple(_by_file(page.items)),
        notes=tuple(notes),
        truncated=page.truncated,
        cursor=page.cursor,
    )


def services(backend: Backend, asked: takes.Services) -> answers.ServicesAnswer:
    paging = paging_of("services", asked)
    if asked.name:
        found = backend.service(asked.name.strip())
        page = paging.page(found["edges"], lambda row: f"{row['source']}>{row['target']}>{row['type']}", _call, faces)
        node = _node(found["service"], found["calls"], found["called_by"])
        return answers.ServicesAnswer(
            services=(node,),
            calls=page.items,
            blast_radius=tuple(found["blast_radius"]),
            downstream=tuple(found["downstream"]),
            truncated=page.truncated,
            cursor=page.cursor,
        )
    graph = backend.services()
    edges = graph["edges"]

    def node_of(row: Object) -> answers.ServiceNode:
        name = row["name"]
        calls = sorted({each["target"] for each in edges if each["source"] == name})
        return _node(row, calls, sorted({each["source"] for each in edges if each["target"] == name}))

    nodes = paging.page(graph["services"], lambda row: str(row["name"]), node_of, faces)
    empty = ("no services are known; they are found in manifests, Compose files and code",)
    return answers.ServicesAnswer(
        services=nodes.items, notes=() if graph["services"] else empty, truncated=nodes.truncated, cursor=nodes.cursor
    )


def index_status(backend: Backend, asked: takes.IndexStatus) -> answers.StatusAnswer:
    found = backend.status()
    page = paging_of("index_status", asked).page(found["sources"], lambda row: str(row["name"]), _source, faces)
    changed = sum(row["stale"] + row["missing"] for row in found["sources"])
    notes = [f"{changed:,} files changed since they were indexed; a person can run `dowse index`"] if changed else []
    return answers.StatusAnswer(
        documents=found["documents"],
        chunks=found["chunks"],
        vectors=found["vectors"],
        pending=found["pending"],
        model=found["model"] or "",
        sources=page.items,
        notes=tuple(notes),
        truncated=page.truncated,
        cursor=page.cursor,
    )


def reindex(backend: Backend, asked: takes.Reindex) -> answers.ReindexAnswer:
    """Bring sources up to date, in a process of its own, and wait for it as long as a client would."""
    until = monotonic() + REINDEX_S
    job = backend.start_index([_indexed(backend, asked.path)] if asked.path else ())
    while job["state"] not in OVER and monotonic() < until:
        sleep(_LOOK_S)
        job = backend.job(job["id"])
    if job["state"] in ("failed", "stopped"):
        raise UnavailableError(f"the run {job['state']}: {job['error'] or 'no reason was given'}; call index_status")
    report = job["report"] or {}
    running = "the run goes on; call index_status to see how far it is"
    return answers.ReindexAnswer(
        **{name: report.get(name, 0) for name in ("added", "changed", "removed", "unchanged", "pending")},
        problems=tuple(
            f"{told_path(each['path'])}: {told_line(each['reason'])}" for each in report.get("problems", ())
        ),
        notes=() if job["state"] == "done" else (running,),
    )


# --- inside -----------------------------------------------------------------------------------------


def _reference(row: Reference, room_tokens: int) -> answers.Reference:
    chunk = row.chunk
    around = "" if row.definition else title(chunk.qualified_name or chunk.symbol_name, chunk.section_path, "")
    return answers.Reference(
        text=shortened(told_line(row.text, longest=400), room_tokens),
        line=row.line,
        inside=around,
        definition=row.definition,
    )


def _by_file(rows: Sequence[answers.FileReferences]) -> Iterator[answers.FileReferences]:
    for (source, path), group in groupby(rows, key=lambda each: (each.source, each.path)):
        yield answers.FileReferences(path, tuple(each for row in group for each in row.references), source)


def _node(row: Object, calls: Sequence[str], called_by: Sequence[str]) -> answers.ServiceNode:
    return answers.ServiceNode(
        name=told_line(row["name"]),
        calls=tuple(map(told_line, calls)),
        called_by=tuple(map(told_line, called_by)),
        external=row["external"],
        language=row["language"] or "",
        repo=row["repo_name"] or "",
    )


def _call(row: Object) -> answers.ServiceCall:
    return answers.ServiceCall(
        source=told_line(row["source"]),
        target=told_line(row["target"]),
        type=row["type"],
        evidence=tuple(row["evidence"].split())[:3],
        why=told_line(row["description"]),
    )


def _source(row: Object) -> answers.SourceState:
    return answers.SourceState(
        name=told_path(row["name"]),
        documents=row["documents"],
        chunks=row["chunks"],
        stale=row["stale"],
        missing=row["missing"],
        last_indexed=row["last_indexed"] or "",
    )


def _indexed(backend: Backend, path: str) -> str:
    """As `source` or `source/path`; a path inside the only source needs no name before it."""
    path = inside(backend, path)
    names = [each.name for each in backend.engine.sources()]
    if path.split("/")[0] not in names and len(names) == 1:
        return f"{names[0]}/{path}"
    return path
