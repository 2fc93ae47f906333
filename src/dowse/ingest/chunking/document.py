"""Builder of Documents: the bytes of a file become text, the spans cut from that text become chunks."""

from __future__ import annotations

from bisect import bisect_right
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, BOM_UTF32_BE, BOM_UTF32_LE
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from itertools import accumulate
from typing import Any

import msgspec
from msgspec.structs import asdict, replace

from dowse.errors import BadRequestError
from dowse.identity import bytes_hash, chunk_id, content_hash, document_id
from dowse.ingest.chunking.pack import Span
from dowse.ingest.sources.encoding import guess, wide
from dowse.ingest.sources.kinds import Kind, kind_of
from dowse.ports import SourceFile
from dowse.types import Chunk, Document, Edge, Level, ServiceFact

SEPARATOR = " > "
# Longest first: the mark of UTF-32 begins with that of UTF-16.
_MARKS = (
    (BOM_UTF32_LE, "utf-32-le"),
    (BOM_UTF32_BE, "utf-32-be"),
    (BOM_UTF8, "utf-8"),
    (BOM_UTF16_LE, "utf-16-le"),
    (BOM_UTF16_BE, "utf-16-be"),
)

Lines = tuple[int | None, int | None]
"""First and last line, counted from 1."""


class ChunkSpan(msgspec.Struct, frozen=True):
    """Span of a text that becomes a chunk; the other fields are the chunk's."""

    span: Span
    context_prefix: str = ""
    section_path: str | None = None
    section_type: str | None = None
    page: int | None = None  # from 1
    symbol_name: str | None = None
    symbol_kind: str | None = None
    qualified_name: str | None = None
    signature: str | None = None
    summary: str | None = None
    service_name: str | None = None
    calls_out: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()
    facts: tuple[ServiceFact, ...] = ()  # with a line or none in `place`: `build` adds chunk and path


class Heading(msgspec.Struct, frozen=True):
    """Title, author, date and metadata of a whole file."""

    title: str
    author: str | None = None
    timestamp: datetime | None = None
    meta: tuple[tuple[str, str], ...] = ()


NOT_TEXT, NOT_VALID = "not text: ", "not valid "  # beginnings of the messages of `decode`
LONGEST_TRAIL_CHARS = 1_000  # chosen: every chunk of a section repeats it


def decode(data: bytes) -> str:
    """Decode a file by its byte order mark, as UTF-8, or by a guess. CRLF becomes a newline."""
    mark, encoding = next(((m, name) for m, name in _MARKS if data.startswith(m)), (b"", "utf-8"))
    if encoding == "utf-8" and (at := data.find(b"\0")) >= 0:
        encoding = wide(data) or ""
        if mark or not encoding:
            raise BadRequestError(f"{NOT_TEXT}byte {at} is NUL; convert it, for example with iconv, or ignore it")
    try:
        text = data[len(mark) :].decode(encoding)
    except UnicodeDecodeError as err:
        guessed = guess(data) if encoding == "utf-8" and not mark else None
        if guessed:
            return decode(data.decode(guessed).encode())
        at = len(mark) + err.start
        name = encoding[:6].upper().rstrip("-")
        raise BadRequestError(f"{NOT_VALID}{name} at byte {at}; convert it, for example with iconv") from err
    return text.replace("\r\n", "\n") if "\r" in text else text


class DocumentBuilder:
    """Builder of one file's document. It makes every chunk once, with id, hash and the file's fields."""

    def __init__(self, file: SourceFile, kind: Kind, heading: Heading) -> None:
        self.file = file
        self.heading = heading
        self.shared = Chunk(
            id="",
            document_id=document_id(file.source, file.path),
            text="",
            corpus_type=file.corpus_type or kind.corpus_type.value,
            source_uri=file.uri,
            document_title=heading.title,
            document_source=file.source,
            repo_name=file.source,
            file_path=file.path,
            language=file.language or kind.language,
            author=heading.author,
            timestamp=heading.timestamp,
            meta=heading.meta,
        )
        self._occurrences: Counter[tuple[Level, str]] = Counter()

    def chunk(self, text: str, fields: dict[str, Any], level: Level = "chunk") -> Chunk:
        """Return the chunk of a text. `fields` are those of the chunk that the file does not give."""
        key = (level, text)
        occurrence = self._occurrences[key]
        self._occurrences[key] = occurrence + 1
        return replace(
            self.shared,
            id=chunk_id(self.shared.source_uri, level, text, occurrence),
            text=text,
            level=level,
            content_hash=content_hash(fields.get("context_prefix", ""), text),
            **fields,
        )

    def document(
        self,
        chunks: Iterable[Chunk],
        edges: Iterable[Edge] = (),
        facts: Iterable[ServiceFact] = (),
        meta: Iterable[tuple[str, str]] = (),
    ) -> Document:
        """Return the document. `meta` is what the document has beyond its chunks."""
        return Document(
            id=self.shared.document_id,
            source=self.file.source,
            path=self.file.path,
            title=self.heading.title,
            content_hash=bytes_hash(self.file.data),
            chunks=tuple(chunks),
            edges=tuple(edges),
            size_bytes=len(self.file.data),
            modified_ns=self.file.modified_ns,
            meta=(*self.heading.meta, *meta),
            facts=tuple(facts),
        )


def build(
    file: SourceFile,
    text: str,
    spans: Iterable[ChunkSpan],
    *,
    kind: Kind | None = None,
    heading: Heading | None = None,
    lines: Callable[[int, int], Lines] | None = None,
    meta: Iterable[tuple[str, str]] = (),
) -> Document:
    """Return the document with one chunk a span, in order; blank spans are dropped.

    `kind` and `heading` are by default those of the file's path. `lines` turns lines of the text into lines of the
    file, where the text is not the file itself. `meta` goes to the document, not to its chunks.
    """
    builder = DocumentBuilder(file, kind or kind_of(file), heading or Heading(file_name(file)))
    line_starts = starts_of(text)
    chunks: list[Chunk] = []
    facts: list[ServiceFact] = []
    for each in spans:
        start, stop = trimmed(text, each.span)
        if start == stop:
            continue
        first, last = bisect_right(line_starts, start), bisect_right(line_starts, stop - 1)
        fields = asdict(each)
        fields["start_line"], fields["end_line"] = lines(first, last) if lines else (first, last)
        del fields["span"], fields["facts"]
        chunk = builder.chunk(text[start:stop], fields)
        chunks.append(chunk)
        for fact in each.facts:
            place = f"{file.path}:{fact.place or chunk.start_line}"
            facts.append(replace(fact, chunk_id=chunk.id, place=place, repo=file.source))
    return builder.document(chunks, facts=facts, meta=meta)


def no_lines(_first: int, _last: int) -> Lines:
    """Return no lines: for files that have none, as PDF."""
    return None, None


def starts_of(text: str) -> list[int]:
    """Return the offset of each line, and of one behind the last."""
    return list(accumulate((len(line) + 1 for line in text.split("\n")), initial=0))


def trail(*parts: str | None) -> str:
    """Join the parts of a path of headings or keys, without the empty ones; a long path loses its middle."""
    path = SEPARATOR.join(filter(None, parts))
    half = LONGEST_TRAIL_CHARS // 2
    return path if len(path) <= LONGEST_TRAIL_CHARS else f"{path[:half]} … {path[-half:]}"


def file_name(file: SourceFile) -> str:
    return file.path.rsplit("/", 1)[-1]


def trimmed(text: str, span: Span) -> Span:
    """Return the span without blank lines around it; the first line keeps its indentation."""
    piece = text[span[0] : span[1]]
    blank = len(piece) - len(piece.lstrip())
    if blank == len(piece):
        return span[0], span[0]
    return span[0] + piece.rfind("\n", 0, blank) + 1, span[0] + len(piece.rstrip())
