"""A plug-in reader is a function from text to pieces; the builder does the rest."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from dowse import Piece, build_document
from dowse.errors import BadRequestError
from dowse.identity import embedded_text, text_hash
from dowse.ingest.chunking.pack import PROSE
from dowse.ingest.chunking.parents import with_parents
from dowse.ingest.readers import registry
from dowse.ports import SourceFile
from dowse.types import Document
from readers_by_name import reader_of


def blocks(text: str) -> Iterator[Piece | str]:
    yield from text.split("\n\n")


def numbers(text: str) -> Iterator[Piece]:
    yield Piece(str(sum(map(int, text.split()))), summary="A sum.")


def wrong(text: str) -> Iterator[int]:
    yield len(text)


def made_by_a_function() -> object:
    return reader_of("text")


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    offered = {"blocks": blocks, "numbers": numbers, "wrong": wrong, "made": made_by_a_function}
    points = EntryPoints(
        [EntryPoint(name, f"{__name__}:{each.__name__}", registry.GROUP) for name, each in offered.items()]
    )
    monkeypatch.setattr(registry, "entry_points", lambda group: points.select(group=group))


def read(name: str, text: str, path: str = "a.log") -> Document:
    return reader_of(name).read(SourceFile("app", path, text.encode(), 7))


def test_pieces_are_found_in_the_file_and_get_its_lines() -> None:
    document = read("blocks", "same\nline\n\nother\n\nsame\nline\n")
    assert [(each.text, each.start_line, each.end_line) for each in document.chunks] == [
        ("same\nline", 1, 2),
        ("other", 4, 4),
        ("same\nline", 6, 7),
    ]
    assert len({each.id for each in document.chunks}) == 3
    assert (document.title, document.size_bytes, document.modified_ns) == ("a.log", 28, 7)


def test_a_text_that_is_not_in_the_file_has_no_lines() -> None:
    (chunk,) = read("numbers", "20 22").chunks
    assert (chunk.text, chunk.start_line, chunk.summary) == ("42", None, "A sum.")


def test_long_pieces_are_split_and_keep_their_lines() -> None:
    lines = [f"line {at} of a long block of text" for at in range(500)]
    chunks = read("blocks", "\n".join(lines)).chunks
    assert len(chunks) > 10
    for chunk in chunks:
        assert len(chunk.text) <= PROSE.limit_chars
        assert chunk.start_line is not None
        assert chunk.text.split("\n")[0] == lines[chunk.start_line - 1]


def test_fields_of_a_piece_are_those_of_its_chunk() -> None:
    when = datetime(2026, 3, 1, tzinfo=UTC)
    piece = Piece("body", 9, "# Part", "put", "function", "Puts.", 3, "Ada", when, {"level": "high"})
    file = SourceFile("app", "a/b.log", b"", 0)
    (chunk,) = build_document(file, [piece], title="Log").chunks
    assert (chunk.start_line, chunk.end_line, chunk.section_path, chunk.page) == (9, 9, "# Part", 3)
    assert (chunk.symbol_name, chunk.symbol_kind, chunk.summary) == ("put", "function", "Puts.")
    assert (chunk.author, chunk.timestamp, chunk.meta) == ("Ada", when, (("level", "high"),))
    assert chunk.document_title == "Log"
    assert chunk.content_hash == text_hash(embedded_text(chunk)) == text_hash("# Part\nbody")


def test_parents_are_made_as_for_every_reader() -> None:
    document = with_parents(read("blocks", "one thing\n\nanother thing"))
    assert [each.level for each in document.chunks] == ["document", "chunk", "chunk"]


def test_a_file_that_does_not_parse_is_a_bad_request_with_the_name_of_the_reader() -> None:
    with pytest.raises(BadRequestError, match="reader 'numbers' failed: invalid literal"):
        read("numbers", "twenty")


def test_other_yields_than_pieces_are_a_bug_that_says_so() -> None:
    with pytest.raises(TypeError, match=r"must yield dowse\.Piece or str, not int"):
        read("wrong", "x")


def test_a_function_without_arguments_makes_a_reader() -> None:
    assert reader_of("made").name == "text"
