"""Engine: the public entry point to index files, to query them and to look things up."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Self

import msgspec

from dowse.config import Config
from dowse.errors import CorruptIndexError, ModelUnavailableError, NotFoundError
from dowse.query.aio import AsyncStream
from dowse.tracing import tracing
from dowse.types import Chunk, DocumentInfo, QueryRequest, QueryResult, ScoredChunk, Source
from dowse.wiring import Components

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dowse.filters import Filter
    from dowse.ingest.documents import NewDocument
    from dowse.ingest.links.by_llm import LlmOptions, LlmReport
    from dowse.ingest.links.linker import LinkReport
    from dowse.ingest.pipeline import IndexOptions
    from dowse.ingest.sources.requests import IndexRequest
    from dowse.lookup.outline import DocumentOutline
    from dowse.lookup.references import References
    from dowse.lookup.related import RelatedChunks
    from dowse.lookup.symbols import SymbolMatch
    from dowse.ports import Embedder, Reporter, SearchLeg, StoreReader
    from dowse.query.context import Context
    from dowse.query.explain.explanation import Explanation
    from dowse.query.facets import FacetedResult
    from dowse.query.pipeline import PreparedQuery
    from dowse.query.stages.services import ServiceGraph
    from dowse.query.stream import Event
    from dowse.reports import Check, IndexReport, Status
    from dowse.store.snapshot import Snapshot

WAIT_S = 24 * 3600.0  # for another writer; chosen: a job that waits longer has failed
CONTEXT_TOKENS = 4000  # chosen: a few passages for a small model, cheap for a large one
_HYDRATE_TRIES = 3  # a query that loses hits to an index update is repeated on the newer snapshot
_QUESTION_WORDS = 20_000  # cached, 3 MB; a bound for servers that run for years


class Engine(AsyncStream):
    """An index folder and its operations. A context manager; safe to query from several threads."""

    def __init__(
        self,
        path: str | Path,
        *,
        read_only: bool = False,
        create: bool = True,
        config: Config | None = None,
        embedder: Embedder | str | None = "auto",
        legs: Sequence[SearchLeg] = (),
    ) -> None:
        """Open the index in a folder; create it on first use unless `create` is False.

        `embedder`: the name, folder or hub id of a model as for `DOWSE_EMBEDDER`; "auto" uses the model of the index,
        else the default; None or "none" searches words only; or any object that satisfies `ports.Embedder`.
        `legs`: further ways to find chunks (`ports.SearchLeg`).
        """
        from dowse.store.embedded import EmbeddedStore
        from dowse.store.kernels.numpy_kernel import open_kernel
        from dowse.tokenizer import Tokenizer

        self.path = Path(path).expanduser()
        self.config = config or Config()
        kernel = open_kernel(self.config.kernel)
        self._store = EmbeddedStore(self.path, read_only=read_only, create=create, kernel=kernel)
        self._fusion = kernel.fusion
        spec = "none" if embedder is None else embedder
        self._legs = tuple(legs)
        self._components = Components(self._store, self.config, spec, kernel.fusion, self._legs)
        self._tokenizer = Tokenizer(_QUESTION_WORDS)
        self._executor = ThreadPoolExecutor(max_workers=3 + len(self._legs), thread_name_prefix="dowse-leg")
        self._tracing = tracing()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        self._executor.shutdown()
        self._store.close()

    def query(self, text: str | QueryRequest, **fields: object) -> QueryResult:
        """Answer a query. `fields` are those of QueryRequest, and override the request's own."""
        from dowse.query.pipeline import finished

        request = self._components.request(text, fields)
        for left in reversed(range(_HYDRATE_TRIES)):
            reader = self._store.reader()
            result = finished(self._prepared(request, reader, only_shown=True), self._executor)
            if not self._lost(result, reader) or not left:
                break
        self._tracing.report(result)
        return result

    def retrieve(self, query: str, top_k: int | None = None, **fields: object) -> Sequence[ScoredChunk]:
        """Return the hits alone: an engine is a `Retriever`."""
        return self.query(query, **(fields if top_k is None else fields | {"top_k": top_k})).chunks

    def stream(self, text: str | QueryRequest, **fields: object) -> Iterator[Event]:
        """Yield the answer as it grows: first hits, later orders, and last the result that `query` returns."""
        from dowse.query.stream import stream

        request = self._components.request(text, fields)
        reader = self._store.reader()
        for event in stream(self._prepared(request, reader, only_shown=True, early=True), self._executor):
            if event.kind == "done" and self._lost(event.result, reader):
                yield type(event)(event.kind, event.stage, self.query(request))  # the index was updated meanwhile
                return
            if event.kind == "done":
                self._tracing.report(event.result)
            yield event

    def query_facets(self, text: str | QueryRequest, *, facets: bool = False, **fields: object) -> FacetedResult:
        """Return the result of `query`, all ranked hits behind it and, on request, counts by field."""
        from dowse.query.facets import faceted

        prepared = self._prepared(self._components.request(text, fields), self._store.reader())
        found = faceted(prepared, self._executor, facets=facets)
        self._tracing.report(found.result)
        return found

    def context(self, text: str | QueryRequest, budget_tokens: int = CONTEXT_TOKENS, **fields: object) -> Context:
        """Return numbered, cited passages within a budget of tokens, for a language model."""
        from dowse.query.context import assembled
        from dowse.query.plan.operators import filter_of

        request = self._components.request(text, fields)
        return assembled(self.query(request), self._store.reader(), budget_tokens, where=filter_of(request))

    def explain(self, text: str | QueryRequest, target: str, **fields: object) -> Explanation:
        """Explain why a chunk id, FILE, FILE:10 or document ranks where it does, or why it is missing.

        A hit comes with its rank and score history; a missing target with the stage that dropped it and, if one of the
        tried changes works, a verified remedy.
        """
        from dowse.query.explain.explanation import explained

        request = self._components.request(text, fields)
        names = [profile.name for profile in self._components.parts.profiles]
        prepare = partial(self._prepared, reader=self._store.reader())
        return explained(request, target, self.show(target), prepare, names)

    def references(self, name: str, where: Filter = ()) -> References:
        """Return the lines that hold a name as a whole word, by path and line."""
        from dowse.filters import check
        from dowse.lookup.references import references

        return references(name, self._store.reader(), self._tokenizer, check(where))

    def services(self) -> ServiceGraph:
        """Return all services and the calls between them."""
        from dowse.query.stages.services import ServiceGraph

        reader = self._store.reader()
        return ServiceGraph(tuple(reader.services()), tuple(reader.service_edges()))

    def index(
        self,
        paths: Sequence[str | Path] = (),
        *,
        rev: str | None = None,
        archives: bool = False,
        pseudonyms: bool | None = None,
        embed: bool = True,
        wait: bool = False,
        report: Reporter | None = None,
        max_file_bytes: int | None = None,
        llm_summaries: bool = False,
        how: IndexOptions | None = None,
    ) -> IndexReport:
        """Index files, folders, globs and archives, words first; read only files that changed.

        Without paths, index all earlier paths again. `rev`: index a repository at a revision, without a checkout.
        `archives`: open archives inside folders. `pseudonyms`: turn them on or off for these sources.
        `llm_summaries`: summarise sections and documents with the language model. `how`: finer options.
        """
        from dowse.ingest.chunking.summary_llm import LlmSummaries
        from dowse.ingest.pipeline import IndexOptions, index
        from dowse.ingest.privacy.pseudonyms import PseudonymOptions
        from dowse.ingest.sources.requests import requests_of

        options = msgspec.structs.replace(
            how or IndexOptions(max_workers=self.config.threads),
            max_file_bytes=max_file_bytes or self.config.max_file_bytes,
            wait_s=WAIT_S if wait else 0.0,
            embed_threads=self.config.threads,
            kinds=self.config.kinds,
            pseudonyms=PseudonymOptions(pseudonyms, self.config.pseudonym_names),
            summaries=LlmSummaries(self._components.llm()) if llm_summaries else None,
        )
        embedder = (lambda: self._components.index_embedder(report)) if embed else None
        asked = self._components.allowed(requests_of(self._store, paths, rev, archives=archives), given=bool(paths))
        return index(self._store, asked, options, report, embedder)

    def embed(self, report: Reporter | None = None, *, for_s: float = inf, wait_s: float = 0.0) -> IndexReport:
        """Embed the chunks that have no vector yet, or as many as `for_s` seconds allow."""
        from dowse.ingest.embed import embed_backlog
        from dowse.reports import IndexReport

        ends_s = monotonic() + for_s
        embedder = self._components.index_embedder(report)
        if embedder is None:
            raise ModelUnavailableError("no embedding model is configured; give one with --embedder")
        with closing(self._store.writer(wait_s=wait_s)) as writer:
            writer.use_model(embedder.model, embedder.dimension)
            threads, stop = self.config.threads, lambda: monotonic() >= ends_s
            done = embed_backlog(writer, embedder, report, threads=threads, stop=stop)
            return IndexReport(embedded=done, pending=writer.pending_count())

    def reembed(self, embedder: str | Embedder, report: Reporter | None = None) -> IndexReport:
        """Change to another model. Queries use the old vectors until the new ones are complete."""
        from dowse.ingest.embed import embed_backlog
        from dowse.reports import IndexReport

        chosen = self._components.other_embedder(embedder, report)
        with closing(self._store.writer()) as writer:
            writer.replace_model(chosen.model, chosen.dimension)
            done = embed_backlog(writer, chosen, report, threads=self.config.threads)
            left = writer.pending_count()
            if not left:
                writer.serve_model()
        self._components = Components(self._store, self.config, chosen, self._fusion, self._legs)
        return IndexReport(embedded=done, pending=left)

    def link(self, *, again: bool = False) -> LinkReport:
        """Link chunks to the symbols, files and services they mention, as `index` does. `again`: for all documents."""
        from dowse.ingest.links.linker import MAKER, link

        with closing(self._store.writer()) as writer:
            if again:
                writer.relink(MAKER, [info.id for info in self._store.documents()])
            return link(self._store, writer)

    def link_by_llm(self, options: LlmOptions, report: Reporter | None = None) -> LlmReport:
        """Find further edges with the configured language model; resumable."""
        from dowse.ingest.links.by_llm import link_by_llm

        llm = self._components.llm()
        with closing(self._store.writer()) as writer:
            return link_by_llm(self._store, writer, llm, options, report)

    def add(
        self, documents: Iterable[NewDocument | Mapping[str, Any] | bytes], *, embed: bool = True, wait_s: float = 0.0
    ) -> IndexReport:
        """Add or replace documents that have no file, by source and id. Words are searchable when vectors start."""
        from dowse.ingest.documents import add_documents

        with closing(self._store.writer(wait_s=wait_s)) as writer:
            done = add_documents(self._store, writer, documents, self.config)
        if not embed or not done.pending or self._components.index_embedder(None) is None:
            return done
        made = self.embed()
        return msgspec.structs.replace(done, embedded=made.embedded, pending=made.pending)

    def remove(self, targets: Sequence[str], *, missing_ok: bool = False, wait_s: float = 0.0) -> int:
        """Remove documents from the index: by path, folder, `source/path` glob or id. Files stay."""
        from dowse.ingest.documents import remove_documents
        from dowse.lookup.locate import documents_matching

        found = {info.id for target in targets for info in documents_matching(self._store, target)}
        if not found and not missing_ok:
            raise NotFoundError(f"no document matches {' '.join(targets)}; run `dowse status` to see the sources")
        with closing(self._store.writer(wait_s=wait_s)) as writer:
            return remove_documents(self._store, writer, found)

    def rebuild(self, report: Reporter | None = None) -> None:
        """Rebuild the search structures from the stored documents."""
        with closing(self._store.writer()) as writer:
            writer.compact()

    def status(self) -> Status:
        """Return the content of the index, and the files that changed since."""
        from dowse.lookup.status import status

        return status(self._store)

    def verify(self, deep: bool = False) -> Sequence[Check]:
        """Check the index and return the findings. Changes nothing."""
        from dowse.store.verify import verify

        return list(verify(self._store, deep=deep))

    def show(self, target: str) -> tuple[Chunk, ...]:
        """Return the chunks of an id, a FILE, FILE:10 or FILE:10-40."""
        from dowse.lookup.locate import chunks_at

        return chunks_at(self._store, target)

    def symbols(self, name: str, *, kind: str | None = None, limit: int = 20) -> tuple[SymbolMatch, ...]:
        """Return the definitions of a name: exact matches first, then by case, by prefix, by words."""
        from dowse.lookup.symbols import symbols

        return symbols(name, self._store.reader(), self._tokenizer, kind=kind, limit=limit)

    def documents(self, target: str = "", *, source: str | None = None) -> list[DocumentInfo]:
        """Return the documents of a file, folder, `source/path`, glob or id; without one all, or those of a source."""
        from dowse.lookup.locate import documents_matching

        return documents_matching(self._store, target) if target else list(self._store.documents(source))

    def outline(self, target: str, *, depth: int | None = None) -> tuple[DocumentOutline, ...]:
        """Return the outline of a file, or of every file of a folder or glob."""
        from dowse.lookup.locate import documents_matching
        from dowse.lookup.outline import outline

        if not (found := documents_matching(self._store, target)):
            raise NotFoundError(f"{target} is not in the index; run `dowse status` to see what is")
        return tuple(outline(info, self._store.reader(), depth=depth) for info in found)

    def related(self, target: str, *, relations: Collection[str] = (), limit: int = 50) -> RelatedChunks:
        """Return callers, callees, docs and threads linked to a chunk id, FILE, FILE:10 or SYMBOL."""
        from dowse.lookup.related import related

        return related(self._meant(target), self._store.reader(), relations=relations, limit=limit)

    def _meant(self, target: str) -> tuple[Chunk, ...]:
        try:
            return self.show(target)
        except NotFoundError as err:
            found = [each.chunk for each in self.symbols(target) if each.match in ("exact", "case")]
            if not found:
                raise NotFoundError(
                    f"{target!r} is not an indexed file, line or symbol; run `dowse symbols {target}` for similar names"
                ) from err
            return tuple(found)

    def sources(self) -> Sequence[Source]:
        return self._store.sources()

    def asked(self) -> Sequence[IndexRequest]:
        """Return the index requests that `index` repeats without paths."""
        from dowse.ingest.sources.requests import stored_requests

        return self._components.allowed(stored_requests(self._store), given=False)

    def reader(self) -> Snapshot:
        """Return the newest snapshot of the store, for look-ups by id."""
        return self._store.reader()

    def stale(self, document_ids: Collection[str]) -> dict[str, bool]:
        """Return by document whether its file changed or disappeared since it was indexed."""
        from dowse.lookup.locate import staleness

        return staleness(self._store, self._store.reader(), document_ids)

    def _lost(self, result: QueryResult, reader: Snapshot) -> bool:
        """Return whether hits were lost to an index update; without one, they are lost in the database."""
        dropped = dict(result.query_metadata.counts).get("dropped", 0)
        if dropped and self._store.reader() is reader:
            raise CorruptIndexError("dowse.db lacks chunks that a query found; run `dowse doctor --verify`")
        return bool(dropped)

    def _prepared(self, request: QueryRequest, reader: StoreReader, **how: bool) -> PreparedQuery:
        from dowse.lookup.locate import staleness
        from dowse.query.pipeline import prepared

        embedder, note = self._components.query_embedder(reader.stats, request)
        return prepared(
            request,
            reader,
            embedder,
            self._tokenizer,
            dense_note=note,
            parts=self._components.parts,
            staleness=partial(staleness, self._store, reader),
            **how,
        )


open = Engine
