"""Paths go in; documents and vectors go into the store, and a report of what was done comes out.

The path: discover → read → write words (small groups, published about every second) → remove what is gone → embed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from dowse.errors import BadRequestError, BusyError, MissingExtraError, StorageError, UnavailableError
from dowse.identity import bytes_hash
from dowse.ingest.contents import Binary, Contents, Unread, read_contents
from dowse.ingest.discover import Candidate, Discovery, discover, printable
from dowse.ingest.embed import BATCH, THREADS, embed_backlog
from dowse.ingest.kinds import classify
from dowse.ingest.leave_out import Skip
from dowse.ingest.readers import ReaderFactory, find_readers
from dowse.ports import Embedder, Progress, Reader, Reporter, SourceFile, Store, StoreWriter
from dowse.types import Document, DocumentInfo, IndexReport, Problem

EmbedderChoice = Embedder | Callable[[], Embedder | None] | None

GROUP_DOCUMENTS = 64  # one transaction each; chosen, together with the next two: a group is written within the second
GROUP_CHUNKS = 512
PUBLISH_S = 1.0  # "searchable within a second of being read" (design section 1)
RACY_NS = 2 * 10**9  # an older file system stamps to 2 s: a file that young may have changed without showing it
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


def index(
    store: Store,
    paths: Sequence[Path],
    options: IndexOptions,
    report: Reporter | None = None,
    embedder: EmbedderChoice = None,
) -> IndexReport:
    """Bring the files below the paths into the store; only what changed is read again.

    A callable embedder is asked for when the words are done, so that loading a model does not keep them waiting. An
    embedder that is unavailable leaves the words and a note; an interruption leaves what is done and a report.
    """
    started = monotonic()
    readers = find_readers()
    writer = store.writer(wait_s=options.wait_s)
    try:
        run = _Run(store, writer, options, report, readers)
        try:
            run.words(discover(paths, store.sources(), options.max_file_bytes, readers))
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
    readers: dict[str, Reader] = field(default_factory=dict)
    registered: set[str] = field(default_factory=set)
    group: list[Document] = field(default_factory=list)  # read, not yet written
    known: dict[tuple[str, str], DocumentInfo] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    skipped: Counter[Skip] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    published_s: float = field(default_factory=monotonic)
    note: str = ""
    interrupted: bool = False

    def words(self, found: Discovery) -> None:
        """Everything that is searched by words: new and changed files first, then what is gone."""
        self.problems += found.problems
        self.skipped.update(dict(found.skipped))
        self.registered = {source.name for source in self.store.sources()}
        names = {scope.source for scope in found.looked_at} & self.registered
        self.known = {(info.source, info.path): info for name in names for info in self.store.documents(name)}
        emptied: set[tuple[str, str]] = set()
        for done, file in enumerate(found.files, start=1):
            if not self._take(file):
                emptied.add((file.source.name, file.path))
            if self.report:
                self.report(Progress("read", done, len(found.files), file.path))
        self._write()
        self._remove_gone(found, emptied)
        self.writer.publish()

    def _take(self, file: Candidate) -> bool:
        """Put a file into the store if it is new or changed. False when it turns out to hold no text."""
        info = self.known.get((file.source.name, file.path))
        if info and not self.options.force and _same_stat(file, info):
            self.counts["unchanged"] += 1
            return True
        kind = classify(file.path, self.factories)
        contents = read_contents(file.full_path, self.options.max_file_bytes, sniff=not kind.known)
        if isinstance(contents, Binary):
            return self._binary(file)
        if isinstance(contents, Unread):
            return self._failed(file, contents.reason)
        if info and not self.options.force and bytes_hash(contents.data) == info.content_hash:
            self.counts["unchanged"] += 1
            return True
        try:
            document = self._reader(kind.reader).read(_source_file(file, contents))
        except (BadRequestError, MissingExtraError) as err:
            return self._failed(file, str(err))
        if not document.chunks:
            self.skipped[Skip.EMPTY] += 1
            return False
        self._put(file, document)
        return True

    def _binary(self, file: Candidate) -> bool:
        if file.explicit:
            self.problems.append(Problem(printable(file.full_path), "binary file; no reader for it is installed"))
        else:
            self.skipped[Skip.BINARY] += 1
        return False

    def _failed(self, file: Candidate, reason: str) -> bool:
        """What the store has of the file stays: an old answer, marked as stale, is better than none."""
        self.problems.append(Problem(printable(file.full_path), reason))
        return True

    def _reader(self, name: str) -> Reader:
        if name not in self.readers:
            self.readers[name] = self.factories[name]()
        return self.readers[name]

    def _put(self, file: Candidate, document: Document) -> None:
        if file.source.name not in self.registered:
            self.writer.add_source(file.source)
            self.registered.add(file.source.name)
        self.group.append(document)
        chunks = sum(len(each.chunks) for each in self.group)
        late = monotonic() - self.published_s > PUBLISH_S
        if len(self.group) >= GROUP_DOCUMENTS or chunks >= GROUP_CHUNKS or late:
            self._write()

    def _write(self) -> None:
        if self.group:
            self.writer.put(self.group)
            for document in self.group:
                self.counts["chunks"] += len(document.chunks)
                self.counts["changed" if (document.source, document.path) in self.known else "added"] += 1
            self.group = []
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
        )


def _same_stat(file: Candidate, info: DocumentInfo) -> bool:
    """Size and time are those of the indexed file, and the time is old enough to be trusted."""
    indexed_ns = int(info.indexed_at.timestamp() * 10**9)
    return (
        file.size_bytes == info.size_bytes
        and file.modified_ns == info.modified_ns
        and file.modified_ns < indexed_ns - RACY_NS
    )


def _source_file(file: Candidate, contents: Contents) -> SourceFile:
    return SourceFile(file.source.name, file.path, contents.data, contents.modified_ns)
