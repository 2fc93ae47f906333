"""A task for one file goes in; what became of the file comes out: a document, or why there is none.

It runs in this process or in a worker, so both sides are plain values that travel as bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from dowse.errors import BadRequestError, MissingExtraError
from dowse.identity import bytes_hash
from dowse.ingest.chunking.document import altered
from dowse.ingest.chunking.parents import with_parents
from dowse.ingest.chunking.structure import with_structure
from dowse.ingest.reading.guarded import read_guarded
from dowse.ingest.sources.content import Binary, Contents, Unread, is_binary, read_contents
from dowse.ingest.sources.generated import generated
from dowse.ingest.sources.kinds import Kind
from dowse.ingest.sources.skip_rules import Skip
from dowse.ports import Reader, SourceFile
from dowse.types import Chunk, Document

if TYPE_CHECKING:
    from dowse.ingest.readers.registry import ReaderFactory

BINARY = "binary file; no reader for it is installed"


@dataclass(frozen=True)
class Commit:
    """The last change of a file, as its repository tells it."""

    id: str
    author: str
    date: datetime  # aware, UTC

    @property
    def stamp_ns(self) -> int:
        """A time stamp for the files of a commit, its own for every commit: the same one, nothing changed."""
        return int(self.date.timestamp()) * 10**9 + int(self.id[:7], 16)


@dataclass(frozen=True)
class Task:
    """A file to read."""

    source: str
    path: str  # inside the source
    full_path: str  # where the bytes are; when `data` holds them, where they came from
    kind: Kind
    max_bytes: int
    known_hash: str = ""  # of the bytes that are indexed: the same bytes are not read again
    explicit: bool = False  # given by name: rules do not hide it
    repo_name: str | None = None
    commit: Commit | None = None
    service: str | None = None  # that its place belongs to
    data: bytes | None = None  # of a file that lies in an archive or a repository
    modified_ns: int = 0  # of `data`


@dataclass(frozen=True)
class Outcome:
    """What became of a file: exactly one of these is set. None of them: the file is as it was."""

    document: Document | None = None
    skip: Skip | None = None
    problem: str = ""
    masked: int = 0  # secrets that were taken out of the document


UNCHANGED = Outcome()


@dataclass(frozen=True)
class Taker:
    """Reads files with the readers at hand; a reader is made when it is first needed."""

    factories: Mapping[str, ReaderFactory]
    readers: dict[str, Reader]

    def __call__(self, task: Task) -> Outcome:
        """Bad input is an outcome. A bug in a reader is none, and surfaces with the name of the file."""
        contents = _contents(task)
        if isinstance(contents, Binary):
            return Outcome(problem=BINARY) if task.explicit else Outcome(skip=Skip.BINARY)
        if isinstance(contents, Unread):
            return Outcome(problem=contents.reason)
        if task.known_hash and bytes_hash(contents.data) == task.known_hash:
            return UNCHANGED
        reason = None if task.explicit else generated(task.path, task.kind, contents.data)
        if reason is not None:
            return Outcome(skip=reason)
        try:
            document, count = read_guarded(self._reader(task.kind.reader), _source_file(task, contents), task.service)
        except (BadRequestError, MissingExtraError) as err:
            return Outcome(problem=str(err))
        except Exception as err:
            err.add_note(f"while reading {task.full_path}")
            raise
        if not document.chunks:
            return Outcome(skip=Skip.EMPTY)
        return Outcome(document=with_structure(with_parents(stamped(task, document))), masked=count)

    def _reader(self, name: str) -> Reader:
        if name not in self.readers:
            self.readers[name] = self.factories[name]()
        return self.readers[name]


def stamped(task: Task, document: Document) -> Document:
    """With what is known of the file from outside; what the file says of itself wins."""
    if task.repo_name is None and task.commit is None:
        return document
    meta = (("commit", task.commit.id),) if task.commit else ()
    chunks = tuple(_stamped(task, chunk, meta) for chunk in document.chunks)
    return replace(document, chunks=chunks, meta=document.meta + meta)


def _stamped(task: Task, chunk: Chunk, meta: tuple[tuple[str, str], ...]) -> Chunk:
    commit = task.commit
    return altered(
        chunk,
        repo_name=task.repo_name or chunk.repo_name,
        author=chunk.author or (commit.author if commit else None),
        timestamp=chunk.timestamp or (commit.date if commit else None),
        meta=chunk.meta + meta,
    )


def _contents(task: Task) -> Contents | Unread | Binary:
    if task.data is None:
        return read_contents(task.full_path, task.max_bytes, sniff=not task.kind.known)
    if not task.kind.known and is_binary(task.data):
        return Binary()
    return Contents(task.data, task.modified_ns)


def _source_file(task: Task, contents: Contents) -> SourceFile:
    kind = task.kind
    return SourceFile(
        task.source,
        task.path,
        contents.data,
        contents.modified_ns,
        language=kind.language if kind.own else None,
        corpus_type=kind.corpus_type.value if kind.own else None,
        full_path=task.full_path,
    )
