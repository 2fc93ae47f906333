"""Documents without files: values with an id and a text enter; documents with chunks go to the store.

They share readers, masking, linking and embedding with files. Their source has no folder, so that no index run removes
them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from itertools import islice
from time import monotonic
from typing import Any

import msgspec
from msgspec.structs import replace

from dowse.config import Config
from dowse.errors import BadRequestError
from dowse.filters import moment_seconds
from dowse.identity import content_hash, document_id
from dowse.ingest.links.linker import ExtractionCache, link
from dowse.ingest.privacy.pseudonyms import pseudonymizer_of
from dowse.ingest.readers.registry import ReaderFactory, find_readers
from dowse.ingest.reading.guarded import masked
from dowse.ingest.reading.read_file import FileReader, Task
from dowse.ingest.services.graph import link_services
from dowse.ingest.sources.kinds import classify
from dowse.ingest.sources.requests import ADDED_ROOT
from dowse.ports import FileKind, Store, StoreWriter
from dowse.private_hash import private_hash
from dowse.reports import IndexReport, Problem
from dowse.types import Chunk, CorpusType, Document, Source

SOURCE = "documents"  # name of the default source
GROUP = 512  # documents in a transaction; measured: 64 take a fifth longer
LONGEST_ID_CHARS = 512  # chosen: a URL fits
# Reader by media type, as a file name with the extension that the table of kinds knows.
_EXTENSIONS = {
    "text/markdown": "md", "text/html": "html", "application/xhtml+xml": "html", "text/x-rst": "rst",
    "text/csv": "csv", "application/pdf": "pdf", "application/json": "json", "application/yaml": "yaml",
    "application/x-yaml": "yaml", "text/yaml": "yaml", "message/rfc822": "eml", "text/vtt": "vtt",
    "text/x-python": "py", "text/x-go": "go", "text/x-java": "java", "text/javascript": "js",
    "application/x-ipynb+json": "ipynb",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
}  # fmt: skip
_NOT_IN_IDS = re.compile(r"[\x00-\x1f\x7f]")
_SOURCE_NAME = re.compile(r"[^/\x00-\x1f\x7f]{1,128}")

Metadata = dict[str, str | int | float | bool | None]


class NewDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Document to add. A document with the same source and id is replaced."""

    id: str
    text: str = ""
    data: bytes = b""  # in place of text; base64 in JSON
    media_type: str = ""  # of text or data; by default the extension of the id decides, else plain text
    title: str = ""
    corpus_type: CorpusType | None = None
    source: str = SOURCE
    url: str = ""
    author: str = ""
    created_at: Any = None  # filters.Moment: a datetime, ISO 8601 text or seconds since the epoch
    parent: str = ""  # id of the document that this one belongs to
    channel: str = ""
    service: str = ""
    metadata: Metadata = {}


def new_document(given: Any) -> NewDocument:
    """Return a document of a mapping or a line of JSON. BadRequestError names the wrong field."""
    if isinstance(given, NewDocument):
        return given
    try:
        if isinstance(given, bytes | str):
            return msgspec.json.decode(given, type=NewDocument)
        return msgspec.convert(given, NewDocument)
    except (msgspec.DecodeError, UnicodeDecodeError) as err:
        raise BadRequestError(f"invalid document: {err}") from err


def add_documents(store: Store, writer: StoreWriter, given: Iterable[Any], config: Config) -> IndexReport:
    """Write documents: durable and searchable by words when it returns. A bad one is a problem of the report."""
    started = monotonic()
    run = _AddRun(store, writer, config)
    rows = enumerate(given, start=1)
    while part := list(islice(rows, GROUP)):
        run.group(part)
    link_services(writer)
    writer.publish()
    link(store, writer, None, run.extracted)
    return replace(run.report, seconds=monotonic() - started, pending=writer.pending_count())


def remove_documents(store: Store, writer: StoreWriter, ids: Collection[str]) -> int:
    """Remove documents, and sources that are empty then."""
    removed = writer.remove(sorted(ids))
    link_services(writer)
    left = {info.source for info in store.documents()}
    for source in store.sources():
        if source.name not in left:
            writer.remove_source(source.name)
    return removed


class _AddRun:
    """State of one call."""

    def __init__(self, store: Store, writer: StoreWriter, config: Config) -> None:
        self.report = IndexReport()
        self.extracted = ExtractionCache()
        self._store = store
        self._writer = writer
        self._max_bytes = config.max_file_bytes
        self._factories = find_readers()
        self._reader = FileReader(self._factories)
        self._sources = {source.name: source.root for source in store.sources()}
        self._pseudonyms = pseudonymizer_of(store, config.pseudonym_names)

    def group(self, rows: Sequence[tuple[int, Any]]) -> None:
        """Read and write a group in one transaction; of two documents with one id, the later one counts."""
        found: dict[str, tuple[NewDocument, str]] = {}
        problems: list[Problem] = []
        for number, row in rows:
            try:
                row = new_document(row)  # from here on a problem has the name of the document
                each = _checked(row, self._max_bytes)
                self._register(each.source)
            except BadRequestError as err:
                name = row.get("id") if isinstance(row, dict) else getattr(row, "id", "")
                problems.append(Problem(name if name and isinstance(name, str) else f"document {number}", str(err)))
                continue
            found[document_id(each.source, each.id)] = each, private_hash(_ENCODE(each))
        stored = {info.id: info.content_hash for info in self._store.reader().documents_of(list(found))}
        documents, masked_count = [], 0
        for key, (each, state) in found.items():
            if stored.get(key) == state:
                continue
            try:
                document, count = self._read(each, state)
            except BadRequestError as err:
                problems.append(Problem(each.id, str(err)))
                continue
            documents.append(document)
            masked_count += count
        if documents:
            self._writer.put(documents)
        for document in documents:
            self.extracted.add(document)
        written = {each.id for each in documents}
        changed = len(written & set(stored))
        self.report = replace(
            self.report,
            added=self.report.added + len(written) - changed,
            changed=self.report.changed + changed,
            unchanged=self.report.unchanged + sum(stored.get(key) == row[1] for key, row in found.items()),
            chunks=self.report.chunks + sum(chunk.level == "chunk" for each in documents for chunk in each.chunks),
            masked=self.report.masked + masked_count,
            problems=(*self.report.problems, *problems),
        )

    def _register(self, source: str) -> None:
        root = self._sources.get(source)
        if root is None:
            self._writer.add_source(Source(source, ADDED_ROOT + source))
            self._sources[source] = ADDED_ROOT + source
        elif not root.startswith(ADDED_ROOT):
            raise BadRequestError(f"source {source!r} exists already, for {root}; choose another name")

    def _read(self, given: NewDocument, state: str) -> tuple[Document, int]:
        data = given.data or _encoded(given.text)
        task = Task(
            given.source, given.id, f"{given.source}/{given.id}", _kind(given, self._factories), self._max_bytes,
            explicit=True, service=given.service or None, data=data,
        )  # fmt: skip
        result = self._reader.read(task)
        if result.document is None:
            raise BadRequestError(result.problem or "the document has no text")
        document = replace(_with_fields(result.document, given), content_hash=state)
        has_fields = given.title or given.author or given.url or given.metadata or given.channel or given.parent
        document, count = masked(document) if has_fields else (document, 0)
        if self._pseudonyms is not None:
            document, _ = self._pseudonyms.apply(document)
        return document, result.masked + count


_ENCODE = msgspec.json.Encoder(order="sorted").encode


def _checked(given: NewDocument, max_bytes: int) -> NewDocument:
    if not given.id.strip() or len(given.id) > LONGEST_ID_CHARS or _NOT_IN_IDS.search(given.id):
        raise BadRequestError(f"an id has 1 to {LONGEST_ID_CHARS} characters and no control characters")
    if not _SOURCE_NAME.fullmatch(given.source):
        raise BadRequestError(f"invalid source name {given.source!r}; use up to 128 characters without a slash")
    if bool(given.data) == bool(given.text):
        raise BadRequestError("missing content, or both kinds: give either text or data")
    size = len(given.data) or len(_encoded(given.text))
    if size > max_bytes:
        raise BadRequestError(f"{size:,} bytes exceed the limit of {max_bytes:,}; split it or raise max_file_bytes")
    return given


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as err:
        raise BadRequestError(f"the text is not valid Unicode at character {err.start}") from err


def _kind(given: NewDocument, readers: dict[str, ReaderFactory]) -> FileKind:
    """Return reader and corpus type, by media type, by the extension of the id, else plain text."""
    media = given.media_type.partition(";")[0].strip().lower()
    if media and media not in _EXTENSIONS and not media.startswith("text/"):
        raise BadRequestError(f"unknown media type {media!r}; choose from text/plain, {', '.join(_EXTENSIONS)}")
    name = f"{given.id.rstrip('/')}.{_EXTENSIONS.get(media, 'txt')}" if media else given.id
    kind = classify(name, readers)
    if not kind.known:
        kind = replace(kind, known=not given.data)
    return kind if given.corpus_type is None else replace(kind, corpus_type=given.corpus_type, own=True)


def _with_fields(document: Document, given: NewDocument) -> Document:
    """Add the fields of the caller, which win over those of the text. The title is searched with every chunk."""
    meta = dict(document.meta) | {key: _plain(value) for key, value in given.metadata.items() if value is not None}
    meta |= {key: value for key, value in (("url", given.url), ("parent", given.parent)) if value}
    pairs = tuple(meta.items())
    fields = {"document_title": given.title, "author": given.author, "channel": given.channel}
    fields = {name: value for name, value in fields.items() if value}
    moment = _moment(given.created_at)

    def change(chunk: Chunk) -> Chunk:
        changed = replace(chunk, meta=pairs, timestamp=moment or chunk.timestamp, **fields)
        if given.title and not chunk.context_prefix and chunk.level == "chunk":
            changed = replace(changed, context_prefix=given.title, content_hash=content_hash(given.title, chunk.text))
        return changed

    return replace(
        document, title=given.title or document.title, meta=pairs, chunks=tuple(map(change, document.chunks))
    )


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _moment(value: Any) -> datetime | None:
    if value is None:
        return None
    try:
        return datetime.fromtimestamp(moment_seconds(value), UTC)
    except (ValueError, OverflowError, OSError) as err:
        raise BadRequestError(f"created_at {value!r} is not a time; give ISO 8601 or seconds since the epoch") from err
