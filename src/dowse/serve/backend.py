"""Backend shared by HTTP, the web page and MCP: queries and lookups return JSON objects in the wire format.

The three interfaces call nothing below it, so their answers cannot differ. It opens the index read-only and follows
the updates of other processes. Answers name sources and paths inside them. Absolute paths appear only if the operator
allows them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Self

from msgspec import Struct

from dowse.errors import BadRequestError, DowseError, NotAllowedError, NotFoundError
from dowse.identity import document_id, text_hash
from dowse.ingest.sources.requests import ADDED_ROOT, is_inside
from dowse.lookup.lines import lines_of
from dowse.serve.jobs import IndexTask, Job, JobQueue
from dowse.serve.paging import FIRST, RankingCache
from dowse.serve.wire import result as wire
from dowse.serve.wire.result import Object, related_object, symbol_object
from dowse.types import Degradation, DocumentInfo, QueryRequest, QueryResult, Source

if TYPE_CHECKING:
    from dowse.config import Config
    from dowse.engine import Engine
    from dowse.ingest.documents import NewDocument

_ID_DIGITS = 16
WRITE_WAIT_S = 20.0  # for another writer; chosen: below the time limit of a request
# Paths of our own routes begin with /v1/ and are not secret.
_ABSOLUTE = re.compile(r"(?<![\w.:/~])/(?!v1/)(?:[\w.@+-]+/)+[\w.@+-]+/?")


class Access(Struct, frozen=True):
    """Permissions given by the operator."""

    write: bool = False  # documents, index jobs and judgments
    absolute_paths: bool = False  # paths of this machine in answers


class Backend:
    """Read-only view of one index for servers. Safe to call from several threads."""

    def __init__(self, engine: Engine, access: Access | None = None) -> None:
        self.engine = engine
        self.access = access or Access()
        self._rankings = RankingCache()
        self._jobs = JobQueue()
        self._writing: Engine | None = None
        self._opening = Lock()

    @classmethod
    def open(cls, place: Path, config: Config, access: Access | None = None) -> Backend:
        """Open the index at a path; NoIndexError without one."""
        import dowse

        engine = dowse.open(place, read_only=True, create=False, config=config, embedder=config.embedder)
        return cls(engine, access)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        self._jobs.close()
        if self._writing is not None:
            self._writing.close()
        self.engine.close()

    def query(self, request: QueryRequest, *, cursor: str | None = None, facets: bool = False) -> Object:
        """Run a query as `dowse search --json`; a cursor adds `next_cursor`, null at the end, facets counts."""
        if cursor is None and not facets:
            return self._result(self.engine.query(request))
        page = self._rankings.page(
            request,
            FIRST if cursor is None else cursor,
            self.snapshot_id(),
            lambda: self.engine.query_facets(request, facets=True),
        )
        part = slice(page.first, page.last)
        shown = replace(page.found.result, chunks=page.found.ranked[part], groups=page.found.groups[part])
        row = self._result(shown)
        if facets:
            row["facets"] = {name: dict(counts) for name, counts in page.found.facets}
        if cursor is not None:
            row["next_cursor"] = None if page.following is None else str(page.following)
        return row

    def stream(self, request: QueryRequest) -> Iterator[Object]:
        """Yield the result after each stage; closing the iterator stops the query."""
        for event in self.engine.stream(request):
            yield {"event": event.kind, "stage": event.stage, "result": self._result(event.result)}

    def explain(self, request: QueryRequest, target: str) -> Object:
        """Explain the rank of a chunk id, `source/path` or `source/path:line`, or why it is missing."""
        return wire.explain_object(self.engine.explain(request, _inside(target)))

    def snapshot_id(self) -> str:
        """Return a name of the current snapshot; it changes when any process publishes an update."""
        return text_hash(repr(self.engine.reader().place.stamp()))[:_ID_DIGITS]

    def chunk(self, chunk_id: str) -> Object:
        """Read a chunk with its parents, document first, and whether its file has changed since."""
        reader = self.engine.reader()
        chunk = reader.get([_checked_id(chunk_id)]).get(chunk_id)
        if chunk is None:
            raise NotFoundError(f"no chunk {chunk_id}; its file may have changed, so search again")
        parents: list[Object] = []
        above = chunk.parent_id
        while above is not None and (parent := reader.get([above]).get(above)) is not None:
            parents.insert(0, {"id": parent.id, "level": parent.level, "text": parent.text, "summary": parent.summary})
            above = parent.parent_id
        stale = self.engine.stale([chunk.document_id]).get(chunk.document_id)
        return wire.chunk_object(chunk) | {"parents": parents, "stale": stale}

    def file(self, path: str, start: int | None = None, end: int | None = None) -> Object:
        """Read lines of a document from the index; numbers start at 1, both ends included."""
        info, source = self.document(path)
        chunks = [each for each in self.engine.reader().document_chunks(info.id) if each.level == "chunk"]
        uri = f"{info.source}/{info.path}"
        lines = lines_of(chunks, uri, start, end)
        return {
            "source_uri": uri,
            "source": info.source,
            "path": info.path,
            "document_id": info.id,
            "title": info.title,
            "language": chunks[0].language if chunks else None,
            "corpus_type": chunks[0].corpus_type if chunks else None,
            "start_line": lines.first,
            "end_line": lines.last,
            "total_lines": lines.total,
            "lines": [{"number": number, "text": text} for number, text in enumerate(lines.texts, start=lines.first)],
            "chunks": [each.id for each in chunks],
            "stale": self.engine.stale([info.id]).get(info.id),
            "absolute_path": str(Path(source.root) / info.path) if self.access.absolute_paths else None,
        }

    def document(self, path: str) -> tuple[DocumentInfo, Source]:
        """Find a document by `source/path`, or by a path that only one source has."""
        path = _inside(path)
        reader, sources = self.engine.reader(), {each.name: each for each in self.engine.sources()}
        name, _, rest = path.partition("/")
        wanted = [(name, rest)] if name in sources else []
        wanted += [(each, path) for each in sources]
        found = [info for place in wanted if (info := reader.document(document_id(*place))) is not None]
        if not found:
            raise NotFoundError(f"{path} is not in the index; GET /v1/sources lists the sources")
        if len(found) > 1 and found[0].source != name:
            places = ", ".join(f"{each.source}/{each.path}" for each in found)
            raise BadRequestError(f"{path} exists in several sources; choose one of {places}")
        return found[0], sources[found[0].source]

    def symbols(self, name: str, kind: str | None = None, limit: int = 20) -> Object:
        """Find the definitions of a name, as `dowse symbols --json` prints them."""
        found = self.engine.symbols(name, kind=kind, limit=limit)
        return {"name": name, "symbols": [symbol_object(each) for each in found]}

    def outline(self, path: str, depth: int | None = None) -> Object:
        """List the symbols or headings of a file or folder, as `dowse outline --json` prints them."""
        found = self.engine.outline(_inside(path), depth=depth)
        return {"target": path, "documents": wire.plain(found)}

    def related(self, target: str, relations: Sequence[str] = (), limit: int = 30) -> Object:
        """List the neighbours of a chunk id, `source/path[:line]` or symbol, as `dowse related --json` prints them."""
        return {"target": target} | related_object(
            self.engine.related(_inside(target), relations=relations, limit=limit)
        )

    def services(self) -> Object:
        graph = self.engine.services()
        return {"services": wire.plain(graph.services), "edges": wire.plain(graph.edges)}

    def service(self, name: str, depth: int = 1) -> Object:
        """Read a service: neighbours within `depth` steps, all dependents and all dependencies."""
        graph = self.engine.services()
        radius, downstream = graph.blast_radius(name), graph.downstream(name)
        context = graph.neighbourhood([name], depth)[name]
        row: Object = wire.plain(context)
        own = next(each for each in graph.services if each.name == name)
        return {"service": wire.plain(own)} | row | {"blast_radius": radius, "downstream": downstream}

    def sources(self) -> Object:
        return {"sources": self.status()["sources"]}

    def status(self) -> Object:
        row: Object = wire.plain(self.engine.status())
        if not self.access.absolute_paths:
            row["path"] = None
            row["sources"] = [source | {"root": None} for source in row["sources"]]
        return row

    def feedback(self, query: str, target: str, grade: float) -> Object:
        """Store a judgment of a result for `dowse eval --judged` and `dowse tune`; a grade above 0 means relevant."""
        from dowse.evaluate.judgments import keep
        from dowse.store.sql.judgments import Judgment

        self._check_write("store judgments")
        if not query.strip():
            raise BadRequestError("missing field 'query': the text of the query being judged")
        if not (isfinite(grade) and 0 <= grade <= 3):
            raise BadRequestError(f"invalid grade {grade}; send a number from 0 (wrong) to 3 (exactly right)")
        chunk = self.engine.reader().get([_checked_id(target)]).get(target)
        if chunk is None:
            raise NotFoundError(f"no chunk {target}; send the id of a chunk from a search result")
        keep(self.engine.path, [Judgment(query, target, grade, chunk.source_uri, datetime.now(UTC))])
        return {"query": query, "target": target, "grade": grade, "source_uri": chunk.source_uri}

    def start_index(self, paths: Sequence[str] = (), *, embed: bool = True) -> Object:
        """Start a job that updates all sources, or those given as `source` or `source/path`; no new folders."""
        self._check_write("index")
        sources = {each.name: each for each in self.engine.sources()}
        if not sources:
            raise BadRequestError("the index has no sources; run 'dowse index PATH' on the server")
        shown = tuple(paths) or tuple(sources)
        roots = [os.path.realpath(each.path) for each in self.engine.asked() if each.rev is None]
        real = tuple(place for each in paths for place in _real_paths(_inside(each), sources, roots))
        return self._job(self._jobs.start(IndexTask(str(self.engine.path), real, embed, self._environment()), shown))

    def _environment(self) -> dict[str, str]:
        """Return the settings as environment variables of a job."""
        from dowse.config import SETTINGS, as_texts

        texts = as_texts(self.engine.config)
        return {each.variable: texts[each.name] for each in SETTINGS if texts[each.name]}

    def put_documents(self, rows: Iterable[NewDocument | bytes]) -> Object:
        """Add or replace documents; durable and searchable by words when it returns. A job embeds them."""
        self._check_write("add documents")
        report = self._writing_engine().add(rows, embed=False, wait_s=WRITE_WAIT_S)
        if report.pending and self.engine.config.embedder != "none":
            self._jobs.start_embedding(
                IndexTask(str(self.engine.path), (), environment=self._environment(), kind="embed")
            )
        problems = [{"path": each.path, "reason": self.public_text(each.reason)} for each in report.problems]
        return wire.report_object(report) | {"problems": problems}

    def remove_document(self, name: str, source: str) -> Object:
        """Remove a document that was added by id."""
        self._check_write("remove documents")
        known = next((each for each in self.engine.sources() if each.name == source), None)
        if known is not None and not known.root.startswith(ADDED_ROOT):
            raise BadRequestError(f"the documents of {source!r} are files; run 'dowse remove' on the server")
        if self.engine.reader().document(key := document_id(source, name)) is None:
            raise NotFoundError(f"no document {name!r} in source {source!r}")
        return {"removed": self._writing_engine().remove([key], missing_ok=True, wait_s=WRITE_WAIT_S)}

    def _writing_engine(self) -> Engine:
        """Return the engine for writes, opened by the first of them. It holds the lock of the writer only in a call."""
        import dowse

        with self._opening:
            if self._writing is None:
                path, config = self.engine.path, self.engine.config
                self._writing = dowse.open(path, create=False, config=config, embedder=None)
            return self._writing

    def jobs(self) -> Object:
        """List jobs, newest first."""
        return {"jobs": [self._job(each) for each in self._jobs.all()]}

    def job(self, job_id: str) -> Object:
        return self._job(self._jobs.get(job_id))

    def error(self, error: DowseError) -> Object:
        """Make a problem document (RFC 9457) of an error."""
        kind = type(error)
        return {
            "type": f"urn:dowse:error:{kind.__name__}",
            "title": (kind.__doc__ or kind.__name__).strip().splitlines()[0],
            "status": wire.outcome(error).http_status,
            "detail": self.public_text(str(error)),
        }

    def public_text(self, text: str) -> str:
        """Hide the paths of this machine in a message, unless the operator allows them."""
        if self.access.absolute_paths:
            return text
        try:
            sources = self.engine.sources()
        except DowseError:  # the message may report just that; roots are then shown by their last part
            sources = ()
        return hide_paths(text, self.engine.path, sources)

    def _result(self, result: QueryResult) -> Object:
        notes = tuple(Degradation(each.stage, self.public_text(each.reason)) for each in result.degraded)
        return wire.result_object(replace(result, degraded=notes) if notes else result)

    def _job(self, job: Job) -> Object:
        row: Object = wire.plain(job)
        if job.error:
            row["error"] = self.public_text(job.error)
        if job.report:
            problems = [each | {"path": self.public_text(each["path"])} for each in job.report["problems"]]
            row["report"] = dict(job.report) | {"problems": problems}
        return row

    def _check_write(self, action: str) -> None:
        if not self.access.write:
            raise NotAllowedError(f"this server is read-only; restart it with --allow-write to {action}")


def hide_paths(text: str, index: Path, sources: Sequence[Source]) -> str:
    """Replace roots by the names of their sources; other absolute paths keep only their last part."""
    for source in sorted(sources, key=lambda each: -len(each.root)):
        text = text.replace(source.root.rstrip("/") + "/", source.name + "/").replace(source.root, source.name)
    text = text.replace(str(index), "the index")
    return _ABSOLUTE.sub(lambda found: os.path.basename(found[0].rstrip("/")) or "/", text)


def _inside(path: str) -> str:
    """Return a path inside a source; refuse any form that could name a path of this machine."""
    if path.startswith(("/", "~")) or "\0" in path or ".." in path.split("/"):
        raise BadRequestError("invalid path; write it as source/path, without leading / or ~ and without ..")
    return path.removeprefix("./").rstrip("/")


def _checked_id(chunk_id: str) -> str:
    if len(chunk_id) != _ID_DIGITS or any(each not in "0123456789abcdef" for each in chunk_id):
        raise NotFoundError(f"{chunk_id[:40]!r} is not a chunk id; ids have {_ID_DIGITS} hexadecimal digits")
    return chunk_id


def _real_paths(path: str, sources: dict[str, Source], roots: Sequence[str]) -> list[str]:
    """Return the real path of an indexed path if it lies in an indexed root, else the roots inside it."""
    name, _, rest = path.partition("/")
    source = sources.get(name)
    if source is None:
        raise NotFoundError(
            f"no source {name!r}; GET /v1/sources lists them; run 'dowse index PATH' on the server to add one"
        )
    root = os.path.realpath(source.root)
    real = os.path.realpath(os.path.join(root, rest))
    if any(is_inside(real, each) for each in roots):
        return [real]
    found = [each for each in roots if is_inside(each, real)] if is_inside(real, root) else []
    if not found:
        raise BadRequestError(f"{path} is not in the index; run 'dowse index PATH' on the server to add it")
    return found
