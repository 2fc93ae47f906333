"""What stands above a chunk: sections and the document, and their summaries."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from dowse.identity import embedded_text, text_hash
from dowse.ingest.chunking.parents import (
    DOCUMENT_SUMMARY_CHARS,
    PARENT_TOKENS,
    SECTION_SUMMARY_CHARS,
    joined,
    with_parents,
)
from dowse.ingest.chunking.summary import sentences_of, shortened, summarise
from dowse.ports import Reader, SourceFile
from dowse.types import Chunk, Document
from readers_by_name import reader_of
from values import replace

LIMIT_CHARS = PARENT_TOKENS * 4
PARAGRAPH = "The courier scans the parcel and the hub keeps the scan for a year. " * 12


def read(text: str, path: str = "docs/a.md", reader: Reader | None = None) -> Document:
    return with_parents((reader or reader_of("markdown")).read(SourceFile("app", path, text.encode(), 7)))


def levels(document: Document) -> list[str]:
    return [chunk.level for chunk in document.chunks]


def by_id(document: Document) -> dict[str, Chunk]:
    return {chunk.id: chunk for chunk in document.chunks}


def long_page(sections: int) -> str:
    return "# Scans\n\n" + "\n\n".join(f"## Part {at}\n\nPart {at}. {PARAGRAPH}" for at in range(sections))


def test_a_document_that_fits_is_the_parent_of_all_its_chunks() -> None:
    paragraph = PARAGRAPH.strip()
    text = f"# Scans\n\nWhat a scan is, in short.\n\n{paragraph}\n\n## Who\n\n{paragraph}"
    document = read(text)
    whole, *chunks = document.chunks
    assert levels(document) == ["document", "chunk", "chunk"]
    assert whole.text == text
    assert [chunk.parent_id for chunk in chunks] == [whole.id] * 2
    assert (whole.start_line, whole.end_line, whole.parent_id) == (1, text.count("\n") + 1, None)


def test_sections_of_a_long_document_fit_a_thousand_tokens_and_hold_their_chunks() -> None:
    document = read(long_page(12))
    found = by_id(document)
    sections = [chunk for chunk in document.chunks if chunk.level == "section"]
    # Four parts of some 850 characters fit into 4,096.
    assert len(sections) == 12 / 4
    assert all(len(section.text) <= LIMIT_CHARS for section in sections)
    for chunk in document.chunks:
        if chunk.level == "chunk":
            section = found[chunk.parent_id or ""]
            assert chunk.text in section.text
            assert found[section.parent_id or ""].level == "document"


def test_a_section_over_the_limit_falls_into_its_subsections() -> None:
    inner = "\n\n".join(f"### Step {at}\n\nStep {at}. {PARAGRAPH}" for at in range(7))
    document = read(f"# T\n\n## First\n\n{inner}\n\n## Second\n\n{PARAGRAPH}")
    sections = [chunk for chunk in document.chunks if chunk.level == "section"]
    assert [section.section_path for section in sections] == ["## First", "## First", "## Second"]
    assert sections[0].context_prefix == "T > ## First"


def test_the_overview_of_a_long_document_names_its_sections_with_lines() -> None:
    document = read(long_page(12))
    whole = document.chunks[0]
    assert whole.text.startswith(f"Scans\n\n{PARAGRAPH[: len(PARAGRAPH) // 12].strip()}\n")
    assert whole.text.count("\n- ") == 3
    assert "(lines " in whole.text
    assert len(whole.text) <= LIMIT_CHARS


def test_every_parent_is_hashed_as_it_would_be_embedded() -> None:
    document = read(long_page(8))
    assert all(chunk.content_hash == text_hash(embedded_text(chunk)) for chunk in document.chunks)
    assert len(by_id(document)) == len(document.chunks)


def test_overlapping_windows_are_joined_without_repetition() -> None:
    text = "\n".join(f"Line {at:03d} of the notes, which go on for quite a while." for at in range(60))
    document = reader_of("text").read(SourceFile("app", "a.txt", text.encode(), 0))
    assert len(document.chunks) > 2
    assert joined(document.chunks) == text


def test_windows_of_one_endless_line_are_joined_without_repetition() -> None:
    text = " ".join(f"word{at:05d}" for at in range(900))
    document = reader_of("text").read(SourceFile("app", "a.txt", text.encode(), 0))
    assert joined(document.chunks) == text


def test_code_without_an_outline_of_its_own_gets_parents_too() -> None:
    text = "\n\n\n".join(f"def f{at}(value):\n" + "    value += 1  # again and again\n" * 30 for at in range(8))
    document = with_parents(reader_of("code").read(SourceFile("app", "a.unheard", text.encode(), 0)))
    assert levels(document)[0] == "document"
    assert "chunk" in levels(document)


def test_a_reader_that_made_parents_keeps_them() -> None:
    document = read(long_page(8))
    assert with_parents(document) == document
    bare = replace(document, chunks=())
    assert with_parents(bare) == bare


def test_a_parent_has_an_author_only_if_its_chunks_agree() -> None:
    document = reader_of("markdown").read(
        SourceFile("app", "a.md", f"# A\n\n{PARAGRAPH}\n\n## B\n\n{PARAGRAPH}".encode(), 0)
    )
    first, second = document.chunks
    now = datetime(2026, 1, 1, tzinfo=UTC)
    named = replace(document, chunks=(replace(first, author="Ada", timestamp=now), replace(second, timestamp=now)))
    whole = with_parents(named).chunks[0]
    assert (whole.author, whole.timestamp) == (None, now)


@given(st.lists(st.text(alphabet="ab. \n#é", max_size=400), max_size=30))
def test_chunks_stay_as_they_are_and_in_order(parts: list[str]) -> None:
    plain = reader_of("markdown").read(SourceFile("app", "a.md", "\n\n".join(parts).encode(), 0))
    document = with_parents(plain)
    below = [replace(chunk, parent_id=None) for chunk in document.chunks if chunk.level == "chunk"]
    assert tuple(below) == plain.chunks
    found = by_id(document)
    for chunk in document.chunks:
        if chunk.level != "document":
            above = found[chunk.parent_id or ""]
            assert above.level in ("section", "document")
            if chunk.level == "chunk":
                assert chunk.text in above.text
        assert len(chunk.summary or "") <= (
            SECTION_SUMMARY_CHARS if chunk.level == "section" else DOCUMENT_SUMMARY_CHARS
        )


# --- summaries -------------------------------------------------------------------------------------


def test_a_summary_starts_with_the_first_sentence_and_adds_the_most_central() -> None:
    lead = "Retries hide most short faults."
    aside = "A cat sat somewhere else entirely."
    central = "Budgets limit retries, because retries amplify faults."
    text = f"{lead} {aside} {central} Faults and budgets of retries are long discussed, at length, in all of the rest."
    assert summarise(text, len(lead) + 1 + len(central)) == f"{lead} {central}"


def test_headings_tables_and_code_are_no_sentences() -> None:
    table = "| a | b |\n|---|---|\n| one cell | two cells |"
    text = f"# Big heading here\n\n{table}\n\n```\nx = compute it all.\n```\n\nThis is said in prose."
    assert sentences_of(text) == ["This is said in prose."]


def test_abbreviations_and_wrapped_numbers_end_no_sentence() -> None:
    first = "We compare budgets, e.g. Fixed ones, by peak load against\n2.71 for three attempts."
    text = f"{first} It was done by T. Marchetti alone."
    assert sentences_of(text) == [
        "We compare budgets, e.g. Fixed ones, by peak load against 2.71 for three attempts.",
        "It was done by T. Marchetti alone.",
    ]


def test_names_keep_their_underscores() -> None:
    assert sentences_of("Set `retry_budget_ratio` in the settings first.") == [
        "Set retry_budget_ratio in the settings first."
    ]


def test_a_long_first_sentence_is_cut_between_words() -> None:
    found = summarise("word " * 200 + "end.", 50)
    # 49 characters and the ellipsis: nine words of five, the tenth would leave no room for the blank before it.
    assert found == ("word " * 9).rstrip() + "…"


@given(st.text(max_size=600), st.integers(0, 200))
def test_a_summary_never_exceeds_its_limit(text: str, limit_chars: int) -> None:
    assert len(summarise(text, limit_chars)) <= limit_chars
    assert len(shortened(text, limit_chars)) <= limit_chars


def test_the_abstract_is_the_summary_of_a_paper() -> None:
    body = "Nothing of this belongs into a summary of the whole paper. " * 20
    head = "# On Budgets\n\nA. Writer\n\n## Abstract\n\nWe give clients a budget for retries."
    text = f"{head}\n\n## 1. Introduction\n\n{body}\n\n## References\n\n[1] A. B.\n"
    assert read(text, "papers/b.md").chunks[0].summary == "We give clients a budget for retries."
