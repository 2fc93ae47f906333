"""The front door: paths and questions go in, reports and results come out."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from dowse.config import Config
from dowse.errors import BadRequestError, ModelMismatchError, ModelUnavailableError, NotFoundError, UnavailableError
from dowse.ports import Embedder, Reporter
from dowse.tracing import tracing
from dowse.types import Check, Chunk, IndexReport, QueryRequest, QueryResult, ScoredChunk, Source, Status

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dowse.models.in_use import Models
    from dowse.persist.writer import EmbeddedWriter
    from dowse.ports import Reranker, StoreReader, StoreStats
    from dowse.query.assemble import Parts
    from dowse.query.context import Context
    from dowse.query.pipeline import Prepared
    from dowse.query.services import ServiceGraph
    from dowse.query.stream import Event
    from dowse.query.whynot import WhyNot

WAIT_S = 24 * 3600.0  # "wait for the other writer" is not "for ever"
CONTEXT_TOKENS = 4000  # chosen: a few passages for a small model, and cheap for a large one
_SPEC = "embedder of "  # + a model's name: how to open it
_HYDRATE_TRIES = 3  # a query that meets a publication is asked again of the newer moment


def open(
    path: str | Path,
    *,
    read_only: bool = False,
    create: bool = True,
    config: Config | None = None,
    embedder: Embedder | str | None = "auto",
) -> Engine:
    """Open the index in a folder, made on first use unless `create` is False.

    `embedder`: a model's name, folder or hub id as for `DOWSE_EMBEDDER`; "auto" takes the model the index was embedded
    with, else the default; None or "none" searches by words alone; or any object that satisfies `ports.Embedder`.
    """
    return Engine(Path(path).expanduser(), read_only=read_only, create=create, config=config, embedder=embedder)


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
    ) -> None:
        from dowse.models.in_use import Models
        from dowse.persist.embedded import EmbeddedStore
        from dowse.text import Tokenizer

        self.path = path
        self.config = config or Config()
        self._store = EmbeddedStore(path, read_only=read_only, create=create)
        self._models = Models("none" if embedder is None else embedder, self.config.models_folder, self.config.threads)
        self._tokenizer = Tokenizer()
        self._specs: dict[str, str] = {}
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

        request = _request(text, self.config, fields)
        for left in reversed(range(_HYDRATE_TRIES)):
            reader = self._store.reader()
            result = finished(self._prepared(request, reader), self._executor)
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

        request = _request(text, self.config, fields)
        reader = self._store.reader()
        for event in stream(self._prepared(request, reader), self._executor):
            dropped = dict(event.result.query_metadata.counts).get("dropped", 0)
            if event.kind == "done" and dropped and self._store.reader() is not reader:
                yield replace(event, result=self.query(request))  # it met a publication: the newer moment is asked
                return
            event = replace(event, result=self._with_staleness(event.result, reader))
            if event.kind == "done":
                self._tracing.tell(event.result)
            yield event

    def context(self, text: str | QueryRequest, budget_tokens: int = CONTEXT_TOKENS, **fields: object) -> Context:
        """Numbered, cited passages that answer a question and fit a budget; for a language model to read."""
        from dowse.filters import from_request
        from dowse.query.context import assembled

        request = _request(text, self.config, fields)
        return assembled(self.query(request), self._store.reader(), budget_tokens, where=from_request(request))

    def explain(self, text: str | QueryRequest, target: str, **fields: object) -> WhyNot:
        """Why a chunk, FILE:10 or document is not among the hits, and the smallest change that brings it in."""
        from dowse.query.whynot import why_not

        request = _request(text, self.config, fields)
        reader = self._store.reader()
        names = [profile.name for profile in self._parts.profiles]
        return why_not(request, target, self.show(target), lambda asked: self._prepared(asked, reader), names)

    def services(self) -> ServiceGraph:
        """All services and how they call each other."""
        from dowse.query.services import ServiceGraph

        reader = self._store.reader()
        return ServiceGraph(tuple(reader.services()), tuple(reader.service_edges()))

    # --- writing ------------------------------------------------------------------------------------

    def index(
        self,
        paths: Sequence[str | Path],
        *,
        embed: bool = True,
        wait: bool = False,
        report: Reporter | None = None,
        max_file_bytes: int | None = None,
    ) -> IndexReport:
        """Bring files and folders into the index, words first; only what changed is read again."""
        from dowse.ingest.pipeline import IndexOptions, index

        if not paths:
            raise BadRequestError("nothing to index: give a file or folder, for example `dowse index .`")
        options = IndexOptions(
            max_file_bytes=max_file_bytes or self.config.max_file_bytes,
            wait_s=WAIT_S if wait else 0.0,
            embed_threads=self.config.threads,
        )
        embedder = (lambda: self._index_embedder(report)) if embed else None
        return index(self._store, [Path(path) for path in paths], options, report, embedder)

    def embed(self, report: Reporter | None = None) -> IndexReport:
        """Work off the backlog of chunks that have no vector yet."""
        from dowse.ingest.embed import embed_backlog

        embedder = self._index_embedder(report)
        if embedder is None:
            raise ModelUnavailableError("no embedding model is configured; give one with --embedder")
        with self._writer() as writer:
            writer.use_model(embedder.model, embedder.dimension)
            done = embed_backlog(writer, embedder, report, threads=self.config.threads)
            return IndexReport(embedded=done, pending=writer.pending_count())

    def reembed(self, embedder: str | Embedder, report: Reporter | None = None) -> IndexReport:
        """Change to another model. The old vectors serve until the new ones are complete."""
        from dowse.ingest.embed import embed_backlog
        from dowse.models.in_use import Models

        models = Models(embedder, self.config.models_folder, self.config.threads)
        chosen = models.required(report)
        self._remember(chosen, models)
        with self._writer() as writer:
            writer.replace_model(chosen.model, chosen.dimension)
            done = embed_backlog(writer, chosen, report, threads=self.config.threads)
            left = writer.pending_count()
            if not left:
                writer.serve_model()
        self._models = Models(chosen, self.config.models_folder, self.config.threads)
        return IndexReport(embedded=done, pending=left)

    def remove(self, targets: Sequence[str]) -> int:
        """Take documents out: by path, folder, `source/path` glob or document id. The files stay where they are."""
        from dowse.ingest.locate import documents_matching

        found = {info.id for target in targets for info in documents_matching(self._store, target)}
        if not found:
            raise NotFoundError(f"no indexed document matches {' '.join(targets)}; `dowse status` lists the sources")
        with self._writer() as writer:
            removed = writer.remove(sorted(found))
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
        from dowse.ingest.locate import source_status
        from dowse.persist.manifest import SCHEMA_VERSION

        reader = self._store.reader()
        stats = reader.stats
        return Status(
            path=str(self.path),
            schema_version=SCHEMA_VERSION,
            model=stats.model,
            dimension=stats.dimension,
            documents=stats.documents,
            chunks=stats.chunks,
            vectors=stats.vectors,
            pending=stats.chunks - stats.vectors,
            dead_chunks=len(reader.dead),
            size_bytes=sum(file.stat().st_size for file in self.path.rglob("*") if file.is_file()),
            sources=tuple(source_status(self._store, source) for source in self._store.sources()),
        )

    def verify(self, deep: bool = False) -> Sequence[Check]:
        """What is wrong with the index, if anything. Changes nothing."""
        from dowse.persist.verify import verify

        return list(verify(self._store, deep=deep))

    def show(self, target: str) -> tuple[Chunk, ...]:
        """The chunks behind an id, a FILE, FILE:10 or FILE:10-40."""
        from dowse.ingest.locate import chunks_at

        return chunks_at(self._store, target)

    def sources(self) -> Sequence[Source]:
        return self._store.sources()

    # --- inside -------------------------------------------------------------------------------------

    @contextmanager
    def _writer(self) -> Iterator[EmbeddedWriter]:
        writer = self._store.writer()
        try:
            yield writer
        finally:
            writer.close()

    def _index_embedder(self, report: Reporter | None = None) -> Embedder | None:
        found = self._models.for_index(self._spec(self._store.reader().stats.model), report)
        if found is not None:
            self._remember(found, self._models)
        return found

    def _remember(self, embedder: Embedder, models: Models) -> None:
        """A folder, hub id or address is kept with the index: the model's name alone would not open it again."""
        if models.spec and self._store.fact(_SPEC + embedder.model) != models.spec:
            self._store.set_fact(_SPEC + embedder.model, models.spec)

    def _spec(self, model: str | None) -> str | None:
        """How to open the model that the index has vectors of; asked once a model."""
        if model and model not in self._specs:
            self._specs[model] = self._store.fact(_SPEC + model) or model
        return self._specs[model] if model else None

    @cached_property
    def _parts(self) -> Parts:
        """What all queries share. The cross-encoder is opened when a query first needs it."""
        from dowse.models.llm import open_llm
        from dowse.query.assemble import Parts
        from dowse.query.cache import Caches
        from dowse.query.own_profiles import with_own

        return Parts(
            llm=open_llm(self.config.llm_base_url, self.config.llm_model),
            profiles=with_own(self.config.profiles),
            caches=Caches(),
            documents=self._store.documents,
        )

    @cached_property
    def _cross_encoder(self) -> Reranker | None:
        from dowse.models.rerank_cross_encoder import open_cross_encoder

        return open_cross_encoder(
            self.config.reranker, models_folder=self.config.models_folder, threads=self.config.threads
        )

    def _prepared(self, request: QueryRequest, reader: StoreReader) -> Prepared:
        from dowse.query.pipeline import prepared

        embedder, note = self._query_embedder(reader.stats, request)
        parts = self._with_cross_encoder(self._parts, request)
        return prepared(request, reader, embedder, self._tokenizer, dense_note=note, parts=parts)

    def _with_cross_encoder(self, parts: Parts, request: QueryRequest) -> Parts:
        from dowse.query.profiles import named

        if "cross-encoder" not in named(request.profile, parts.profiles).adjusted(request).rerank:
            return parts
        try:
            return replace(parts, cross_encoder=self._cross_encoder)
        except UnavailableError as err:
            return replace(parts, cross_encoder_note=str(err), cross_encoder_lost=True)

    def _query_embedder(self, stats: StoreStats, request: QueryRequest) -> tuple[Embedder | None, str]:
        """The embedder for a question, or why there is none."""
        if "dense" not in request.legs:
            return None, ""
        if stats.model is None or not stats.vectors:
            return None, "the index has no vectors yet; run `dowse index` to make them"
        try:
            embedder = self._models.for_index(self._spec(stats.model))
        except ModelUnavailableError as err:
            return None, str(err)
        if embedder is None:
            return None, "no embedding model is in use (--embedder none)"
        if embedder.model != stats.model:
            raise ModelMismatchError(
                f"the index has vectors of {stats.model}, not of {embedder.model}; "
                f"run `dowse reembed {embedder.model}` to change, or use --embedder {stats.model}"
            )
        return embedder, ""

    def _with_staleness(self, result: QueryResult, reader: StoreReader) -> QueryResult:
        from dowse.ingest.locate import staleness

        stale = staleness(self._store, reader, {chunk.document_id for chunk in result.chunks})
        return replace(
            result, chunks=tuple(replace(chunk, stale=stale.get(chunk.document_id)) for chunk in result.chunks)
        )


def _request(text: str | QueryRequest, config: Config, fields: dict[str, object]) -> QueryRequest:
    request = text if isinstance(text, QueryRequest) else QueryRequest(text, top_k=config.top_k, profile=config.profile)
    known = set(QueryRequest.__dataclass_fields__)
    unknown = set(fields) - known
    if unknown:
        raise BadRequestError(f"unknown query field {sorted(unknown)[0]!r}; choose from {', '.join(sorted(known))}")
    return replace(request, **fields) if fields else request  # type: ignore[arg-type]
