"""What the mail reader makes of mailboxes and messages."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from dowse.errors import BadRequestError
from dowse.ingest.readers.mail import read_mail
from dowse.ingest.sources.kinds import classify
from dowse.ports import SourceFile
from dowse.types import Chunk, Document

BOX = """From ada@acme.example Wed Mar 18 12:00:00 2026
From: Ada King <ada@acme.example>
Subject: =?utf-8?q?Br=C3=BCcke?= is down
Date: Wed, 18 Mar 2026 13:00:00 +0100
Message-ID: <1@acme.example>
List-Id: Ops <ops.acme.example>

The bridge is down.
>From here on we walk.

--\x20
Ada

From bob@acme.example Wed Mar 18 13:00:00 2026
From: bob@acme.example
Subject: Re: =?utf-8?q?Br=C3=BCcke?= is down
Date: Wed, 18 Mar 2026 14:00:00 +0100
Message-ID: <2@acme.example>
In-Reply-To: <1@acme.example>
References: <1@acme.example>

On Wed, 18 Mar 2026, Ada King wrote:
> The bridge is down.
Is there a boat?

From zoe@acme.example Wed Mar 18 13:00:00 2026
From: Zoe <zoe@acme.example>
Subject: Lunch
Date: nonsense

Soup.
"""


def read(text: str | bytes, path: str = "ops.mbox") -> Document:
    data = text.encode() if isinstance(text, str) else text
    return read_mail(SourceFile("mail", path, data, 0))


def only(text: str) -> Chunk:
    (chunk,) = read(text, "a.eml").chunks
    return chunk


def test_a_message_is_a_chunk_with_author_moment_list_and_thread() -> None:
    first, second, third = read(BOX).chunks
    assert first.text == "The bridge is down.\nFrom here on we walk."
    assert (first.author, first.channel, first.thread_id) == ("Ada King", "ops.acme.example", "<1@acme.example>")
    assert first.timestamp == datetime(2026, 3, 18, 12, tzinfo=UTC)
    assert first.context_prefix == "Brücke is down > @Ada King > 2026-03-18 12:00"
    assert (second.text, second.author, second.thread_id) == ("Is there a boat?", "bob@acme.example", first.thread_id)
    assert (third.text, third.timestamp, third.corpus_type) == ("Soup.", None, "CONVO_OTHER")


def test_a_reply_points_at_what_it_answers() -> None:
    document = read(BOX)
    first, second, _ = document.chunks
    (edge,) = document.edges
    assert (edge.source_id, edge.target_id, edge.relation) == (second.id, first.id, "replies_to")


def test_lines_are_those_of_the_messages_in_the_mailbox() -> None:
    lines = BOX.split("\n")
    for chunk in read(BOX).chunks:
        assert chunk.start_line is not None
        assert chunk.end_line is not None
        assert lines[chunk.start_line - 1].startswith("From ")
        assert chunk.text.split("\n")[0] in "\n".join(lines[chunk.start_line - 1 : chunk.end_line])


def test_parts_are_plain_text_first_and_files_are_mentioned() -> None:
    whole = (
        "From: a@x\nSubject: s\nContent-Type: multipart/mixed; boundary=B\n\n"
        "--B\nContent-Type: text/plain\n\nplain words\n"
        "--B\nContent-Type: text/html\n\n<p>other words</p>\n"
        "--B\nContent-Type: application/pdf\nContent-Disposition: attachment; filename=plan.pdf\n\nxx\n--B--\n"
    )
    assert only(whole).text == "plain words\n[file: plan.pdf]"


def test_html_alone_is_read_as_a_page_and_base64_is_decoded() -> None:
    html = "From: a@x\nSubject: s\nContent-Type: text/html\n\n<p>Hello <b>you</b></p><script>no()</script>\n"
    assert only(html).text == "Hello you"
    coded = "From: a@x\nSubject: s\nContent-Transfer-Encoding: base64\n\nZ3LDvMOfZQ==\n"
    assert only(coded).text == "grüße"


def test_unknown_charsets_and_broken_headers_are_read_as_they_are() -> None:
    chunk = only("From: =?nope?q?x?=\nSubject: =?utf-8?b?!!!?=\nContent-Type: text/plain; charset=klingon\n\nwords\n")
    assert (chunk.text, chunk.author) == ("words", "=?nope?q?x?=")


def test_a_line_that_starts_with_from_does_not_split_a_message() -> None:
    text = "From a@x Mon\nFrom: a@x\nSubject: s\n\nOne.\n\nFrom here it is downhill.\n"
    assert [chunk.text for chunk in read(text).chunks] == ["One.\n\nFrom here it is downhill."]


def test_what_holds_no_message_is_refused() -> None:
    with pytest.raises(BadRequestError, match="not a mailbox"):
        read("\n\n")


def test_a_thousand_nested_parts_do_not_harm() -> None:
    nested = "From: a@x\nSubject: deep\n" + "Content-Type: multipart/mixed; boundary=B\n\n--B\n" * 1000
    with pytest.raises(BadRequestError):
        read(nested, "a.eml")


def test_mailboxes_have_their_reader() -> None:
    assert {classify(path).reader for path in ("a.mbox", "x/b.eml", "C.MBX")} == {"mail"}


PIECES = st.sampled_from(
    [b"From a b\n", b"From: x <y@z>\n", b"Subject: =?utf-8?q?=ff?=\n", b"\n", b"\n\n", b"References: <a> <b>\n",
     b"Message-ID: <a>\n", b"In-Reply-To: <b>\n", b"Content-Type: multipart/mixed; boundary=B\n", b"--B\n", b"--B--\n",
     b"Content-Type: text/html\n", b"Content-Transfer-Encoding: base64\n", b"Content-Transfer-Encoding: x-uuencode\n",
     b"Date: Mon, 99 Foo 9999 99:99:99 +9999\n", b"Content-Disposition: attachment; filename*=x''%ff\n", b">From \n",
     b"On 1 Jan someone wrote:\n", b"> quoted\n", b"begin 644 x\n", b"<p><p><table>", b"\xff\xfe\x00"]
)  # fmt: skip


@seed(6)
@settings(max_examples=200, deadline=None)
@given(parts=st.lists(PIECES | st.binary(max_size=12), max_size=16))
def test_any_bytes_become_chunks_or_a_reason(parts: list[bytes]) -> None:
    try:
        document = read(b"".join(parts))
    except BadRequestError:
        return
    assert document == read(b"".join(parts))
    for chunk in document.chunks:
        assert chunk.text.strip()
        assert "\0" not in chunk.text + chunk.context_prefix
        (chunk.text + chunk.context_prefix + str(chunk.author)).encode()
