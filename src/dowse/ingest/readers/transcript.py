"""Reader of transcripts: WebVTT, SubRip or lines with speakers become speakers' turns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from html import unescape

import msgspec
from msgspec.structs import replace

from dowse.ingest.chunking.document import Heading, decode, file_name
from dowse.ingest.readers.conversation import Thread, Turn, build_threads
from dowse.ingest.readers.text import read_text
from dowse.ports import SourceFile
from dowse.types import CorpusType, Document

LONGEST_TURN_CHARS = 500  # chosen: half a chunk; a longer speech is cut, so that lines stay exact
FEWEST_TURNS = 3  # chosen: two lines with a colon are no conversation
SPOKEN_SHARE = 0.5  # of the lines, in a file that only looks like a transcript; chosen
LONGEST_LINE_CHARS = 5_000  # chosen: patterns are not tried on a longer one

_TIME = r"(?:(\d{1,3}):)?(\d{1,2}):(\d\d)(?:[.,](\d{1,3}))?"
_CUE = re.compile(rf"\s*{_TIME}\s*-->\s*(?:\d{{1,3}}:)?\d{{1,2}}:\d\d")
_VOICE = re.compile(r"<v(?:\.[^ \t>]*)?[ \t]+([^>]{1,80})>")
_TAG = re.compile(r"</?[a-zA-Z0-9.][^<>]{0,80}>")
_NAME = r"[^\W\d_][\w.'’&/-]*(?: [\w.'’&/()-]+){0,5}"
_SPOKEN = re.compile(rf"\s*(?:[\[(]?{_TIME}[\])]?\s*[-–]?\s*)?(?:\*\*)?({_NAME})(?:\*\*)?\s*:(?:\*\*)?\s+(\S.*)")
# "Ada Lovelace  00:01:02" on a line of its own, the words below it.
_ANNOUNCED = re.compile(rf"\s*({_NAME})\s*[\[(,]?\s+[\[(]?{_TIME}[\])]?\s*")
_DATE = re.compile(r"(?<!\d)((?:19|20)\d\d)-(\d\d)-(\d\d)(?:[T ,]+(?:at )?(\d\d):(\d\d))?(?!\d)")
_WORDS = re.compile(r"[^\W_]+")


class Utterance(msgspec.Struct, frozen=True):
    """Words of one speaker, before neighbours are joined."""

    speaker: str
    words: str
    start_s: float | None
    lines: tuple[int, int]


def read_transcript(file: SourceFile) -> Document:
    """Read a transcript of any form; the text shows which. Text without speakers is read as plain text."""
    lines = decode(file.data).split("\n")
    cues = any(_CUE.match(line) for line in lines if "-->" in line and len(line) <= LONGEST_LINE_CHARS)
    speeches = list(_cues(lines)) if cues else _spoken(lines)
    if not speeches:
        return read_text(file)
    started, has_time = _started(file, lines, cues=cues)
    stem = file_name(file).rpartition(".")[0] or file_name(file)
    title = " ".join(_WORDS.findall(_DATE.sub(" ", stem))) or stem  # the file's name as words, without its date
    turns = tuple(_turn(speech, started if has_time else None) for speech in _joined(speeches))
    people = ", ".join(dict.fromkeys(speech.speaker for speech in speeches if speech.speaker))
    meta = (("participants", people),) if people else ()
    thread = Thread(turns, prefix=(title, started.date().isoformat()) if started else (title,))
    heading = Heading(title, timestamp=started, meta=meta)
    return build_threads(file, CorpusType.CONVO_TRANSCRIPT, heading, [thread])


def _cues(lines: Sequence[str]) -> Iterator[Utterance]:
    """Return every cue of a WebVTT or SubRip file, without the notes, styles and numbers between them."""
    at, speaker, before = 0, "", ""
    while at < len(lines):
        timing = _CUE.match(lines[at]) if "-->" in lines[at] and len(lines[at]) <= LONGEST_LINE_CHARS else None
        if timing is None:
            at += 1
            continue
        first, at = at, at + 1
        while at < len(lines) and lines[at].strip() and "-->" not in lines[at]:
            at += 1
        spoken = [line for line in lines[first + 1 : at] if _plain(line) != before]  # live captions repeat a line
        before = _plain(lines[at - 1]) if at - 1 > first else before
        voice = _VOICE.search(" ".join(spoken)[:LONGEST_LINE_CHARS])
        words = " ".join(filter(None, map(_plain, spoken)))
        named = None if voice else _SPOKEN.fullmatch(words[:LONGEST_LINE_CHARS])
        speaker = " ".join(voice[1].split()) if voice else named[5] if named else ""
        if named:
            words = words[named.start(6) :]
        if words:
            yield Utterance(speaker, words, _seconds(timing), (first + 1, at))


def _plain(line: str) -> str:
    return " ".join(unescape(_TAG.sub("", line[:LONGEST_LINE_CHARS])).split())


def _spoken(lines: Sequence[str]) -> list[Utterance]:
    """Return the turns of a conversation: several turns, most of the lines, one speaker twice."""
    found: list[Utterance] = []
    inside = 0
    for number, line in enumerate(lines, start=1):
        short = line[:LONGEST_LINE_CHARS]
        inline, announced = _SPOKEN.fullmatch(short), _ANNOUNCED.fullmatch(short)
        if inline:
            found.append(Utterance(inline[5], line[inline.start(6) :].strip(), _seconds(inline), (number, number)))
        elif announced:
            found.append(Utterance(announced[1], "", _seconds(announced, 2), (number, number)))
        elif found and line.strip():
            last = found[-1]
            found[-1] = replace(last, words=f"{last.words} {line.strip()}".strip(), lines=(last.lines[0], number))
        inside += bool(found and line.strip())
    speakers = Counter(speech.speaker for speech in found)
    filled = sum(bool(line.strip()) for line in lines)
    talk = (
        len(found) >= FEWEST_TURNS and max(speakers.values()) > 1 and len(found) + inside >= 2 * SPOKEN_SHARE * filled
    )
    return [speech for speech in found if speech.words] if talk and 2 * len(speakers) <= len(found) + 2 else []


def _joined(speeches: Iterable[Utterance]) -> list[Utterance]:
    """Join neighbours of one speaker to one turn, up to a length."""
    turns: list[Utterance] = []
    for speech in speeches:
        last = turns[-1] if turns else None
        if last and last.speaker == speech.speaker and len(last.words) + len(speech.words) < LONGEST_TURN_CHARS:
            turns[-1] = replace(last, words=f"{last.words} {speech.words}", lines=(last.lines[0], speech.lines[1]))
        else:
            turns.append(speech)
    return turns


def _turn(speech: Utterance, started: datetime | None) -> Turn:
    text = f"{speech.speaker}: {speech.words}" if speech.speaker else speech.words
    start_s = speech.start_s
    moment = started + timedelta(seconds=start_s) if started and start_s is not None else None
    place = (
        None if start_s is None else f"{int(start_s) // 3600:02}:{int(start_s) // 60 % 60:02}:{int(start_s) % 60:02}"
    )
    return Turn(text, speech.lines, speech.speaker or None, moment, place)


def _seconds(match: re.Match[str], group: int = 1) -> float | None:
    hours, minutes, seconds, part = (match[group + offset] for offset in range(4))
    if minutes is None:
        return None
    return int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds) + (float(f"0.{part}") if part else 0.0)


def _started(file: SourceFile, lines: Sequence[str], *, cues: bool) -> tuple[datetime | None, bool]:
    """Return the start of the recording, by a note above the first cue or the path; True with an hour."""
    head = next((at for at, line in enumerate(lines) if "-->" in line), 0) if cues else 0
    for text in ("\n".join(lines[:head])[:LONGEST_LINE_CHARS], file.path):
        for found in _DATE.finditer(text):
            year, month, day, hour, minute = (int(each or 0) for each in found.groups())
            try:
                return datetime(year, month, day, hour, minute, tzinfo=UTC), found[4] is not None
            except ValueError:
                continue
    return None, False
