"""What all faces that serve share: questions and names enter, JSON objects in the wire format leave.

HTTP, the page and MCP call this and nothing below it, so that they cannot disagree. It opens the index read-only and
follows what other processes publish. Answers name sources and paths inside them; where those lie on this machine is
told only when the operator allows it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from dowse.errors import BadRequestError, DowseError, NotAllowedError, NotFoundError
from dowse.identity import document_id, text_hash
from dowse.ingest.sources.requests import is_inside
from dowse.lookup.lines import lines_of
from dowse.serve.jobs import Job, Jobs, Work
from dowse.serve.paging import FIRST, Rankings
from dowse.serve.privacy import Privacy
from dowse.serve.wire import result as wire
from dowse.serve.wire.lookup import outline_object, related_object, symbol_object
from dowse.serve.wire.result import Object
from dowse.types import Degradation, DocumentInfo, QueryRequest, QueryResult, Source

if TYPE_CHECKING:
    from dowse.config import Config
    from dowse.engine import Engine

_ID_DIGITS = 16


@dataclass(frozen=True)
class Access:
    """What the operator allows."""

    write: bool = False  # index jobs and judgments
    absolute_paths: bool = False  # where files lie on this machine


@dataclass(frozen=True)
class Backend:
    """One index, and all that may be asked of it. Safe to call from several threads."""

    engine: Engine
    access: Access = Access()
    _rankings: Rankings = field(default_factory=Rankings, repr=False)
    _jobs: Jobs = field(default_factory=Jobs, repr=False)

    @classmethod
    def open(cls, place: Path, config: Config, access: Access | None = None, *, lives_on: bool = False) -> Backend:
        """NoIndexError when there is no index at that place. `lives_on`: many questions will be asked of it."""
        import dowse

        engine = dowse.open(
            place, read_only=True, create=False, config=config, embedder=config.embedder, lives_on=lives_on
        )
        return cls(engine, access or Access())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._jobs.close()
        self.engine.close()

    # --- asking -------------------------------------------------------------------------------------

    def query(self, request: QueryRequest, *, cursor: str | None = None, facets: bool = False) -> Object:
        """The object that `dowse search --json` prints. With a cursor also `next_cursor`, null at the end; with facets
        also `facets`: by field and value, how many of the candidates have it.
        """
        if cursor is None and not facets:
            return self._result(self.engine.query(request))
        page = self._rankings.page(
            request,
            FIRST if cursor is None else cursor,
            self.moment(),
            lambda: self.engine.survey(request, facets=True),
        )
        shown = replace(page.survey.result, chunks=page.survey.ranked[page.first : page.last])
        row = self._result(shown)
        if facets:
            row["facets"] = {name: dict(counts) for name, counts in page.survey.facets}
        if cursor is not None:
            row["next_cursor"] = None if page.following is None else str(page.following)
        return row

    def stream(self, request: QueryRequest) -> Iterator[Object]:
        """The answer as it grows; closing the iterator stops the work."""
        for event in self.engine.stream(request):
            yield {"event": event.kind, "stage": event.stage, "result": self._result(event.result)}

    def explain(self, request: QueryRequest, target: str) -> Object:
        """Where a chunk (by id), a `source/path` or a `source/path:line` stands, and why it does not come."""
        return wire.explain_object(self.engine.explain(request, _inside(target)))

    # --- looking ------------------------------------------------------------------------------------

    def moment(self) -> str:
        """A name for what is searchable now; another one when any process has published something."""
        return text_hash(repr(self.engine.reader().place.stamp()))[:_ID_DIGITS]

    def chunk(self, chunk_id: str) -> Object:
        """With what it stands in, document first, and whether its file has changed since."""
        reader = self.engine.reader()
        chunk = reader.get([_checked_id(chunk_id)]).get(chunk_id)
        if chunk is None:
            raise NotFoundError(f"no chunk {chunk_id}; its file may have changed since, so search again")
        parents: list[Object] = []
        above = chunk.parent_id
        while above is not None and (parent := reader.get([above]).get(above)) is not None:
            parents.insert(0, {"id": parent.id, "level": parent.level, "text": parent.text, "summary": parent.summary})
            above = parent.parent_id
        stale = self.engine.stale([chunk.document_id]).get(chunk.document_id)
        return wire.chunk_object(chunk) | {"parents": parents, "stale": stale}

    def file(self, path: str, start: int | None = None, end: int | None = None) -> Object:
        """Lines of an indexed document as they were indexed; both ends included, from 1."""
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
            "absolute_path": self._privacy.place(source, info.path),
        }

    def document(self, path: str) -> tuple[DocumentInfo, Source]:
        """By `source/path`, or by a path that only one source has."""
        path = _inside(path)
        reader, sources = self.engine.reader(), {each.name: each for each in self.engine.sources()}
        name, _, rest = path.partition("/")
        wanted = [(name, rest)] if name in sources else []
        wanted += [(each, path) for each in sources]
        found = [info for place in wanted if (info := reader.document(document_id(*place))) is not None]
        if not found:
            raise NotFoundError(f"nothing indexed at {path}; GET /v1/sources lists the sources, a search the paths")
        if len(found) > 1 and found[0].source != name:
            places = ", ".join(f"{each.source}/{each.path}" for each in found)
            raise BadRequestError(f"{path} is in several sources; name one of {places}")
        return found[0], sources[found[0].source]

    def symbols(self, name: str, kind: str | None = None, limit: int = 20) -> Object:
        """Where a name is defined, as `dowse symbols --json` prints it; an empty list when nowhere."""
        found = self.engine.symbols(name, kind=kind, limit=limit)
        return {"name": name, "symbols": [symbol_object(each) for each in found]}

    def outline(self, path: str, depth: int | None = None) -> Object:
        """What stands in a file or folder, as `dowse outline --json` prints it."""
        found = self.engine.outline(_inside(path), depth=depth)
        return {"target": path, "documents": [outline_object(each) for each in found]}

    def related(self, target: str, relations: Sequence[str] = (), limit: int = 30) -> Object:
        """What edges tie a chunk's id, `source/path`, `source/path:line` or a symbol to, as `dowse related --json`."""
        return {"target": target} | related_object(
            self.engine.related(_inside(target), relations=relations, limit=limit)
        )

    def services(self) -> Object:
        graph = self.engine.services()
        return {"services": wire.plain(graph.services), "edges": wire.plain(graph.edges)}

    def service(self, name: str, depth: int = 1) -> Object:
        """Its neighbours within `depth` steps, all who need it, and all whom it needs."""
        graph = self.engine.services()
        radius, downstream = graph.blast_radius(name), graph.downstream(name)
        ((_, context),) = graph.neighbourhood([name], depth)
        row: Object = wire.plain(context) | {"edges": [dict(edge) for edge in context.edges]}
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

    # --- writing ------------------------------------------------------------------------------------

    def feedback(self, query: str, target: str, grade: float) -> Object:
        """Keep what someone said of a hit, for `dowse eval --judged` and `dowse tune`; above 0 is right."""
        from dowse.evaluate.feedback import keep
        from dowse.store.sql.judgments import Judgment

        self._check_write("judgments are kept")
        if not query.strip():
            raise BadRequestError("which query was judged? give its text as `query`")
        if not (isfinite(grade) and 0 <= grade <= 3):
            raise BadRequestError(f"grade is {grade}; give a number from 0 (wrong) to 3 (exactly right)")
        chunk = self.engine.reader().get([_checked_id(target)]).get(target)
        if chunk is None:
            raise NotFoundError(f"no chunk {target}; judge a chunk by the id that a search gave")
        keep(self.engine.path, [Judgment(query, target, grade, chunk.source_uri, datetime.now(UTC))])
        return {"query": query, "target": target, "grade": grade, "source_uri": chunk.source_uri}

    def start_index(self, paths: Sequence[str] = (), *, embed: bool = True) -> Object:
        """A job that brings the index up to date: all that it was ever asked to hold, or some of it, named as `source`
        or `source/path`. New places are indexed on the server itself.
        """
        from dowse.config import SETTINGS, as_texts

        self._check_write("files are indexed")
        sources = {each.name: each for each in self.engine.sources()}
        if not sources:
            raise BadRequestError("the index knows no source yet; on the server, type: dowse index PATH")
        shown = tuple(paths) or tuple(sources)
        asked = [os.path.realpath(each.path) for each in self.engine.asked() if each.rev is None]
        real = tuple(place for each in paths for place in _real_paths(_inside(each), sources, asked))

        texts = as_texts(self.engine.config)
        environment = {each.variable: texts[each.name] for each in SETTINGS if texts[each.name]}
        return self._job(self._jobs.start(Work(self.engine.path, real, embed, environment), shown))

    def jobs(self) -> Object:
        """Newest first."""
        return {"jobs": [self._job(each) for each in self._jobs.all()]}

    def job(self, job_id: str) -> Object:
        return self._job(self._jobs.get(job_id))

    def job_events(self, job_id: str) -> Iterator[Object]:
        """Every change of a job from now on, until it is over."""
        return (self._job(each) for each in self._jobs.follow(job_id))

    # --- telling ------------------------------------------------------------------------------------

    def error(self, error: DowseError) -> Object:
        """An error as RFC 9457 has it, from the one table of errors."""
        return wire.problem_object(error) | {"detail": self.told(str(error))}

    def told(self, text: str) -> str:
        """A message for those who ask: without places of this machine, unless they may be told."""
        try:
            sources = self.engine.sources()
        except DowseError:  # the message may be about just that; other places are then shown by their last part alone
            sources = ()
        return self._privacy.text(text, sources)

    # --- inside -------------------------------------------------------------------------------------

    @property
    def _privacy(self) -> Privacy:
        return Privacy(self.engine.path, self.access.absolute_paths)

    def _result(self, result: QueryResult) -> Object:
        notes = tuple(Degradation(each.stage, self.told(each.reason)) for each in result.degraded)
        return wire.result_object(replace(result, degraded=notes) if notes else result)

    def _job(self, job: Job) -> Object:
        row: Object = wire.plain(job)
        if job.error:
            row["error"] = self.told(job.error)
        if job.report:
            problems = [each | {"path": self.told(each["path"])} for each in job.report["problems"]]
            row["report"] = dict(job.report) | {"problems": problems}
        return row

    def _check_write(self, what: str) -> None:
        if not self.access.write:
            raise NotAllowedError(f"this server is read-only; {what} only where it was started with: --allow-write")


def _inside(path: str) -> str:
    """A place inside a source. Anything that could mean a place of this machine is refused, whatever it leads to."""
    if path.startswith(("/", "~")) or "\0" in path or ".." in path.split("/"):
        raise BadRequestError("a path is given as source/path, as answers have it; no / or ~ before it, no .. in it")
    return path.removeprefix("./").rstrip("/")


def _checked_id(chunk_id: str) -> str:
    if len(chunk_id) != _ID_DIGITS or any(each not in "0123456789abcdef" for each in chunk_id):
        raise NotFoundError(f"{chunk_id[:40]!r} is no chunk's id; ids have {_ID_DIGITS} hexadecimal digits")
    return chunk_id


def _real_paths(path: str, sources: dict[str, Source], asked: Sequence[str]) -> list[str]:
    """Where an indexed place lies: itself, if it is part of what was asked for, else the parts of it that were."""
    name, _, rest = path.partition("/")
    source = sources.get(name)
    if source is None:
        raise NotFoundError(f"no source {name!r}; GET /v1/sources lists them; add one on the server: dowse index PATH")
    root = os.path.realpath(source.root)
    real = os.path.realpath(os.path.join(root, rest))
    if any(is_inside(real, each) for each in asked):
        return [real]
    found = [each for each in asked if is_inside(each, real)] if is_inside(real, root) else []
    if not found:
        raise BadRequestError(f"{path} was never indexed; do that on the server itself: dowse index PATH")
    return found
