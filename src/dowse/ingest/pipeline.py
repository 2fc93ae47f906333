"""What was asked for goes in; documents and vectors go into the store, and a report of what was done comes out.

The path: discover → read → write words (small groups, published about every second) → remove what is gone → embed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from dowse.errors import BusyError, StorageError, UnavailableError
from dowse.ingest.chunking.summary_llm import LlmSummaries
from dowse.ingest.embed import BATCH, THREADS, embed_backlog
from dowse.ingest.links.linker import Hearing, link
from dowse.ingest.privacy.scrub_sources import Scrubbing, ScrubOptions, scrubbing
from dowse.ingest.readers.registry import ReaderFactory, find_readers
from dowse.ingest.reading.limits import can_interrupt, rare_collections
from dowse.ingest.reading.pool import Limits, alone, together
from dowse.ingest.reading.read_file import Outcome, Taker, Task
from dowse.ingest.services.graph import link_services
from dowse.ingest.services.places import ServicePlaces, service_places
from dowse.ingest.sources.asked import remember
from dowse.ingest.sources.git_history import History, remember_heads
from dowse.ingest.sources.kinds import BULKY_TIMES, OwnKind, classify, most_bytes
from dowse.ingest.sources.own_kinds import own_kinds
from dowse.ingest.sources.requests import MARK, Asked
from dowse.ingest.sources.skip_rules import Skip
from dowse.ingest.sources.supply import Unsupplied, supplied
from dowse.ingest.sources.walk import Candidate, Discovery, Reach, discover, printable
from dowse.ports import Embedder, Progress, Reporter, Store, StoreWriter
from dowse.reports import IndexReport, Problem
from dowse.types import Document, DocumentInfo

EmbedderChoice = Embedder | Callable[[], Embedder | None] | None

GROUP_DOCUMENTS = 64  # one transaction each; chosen, together with the next two: a group is written within the second
GROUP_CHUNKS = 2048  # a transaction writes every page that it touched, and with hashes for ids it touches most of them
PUBLISH_S = 1.0  # "searchable within a second of being read" (design section 1)
RACY_NS = 2 * 10**9  # an older file system stamps to 2 s: a file that young may have changed without showing it
WORTH_BYTES = 3 * 1024**2  # to be read; measured (bench/ingest.py): below, starting workers costs more than they save
WORTH_FILES = 300  # likewise
RISKY_BYTES = 256 * 1024  # a larger file may hold more than an alarm can end; it is read where it can be killed
GO_ON = "interrupted; run `dowse index` again to go on, what is done is kept"
NO_MODEL = "no embedding model is in use: the index finds by words alone"


@dataclass(frozen=True)
class IndexOptions:
    """How to index."""

    max_file_bytes: int = 4 * 1024**2  # chosen: generated data is larger, hand-written text hardly ever
    wait_s: float = 0.0  # for another writer
    embed_threads: int = THREADS
    embed_batch: int = BATCH
    force: bool = False  # read every file again, changed or not
    workers: int | None = None  # processes that read; 0: this one alone; None: as the work asks for
    max_workers: int = 2  # when the work asks for some
    limits: Limits = field(default_factory=Limits)
    kinds: Sequence[Mapping[str, Any]] = ()  # [[kinds]] as written
    list_skipped: bool = False
    scrub: ScrubOptions = field(default_factory=ScrubOptions)
    only: frozenset[str] | None = None  # absolute paths: what changed, when that is known
    summaries: LlmSummaries | None = None  # by a language model; None: by sentences of the text


def index(
    store: Store,
    asked: Sequence[Asked],
    options: IndexOptions,
    report: Reporter | None = None,
    embedder: EmbedderChoice = None,
) -> IndexReport:
    """Bring what was asked for into the store; only what changed is read again.

    A callable embedder is asked for when the words are done, so that loading a model does not keep them waiting. An
    embedder that is unavailable leaves the words and a note; an interruption leaves what is done and a report.
    """
    started = monotonic()
    readers = find_readers()
    own = own_kinds(options.kinds, readers)
    reach = Reach(options.max_file_bytes, readers, options.list_skipped, options.only)
    writer = store.writer(wait_s=options.wait_s)
    try:
        run = _Run(store, writer, options, report, readers, own)
        try:
            with rare_collections():
                run.words(discover(asked, store.sources(), reach))
            remember(store, asked)
            run.vectors(embedder)
        except KeyboardInterrupt:
            run.interrupted = True
            run.note = GO_ON
        writer.publish()
        return run.report_of(monotonic() - started)
    finally:
        writer.close()


@dataclass
class _Run:
    """The state of one run."""

    store: Store
    writer: StoreWriter
    options: IndexOptions
    report: Reporter | None
    factories: dict[str, ReaderFactory]
    own: tuple[OwnKind, ...] = ()
    places: ServicePlaces = field(default_factory=lambda: ServicePlaces({}))
    scrubs: Scrubbing = field(default_factory=Scrubbing)
    hidden: Counter[str] = field(default_factory=Counter)  # what was scrubbed, by kind
    registered: set[str] = field(default_factory=set)
    group: list[Document] = field(default_factory=list)  # read, not yet written
    heard: Hearing = field(default_factory=Hearing)
    known: dict[tuple[str, str], DocumentInfo] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    skipped: Counter[Skip] = field(default_factory=Counter)
    left_out: list[Problem] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    published_s: float = field(default_factory=monotonic)
    note: str = ""
    interrupted: bool = False

    def words(self, found: Discovery) -> None:
        """Everything that is searched by words: new and changed files first, then what is gone."""
        self.problems += found.problems
        self.left_out += found.left_out
        self.skipped.update(dict(found.skipped))
        self.registered = {source.name for source in self.store.sources()}
        scopes = {(scope.source, scope.path) for scope in found.looked_at if scope.source in self.registered}
        self.known = {(info.source, info.path): info for scope in scopes for info in self.store.documents(*scope)}
        history = History(self.store, found.files, self.known)
        roots = {source.name: source.root for source in (*self.store.sources(), *(file.source for file in found.files))}
        names = {source for source, _ in scopes}
        stored = ((name, path) for name in names for path in self.store.paths(name))
        self.places = service_places([*stored, *((file.source.name, file.path) for file in found.files)], roots)
        self.scrubs = scrubbing(self.store, found.files, self.options.scrub, partly=self.options.only is not None)
        changed = [file for file in found.files if self._may_have_changed(file, history)]
        self.counts["unchanged"] = len(found.files) - len(changed)
        self.notes += history.ask(changed)
        emptied: set[tuple[str, str]] = set()
        total = len(found.files)
        for file, outcome in self._read(changed, history):
            if not self._settle(file, outcome):
                emptied.add((file.source.name, file.path))
            self.counts["done"] += 1
            if self.report:
                self.report(Progress("read", total - len(changed) + self.counts["done"], total, file.path))
        self._write()
        self._remove_gone(found, emptied)
        link_services(self.writer)
        self.writer.publish()
        remember_heads(self.store, history, found)
        self.scrubs.remember(self.store)
        link(self.store, self.writer, self.report, self.heard)

    def _may_have_changed(self, file: Candidate, history: History) -> bool:
        info = self.known.get((file.source.name, file.path))
        again = self.options.force or file.source.name in self.scrubs.renewed
        return info is None or again or history.moved_on(file) or not _same_stat(file, info)

    def _read(self, files: Sequence[Candidate], history: History) -> Iterator[tuple[Candidate, Outcome]]:
        """Outcomes of all files; where they are read depends on how much there is to read."""
        waiting: dict[tuple[str, str], Candidate] = {}

        def tasks() -> Iterator[Task]:
            for file, data in supplied(files, self.options.max_file_bytes * BULKY_TIMES):
                if isinstance(data, Unsupplied):
                    self._failed(file, data.reason)
                else:
                    waiting[file.source.name, file.path] = file
                    yield self._task(file, history, data)

        workers = self._workers(files)
        limits = self.options.limits
        read = together(workers, tasks(), limits) if workers else alone(Taker(self.factories, {}), tasks(), limits)
        for task, outcome in read:
            yield waiting.pop((task.source, task.path)), outcome

    def _workers(self, files: Sequence[Candidate]) -> int:
        if self.options.workers is not None:
            return self.options.workers
        sizes = [file.size_bytes for file in files]
        small = sum(sizes) < WORTH_BYTES and len(sizes) < WORTH_FILES and max(sizes, default=0) < RISKY_BYTES
        return 0 if small and can_interrupt() else min(self.options.max_workers, max(1, len(files)))

    def _task(self, file: Candidate, history: History, data: bytes | None) -> Task:
        info = self.known.get((file.source.name, file.path))
        again = self.options.force or file.source.name in self.scrubs.renewed
        known = info is not None and not again and not history.moved_on(file)
        return Task(
            file.source.name,
            file.path,
            _shown(file),
            classify(file.path, self.factories, self.own),
            most_bytes(file.path, self.options.max_file_bytes),
            known_hash=info.content_hash if info and known else "",
            explicit=file.explicit,
            repo_name=file.repo.name if file.repo else None,
            commit=history.of(file),
            service=self.places.of(file.source.name, file.path),
            data=data,
            modified_ns=file.modified_ns,
        )

    def _settle(self, file: Candidate, outcome: Outcome) -> bool:
        """Keep what a file gave. False when it holds nothing, so that what the store has of it goes."""
        self.counts["masked"] += outcome.masked
        if outcome.document is not None:
            document = self._scrubbed(outcome.document)
            self._put(file, self.options.summaries(document) if self.options.summaries else document)
        elif outcome.skip is not None:
            self.skipped[outcome.skip] += 1
            if self.options.list_skipped:
                self.left_out.append(Problem(printable(_shown(file)), outcome.skip.value))
            return False
        elif outcome.problem:
            self._failed(file, outcome.problem)
        else:
            self.counts["unchanged"] += 1
        return True

    def _scrubbed(self, document: Document) -> Document:
        """In this process: a worker would have to be told all names with every file."""
        scrubber = self.scrubs.scrubbers.get(document.source)
        if scrubber is None:
            return document
        document, found = scrubber.scrubbed(document)
        self.hidden += found
        return document

    def _failed(self, file: Candidate, reason: str) -> None:
        """What the store has of the file stays: an old answer, marked as stale, is better than none."""
        self.problems.append(Problem(printable(_shown(file)), reason))

    def _put(self, file: Candidate, document: Document) -> None:
        if file.source.name not in self.registered:
            self.writer.add_source(file.source)
            self.registered.add(file.source.name)
        self.group.append(document)
        self.counts["waiting"] += len(document.chunks)
        late = monotonic() - self.published_s > PUBLISH_S
        if len(self.group) >= GROUP_DOCUMENTS or self.counts["waiting"] >= GROUP_CHUNKS or late:
            self._write()

    def _write(self) -> None:
        if self.group:
            self.writer.put(self.group)
            for document in self.group:
                self.counts["chunks"] += [chunk.level for chunk in document.chunks].count("chunk")
                self.counts["changed" if (document.source, document.path) in self.known else "added"] += 1
                self.heard.hear(document)
            self.group = []
            self.counts["waiting"] = 0
        if monotonic() - self.published_s > PUBLISH_S:
            self.writer.publish()
            self.published_s = monotonic()

    def _remove_gone(self, found: Discovery, emptied: set[tuple[str, str]]) -> None:
        """Last, so that a moved file is in the index under its new name before the old one goes."""
        present = {(file.source.name, file.path) for file in found.files} - emptied
        gone = [
            info.id
            for key, info in self.known.items()
            if key not in present
            and any(scope.source == info.source and scope.covers(info.path) for scope in found.looked_at)
            and not any(scope.source == info.source and scope.covers(info.path) for scope in found.unlisted)
        ]
        if gone:
            self.counts["removed"] = self.writer.remove(gone)

    def vectors(self, choice: EmbedderChoice) -> None:
        """Work off the backlog. Only the embedder may be unavailable; a store that cannot write is an error."""
        if choice is None:
            return
        try:
            embedder = choice() if callable(choice) else choice
            if embedder is None:
                self.note = NO_MODEL
                return
            self.writer.use_model(embedder.model, embedder.dimension)
            self.counts["embedded"] = embed_backlog(
                self.writer,
                embedder,
                self._count_embedded,
                batch=self.options.embed_batch,
                threads=self.options.embed_threads,
            )
        except (StorageError, BusyError):
            raise
        except UnavailableError as err:
            self.note = str(err)

    def _count_embedded(self, progress: Progress) -> None:
        """Kept as it goes, so that an interrupted run can say how far it came."""
        self.counts["embedded"] = progress.done
        if self.report:
            self.report(progress)

    def report_of(self, seconds: float) -> IndexReport:
        skipped = sorted(self.skipped.items(), key=lambda item: (-item[1], item[0]))
        return IndexReport(
            added=self.counts["added"],
            changed=self.counts["changed"],
            removed=self.counts["removed"],
            unchanged=self.counts["unchanged"],
            skipped=tuple((reason.value, count) for reason, count in skipped),
            problems=tuple(self.problems),
            chunks=self.counts["chunks"],
            embedded=self.counts["embedded"],
            pending=self.writer.pending_count(),
            embedding_note=self.note,
            seconds=seconds,
            interrupted=self.interrupted,
            masked=self.counts["masked"],
            scrubbed=tuple(sorted((kind, count) for kind, count in self.hidden.items() if count)),
            left_out=tuple(self.left_out),
            notes=tuple(self.notes) + ((told.note,) if (told := self.options.summaries) and told.note else ()),
        )


def _same_stat(file: Candidate, info: DocumentInfo) -> bool:
    """Size and time are those of the indexed file, and the time is old enough to be trusted."""
    indexed_ns = int(info.indexed_at.timestamp() * 10**9)
    return (
        file.size_bytes == info.size_bytes
        and file.modified_ns == info.modified_ns
        and file.modified_ns < indexed_ns - RACY_NS
    )


def _shown(file: Candidate) -> str:
    """Where a file is, for people."""
    if file.member is not None:
        return f"{file.full_path}{MARK}{file.path.rpartition(MARK)[2]}"
    return f"{file.full_path}/{file.path}" if file.blob is not None else file.full_path
