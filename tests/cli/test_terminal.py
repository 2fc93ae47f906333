from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dowse.errors import BadRequestError
from dowse.query.plan.operators import parse_moment
from dowse.serve import plain_text as terminal
from dowse.serve.best_line import Marker
from dowse.serve.plain_text import ChunkLocator
from dowse.serve.wire.flags import value_of
from dowse.tokenizer import Tokenizer
from dowse.types import QueryType, Score, ScoredChunk
from values import replace

CHUNK = ScoredChunk(
    "00000000000000ff",
    "d",
    "def first():\n    pass\n\ndef retry_payment():\n    return charge_again()\n",
    "CODE_LOGIC",
    "app/src/pay.py",
    document_source="app",
    file_path="src/pay.py",
    start_line=10,
    end_line=14,
    final_score=0.75,
    confidence=0.25,
)
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


@given(st.text())
def test_cleaned_text_holds_no_control_character_but_newline(text: str) -> None:
    shown = terminal.clean(text)
    assert not [char for char in shown if (ord(char) < 32 and char != "\n") or 127 <= ord(char) < 160]
    shown.encode("utf-8")


@given(st.text())
def test_a_path_is_always_one_printable_line(path: str) -> None:
    shown = terminal.clean_path(path)
    assert not [char for char in shown if ord(char) < 32 or 127 <= ord(char) < 160]
    assert len(shown.splitlines()) <= 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("a\x9b31mb", "a31mb"),
        ("over\rwritten\r\nnext", "overwritten\nnext"),
        ("if a\u202e } evil", "if a } evil"),
        ("\ttab", "    tab"),
    ],
)
def test_escapes_are_stripped(text: str, shown: str) -> None:
    assert terminal.clean(text) == shown


def test_a_path_with_a_newline_and_an_escape_is_shown_escaped() -> None:
    assert terminal.clean_path("a\nb\x1b[2J☃.md") == "a\\nb\\x1b[2J☃.md"


def test_a_file_below_the_folder_is_named_relative_to_it(tmp_path: Path) -> None:
    file = tmp_path / "src" / "pay.py"
    file.parent.mkdir()
    file.write_text("x")
    place = ChunkLocator({"app": str(tmp_path)}, tmp_path / "src").of(CHUNK)
    assert (place.name, place.path, place.file) == ("pay.py", "pay.py", file)


def test_a_file_elsewhere_is_named_by_the_index_and_opened_by_its_path(tmp_path: Path) -> None:
    file = tmp_path / "src" / "pay.py"
    file.parent.mkdir()
    file.write_text("x")
    place = ChunkLocator({"app": str(tmp_path)}, tmp_path / "other").of(CHUNK)
    assert (place.name, place.path, place.file) == ("app/src/pay.py", str(file), file)


def test_a_file_that_is_gone_has_only_its_name(tmp_path: Path) -> None:
    place = ChunkLocator({"app": str(tmp_path)}, tmp_path).of(CHUNK)
    assert (place.name, place.path, place.file) == ("app/src/pay.py", "app/src/pay.py", None)


def test_piped_hits_are_path_line_column_and_the_best_line(tmp_path: Path) -> None:
    place, marker = ChunkLocator({}, tmp_path).of(CHUNK), Marker("retry payments", Tokenizer())
    assert terminal.hit_line(CHUNK, place, marker) == "app/src/pay.py:13:5:def retry_payment():"
    assert terminal.hit_line(CHUNK, place, marker, scores=True) == "app/src/pay.py:13:5:0.25:def retry_payment():"


def test_a_hit_of_a_paper_tells_its_page(tmp_path: Path) -> None:
    paged = replace(CHUNK, start_line=None, end_line=None, page=3)
    line = terminal.hit_line(paged, ChunkLocator({}, tmp_path).of(paged), Marker("first", Tokenizer()))
    assert line == "app/src/pay.py:p3:5:def first():"


def test_the_snippet_is_the_line_with_most_words_of_the_query() -> None:
    lines = Marker("retry payments", Tokenizer()).snippet(CHUNK.text, CHUNK.start_line, None, 1)
    assert [line.number for line in lines] == [12, 13, 14]
    start, stop = lines[1].marks[0]
    assert lines[1].text[start:stop] == "retry_payment"


def test_without_a_match_the_snippet_starts_at_the_first_line_that_is_not_blank() -> None:
    lines = Marker("zeta", Tokenizer()).snippet("\n\nalpha\nbeta", 1, None, 0)
    assert [line.text for line in lines] == ["alpha"]


def test_marks_follow_the_stems_of_the_index() -> None:
    marker = Marker("retries", Tokenizer())
    assert marker.marks("we retry, retried; no trial") == ((3, 8), (10, 17))


def test_the_explanation_has_a_line_a_stage() -> None:
    chunk = replace(CHUNK, scores=(Score("dense", 0.5, 3, "cosine\x1b[0m"), Score("fuse", 0.75, 0, "z")))
    assert terminal.explain_lines(chunk) == [
        "stage   value  rank  why",
        "dense  0.5000    #3  cosine",
        "fuse   0.7500        z",
    ]


@pytest.mark.parametrize(
    ("env", "refused", "on_terminal", "coloured"),
    [
        ({}, False, True, True),
        ({}, False, False, False),
        ({}, True, True, False),
        ({"NO_COLOR": "1"}, False, True, False),
        ({"NO_COLOR": ""}, False, True, True),
        ({"FORCE_COLOR": "1"}, False, False, True),
        ({"FORCE_COLOR": "0"}, False, False, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False, True, False),
        ({"CLICOLOR": "0"}, False, True, False),
        ({"CLICOLOR_FORCE": "1"}, False, False, True),
        ({"TERM": "dumb"}, False, True, False),
    ],
)
def test_who_decides_on_colours(env: dict[str, str], refused: bool, on_terminal: bool, coloured: bool) -> None:
    assert terminal.wants_colour(env, refused=refused, terminal=on_terminal) is coloured


@pytest.mark.parametrize(
    ("count", "shown"),
    [(1023, "1,023 bytes"), (1536, "1.5 KB"), (3 * 1024**2, "3.0 MB"), (2 * 1024**4, "2.0 TB")],
)
def test_sizes_for_people(count: int, shown: str) -> None:
    assert terminal.human_bytes(count) == shown


def test_moments_count_back_from_now() -> None:
    assert parse_moment("90d", NOW, end=False) == NOW - timedelta(days=90)
    assert parse_moment("12h", NOW, end=False) == NOW - timedelta(hours=12)
    assert parse_moment("2w", NOW, end=True) == NOW - timedelta(weeks=2)


def test_a_day_counts_wholly_at_both_ends() -> None:
    midnight = datetime(2026, 1, 31, tzinfo=UTC)
    assert parse_moment("2026-01-31", NOW, end=False) < midnight
    assert parse_moment("2026-01-31", NOW, end=True) == midnight + timedelta(days=1)


def test_a_time_with_a_zone_keeps_it() -> None:
    moment = parse_moment("2026-01-31T10:00:00+02:00", NOW, end=False)
    assert moment == datetime(2026, 1, 31, 8, tzinfo=UTC) - timedelta(microseconds=1)


@pytest.mark.parametrize("text", ["", "yesterday", "90x", "2026-13-01", "9" * 20 + "y"])
def test_what_is_no_time_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadRequestError, match="write 90d"):
        parse_moment(text, NOW, end=False)


def test_typed_texts_become_values_of_a_request() -> None:
    assert value_of("meta_filter", ["a=b=c", "d="]) == (("a", "b=c"), ("d", ""))
    assert value_of("weights", ["dense=0.7"]) == (("dense", 0.7),)
    assert value_of("legs", ["dense, bm25_nlp"]) == ("dense", "bm25_nlp")
    assert value_of("path_filter", ["*.py", "docs/**"]) == ("*.py", "docs/**")
    assert value_of("top_k", ["3", "5"]) == 5
    assert value_of("boost", ["false"]) is False
    assert value_of("rerank", ["none"]) == "none"
    assert value_of("query_type", ["factual"]) is QueryType.FACTUAL


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("top_k", "many", "invalid value 'many' for --limit: expected a whole number"),
        ("alpha", "high", "invalid value 'high' for --set alpha: expected a number from 0 to 1"),
        ("fusion", "sum", "invalid value 'sum' for --set fusion: expected z|rrf|minmax"),
        ("boost", "perhaps", "invalid value 'perhaps' for --set boost: expected true|false"),
        ("meta_filter", "=b", "invalid value '=b' for --set meta_filter: expected KEY=VALUE"),
        ("weights", "dense", "invalid value 'dense' for --set weights: expected LEG=W, such as dense=0.7"),
        ("legs", "words", "invalid value 'words' for --set legs: expected names of legs: dense, bm25_code, bm25_nlp"),
    ],
)
def test_a_wrong_value_is_told_with_its_flag_and_the_expected_form(name: str, text: str, told: str) -> None:
    with pytest.raises(BadRequestError) as error:
        value_of(name, [text])
    assert str(error.value) == told
