"""Index pipeline: requests enter; documents and vectors go to the store, and a report leaves.

The steps: discover files, read them, write words in small groups that become searchable about every second, remove
documents of missing files, link, embed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any

import msgspec

from dowse.errors import UnavailableError
from dowse.ingest.chunking.summary_llm import LlmSummaries
from dowse.ingest.code.grammars import MORE, has_grammar
from dowse.ingest.embed import BATCH, THREADS, embed_backlog
from dowse.ingest.links.linker import ExtractionCache, link
from dowse.ingest.privacy.pseudonyms import PseudonymOptions, PseudonymPlan, plan_pseudonyms
from dowse.ingest.readers.registry import ReaderFactory, find_readers
from dowse.ingest.reading.limits import can_interrupt, rare_collections
from dowse.ingest.reading.pool import ReadLimits, read_in_process, read_in_workers
from dowse.ingest.reading.read_file import FileReader, ReadResult, Task
from dowse.ingest.services.graph import link_services
from dowse.ingest.services.places import env_changed, service_places
from dowse.ingest.sources.content import Unread, held_bytes
from dowse.ingest.sources.git_history import History, remember_heads
from dowse.ingest.sources.kinds import BULKY_TIMES, UserRule, classify, most_bytes, user_rules
from dowse.ingest.sources.requests import MARK, IndexRequest, moved_sources, store_requests
from dowse.ingest.sources.skip_rules import Skip
from dowse.ingest.sources.walk import Discovery, FoundFile, Scope, WalkOptions, discover, printable
from dowse.ports import Embedder, Progress, Reporter, Store, StoreWriter
from dowse.private_hash import is_same_size
from dowse.reports import IndexReport, Problem
from dowse.types import Document, DocumentInfo

EmbedderChoice = Embedder | Callable[[], Embedder | None] | None
FileKey = tuple[str, str]  # source and path inside it

GROUP_DOCUMENTS = 64  # a transaction; chosen, with the next two, so that a group is written within the second
GROUP_CHUNKS = 2048  # with hashes as ids a transaction touches, and writes, most pages
PUBLISH_S = 1.0  # documents are searchable within about a second after they are read
RACY_NS = 2 * 10**9  # old file systems store times to 2 s: a younger file may have changed without a new time
WORTH_BYTES = 8 * 1024**2  # measured on repositories: for less, two workers cost 0.6 s of CPU and save little time
WORTH_FILES = 1_000  # likewise
RISKY_BYTES = 256 * 1024  # an alarm may not end the reading of a larger file; a worker can be killed
RISKY_CODE_BYTES = 1024**2  # of source code, whose parser has a time limit of its own
GO_ON = "interrupted; finished files are kept; run `dowse index` again to continue"
MORE_GRAMMARS = "for their symbols, run in a checkout: pip install '.[langs]'"
_UNPARSED = "unparsed "
MASKING_RULES = "2"  # version: files that other rules masked are read again, and only changed texts are embedded
_MASKING = "masking/"
NO_MODEL = "no embedding model is set: the index supports word search only"


class IndexOptions(msgspec.Struct, frozen=True):
    """Options of an index run."""

    max_file_bytes: int = 4 * 1024**2  # chosen: generated data is larger, hand-written text hardly ever
    wait_s: float = 0.0  # for another writer
    embed_threads: int = THREADS
    embed_batch: int = BATCH
    force: bool = False  # read unchanged files again
    workers: int | None = None  # reading processes; 0: this process only; None: by the amount of work
    max_workers: int = 2  # with None
    limits: ReadLimits = ReadLimits()
    kinds: Sequence[Mapping[str, Any]] = ()  # [[kinds]] tables of the settings
    list_skipped: bool = False
    pseudonyms: PseudonymOptions = PseudonymOptions()
    only: frozenset[str] | None = None  # absolute paths that changed, if known
    summaries: LlmSummaries | None = None  # by a language model; None: by sentences of the text


def index(
    store: Store,
    requests: Sequence[IndexRequest],
    options: IndexOptions,
    report: Reporter | None = None,
    embedder: EmbedderChoice = None,
) -> IndexReport:
    """Index the requested files; read only those that changed.

    A callable embedder is called once the words are written, so that loading a model does not delay them. Without an
    available embedder the run ends with the words and a note; an interruption keeps the work done and returns a report.
    """
    started = monotonic()
    readers = find_readers()
    rules = user_rules(options.kinds, readers)
    walk = WalkOptions(options.max_file_bytes, readers, options.list_skipped, options.only)
    writer = store.writer(wait_s=options.wait_s)
    try:
        run = _Run(store, writer, options, report, readers, rules)
        try:
            for source in moved_sources(requests, store):
                run.notes.append(f"{source.name} is now at {source.root}: its checkout was moved or copied")
                writer.add_source(source)
            with rare_collections():
                run.words(discover(requests, store.sources(), walk))
            store_requests(store, requests)
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
    """State of one run."""

    store: Store
    writer: StoreWriter
    options: IndexOptions
    report: Reporter | None
    factories: dict[str, ReaderFactory]
    rules: tuple[UserRule, ...] = ()
    pseudonyms: PseudonymPlan = field(default_factory=PseudonymPlan)
    remasked: set[str] = field(default_factory=set)  # sources that older rules masked: read again
    replaced: Counter[str] = field(default_factory=Counter)  # pseudonyms by kind
    registered: set[str] = field(default_factory=set)
    group: list[Document] = field(default_factory=list)  # read, not yet written
    extracted: ExtractionCache = field(default_factory=ExtractionCache)
    known: dict[FileKey, DocumentInfo] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    skipped: Counter[Skip] = field(default_factory=Counter)
    left_out: list[Problem] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    published_s: float = field(default_factory=monotonic)
    note: str = ""
    interrupted: bool = False

    def words(self, found: Discovery) -> None:
        """Update everything that word search needs: new and changed files first, then removals and links."""
        self.problems, self.left_out, self.skipped = found.problems, found.left_out, found.skipped
        self.registered = {source.name for source in self.store.sources()}
        scopes = {(scope.source, scope.path) for scope in found.scopes if scope.source in self.registered}
        self.known = {(info.source, info.path): info for scope in scopes for info in self.store.documents(*scope)}
        history = History(self.store, found.files, self.known)
        partly = self.options.only is not None
        self.remasked = {name for name in self.registered if self.store.fact(_MASKING + name) != MASKING_RULES}
        self.pseudonyms = plan_pseudonyms(self.store, found.files, self.options.pseudonyms, partly=partly)
        changed = [file for file in found.files if not _same_stat(file, self._known_info(file, history))]
        self.counts["unchanged"] = len(found.files) - len(changed)
        self.notes += history.load(changed)
        empty: set[FileKey] = set()
        total = len(found.files)
        for file, result in self._read(found, changed, history):
            if not self._keep(file, result):
                empty.add(_key(file))
            self.counts["done"] += 1
            if self.report:
                self.report(Progress("read", total - len(changed) + self.counts["done"], total, file.path))
        self._write()
        self._note_grammars()
        self._remove_missing(found, empty)
        link_services(self.writer)
        self.writer.publish()
        remember_heads(self.store, history, found)
        self.pseudonyms.remember(self.store)
        for scope in found.scopes:
            if not partly and scope.source in self.remasked and not scope.path and scope.glob is None:
                self.store.set_fact(_MASKING + scope.source, MASKING_RULES)
        link(self.store, self.writer, self.report, self.extracted)

    def _known_info(self, file: FoundFile, history: History) -> DocumentInfo | None:
        """Return the stored document of a file, unless the file must be read again, changed or not."""
        source = file.source.name
        again = self.options.force or source in (self.pseudonyms.renewed | self.remasked) or history.moved_on(file)
        info = None if again else self.known.get(_key(file))
        return None if info and env_changed(file.full_path, info.indexed_at.timestamp()) else info

    def _read(
        self, found: Discovery, files: Sequence[FoundFile], history: History
    ) -> Iterator[tuple[FoundFile, ReadResult]]:
        """Read files in this process or in workers, by the amount of work."""
        waiting: dict[FileKey, FoundFile] = {}
        # Services of all folders, by the paths of stored and of found files.
        roots = {source.name: source.root for source in (*self.store.sources(), *(file.source for file in found.files))}
        names = {scope.source for scope in found.scopes if scope.source in self.registered}
        stored = ((name, path) for name in names for path in self.store.paths(name))
        services = service_places([*stored, *map(_key, found.files)], roots)

        def tasks() -> Iterator[Task]:
            for file, data in held_bytes(files, self.options.max_file_bytes * BULKY_TIMES):
                if isinstance(data, Unread):
                    self._failed(file, data.reason)
                    continue
                waiting[_key(file)] = file
                info = self._known_info(file, history)
                yield Task(
                    file.source.name,
                    file.path,
                    _shown(file),
                    classify(file.path, self.factories, self.rules),
                    most_bytes(file.path, self.options.max_file_bytes),
                    known_hash=info.content_hash if info else "",
                    explicit=file.explicit,
                    repo_name=file.repo.name if file.repo else None,
                    commit=history.of(file),
                    service=services.of(*_key(file)),
                    data=data,
                    modified_ns=file.modified_ns,
                )

        workers, limits = self._workers(files), self.options.limits
        in_process = partial(read_in_process, FileReader(self.factories))
        for task, result in (partial(read_in_workers, workers) if workers else in_process)(tasks(), limits):
            yield waiting.pop((task.source, task.path)), result

    def _workers(self, files: Sequence[FoundFile]) -> int:
        if self.options.workers is not None:
            return self.options.workers
        small = sum(file.size_bytes for file in files) < WORTH_BYTES and len(files) < WORTH_FILES
        in_process = small and can_interrupt() and not any(map(self._is_risky, files))
        return 0 if in_process else min(self.options.max_workers, max(1, len(files)))

    def _is_risky(self, file: FoundFile) -> bool:
        if file.size_bytes < RISKY_BYTES:
            return False
        is_code = classify(file.path, self.factories, self.rules).reader == "code"
        return not is_code or file.size_bytes >= RISKY_CODE_BYTES

    def _keep(self, file: FoundFile, result: ReadResult) -> bool:
        """Store the result of a file. False for a file without text, so that its stored document is removed."""
        self.counts["masked"] += result.masked
        if result.document is not None:
            # Pseudonyms are set in this process: a worker would need all names with every file.
            document, found = self.pseudonyms.apply(result.document)
            language = document.chunks[0].language
            if language in MORE and not has_grammar(language):
                self.counts[f"{_UNPARSED}{language}"] += 1
            self.replaced += found
            self._put(file, self.options.summaries(document) if self.options.summaries else document)
        elif result.skip is not None:
            self.skipped[result.skip] += 1
            if self.options.list_skipped:
                self.left_out.append(Problem(printable(_shown(file)), result.skip.value))
        elif result.problem:
            self._failed(file, result.problem)
        else:
            self.counts["unchanged"] += 1
        return result.skip is None

    def _note_grammars(self) -> None:
        """Note once which languages were split without a grammar, and what brings it."""
        found = sorted(name.removeprefix(_UNPARSED) for name in self.counts if name.startswith(_UNPARSED))
        if found:
            files = sum(self.counts[_UNPARSED + name] for name in found)
            self.notes.append(f"{files:,} files of {', '.join(found)} are split by layout; {MORE_GRAMMARS}")

    def _failed(self, file: FoundFile, reason: str) -> None:
        """Report a problem; the stored document stays, because an old result marked as stale beats none."""
        self.problems.append(Problem(printable(_shown(file)), reason))

    def _put(self, file: FoundFile, document: Document) -> None:
        if file.source.name not in self.registered:
            self.writer.add_source(file.source)
            self.registered.add(file.source.name)
            self.store.set_fact(_MASKING + file.source.name, MASKING_RULES)
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
                self.extracted.add(document)
            self.group = []
            self.counts["waiting"] = 0
        if monotonic() - self.published_s > PUBLISH_S:
            self.writer.publish()
            self.published_s = monotonic()

    def _remove_missing(self, found: Discovery, empty: set[FileKey]) -> None:
        """Remove documents of missing files, last, so that a moved file is indexed before its old path goes."""
        present = {*map(_key, found.files)} - empty

        def covered(info: DocumentInfo, scopes: Sequence[Scope]) -> bool:
            return any(scope.source == info.source and scope.covers(info.path) for scope in scopes)

        missing = [
            info.id
            for key, info in self.known.items()
            if key not in present and covered(info, found.scopes) and not covered(info, found.unlisted)
        ]
        if missing:
            self.counts["removed"] = self.writer.remove(missing)

    def vectors(self, choice: EmbedderChoice) -> None:
        """Embed the backlog. A missing embedder is noted; a store that cannot write is an error."""
        if choice is None:
            return
        try:
            embedder = choice() if callable(choice) else choice
            if embedder is None:
                self.note = NO_MODEL
                return
            self.writer.use_model(embedder.model, embedder.dimension)
            batch, threads = self.options.embed_batch, self.options.embed_threads
            count = self._count_embedded
            self.counts["embedded"] = embed_backlog(self.writer, embedder, count, batch=batch, threads=threads)
        except UnavailableError as err:
            self.note = str(err)

    def _count_embedded(self, progress: Progress) -> None:
        """Count as it goes, so that an interrupted run can report its progress."""
        self.counts["embedded"] = progress.done
        if self.report:
            self.report(progress)

    def report_of(self, seconds: float) -> IndexReport:
        skipped = sorted(self.skipped.items(), key=lambda item: (-item[1], item[0]))
        summaries = self.options.summaries
        counted = ("added", "changed", "removed", "unchanged", "chunks", "embedded", "masked")
        return IndexReport(
            **{name: self.counts[name] for name in counted},
            skipped=tuple((reason.value, count) for reason, count in skipped),
            problems=tuple(self.problems),
            pending=self.writer.pending_count(),
            embedding_note=self.note,
            seconds=seconds,
            interrupted=self.interrupted,
            scrubbed=tuple(sorted((kind, count) for kind, count in self.replaced.items() if count)),
            left_out=tuple(self.left_out),
            notes=(*self.notes, summaries.note) if summaries and summaries.note else tuple(self.notes),
        )


def _key(file: FoundFile) -> FileKey:
    return file.source.name, file.path


def _same_stat(file: FoundFile, info: DocumentInfo | None) -> bool:
    """Test for the size and time of the indexed file, and that the time is old enough to be trusted."""
    if info is None or file.modified_ns != info.modified_ns or not is_same_size(file.size_bytes, info.size_bytes):
        return False
    return file.modified_ns < int(info.indexed_at.timestamp() * 10**9) - RACY_NS


def _shown(file: FoundFile) -> str:
    """Return the path of a file as people write it."""
    if file.member is not None:
        return f"{file.full_path}{MARK}{file.path.rpartition(MARK)[2]}"
    return f"{file.full_path}/{file.path}" if file.blob is not None else file.full_path
