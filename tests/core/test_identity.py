"""Names for things: the same on every machine, different for what differs."""

from __future__ import annotations

from hashlib import blake2b
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dowse.identity import (
    bytes_hash,
    chunk_id,
    document_id,
    embedded_text,
    id_number,
    number_id,
    searchable_text,
    text_hash,
)  # fmt: skip
from factories import PLAIN
from values import replace


def test_hashes_are_blake2_of_utf_8() -> None:
    assert text_hash("naïve") == bytes_hash("naïve".encode()) == blake2b("naïve".encode(), digest_size=16).hexdigest()
    assert len(text_hash("")) == 32


def test_a_lone_surrogate_has_a_hash_too() -> None:
    assert text_hash("\ud800") != text_hash("?")


def test_ids_are_16_hexadecimal_digits_and_never_change() -> None:
    """Written down once: an index from last year must fit the Dowse of this year."""
    assert document_id("docs", "a/b.md") == text_hash("docs\0a/b.md")[:16]
    own = text_hash("docs/a.md\0chunk\0" + "2" + "\0text")
    assert chunk_id("docs/a.md", "chunk", "text", 2) == text_hash("docs/a.md")[:4] + own[:12]
    assert (len(document_id("s", "p")), len(chunk_id("u", "chunk", "t"))) == (16, 16)


@pytest.mark.parametrize(
    "other",
    [
        chunk_id("docs/b", "chunk", "text", 0),
        chunk_id("docs/a", "section", "text", 0),
        chunk_id("docs/a", "chunk", "text ", 0),
        chunk_id("docs/a", "chunk", "text", 1),
    ],
)
def test_a_chunk_id_depends_on_source_level_text_and_occurrence(other: str) -> None:
    assert other != chunk_id("docs/a", "chunk", "text", 0)


def test_the_chunks_of_a_document_are_neighbours_among_all_ids() -> None:
    ids = sorted((chunk_id(f"docs/{name}.md", "chunk", f"text {n}"), name) for name in "abcdef" for n in range(20))
    changes = sum(one[1] != two[1] for one, two in pairwise(ids))
    assert changes == 5


def test_source_and_path_do_not_run_into_each_other() -> None:
    assert document_id("a", "b/c") != document_id("a/b", "c")


@given(st.integers(0, 2**64 - 1))
def test_an_id_is_its_number(number: int) -> None:
    assert id_number(number_id(number)) == number
    assert len(number_id(number)) == 16


def test_what_is_embedded_has_no_path_and_what_is_searched_has() -> None:
    chunk = replace(PLAIN, text="body", context_prefix="def f()", file_path="src/a.py")
    assert embedded_text(chunk) == "def f()\nbody"
    assert embedded_text(replace(chunk, context_prefix="")) == "body"
    assert embedded_text(replace(chunk, file_path="moved/b.py")) == embedded_text(chunk)
    assert searchable_text(chunk) == "def f()\nsrc/a.py\nbody"
    assert searchable_text(replace(chunk, context_prefix="", file_path=None)) == "body"
