"""How a text is cut, whatever it looks like."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dowse.errors import BadRequestError
from dowse.ingest.chunking.document import decode
from dowse.ingest.chunking.pack import CODE, PROSE, Budget, pack, windows
from values import replace

SMALL = Budget(target_chars=20, limit_chars=30, overlap_chars=4, breaks=("\n\n", "\n", ". ", " "))
TEXTS = st.text(alphabet="ab .\n", max_size=400)


def test_budgets_are_256_and_384_tokens() -> None:
    assert (PROSE.target_chars, PROSE.limit_chars, PROSE.overlap_chars) == (256 * 4, 384 * 4, 256 * 4 // 10)
    assert (CODE.target_chars, CODE.limit_chars, CODE.overlap_chars) == (int(256 * 3.2), int(384 * 3.2), 0)


def test_three_byte_characters_get_a_third_of_the_room() -> None:
    assert PROSE.fitted("索引" * 50).limit_chars == 384 * 4 // 3
    assert PROSE.fitted("plain") is PROSE


@given(TEXTS)
def test_windows_cover_the_text_in_order_within_the_limit(text: str) -> None:
    spans = windows(text, (0, len(text)), SMALL)
    assert spans[0][0] == 0
    assert spans[-1][1] == len(text)
    for (start, stop), (following, _) in pairwise(spans):
        assert start < following <= stop  # they overlap or touch, and move on
        assert stop - following <= SMALL.overlap_chars
    assert all(stop - start <= SMALL.limit_chars for start, stop in spans)


@given(TEXTS)
def test_without_overlap_windows_put_the_text_together_again(text: str) -> None:
    spans = windows(text, (0, len(text)), replace(SMALL, overlap_chars=0))
    assert "".join(text[start:stop] for start, stop in spans) == text


def test_a_window_ends_at_a_sentence_rather_than_at_a_word() -> None:
    text = "One two three. Four five six seven eight nine ten eleven."
    first = windows(text, (0, len(text)), SMALL)[0]
    assert text[: first[1]] == "One two three. "


def test_a_line_of_a_million_characters_is_cut() -> None:
    spans = windows("x" * 10**6, (0, 10**6), CODE)
    assert max(stop - start for start, stop in spans) <= CODE.limit_chars
    assert len(spans) == -(-(10**6 - CODE.limit_chars) // CODE.target_chars) + 1


@given(st.lists(st.integers(1, 60), max_size=20))
def test_packed_blocks_cover_all_and_join_only_up_to_the_target(sizes: list[int]) -> None:
    edges = [sum(sizes[:at]) for at in range(len(sizes) + 1)]
    blocks = list(pairwise(edges))
    spans = pack("x" * edges[-1], blocks, replace(SMALL, overlap_chars=0))
    assert [start for start, _ in spans[1:]] == [stop for _, stop in spans[:-1]]
    assert sum(stop - start for start, stop in spans) == edges[-1]
    for start, stop in spans:
        assert stop - start <= SMALL.target_chars or (start, stop) in blocks or stop - start <= SMALL.limit_chars
        if start in edges and stop in edges and (start, stop) not in blocks:
            assert stop - start <= SMALL.target_chars


def test_utf8_and_marked_utf16_and_utf32_are_decoded() -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-32"):
        assert decode("naïve 🚀\r\nline".encode(encoding)) == "naïve 🚀\nline"


def test_undecodable_bytes_are_named_by_their_place() -> None:
    with pytest.raises(BadRequestError, match="not valid UTF-8 at byte 3; convert it, for example with iconv"):
        decode(b"abc\x81")  # in no code page that is guessed
    with pytest.raises(BadRequestError, match="not valid UTF-8 at byte 6"):
        decode(b"\xef\xbb\xbfabc\xff")
    with pytest.raises(BadRequestError, match="byte 1 is NUL"):
        decode(b"a\0b")
    with pytest.raises(BadRequestError, match="not valid UTF-16"):
        decode(b"\xff\xfea")
