"""What the Slack reader makes of an export: threads, people, edits, bots, files, late replies, and odd input."""

from __future__ import annotations

import json
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from dowse import sample
from dowse.errors import BadRequestError
from dowse.identity import embedded_text, text_hash
from dowse.ingest.chunking.pack import PROSE
from dowse.ingest.readers.slack import SlackReader
from dowse.ingest.readers.slack_messages import Workspace, items_of, readable
from dowse.ingest.sources.kinds import classify
from dowse.ports import SourceFile
from dowse.types import Chunk, Document

PEOPLE = [
    {"id": "U1", "name": "ada", "profile": {"display_name": "ada", "real_name": "Ada King", "title": "Engines"}},
    {"id": "U2", "name": "bob", "real_name": "Bob Roe", "profile": {"display_name": "", "email": "bob@acme.example"}},
    {"id": "U3", "name": "bell", "is_bot": True, "profile": {"real_name": "bell", "bot_id": "B3"}},
]
CHANNELS = [{"id": "C0000001", "name": "ops", "topic": {"value": "Pages"}, "purpose": {"value": "Answer them"}}]
NOON = 1_773_835_200  # 2026-03-18 12:00 UTC
DAY = "2026-03-18"


def said(second: int, text: str, user: str = "U1", thread: int | None = None, **more: Any) -> dict[str, Any]:
    message = {"type": "message", "ts": f"{NOON + second}.000100", "user": user, "text": text, "client_msg_id": "x"}
    if thread is not None:
        message["thread_ts"] = f"{NOON + thread}.000100"
    return message | more


@pytest.fixture
def export(tmp_path: Path) -> Path:
    root = tmp_path / "export"
    (root / "ops").mkdir(parents=True)
    (root / "users.json").write_text(json.dumps(PEOPLE))
    (root / "channels.json").write_text(json.dumps(CHANNELS))
    return root


def read(export: Path, messages: list[Any], day: str = DAY) -> Document:
    path = export / "ops" / f"{day}.json"
    path.write_text(json.dumps(messages, indent=4))
    return read_file(export, f"ops/{day}.json")


def read_file(export: Path, path: str) -> Document:
    full = export / path
    data = full.read_bytes() if full.is_file() else b""
    return SlackReader().read(SourceFile("slack", path, data, 0, full_path=str(full)))


def texts(document: Document) -> list[str]:
    return [chunk.text for chunk in document.chunks]


# --- threads ----------------------------------------------------------------------------------------


def test_a_thread_is_one_chunk_with_author_moment_channel_and_thread(export: Path) -> None:
    asked = [said(0, "Is it down?", thread=0), said(60, "Yes.", "U2", thread=0), said(7200, "Good night")]
    document = read(export, asked)
    thread, lone = document.chunks
    assert thread.text == "[12:00] ada: Is it down?\n[12:01] Bob Roe: Yes."
    assert (thread.author, thread.channel, thread.thread_id) == ("ada", "ops", f"{NOON}.000100")
    assert thread.timestamp == datetime(2026, 3, 18, 12, 0, 0, 100, tzinfo=UTC)
    assert thread.corpus_type == "CONVO_SLACK"
    assert thread.context_prefix == "#ops > @ada > 2026-03-18 12:00"
    assert dict(thread.meta)["participants"] == "ada, Bob Roe"
    assert (document.title, lone.text) == ("#ops 2026-03-18", "[14:00] ada: Good night")
    assert thread.content_hash == text_hash(embedded_text(thread))


def test_lines_are_those_of_the_messages_in_the_file(export: Path) -> None:
    document = read(export, [said(0, "one", thread=0), said(7200, "apart"), said(60, "two", thread=0)])
    lines = (export / "ops" / f"{DAY}.json").read_text().split("\n")
    for chunk in document.chunks:
        assert chunk.start_line is not None
        assert chunk.end_line is not None
        around = "\n".join(lines[chunk.start_line - 1 : chunk.end_line])
        assert all(word in around for word in (["one", "two"] if "one" in chunk.text else ["apart"]))
        assert (lines[chunk.start_line - 1].strip(), lines[chunk.end_line - 1].strip(" ,")) == ("{", "}")


def test_lone_messages_join_their_neighbours_in_time_but_not_across_a_thread(export: Path) -> None:
    half, hour = 30 * 60, 3600
    document = read(
        export,
        [said(0, "a"), said(half, "b"), said(hour + 1, "c"), said(hour + 2, "t", thread=hour + 2),
         said(hour + 3, "r", thread=hour + 2), said(hour + 4, "d")],
    )  # fmt: skip
    assert texts(document) == [
        "[12:00] ada: a\n[12:30] ada: b",
        "[13:00] ada: c",
        "[13:00] ada: t\n[13:00] ada: r",
        "[13:00] ada: d",
    ]


def test_a_long_thread_is_split_between_messages_and_later_parts_know_its_beginning(export: Path) -> None:
    words = "word " * 60  # 300 characters
    document = read(export, [said(second, f"{second} {words}", thread=0) for second in range(12)])
    assert len(document.chunks) > 1
    assert all(len(chunk.text) <= PROSE.limit_chars for chunk in document.chunks)
    assert "\n".join(texts(document)).count("ada:") == 12
    first, *later = document.chunks
    assert all(chunk.text.startswith("[12:00] ada:") for chunk in document.chunks)
    assert all("ada: 0 word" in chunk.context_prefix and chunk.thread_id == first.thread_id for chunk in later)
    replies = [edge for edge in document.edges if edge.relation == "replies_to"]
    assert [(edge.source_id, edge.target_id) for edge in replies] == [(chunk.id, first.id) for chunk in later]


def test_a_reply_on_another_day_is_a_chunk_that_knows_how_the_thread_began(export: Path) -> None:
    read(export, [said(0, "Who broke staging?", thread=0)])
    late = read(export, [said(86_400, "It was me.", "U2", thread=0)], "2026-03-19")
    (chunk,) = late.chunks
    assert chunk.text == "[12:00] Bob Roe: It was me."
    assert chunk.context_prefix.endswith("> ada: Who broke staging?")
    assert chunk.thread_id == f"{NOON}.000100"


# --- messages ---------------------------------------------------------------------------------------


def test_edits_show_the_last_words_and_deleted_messages_are_gone(export: Path) -> None:
    changed = said(1, "right") | {"edited": {"ts": "9"}}
    document = read(
        export,
        [said(0, "wrnog", thread=0), said(2, "oops", thread=0), said(3, "kept (edited)", thread=0),
         {"type": "message", "subtype": "message_changed", "ts": "99.1", "message": said(0, "wrong", thread=0)},
         {"type": "message", "subtype": "message_deleted", "ts": "99.2", "deleted_ts": f"{NOON + 2}.000100"}, changed],
    )  # fmt: skip
    assert "oops" not in "".join(texts(document))
    assert "ada: wrong (edited)" in document.chunks[0].text
    assert "ada: right (edited)" in "".join(texts(document))


def test_bots_are_named_and_housekeeping_is_left_out(export: Path) -> None:
    bot = {"type": "message", "subtype": "bot_message", "ts": f"{NOON}.1", "bot_id": "B3", "text": "FIRING",
           "attachments": [{"fallback": "see the runbook", "text": "see the runbook"}]}  # fmt: skip
    unknown = {"type": "message", "subtype": "bot_message", "ts": f"{NOON + 1}.1", "username": "cron", "text": "done"}
    joined = said(2, "<@U1> has joined the channel", subtype="channel_join")
    assert texts(read(export, [bot, unknown, joined])) == [
        "[12:00] bell: FIRING\n> see the runbook\n[12:00] cron: done"
    ]


def test_files_are_mentioned_and_blocks_read_when_there_is_no_text(export: Path) -> None:
    block = {"type": "rich_text", "elements": [{"elements": [{"type": "text", "text": "from a block"}]}]}
    document = read(export, [said(0, "", blocks=[block]), said(1, "chart", files=[{"name": "p99.png"}])])
    assert texts(document) == ["[12:00] ada: from a block\n[12:00] ada: chart\n[file: p99.png]"]


def test_markup_is_shown_as_people_see_it() -> None:
    workspace = Workspace({"U1": "ada"}, {"C1": "ops"}, {"ops": "C1"})
    written = (
        "<@U1> <@U9|zoe> <#C1> <#C1|old> <!here> <!subteam^S1|@team> <https://a.example|A> <https://b.example> "
        "&lt;b&gt; &amp;lt;"
    )
    shown = "@ada @zoe #ops #old @here @team A (https://a.example) https://b.example <b> &lt;"
    assert readable(written, workspace) == shown


def test_a_permalink_needs_the_address_of_the_workspace(export: Path) -> None:
    plain = read(export, [said(0, "no address")])
    assert "permalink" not in dict(plain.chunks[0].meta)
    linked = read(export, [said(0, "see <https://acme.slack.com/archives/C9/p1>", thread=0)])
    expected = f"https://acme.slack.com/archives/C0000001/p{NOON}000100"
    assert dict(linked.chunks[0].meta)["permalink"] == expected


# --- around the export ------------------------------------------------------------------------------


def test_people_and_channels_are_listed_without_addresses(export: Path) -> None:
    people, channels = read_file(export, "users.json"), read_file(export, "channels.json")
    assert texts(people) == ["Ada King (@ada): Engines\nBob Roe\nbell: bot"]
    assert texts(channels) == ["#ops: Pages Answer them"]


def test_json_that_is_no_export_is_read_as_json(tmp_path: Path) -> None:
    for path, data in (("logs/2026-03-18.json", '{"level": "info"}'), ("users.json", '[{"id": 1, "plan": "free"}]')):
        full = tmp_path / path
        full.parent.mkdir(exist_ok=True)
        full.write_text(data)
        assert classify(path).reader == "slack"
        (chunk,) = read_file(tmp_path, path).chunks
        assert (chunk.text, chunk.corpus_type) == (data, "CODE_CONFIG")


def test_a_day_without_its_export_has_names_where_the_messages_tell_them(tmp_path: Path) -> None:
    (tmp_path / "ops").mkdir()
    messages = [said(0, "hi", "U7", user_profile={"display_name": "zoe"}), said(1, "hello", "U8")]
    (tmp_path / "ops" / f"{DAY}.json").write_text(json.dumps(messages))
    assert texts(read_file(tmp_path, f"ops/{DAY}.json")) == ["[12:00] zoe: hi\n[12:00] U8: hello"]


def test_an_export_in_a_zip_is_read_like_a_folder(export: Path, tmp_path: Path) -> None:
    day = json.dumps([said(0, "hi <@U2>")])
    archive = tmp_path / "export.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("users.json", json.dumps(PEOPLE))
        file.writestr("channels.json", json.dumps(CHANNELS))
        file.writestr(f"ops/{DAY}.json", day)
    inner = f"export.zip!/ops/{DAY}.json"
    found = SourceFile("slack", inner, day.encode(), 0, full_path=f"{archive}!/ops/{DAY}.json")
    assert texts(SlackReader().read(found)) == ["[12:00] ada: hi @Bob Roe"]


def test_every_message_of_the_sample_is_in_a_chunk_once() -> None:
    root = sample.root()
    for path in sorted(root.glob("slack-export/*/*.json")):
        document = SlackReader().read(
            SourceFile("acme", str(path.relative_to(root)), path.read_bytes(), 0, full_path=str(path))
        )
        told = [line for chunk in document.chunks for line in chunk.text.split("\n") if line.startswith("[")]
        spoken = [message for message in json.loads(path.read_text()) if message.get("subtype") != "channel_join"]
        files = sum(len(message.get("files", ())) for message in spoken)
        assert len(told) == len(spoken) + files, path
        assert not any("<@" in chunk.text for chunk in document.chunks)


# --- bad input --------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["[", "[1,", '[{"a": 1}', "[1 2]", "[" * 100_000])
def test_broken_json_is_refused_with_a_line(text: str) -> None:
    with pytest.raises(BadRequestError, match="line 1"):
        items_of(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
        ["ts", "type", "text", "user", "thread_ts", "subtype", "message", "files", "attachments", "blocks", "edited",
         "deleted_ts", "title", "fallback", "user_profile", "bot_id", "elements", "name"]), inner, max_size=5),
    max_leaves=12,
)  # fmt: skip
MESSAGE = st.dictionaries(
    st.sampled_from(["text", "user", "thread_ts", "subtype", "files", "message"]), JSON, max_size=5
)


@seed(6)
@settings(max_examples=150, deadline=None)
@given(items=st.lists(MESSAGE, max_size=6), ts=st.lists(st.text("0123456789.-e", max_size=12), min_size=6, max_size=6))
def test_any_json_becomes_chunks_or_a_reason(items: list[dict[str, Any]], ts: list[str]) -> None:
    messages = [{"type": "message", "ts": moment} | item for item, moment in zip(items, ts, strict=False)]
    file = SourceFile("slack", f"ops/{DAY}.json", json.dumps(messages).encode(), 0)
    reader = SlackReader()
    try:
        document = reader.read(file)
    except BadRequestError:
        return
    assert document == reader.read(file)
    ids = [chunk.id for chunk in document.chunks]
    assert len(ids) == len(set(ids))
    assert all(_sound(chunk) for chunk in document.chunks)


def _sound(chunk: Chunk) -> bool:
    return bool(chunk.text.strip()) and chunk.content_hash == text_hash(embedded_text(chunk))
