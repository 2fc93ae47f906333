"""Reading of one file: a task enters; a document leaves, or the reason why there is none.

It runs in this process or in a worker, so tasks and results are plain values that travel as bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from dowse.errors import BadRequestError, MissingExtraError
from dowse.ingest.chunking.document import NOT_TEXT, NOT_VALID
from dowse.ingest.chunking.parents import with_parents, with_structure
from dowse.ingest.reading.guarded import read_masked
from dowse.ingest.services.facts import with_facts
from dowse.ingest.sources.content import BINARY, FileContent, Unread, is_binary, read_content
from dowse.ingest.sources.git import Commit
from dowse.ingest.sources.skip_rules import Skip, generated
from dowse.ports import FileKind, Reader, SourceFile
from dowse.private_hash import is_same_content
from dowse.types import Document

if TYPE_CHECKING:
    from dowse.ingest.readers.registry import ReaderFactory


class Task(msgspec.Struct, frozen=True):
    """File to read."""

    source: str
    path: str  # inside the source
    full_path: str  # on disk; with `data`, the place the bytes came from
    kind: FileKind
    max_bytes: int
    known_hash: str = ""  # of the indexed bytes: the same bytes are not read again
    explicit: bool = False  # given by name: not skipped by rules
    repo_name: str | None = None
    commit: Commit | None = None
    service: str | None = None  # service of the file's folder
    data: bytes | None = None  # of a file in an archive or a repository
    modified_ns: int = 0  # of `data`


class ReadResult(msgspec.Struct, frozen=True):
    """Result of one file: a document, a reason to skip it or a problem; none of them if it did not change."""

    document: Document | None = None
    skip: Skip | None = None
    problem: str = ""
    masked: int = 0  # secrets removed from the document


UNCHANGED = ReadResult()
_FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


class FileReader:
    """Reads files with the installed readers; each reader is created when it is first needed."""

    def __init__(self, factories: Mapping[str, ReaderFactory]) -> None:
        self._factories = factories
        self._readers: dict[str, Reader] = {}

    def read(self, task: Task) -> ReadResult:
        """Read one file. Bad input is a result, and so is the failure of a reader."""
        content: FileContent | Unread
        if task.data is None:
            content = read_content(task.full_path, task.max_bytes, sniff=not task.kind.known)
        elif not task.kind.known and is_binary(task.data):
            content = Unread(BINARY, binary=True)
        else:
            content = FileContent(task.data, task.modified_ns)
        if isinstance(content, Unread):
            skip = content.binary and not task.explicit
            return ReadResult(skip=Skip.BINARY) if skip else ReadResult(problem=content.reason)
        if task.known_hash and is_same_content(content.data, task.known_hash):
            return UNCHANGED
        reason = None if task.explicit else generated(task.path, task.kind, content.data)
        if reason is not None:
            return ReadResult(skip=reason)
        kind, name = task.kind, task.kind.reader
        file = SourceFile(
            task.source,
            task.path,
            content.data,
            content.modified_ns,
            language=kind.language if kind.own else None,
            corpus_type=kind.corpus_type.value if kind.own else None,
            full_path=task.full_path,
            kind=kind,
        )
        try:
            if name not in self._readers:
                self._readers[name] = self._factories[name]()
            document, count = read_masked(self._readers[name], file)
        except (BadRequestError, MissingExtraError) as err:
            # A fixture with a NUL in it, or bytes under a name that no rule knows: binary, and no problem of the user.
            marks = (NOT_TEXT,) if task.kind.known else (NOT_TEXT, NOT_VALID)
            if str(err).startswith(marks) and not task.explicit:
                return ReadResult(skip=Skip.BINARY)
            return ReadResult(problem=str(err))
        except _FAULTS as err:  # of a parser that met hostile input, or a bug: the other files are still read
            text = " ".join(str(err).split())[:200]
            return ReadResult(problem=f"skipped: the {name} reader failed ({type(err).__name__}: {text})")
        except Exception as err:
            err.add_note(f"while reading {task.full_path}")
            raise
        if not document.chunks:
            return ReadResult(skip=Skip.EMPTY)
        document = with_facts(_with_origin(task, document))
        return ReadResult(document=with_structure(with_parents(document)), masked=count)


def _with_origin(task: Task, document: Document) -> Document:
    """Add repository, commit and service; values from the file itself win."""
    commit, service = task.commit, task.service
    if task.repo_name is None and commit is None and not service:
        return document
    meta = (("commit", commit.id),) if commit else ()
    chunks = tuple(
        replace(
            chunk,
            repo_name=task.repo_name or chunk.repo_name,
            author=chunk.author or (commit.author if commit else None),
            timestamp=chunk.timestamp or (commit.date if commit else None),
            service_name=chunk.service_name or service,
            meta=chunk.meta + meta,
        )
        for chunk in document.chunks
    )
    repo = task.repo_name
    facts = tuple(
        replace(each, service=each.service or service or "", repo=repo or each.repo) for each in document.facts
    )
    return replace(document, chunks=chunks, meta=document.meta + meta, facts=facts)
