"""The front door: paths and questions go in, reports and results come out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from dowse.config import Config
from dowse.errors import ModelUnavailableError, NotFoundError
from dowse.tracing import tracing
from dowse.types import Chunk, DocumentInfo, QueryRequest, QueryResult, ScoredChunk, Source
from dowse.wiring import Collaborators

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dowse.filters import Filter
    from dowse.ingest.links.by_llm import LlmOptions, LlmReport
    from dowse.ingest.links.linker import LinkReport
    from dowse.ingest.pipeline import IndexOptions
    from dowse.ingest.sources.requests import Asked
    from dowse.lookup.outline import Outline
    from dowse.lookup.references import References
    from dowse.lookup.related import Related
    from dowse.lookup.symbols import Symbol
    from dowse.ports import Embedder, Reporter, StoreReader
    from dowse.query.context import Context
    from dowse.query.explain.explanation import WhyNot
    from dowse.query.facets import Survey
    from dowse.query.pipeline import Prepared
    from dowse.query.stages.services import ServiceGraph
    from dowse.query.stream import Event
    from dowse.reports import Check, IndexReport, Status
    from dowse.store.snapshot import Snapshot
    from dowse.store.writer import EmbeddedWriter

WAIT_S = 24 * 3600.0  # "wait for the other writer" is not "for ever"
CONTEXT_TOKENS = 4000  # chosen: a few passages for a small model, and cheap for a large one
_HYDRATE_TRIES = 3  # a query that meets a publication is asked again of the newer moment
_QUESTION_WORDS = 20_000  # that are remembered, 3 MB; a server that is asked for years must not remember all


def open(
    path: str | Path,
    *,
    read_only: bool = False,
    create: bool = True,
    config: Config | None = None,
    embedder: Embedder | str | None = "auto",
    lives_on: bool = False,
) -> Engine:
    """Open the index in a folder, made on first use unless `create` is False.

    `embedder`: a model's name, folder or hub id as for `DOWSE_EMBEDDER`; "auto" takes the model the index was embedded
    with, else the default; None or "none" searches by words alone; or any object that satisfies `ports.Embedder`.
    `lives_on`: this process will answer many questions, so a second spent on loading the fast kernel pays.
    """
    place = Path(path).expanduser()
    return Engine(place, read_only=read_only, create=create, config=config, embedder=embedder, lives_on=lives_on)


class Engine:
    """An index folder and all that can be done with it. A context manager; safe to query from several threads."""

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool = False,
        create: bool = True,
        config: Config | None = None,
        embedder: Embedder | str | None = "auto",
        lives_on: bool = False,
    ) -> None:
        from dowse.store.embedded import EmbeddedStore
        from dowse.store.kernels.numpy_kernel import open_kernel
        from dowse.tokenizer import Tokenizer

        self.path = path
        self.config = config or Config()
        kernel = open_kernel(self.config.kernel, lives_on=lives_on)
        self._store = EmbeddedStore(path, read_only=read_only, create=create, kernel=kernel)
        self._beside = Collaborators(self._store, self.config, "none" if embedder is None else embedder)
        self._tokenizer = Tokenizer(_QUESTION_WORDS)
        self._executor = ThreadPoolExecutor(max_workers=3, thread_name_prefix="dowse-leg")
        self._tracing = tracing()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._executor.shutdown()
        self._store.close()

    # --- asking -------------------------------------------------------------------------------------

    def query(self, text: str | QueryRequest, **fields: object) -> QueryResult:
        """Answer a question. Fields are those of QueryRequest, and win over the request's own."""
        from dowse.query.pipeline import finished

        request = self._beside.request(text, fields)
        for left in reversed(range(_HYDRATE_TRIES)):
            reader = self._store.reader()
            result = finished(self._prepared(request, reader, only_shown=True), self._executor)
            dropped = dict(result.query_metadata.counts).get("dropped", 0)
            if not dropped or not left or self._store.reader() is reader:
                break
        result = self._with_staleness(result, reader)
        self._tracing.tell(result)
        return result

    def retrieve(self, query: str, top_k: int | None = None) -> Sequence[ScoredChunk]:
        """The hits alone: an engine is a `Retriever`."""
        return self.query(query, **({} if top_k is None else {"top_k": top_k})).chunks

    def stream(self, text: str | QueryRequest, **fields: object) -> Iterator[Event]:
        """The answer as it grows: first hits, later orders, and last the result that `query` gives."""
        from dowse.query.stream import stream

        request = self._beside.request(text, fields)
        reader = self._store.reader()
        for event in stream(self._prepared(request, reader, only_shown=True, early=True), self._executor):
            dropped = dict(event.result.query_metadata.counts).get("dropped", 0)
            if event.kind == "done" and dropped and self._store.reader() is not reader:
                yield replace(event, result=self.query(request))  # it met a publication: the newer moment is asked
                return
            event = replace(event, result=self._with_staleness(event.result, reader))
            if event.kind == "done":
                self._tracing.tell(event.result)
            yield event

    def survey(self, text: str | QueryRequest, *, facets: bool = False, **fields: object) -> Survey:
        """What `query` gives, with all that was ranked behind it and, if asked, counts by field."""
        from dowse.query.facets import survey

        reader = self._store.reader()
        found = survey(self._prepared(self._beside.request(text, fields), reader), self._executor, facets=facets)
        whole = self._with_staleness(replace(found.result, chunks=found.ranked), reader)
        shown = replace(found.result, chunks=whole.chunks[: len(found.result.chunks)])
        self._tracing.tell(shown)
        return replace(found, result=shown, ranked=whole.chunks)

    def context(self, text: str | QueryRequest, budget_tokens: int = CONTEXT_TOKENS, **fields: object) -> Context:
        """Numbered, cited passages that answer a question and fit a budget; for a language model to read."""
        from dowse.filters import from_request
        from dowse.query.context import assembled

        request = self._beside.request(text, fields)
        return assembled(self.query(request), self._store.reader(), budget_tokens, where=from_request(request))

    def explain(self, text: str | QueryRequest, target: str, **fields: object) -> WhyNot:
        """Why a chunk, FILE:10 or document is not among the hits, and the smallest change that brings it in."""
        from dowse.query.explain.explanation import why_not

        request = self._beside.request(text, fields)
        reader = self._store.reader()
        names = [profile.name for profile in self._beside.parts.profiles]
        return why_not(request, target, self.show(target), lambda asked: self._prepared(asked, reader), names)

    def references(self, name: str, where: Filter = ()) -> References:
        """The lines that hold a name as a whole word, by path and line."""
        from dowse.filters import check
        from dowse.lookup.references import references

        return references(name, self._store.reader(), self._tokenizer, check(where))

    def services(self) -> ServiceGraph:
        """All services and how they call each other."""
        from dowse.query.stages.services import ServiceGraph

        reader = self._store.reader()
        return ServiceGraph(tuple(reader.services()), tuple(reader.service_edges()))

    # --- writing ------------------------------------------------------------------------------------

    def index(
        self,
        paths: Sequence[str | Path] = (),
        *,
        rev: str | None = None,
        archives: bool = False,
        scrub: bool | None = None,
        embed: bool = True,
        wait: bool = False,
        report: Reporter | None = None,
        max_file_bytes: int | None = None,
        llm_summaries: bool = False,
        how: IndexOptions | None = None,
    ) -> IndexReport:
        """Bring files, folders, globs and archives into the index, words first; only what changed is read again.

        Without paths, all that was asked for before. `rev`: a repository as it was then, not checked out. `archives`:
        those in folders are opened as well. `scrub`: pseudonyms for people, from now on or no longer. `llm_summaries`:
        sections and documents are summed up by the language model. `how` has the finer points.
        """
        from dowse.ingest.chunking.summary_llm import LlmSummaries
        from dowse.ingest.pipeline import IndexOptions, index
        from dowse.ingest.privacy.scrub_sources import ScrubOptions
        from dowse.ingest.sources.asked import asked_for

        options = replace(
            how or IndexOptions(max_workers=self.config.threads),
            max_file_bytes=max_file_bytes or self.config.max_file_bytes,
            wait_s=WAIT_S if wait else 0.0,
            embed_threads=self.config.threads,
            kinds=self.config.kinds,
            scrub=ScrubOptions(scrub, self.config.scrub_names),
            summaries=LlmSummaries(self._beside.llm()) if llm_summaries else None,
        )
        embedder = (lambda: self._beside.index_embedder(report)) if embed else None
        asked = asked_for(self._store, paths, rev, archives=archives)
        return index(self._store, asked, options, report, embedder)

    def embed(self, report: Reporter | None = None) -> IndexReport:
        """Work off the backlog of chunks that have no vector yet."""
        from dowse.ingest.embed import embed_backlog
        from dowse.reports import IndexReport

        embedder = self._beside.index_embedder(report)
        if embedder is None:
            raise ModelUnavailableError("no embedding model is configured; give one with --embedder")
        with self._writer() as writer:
            writer.use_model(embedder.model, embedder.dimension)
            done = embed_backlog(writer, embedder, report, threads=self.config.threads)
            return IndexReport(embedded=done, pending=writer.pending_count())

    def reembed(self, embedder: str | Embedder, report: Reporter | None = None) -> IndexReport:
        """Change to another model. The old vectors serve until the new ones are complete."""
        from dowse.ingest.embed import embed_backlog
        from dowse.reports import IndexReport

        chosen = self._beside.other_embedder(embedder, report)
        with self._writer() as writer:
            writer.replace_model(chosen.model, chosen.dimension)
            done = embed_backlog(writer, chosen, report, threads=self.config.threads)
            left = writer.pending_count()
            if not left:
                writer.serve_model()
        self._beside = Collaborators(self._store, self.config, chosen)
        return IndexReport(embedded=done, pending=left)

    def link(self, *, again: bool = False) -> LinkReport:
        """Tie chunks to what they speak of; `index` does it for what it reads. `again`: for all documents."""
        from dowse.ingest.links.linker import MAKER, link

        with self._writer() as writer:
            if again:
                writer.relink(MAKER, [info.id for info in self._store.documents()])
            return link(self._store, writer)

    def link_by_llm(self, options: LlmOptions, report: Reporter | None = None) -> LlmReport:
        """Let the configured language model find further edges; resumable."""
        from dowse.ingest.links.by_llm import link_by_llm

        llm = self._beside.llm()
        with self._writer() as writer:
            return link_by_llm(self._store, writer, llm, options, report)

    def remove(self, targets: Sequence[str]) -> int:
        """Take documents out: by path, folder, `source/path` glob or document id. The files stay where they are."""
        from dowse.ingest.services.graph import link_services
        from dowse.lookup.locate import documents_matching

        found = {info.id for target in targets for info in documents_matching(self._store, target)}
        if not found:
            raise NotFoundError(f"no indexed document matches {' '.join(targets)}; `dowse status` lists the sources")
        with self._writer() as writer:
            removed = writer.remove(sorted(found))
            link_services(writer)
            left = {info.source for info in self._store.documents()}
            for source in self._store.sources():
                if source.name not in left:
                    writer.remove_source(source.name)
        return removed

    def rebuild(self, report: Reporter | None = None) -> None:
        """Make the derived parts anew from the truth."""
        with self._writer() as writer:
            writer.compact()

    # --- looking ------------------------------------------------------------------------------------

    def status(self) -> Status:
        """What the index holds, and what of it is behind its sources."""
        from dowse.lookup.status import status

        return status(self._store)

    def verify(self, deep: bool = False) -> Sequence[Check]:
        """What is wrong with the index, if anything. Changes nothing."""
        from dowse.store.verify import verify

        return list(verify(self._store, deep=deep))

    def show(self, target: str) -> tuple[Chunk, ...]:
        """The chunks behind an id, a FILE, FILE:10 or FILE:10-40."""
        from dowse.lookup.locate import chunks_at

        return chunks_at(self._store, target)

    def symbols(self, name: str, *, kind: str | None = None, limit: int = 20) -> tuple[Symbol, ...]:
        """Where a name is defined: exact matches first, then by case, by start, by its words."""
        from dowse.lookup.symbols import symbols

        return symbols(name, self._store.reader(), self._tokenizer, kind=kind, limit=limit)

    def documents(self, target: str) -> list[DocumentInfo]:
        """What is indexed at a file, folder, `source/path`, glob or document id; none is an empty list."""
        from dowse.lookup.locate import documents_matching

        return documents_matching(self._store, target)

    def outline(self, target: str, *, depth: int | None = None) -> tuple[Outline, ...]:
        """What stands in a file, or in every file of a folder or glob, in order."""
        from dowse.lookup.locate import documents_matching
        from dowse.lookup.outline import outline

        found = documents_matching(self._store, target)
        if not found:
            raise NotFoundError(f"nothing indexed at {target}; `dowse status` lists the sources")
        reader = self._store.reader()
        return tuple(outline(info, reader, depth=depth) for info in found)

    def related(self, target: str, *, relations: Collection[str] = (), limit: int = 50) -> Related:
        """What edges tie a chunk's id, FILE, FILE:10 or SYMBOL to, in words."""
        from dowse.lookup.related import related

        return related(self._meant(target), self._store.reader(), relations=relations, limit=limit)

    def _meant(self, target: str) -> tuple[Chunk, ...]:
        """The chunks behind a place, or those that define a name."""
        try:
            return self.show(target)
        except NotFoundError as err:
            found = [each.chunk for each in self.symbols(target) if each.match in ("exact", "case")]
            if not found:
                raise NotFoundError(
                    f"no file, line or symbol {target!r} is indexed; `dowse symbols {target}` finds similar names"
                ) from err
            return tuple(found)

    def sources(self) -> Sequence[Source]:
        return self._store.sources()

    def asked(self) -> Sequence[Asked]:
        """What `index` was asked for, and is asked for again without paths."""
        from dowse.ingest.sources.asked import remembered

        return remembered(self._store)

    def reader(self) -> Snapshot:
        """The newest moment of the store, to look things up by their ids."""
        return self._store.reader()

    def stale(self, document_ids: Collection[str]) -> dict[str, bool]:
        """By document, whether its file changed or went since it was indexed."""
        from dowse.lookup.locate import staleness

        return staleness(self._store, self._store.reader(), document_ids)

    # --- inside -------------------------------------------------------------------------------------

    @contextmanager
    def _writer(self) -> Iterator[EmbeddedWriter]:
        writer = self._store.writer()
        try:
            yield writer
        finally:
            writer.close()

    def _prepared(self, request: QueryRequest, reader: StoreReader, **how: bool) -> Prepared:
        from dowse.query.pipeline import prepared

        embedder, note = self._beside.query_embedder(reader.stats, request)
        parts = self._beside.parts_for(request)
        return prepared(request, reader, embedder, self._tokenizer, dense_note=note, parts=parts, **how)

    def _with_staleness(self, result: QueryResult, reader: StoreReader) -> QueryResult:
        from dowse.lookup.locate import staleness
        from dowse.query.result import changed

        stale = staleness(self._store, reader, {chunk.document_id for chunk in result.chunks})
        chunks = tuple(changed(chunk, stale=stale.get(chunk.document_id)) for chunk in result.chunks)
        return replace(result, chunks=chunks)
