"""What the transcript reader makes of subtitles and of plain lines with speakers."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from dowse.errors import BadRequestError
from dowse.ingest.chunking.pack import PROSE
from dowse.ingest.sources.kinds import classify
from dowse.ports import SourceFile
from dowse.types import Document
from readers_by_name import reader_of

VTT = """WEBVTT

NOTE Planning, recorded 2026-03-05, 14:00 UTC

1
00:00:04.000 --> 00:00:11.500
<v Ada King>Right, the recording is on.

2
00:00:11.800 --> 00:00:19.200 align:start
<v Ada King>We &amp; they <i>agree</i>.</v>

3
01:02:03.500 --> 01:02:09.000
<v Bob Roe>Then let us
begin.
"""
SRT = """1
00:00:01,000 --> 00:00:02,500
Ada: Hello.

2
00:01:00,000 --> 00:01:02,000
Bob: Hello
to you.
"""


def read(text: str, path: str) -> Document:
    return reader_of("transcript").read(SourceFile("talks", path, text.encode(), 0))


def test_cues_of_one_speaker_join_and_tags_go() -> None:
    (chunk,) = read(VTT, "talks/planning.vtt").chunks
    assert chunk.text == "Ada King: Right, the recording is on. We & they agree.\nBob Roe: Then let us begin."
    assert (chunk.start_line, chunk.end_line) == (6, 16)
    assert (chunk.author, chunk.corpus_type, chunk.section_path) == ("Ada King", "CONVO_TRANSCRIPT", "00:00:04")
    assert chunk.timestamp == datetime(2026, 3, 5, 14, 0, 4, tzinfo=UTC)
    assert dict(chunk.meta) == {"participants": "Ada King, Bob Roe"}


def test_subrip_has_speakers_before_a_colon_and_its_date_in_the_name() -> None:
    (chunk,) = read(SRT, "2026-04-01-stand-up.srt").chunks
    assert chunk.text == "Ada: Hello.\nBob: Hello to you."
    assert chunk.timestamp == datetime(2026, 4, 1, tzinfo=UTC)
    assert chunk.context_prefix == "stand up > 2026-04-01"


def test_captions_without_speakers_are_joined_and_repeated_lines_dropped() -> None:
    rolling = (
        "WEBVTT\n\n00:01.000 --> 00:02.000\nso the first\n\n00:02.000 --> 00:03.000\nso the first\nand the second\n"
    )
    (chunk,) = read(rolling, "a.vtt").chunks
    assert (chunk.text, chunk.author) == ("so the first and the second", None)


def test_long_talk_is_split_between_turns_with_their_times() -> None:
    cues = "".join(
        f"00:{at:02}:00.000 --> 00:{at:02}:30.000\n<v {'Ada' if at % 2 else 'Bob'}>{'word ' * 40}{at}\n\n"
        for at in range(20)
    )
    document = read("WEBVTT\n\n" + cues, "long.vtt")
    assert len(document.chunks) > 3
    assert all(len(chunk.text) <= PROSE.limit_chars for chunk in document.chunks)
    assert all(chunk.text.startswith(("Ada: ", "Bob: ")) for chunk in document.chunks)
    lines = document.chunks[1].start_line
    assert lines is not None
    assert document.chunks[1].section_path == f"00:{(lines - 3) // 3:02}:00"


@pytest.mark.parametrize(
    "text",
    [
        "Ada: We start.\nBob: Fine.\nAda: Good, then.\n",
        "[00:01] Ada: We start.\n[00:05] Bob: Fine.\n[00:09] Ada: Good, then.\n",
        "Ada  00:01\nWe start.\n\nBob  00:05\nFine.\n\nAda  00:09\nGood, then.\n",
        "**Ada:** We start.\n**Bob:** Fine.\n**Ada:** Good, then.\n",
    ],
)
def test_lines_with_speakers_are_turns(text: str) -> None:
    (chunk,) = read(text, "transcripts/a.txt").chunks
    assert chunk.text == "Ada: We start.\nBob: Fine.\nAda: Good, then."


def test_prose_and_settings_are_no_conversation() -> None:
    for text in (
        "One thing: it works.\nIt really does, and has for years.\nNo more to say.\n",
        "a: 1\nb: 2\nc: 3\nd: 4\n",
    ):
        assert read(text, "transcripts/a.txt").chunks[0].text == text.strip()


def test_text_in_a_folder_of_transcripts_is_tried_as_one() -> None:
    assert classify("transcripts/monday.txt").reader == "transcript"
    assert classify("notes/monday.txt").reader == "text"
    assert classify("talks/monday.vtt").corpus_type == "CONVO_TRANSCRIPT"


PIECES = st.sampled_from(
    ["WEBVTT", "", "00:00:01.000 --> 00:00:02.000", "99:99 --> 1:1", "-->", "<v Ada>hi", "<v >", "Ada: hi", "1",
     "<" * 50, "NOTE 2026-99-99", "&#0;&#xD800;", "Ada  00:01", "a" * 600, "\u2028", "x: y"]
)  # fmt: skip


@seed(6)
@settings(max_examples=150, deadline=None)
@given(lines=st.lists(PIECES | st.text(max_size=20), max_size=12))
def test_anything_becomes_chunks_or_a_reason(lines: list[str]) -> None:
    text = "\n".join(lines).encode("utf-8", "replace").decode()
    try:
        document = read(text, "transcripts/a.vtt")
    except BadRequestError:
        return
    count = text.count("\n") + 1
    for chunk in document.chunks:
        assert chunk.text.strip()
        assert 1 <= (chunk.start_line or 0) <= (chunk.end_line or 0) <= count
        chunk.text.encode()
