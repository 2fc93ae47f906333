"""MCP tools `find_references`, `services`, `index_status` and `reindex`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from time import monotonic, sleep

from dowse.errors import NotFoundError, UnavailableError
from dowse.filters import by_path
from dowse.lookup.references import MOST_CHUNKS, ReferenceLine
from dowse.serve.backend import Backend
from dowse.serve.jobs import OVER
from dowse.serve.mcp import answers
from dowse.serve.mcp import arguments as takes
from dowse.serve.mcp.text import safe_line, safe_path, shortened
from dowse.serve.mcp.tools_search import SourceNaming, encodings, inside, paging_of, title
from dowse.serve.wire.result import Object, chunk_object

REINDEX_S = 50.0  # then the run continues in the background; chosen: clients abort a call after a minute
_POLL_S = 0.1
_BY_NAME = "matched by whole word, not by type: other symbols of this name are included"


def find_references(backend: Backend, arguments: takes.FindReferencesArguments) -> answers.ReferencesAnswer:
    found = backend.engine.references(arguments.symbol, (by_path(arguments.path),) if arguments.path else ())
    rows = [each for each in found.found if arguments.definitions or not each.definition]
    if not found.found:
        raise NotFoundError(
            f"no indexed line contains the word {arguments.symbol!r}; check its case, or call search with its purpose"
        )
    paging, naming = paging_of("find_references", arguments), SourceNaming.of(backend)

    def alone(row: ReferenceLine) -> answers.FileReferences:
        """Make an item of one line, so that pages break between lines; lines of a file are grouped afterwards."""
        chunk = chunk_object(row.chunk)
        around = "" if row.definition else title(chunk | {"document_title": ""})
        text = shortened(safe_line(row.text, longest=400), paging.item_tokens)
        lines, reference = naming.lines(chunk), answers.McpReference(text, row.line, around, row.definition)
        return answers.FileReferences(lines["path"], (reference,), lines["source"])

    page = paging.page(rows, "{0.chunk.source_uri}:{0.line}".format, alone, encodings)
    notes = [_BY_NAME] if rows else ["only its definition contains it; call again with definitions=true"]
    notes += [f"only the first {MOST_CHUNKS:,} chunks with this word were searched"] if found.cut else []
    files = tuple(
        answers.FileReferences(path, tuple(each for row in group for each in row.references), source)
        for (source, path), group in groupby(page.items, key=lambda each: (each.source, each.path))
    )
    return answers.ReferencesAnswer(total=len(rows), files=files, notes=tuple(notes), **page.end)


def services(backend: Backend, arguments: takes.ServicesArguments) -> answers.ServicesAnswer:
    paging = paging_of("services", arguments)
    if arguments.name:
        found = backend.service(arguments.name.strip())
        page = paging.page(found["edges"], "{0[source]}>{0[target]}>{0[type]}".format, _call, encodings)
        node = _node(found["service"], found["calls"], found["called_by"])
        return answers.ServicesAnswer(
            services=(node,),
            calls=page.items,
            blast_radius=tuple(found["blast_radius"]),
            downstream=tuple(found["downstream"]),
            **page.end,
        )
    graph = backend.services()
    edges = graph["edges"]

    def node_of(row: Object) -> answers.ServiceNode:
        name = row["name"]
        calls = sorted({each["target"] for each in edges if each["source"] == name})
        return _node(row, calls, sorted({each["source"] for each in edges if each["target"] == name}))

    nodes = paging.page(graph["services"], lambda row: str(row["name"]), node_of, encodings)
    empty = ("no services found; Dowse finds them in manifests, Compose files and code",)
    return answers.ServicesAnswer(services=nodes.items, notes=() if graph["services"] else empty, **nodes.end)


def index_status(backend: Backend, arguments: takes.IndexStatusArguments) -> answers.StatusAnswer:
    found = backend.status()
    page = paging_of("index_status", arguments).page(found["sources"], lambda row: str(row["name"]), _source, encodings)
    changed = sum(row["stale"] + row["missing"] for row in found["sources"])
    note = f"{changed:,} files have changed since they were indexed; ask the user to run `dowse index`"
    return answers.StatusAnswer(
        **{name: found[name] for name in ("documents", "chunks", "vectors", "pending")},
        model=found["model"] or "",
        sources=page.items,
        notes=(note,) if changed else (),
        **page.end,
    )


def reindex(backend: Backend, arguments: takes.ReindexArguments) -> answers.ReindexAnswer:
    """Update sources in a child process, and wait for it as long as a client waits."""
    until = monotonic() + REINDEX_S
    job = backend.start_index([_indexed(backend, arguments.path)] if arguments.path else ())
    while job["state"] not in OVER and monotonic() < until:
        sleep(_POLL_S)
        job = backend.job(job["id"])
    if job["state"] in ("failed", "stopped"):
        raise UnavailableError(f"the index job {job['state']}: {job['error'] or 'no reason given'}; call index_status")
    report = job["report"] or {}
    running = "the index job is still running; call index_status for its progress"
    return answers.ReindexAnswer(
        **{name: report.get(name, 0) for name in ("added", "changed", "removed", "unchanged", "pending")},
        problems=tuple(
            f"{safe_path(each['path'])}: {safe_line(each['reason'])}" for each in report.get("problems", ())
        ),
        notes=() if job["state"] == "done" else (running,),
    )


def _node(row: Object, calls: Sequence[str], called_by: Sequence[str]) -> answers.ServiceNode:
    return answers.ServiceNode(
        name=safe_line(row["name"]),
        calls=tuple(map(safe_line, calls)),
        called_by=tuple(map(safe_line, called_by)),
        external=row["external"],
        language=row["language"] or "",
        repo=row["repo_name"] or "",
    )


def _call(row: Object) -> answers.ServiceCall:
    return answers.ServiceCall(
        source=safe_line(row["source"]),
        target=safe_line(row["target"]),
        type=row["type"],
        evidence=tuple(row["evidence"].split())[:3],
        why=safe_line(row["description"]),
    )


def _source(row: Object) -> answers.SourceState:
    counts = {name: row[name] for name in ("documents", "chunks", "stale", "missing")}
    return answers.SourceState(safe_path(row["name"]), **counts, last_indexed=row["last_indexed"] or "")


def _indexed(backend: Backend, path: str) -> str:
    """Return `source` or `source/path`; the name of a single source may be omitted."""
    path = inside(backend, path)
    names = [each.name for each in backend.engine.sources()]
    if path.split("/")[0] not in names and len(names) == 1:
        return f"{names[0]}/{path}"
    return path
