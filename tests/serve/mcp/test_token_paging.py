"""Pages of an answer fit their budget, join to the whole list, and know when they do not belong together."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dowse.errors import BadRequestError
from dowse.query.context import estimated_tokens
from dowse.serve.mcp.text import quoted, safe_line, safe_text, shortened
from dowse.serve.mcp.token_paging import FRAME_TOKENS, TokenPage, TokenPaging

WORDS = st.text(st.sampled_from('ab1 \n"{}[]§é'), max_size=120)


def page(rows: list[str], **fields: object) -> TokenPage[str]:
    paging = TokenPaging("call", **fields)  # type: ignore[arg-type]
    return paging.page(rows, str, lambda row: row.upper(), lambda item: (item, f'"{item}"'))


@settings(max_examples=150, deadline=None)
@given(st.lists(WORDS, max_size=40), st.integers(FRAME_TOKENS + 1, 600), st.one_of(st.none(), st.integers(1, 9)))
def test_pages_join_to_the_whole_list_and_each_fits(rows: list[str], budget_tokens: int, limit: int | None) -> None:
    joined: list[str] = []
    cursor = ""
    while True:
        found = page(rows, cursor=cursor, budget_tokens=budget_tokens, limit=limit)
        assert not found.moved
        assert len(found.items) >= 1 or not rows
        assert limit is None or len(found.items) <= limit
        sizes = [estimated_tokens(f'"{item}"') + 1 for item in found.items]
        assert len(found.items) == 1 or sum(sizes) <= budget_tokens - FRAME_TOKENS
        joined += found.items
        cursor = found.cursor
        assert found.end == {"truncated": bool(cursor), "cursor": cursor}
        if not cursor:
            break
    assert joined == [row.upper() for row in rows]


def test_a_cursor_notices_that_what_stood_before_it_changed() -> None:
    rows = [f"row {number}" for number in range(10)]
    cursor = page(rows, limit=3).cursor
    assert not page(rows, limit=3, cursor=cursor).moved
    assert not page([*rows[:3], "new", *rows[3:]], limit=3, cursor=cursor).moved
    assert page(["new", *rows], limit=3, cursor=cursor).moved


@pytest.mark.parametrize("cursor", ["x", "3", "3-", "-1-00000000-00000000", "3-zzzzzzzz-00000000", "9" * 40])
def test_what_is_no_cursor_is_refused(cursor: str) -> None:
    with pytest.raises(BadRequestError, match="invalid cursor"):
        page(["a"], cursor=cursor)


def test_a_cursor_of_another_call_is_refused() -> None:
    cursor = page(["a", "b"], limit=1).cursor
    with pytest.raises(BadRequestError, match="a different call"):
        TokenPaging("other", cursor).page(["a", "b"], str, str, lambda item: (item,))


def test_a_cursor_behind_the_end_gives_an_empty_page() -> None:
    cursor = page(["a", "b", "c"], limit=2).cursor
    found = page(["a"], limit=2, cursor=cursor)
    assert (found.items, found.cursor) == ((), "")


# --- text -------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300), st.integers(1, 80))
def test_shortened_text_begins_as_the_text_does_and_fits(text: str, tokens: int) -> None:
    short = shortened(text, tokens)
    if short != text:
        assert text.startswith(short.removesuffix(" …"))
        assert estimated_tokens(short) <= tokens + 1
    else:
        assert estimated_tokens(text) <= tokens


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300), st.one_of(st.none(), st.integers(1, 99_999)))
def test_every_line_of_quoted_text_stands_behind_a_bar(text: str, first_line: int | None) -> None:
    whole = "\n".join(quoted(safe_text(text), first_line))
    for offset, line in enumerate(whole.split("\n")):
        number, bar, _ = line.partition("|")
        assert bar
        assert number.strip() == ("" if first_line is None else str(first_line + offset))
    assert len(whole.splitlines()) == whole.count("\n") + 1


@given(st.text(max_size=300))
def test_a_title_is_one_line_that_is_not_too_long(text: str) -> None:
    line = safe_line(text)
    assert len(line.splitlines()) <= 1
    assert len(line) <= 160
