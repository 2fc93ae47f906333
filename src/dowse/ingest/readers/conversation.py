"""Documents of conversations: threads of turns enter, chunks that hold whole turns leave.

A thread that fits is one chunk. A longer one is split between turns, and each later part repeats how the thread began.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import msgspec
from msgspec.structs import replace

from dowse.ingest.chunking.document import DocumentBuilder, Heading, trail
from dowse.ingest.chunking.pack import PROSE, Budget, windows
from dowse.ingest.sources.kinds import Kind
from dowse.ports import SourceFile
from dowse.types import Chunk, CorpusType, Document, Edge

REPLY_WEIGHT = 0.9  # chosen: nothing is nearer to a reply than the message it answers


class Turn(msgspec.Struct, frozen=True):
    """Words of one person at once."""

    text: str
    lines: tuple[int, int]  # of the file, from 1, both inclusive
    author: str | None = None
    moment: datetime | None = None  # aware, UTC
    place: str | None = None  # its own section path, where it has one


class Thread(msgspec.Struct, frozen=True):
    """Turns that belong together, in order."""

    turns: tuple[Turn, ...]
    prefix: tuple[str, ...] = ()  # leads every chunk
    opening: str = ""  # how it began; leads the chunks that do not hold the beginning
    whole: bool = True  # it begins here; else the first turns are in another file
    section_path: str | None = None
    channel: str | None = None
    thread_id: str | None = None
    meta: tuple[tuple[str, str], ...] = ()


def build_threads(file: SourceFile, corpus_type: CorpusType, heading: Heading, threads: Iterable[Thread]) -> Document:
    """Return the document with the chunks of all threads, in order; threads without words are dropped."""
    builder = DocumentBuilder(file, Kind("", None, corpus_type), heading)
    chunks: list[Chunk] = []
    edges: list[Edge] = []
    for thread in threads:
        own = [_chunk(builder, thread, part, number) for number, part in enumerate(_parts(thread))]
        chunks += own
        if thread.thread_id:
            edges += (
                Edge(later.id, own[0].id, "replies_to", REPLY_WEIGHT, "a later part of the thread") for later in own[1:]
            )
    return builder.document(chunks, edges)


def _parts(thread: Thread) -> Iterator[Sequence[Turn]]:
    """Return the whole thread when it fits, else runs of turns up to the target; a long turn is cut."""
    turns = [turn for turn in thread.turns if turn.text.strip()]
    budget = PROSE.fitted("".join(turn.text for turn in turns[:20]))
    most_chars = budget.limit_chars if _chars(turns) <= budget.limit_chars else budget.target_chars
    run: list[Turn] = []
    for turn in _cut(turns, budget):
        if run and _chars(run) + len(turn.text) + 1 > most_chars:
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


def _chunk(builder: DocumentBuilder, thread: Thread, part: Sequence[Turn], number: int) -> Chunk:
    first, heading = part[0], builder.heading
    opening = thread.opening if number or not thread.whole else ""
    fields = {
        "start_line": min(turn.lines[0] for turn in part),
        "end_line": max(turn.lines[1] for turn in part),
        "section_path": first.place or thread.section_path,
        "author": first.author or heading.author,
        "timestamp": first.moment or heading.timestamp,
        "channel": thread.channel,
        "thread_id": thread.thread_id,
        "context_prefix": trail(*thread.prefix, opening),
        "meta": heading.meta + thread.meta,
    }
    return builder.chunk("\n".join(turn.text for turn in part), fields)
