"""Threads of turns go in, whatever they were read from; a Document whose chunks hold whole turns comes out.

A thread that fits is one chunk. A longer one is split between turns, and each later part is told how the thread began.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from dowse.identity import bytes_hash, chunk_id, document_id, embedded_text, text_hash
from dowse.ingest.chunking.document import Heading
from dowse.ingest.chunking.pack import PROSE, Budget, windows
from dowse.ports import SourceFile
from dowse.types import Chunk, CorpusType, Document, Edge

SEPARATOR = " > "
REPLY_WEIGHT = 0.9  # chosen: nothing is nearer to a reply than what it answers


@dataclass(frozen=True)
class Turn:
    """What one person said at once."""

    text: str
    lines: tuple[int, int]  # of the file, from 1, both inclusive
    author: str | None = None
    moment: datetime | None = None  # aware, UTC
    place: str | None = None  # its own section path, where it has one


@dataclass(frozen=True)
class Thread:
    """Turns that belong together, in order."""

    turns: tuple[Turn, ...]
    prefix: tuple[str, ...] = ()  # stands above every chunk
    opening: str = ""  # how it began; stands above the chunks that do not hold the beginning
    whole: bool = True  # it begins here; else the first turns are in another file
    section_path: str | None = None
    channel: str | None = None
    thread_id: str | None = None
    meta: tuple[tuple[str, str], ...] = ()


def build_threads(file: SourceFile, corpus_type: CorpusType, heading: Heading, threads: Iterable[Thread]) -> Document:
    """The document with the chunks of all threads, in order; threads without words are dropped."""
    occurrences: Counter[str] = Counter()
    chunks: list[Chunk] = []
    edges: list[Edge] = []
    for thread in threads:
        parts = [_chunk(file, corpus_type, heading, thread, part, number) for number, part in enumerate(_parts(thread))]
        own = [_identified(file, chunk, occurrences) for chunk in parts]
        chunks += own
        if thread.thread_id:
            edges += (
                Edge(later.id, own[0].id, "replies_to", REPLY_WEIGHT, "a later part of the thread") for later in own[1:]
            )
    return Document(
        id=document_id(file.source, file.path),
        source=file.source,
        path=file.path,
        title=heading.title,
        content_hash=bytes_hash(file.data),
        chunks=tuple(chunks),
        edges=tuple(edges),
        size_bytes=len(file.data),
        modified_ns=file.modified_ns,
        meta=heading.meta,
    )


def _parts(thread: Thread) -> Iterator[Sequence[Turn]]:
    """The whole thread when it fits; else runs of turns up to the target, a turn that is too long in windows."""
    turns = [turn for turn in thread.turns if turn.text.strip()]
    budget = PROSE.fitted("".join(turn.text for turn in turns[:20]))
    if _chars(turns) <= budget.limit_chars:
        if turns:
            yield turns
        return
    run: list[Turn] = []
    for turn in _cut(turns, budget):
        if run and _chars(run) + len(turn.text) + 1 > budget.target_chars:
            yield run
            run = []
        run.append(turn)
    if run:
        yield run


def _cut(turns: Iterable[Turn], budget: Budget) -> Iterator[Turn]:
    for turn in turns:
        if len(turn.text) <= budget.limit_chars:
            yield turn
            continue
        for start, stop in windows(turn.text, (0, len(turn.text)), replace(budget, overlap_chars=0)):
            if text := turn.text[start:stop].strip():
                yield replace(turn, text=text)


def _chars(turns: Sequence[Turn]) -> int:
    return sum(len(turn.text) + 1 for turn in turns)


def _chunk(
    file: SourceFile, corpus_type: CorpusType, heading: Heading, thread: Thread, part: Sequence[Turn], number: int
) -> Chunk:
    first = part[0]
    opening = thread.opening if number or not thread.whole else ""
    chunk = Chunk(
        id="",
        document_id=document_id(file.source, file.path),
        text="\n".join(turn.text for turn in part),
        corpus_type=file.corpus_type or corpus_type.value,
        source_uri=file.uri,
        document_title=heading.title,
        document_source=file.source,
        repo_name=file.source,
        file_path=file.path,
        language=file.language,
        start_line=min(turn.lines[0] for turn in part),
        end_line=max(turn.lines[1] for turn in part),
        section_path=first.place or thread.section_path,
        author=first.author or heading.author,
        timestamp=first.moment or heading.timestamp,
        channel=thread.channel,
        thread_id=thread.thread_id,
        context_prefix=SEPARATOR.join(filter(None, (*thread.prefix, opening))),
        meta=heading.meta + thread.meta,
    )
    return replace(chunk, content_hash=text_hash(embedded_text(chunk)))


def _identified(file: SourceFile, chunk: Chunk, occurrences: Counter[str]) -> Chunk:
    found = replace(chunk, id=chunk_id(file.uri, "chunk", chunk.text, occurrences[chunk.text]))
    occurrences[chunk.text] += 1
    return found
