"""Literals: versions, numbers, flags and short names find the text that spells them, and phrases are verified."""

from __future__ import annotations

from pathlib import Path

import pytest

import dowse
from dowse.filters import Contains, Not
from dowse.query.exact_text import literals

LINES = {
    "a.md": "Release 4.7.0 fixes the 7 bugs of 0.4.",
    "b.md": "Release 0.34.0 of 4 parts, 7 files and 0 bugs, 4, 7, 0 and again 4 7 0.",
    "c.md": "Accuracy of BERT-base is 94.2 on this set.",
    "d.md": "The base of a BERT tokenizer, 94 of 2 kinds. BERT base base BERT.",
    "e.md": "Write it in C++ or in C#, and on .NET as well.",
    "f.md": "The C compiler. C, the language C; net profit in the net.",
    "g.md": "Run docker build --no-cache to start afresh.",
    "h.md": "There is no cache. The cache is no cache: no, cache.",
    "i.md": "The connection\n  was Reset by a peer.",
    "j.md": "Was the reset connection a peer? A connection reset.",
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> dowse.Engine:
    folder: Path = tmp_path_factory.mktemp("texts")
    for name, text in LINES.items():
        (folder / name).write_text(text)
    engine = dowse.open(tmp_path_factory.mktemp("index"), embedder=None)
    engine.index([folder])
    return engine


@pytest.mark.parametrize(
    ("query", "file"),
    [
        ("4.7.0", "a.md"),
        ("94.2", "c.md"),
        ("BERT-base", "c.md"),
        ("C++", "e.md"),
        ("C#", "e.md"),
        (".NET", "e.md"),
        ("--no-cache", "g.md"),
        ("what is 4.7.0", "a.md"),
    ],
)
@pytest.mark.parametrize("group", ["none", "document"])
def test_a_literal_finds_itself_first(engine: dowse.Engine, query: str, file: str, group: str) -> None:
    assert engine.query(query, group=group).chunks[0].file_path == file


def test_a_long_query_is_not_about_its_literals() -> None:
    assert literals("upgrade the cluster controller to 4.7.0 without downtime") == ()


def test_a_phrase_is_verified_over_case_and_white_space(engine: dowse.Engine) -> None:
    result = engine.query('"connection was reset"', syntax="operators")
    assert [hit.file_path for hit in result.chunks] == ["i.md"]


def test_an_excluded_word_is_in_no_hit(engine: dowse.Engine) -> None:
    files = {hit.file_path for hit in engine.query("release -4 -bugs", syntax="operators").chunks}
    assert "a.md" not in files
    assert "b.md" not in files
    assert "a.md" in {hit.file_path for hit in engine.query("release bugs").chunks}


def test_plain_text_ignores_operators(engine: dowse.Engine) -> None:
    assert len(engine.query('"connection was reset"').chunks) > 1


@pytest.mark.parametrize("phrase", ["the", "C#", "no cache", "CACHE", "4, 7", "++", "reset by a PEER", "nowhere"])
def test_phrases_mark_the_same_chunks_as_reading_every_text(engine: dowse.Engine, phrase: str) -> None:
    reader = engine.reader()
    clause = Contains("text", phrase)
    for where in ((clause,), (Not((clause,)),)):
        found = {
            hit.file_path
            for hit in engine.query(
                "release bert compiler docker cache connection write c", where=where, top_k=50
            ).chunks
        }
        chunks = [
            each for info in engine.documents() for each in reader.document_chunks(info.id) if each.level == "chunk"
        ]
        wanted = {each.file_path for each in chunks if dowse.filters.matches(each, where)}
        assert found <= wanted
        assert int(reader.selection(where).count) == len(wanted)


def test_an_unknown_language_says_so_with_the_near_one(engine: dowse.Engine) -> None:
    notes = [each.reason for each in engine.query("release", language_filter="markdwn").degraded]
    assert any("did you mean 'markdown'" in note for note in notes)


def test_the_result_names_the_query_as_it_was_typed(engine: dowse.Engine) -> None:
    typed = 'release -"4 parts" lang:markdown'
    assert engine.query(typed, syntax="operators").query == typed


def test_a_typed_filter_that_hides_a_file_is_named_by_why_not(engine: dowse.Engine) -> None:
    answer = engine.explain("release -bugs", "b.md", syntax="operators")
    assert answer.rank is None
    assert answer.dropped_at is not None
    assert answer.dropped_at.stage == "filter"
    assert answer.verified is not None
    assert dict(answer.verified.remedy.fields)["text"] == "release"
